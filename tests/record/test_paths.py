"""``--collect paths``: durations by call path of real programs, on a clock that they move themselves, to the last call."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from perflaw.errors import StoreError
from perflaw.learn.paths.borders import borders_of
from perflaw.learn.paths.durations import downscaled, histogram_of, merged
from perflaw.record.plan import make_plan
from perflaw.record.session import record_all
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import TracerChoice
from perflaw.record.tree.path_builder import whole_log
from perflaw.store.experiment import Recording, open_experiment
from perflaw.store.paths import read_observed
from perflaw.types import Histogram, Observed
from tests.conftest import PROGRAMS

CALLS = 4000


def recorded(folder: Path, tracer: str, *command: object, clock: str = "fake", **options: object) -> list[Recording]:
    settings = RecordSettings(clock=clock, collect=("paths",), **options)
    experiment = open_experiment(tracer, folder)
    plan = make_plan(tuple(map(str, command)), {}, 1, {})
    for attempt in record_all(experiment, plan, TracerChoice(tracer, lambda text: None), settings):
        assert attempt.error is None, attempt.error
    return experiment.recordings()


def of(observed: list[Observed], name: str) -> Observed:
    return next(one for one in observed if one.component.endswith(name))


def counted(histograms: list[Histogram], scale: int) -> Counter[int]:
    """Calls by bucket, at a scale that is not finer than theirs."""
    counts: Counter[int] = Counter()
    for one in histograms:
        for place, count in enumerate(one.counts.tolist()):
            if count:
                counts[one.offset + place >> one.scale - scale] += count
    return counts


def assert_exact(observed: Observed, truth: dict[str, list[int]]) -> None:
    """Each call is in its bucket; ``truth``: last but one function of the path → durations."""
    by_caller = {path[-2].rpartition(".")[2]: place for place, path in enumerate(observed.paths)}
    assert by_caller.keys() == truth.keys()
    for caller, durations in truth.items():
        place = by_caller[caller]
        histograms = [one.paths[place] for one in observed.observations if place in one.paths]
        scale = min(one.scale for one in histograms)
        exact = Counter(whole_log(x) - (x & (x - 1) == 0) >> 10 - scale for x in durations)
        assert counted(histograms, scale) == exact
        sums = [one.path_batches[place] for one in observed.observations if place in one.path_batches]
        assert sum(one.sum_b[0] for one in sums) == sum(map(whole_log, durations))
        assert sum(one.sum_bb[0] for one in sums) == sum(whole_log(x) ** 2 for x in durations)
    assert sum(one.batches.batches[0] for one in observed.observations) == sum(map(len, truth.values()))


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_every_call_is_in_its_bucket(tmp_path, tracer):
    command = (PROGRAMS / "paths.py", CALLS, tmp_path / "truth.json")
    recordings = recorded(tmp_path, tracer, *command, metrics=("cpu",), select=("paths.*",))
    truth = json.loads((tmp_path / "truth.json").read_text())
    for lane, metric in enumerate(("time", "cpu")):
        observed = of(read_observed(recordings, metric=metric), ".lookup")
        assert_exact(observed, {by: [row[lane] for row in rows] for by, rows in truth.items()})
        assert (observed.metric, observed.unit, observed.probe_ns) == (metric, "ns", 0)
    assert observed.paths[0][:2] == ("paths.<module>", "paths.serve")
    (platform,) = observed.platforms
    assert platform.host and platform.tick == 1
    assert platform.build in recordings[0].run.sources.values()  # of the file that has the function
    assert len(observed.observations) > 3
    spans = [(one.start_ns, one.end_ns) for one in observed.observations]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    nested = of(read_observed(recordings), ".page").observations
    assert sum(one.nested for one in nested) == len(truth["page"])


def test_compiled_programs_are_as_exact(tmp_path):
    program = tmp_path / "paths"
    source = PROGRAMS / "paths.c"
    subprocess.run(["gcc", "-O1", "-g", "-finstrument-functions", str(source), "-o", str(program)], check=True)
    recordings = recorded(tmp_path, "auto", program, CALLS, tmp_path / "truth.txt")
    truth: dict[str, list[int]] = {}
    for line in (tmp_path / "truth.txt").read_text().splitlines():
        caller, took = line.split()
        truth.setdefault(caller, []).append(int(took))
    observed = of(read_observed(recordings), "lookup")
    assert_exact(observed, truth)
    assert set(observed.paths) == {("main", "page", "lookup"), ("main", "report", "lookup")}
    everything = [took for some in truth.values() for took in some]
    ours = merged([one for seen in observed.observations for one in seen.paths.values()])
    assert (
        borders_of(ours, 1.0).tolist()
        == borders_of(downscaled(histogram_of(everything), ours.scale), 1.0).tolist()
        != []
    )
    build = observed.platforms[0].build
    assert build in subprocess.run(["readelf", "-n", str(program)], capture_output=True, text=True, check=True).stdout


def test_without_it_nothing_is_kept_and_the_error_says_what_to_do(tmp_path):
    recordings = recorded(tmp_path, "native", PROGRAMS / "paths.py", 10, tmp_path / "truth.json", metrics=("cpu",))
    with pytest.raises(StoreError, match="no durations of events"):
        read_observed(recordings, metric="events")
    (recordings[0].folder / "path_about.parquet").unlink()
    with pytest.raises(StoreError, match="--collect paths"):
        read_observed(recordings)


MANY = """
import os, threading
def leaf(n): return n if n < 1 else leaf(n - 1)
def work():
    for _ in range(1200): leaf(4)
work()
threads = [threading.Thread(target=work) for _ in range(2)]
for one in threads: one.start()
for one in threads: one.join()
for _ in range(2):
    if not (pid := os.fork()):
        work()
        break
    os.waitpid(pid, 0)
"""


def test_threads_children_and_recursion(tmp_path):
    script = tmp_path / "many.py"
    script.write_text(MANY)
    recordings = recorded(tmp_path, "native", script, clock="real", select=("many.*",))
    assert len(recordings) == 3
    observed = of(read_observed(recordings), ".leaf")
    calls = Counter[str]()
    for one in observed.observations:
        calls[one.run] += sum(int(histogram.counts.sum()) + histogram.zeros for histogram in one.paths.values())
    assert sorted(calls.values()) == [6000, 6000, 18000]
    depths = {path.count("many.leaf") for path in observed.paths}
    assert depths == {1, 2, 3}, "the third repetition from a site is the first again"
    assert len(observed.platforms) == 1 and observed.platforms[0].tick >= 1
    assert all(path[-1] == "many.leaf" for path in observed.paths)


def test_functions_that_are_named_are_kept(tmp_path):
    lines = [f"def f{number}(): return {number}" for number in range(30)]
    busy = "def busy(): return sum(range(20000))"
    calls = [f"f{number}()" for number in range(30)]
    script = tmp_path / "names.py"
    script.write_text("\n".join([*lines, busy, "for _ in range(300): busy()", *calls, ""]))
    names = {}
    for globs in ((), ("names.f1?", "names.f29")):
        folder = tmp_path / str(len(globs))
        folder.mkdir()
        recordings = recorded(folder, "native", script, clock="real", paths=globs)
        names[globs] = {one.component for one in read_observed(recordings)}
    assert "names.busy" in names[()] and len(names[()]) < 30
    assert {f"names.f{number}" for number in (*range(10, 20), 29)} <= names["names.f1?", "names.f29"]
