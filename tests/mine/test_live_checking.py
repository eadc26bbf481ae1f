"""What a continuous check tells, and what it sends to receivers of metrics."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest

from perflaw.api.mining import judge_recordings
from perflaw.api.watching import RecordingJudge, SpecWatch
from perflaw.check.spec_calls import SpecOptions
from perflaw.check.spec_watching import OpenViolations, watched_functions
from perflaw.cli.live_checking import WatchRemarks, check_once, check_running
from perflaw.cli.live_outputs import DurationExport, LiveOutputs, WatchMetrics
from perflaw.errors import UsageError
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.durations import total
from perflaw.learn.paths.mine import mine
from perflaw.specs.files import parse_specs
from perflaw.store.experiment import open_experiment
from perflaw.types import Component, Metric, SpecVerdict
from perflaw.types.specifications import MinedSpec, SpecFile
from tests.check.spec_data import observed

OUTPUTS = LiveOutputs(False, False, None, None)


@pytest.fixture
def file():
    known = observed(1, functions=("db.load",))["db.load", "time"]
    return SpecFile((MinedSpec(mine(known, MiningOptions(), 0)),))


@pytest.fixture
def watch(file, tmp_path):
    """A watch whose rounds last ten seconds; a test gives it the rounds."""
    judge = RecordingJudge(file, SimpleNamespace(runs_folder=tmp_path / "runs"), SpecOptions(), set)
    one = SpecWatch(judge, None)
    one.number = 1
    one._begun -= 10.0
    return one


def test_durations_are_sums_since_the_check_began_that_contain_each_call_once(file, tmp_path):
    """Receivers take a sum that shrinks, or that begins later than before, for another program's."""
    export = DurationExport(file, str(tmp_path / "m.json"))
    window = observed(2, runs=3, functions=("db.load",))
    told = []
    for runs in (["0001"], ["0002"], ["0003"]):  # the window holds all three rounds each time
        export.update(window, runs)
        metric = json.loads((tmp_path / "m.json").read_text())["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
        points = metric["exponentialHistogram"]["dataPoints"]
        told.append((sum(int(one["count"]) for one in points), {one["startTimeUnixNano"] for one in points}))
    calls = [
        sum(total(histogram) for histogram in one.paths.values()) for one in window["db.load", "time"].observations
    ]
    counts, starts = zip(*told, strict=True)
    assert list(counts) == [sum(calls) // 3 * rounds for rounds in (1, 2, 3)]
    assert len(set.union(*starts)) == 1


def test_prometheus_has_nothing_to_say_about_the_metrics(tmp_path):
    """A sample whose name is not that of a type above it has no type."""
    WatchMetrics({"db.load": False}, 1, 0.02, 1.0, 0).write(str(tmp_path / "m.prom"))
    text = (tmp_path / "m.prom").read_text()
    assert 'perflaw_spec_violated{function="db.load"} 0' in text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    samples = {line.split()[0].partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert samples == {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


@pytest.mark.parametrize(
    ("evidence", "told", "rounds"),
    [
        ([1.5**count for count in range(1, 31)], 1, 12),  # beyond 100 with the twelfth round
        ([1.2] * 30, 0, 20),
        ([0.4] * 30, 0, 6),
    ],
)
def test_fresh_rounds_are_looked_at_as_long_as_they_speak_for_a_violation(watch, monkeypatch, evidence, told, rounds):
    taken = []
    watch.rounds = SimpleNamespace(round=lambda levels: taken.append(levels) or ["run"], ends=lambda: False)
    watch._begun -= 3600.0  # it looks once in an hour

    def judged(runs, new=(), alpha=0.01):
        e = evidence[len(runs) - 1]
        verdict = "violated" if e >= 1 / alpha else "holds"
        component, metric = Component("db.load"), Metric("time", "ns")
        return [SpecVerdict(component, metric, "", verdict, 0.4, 0.3, 0.5, 0.01, border=5.0, e_value=e)]

    monkeypatch.setattr(watch.judge, "verdicts", judged)
    suspected = judged(["run"] * 30)
    folder = watch.judge.experiment.runs_folder / "run"
    folder.mkdir(parents=True)
    assert len(watch.confirm(suspected)[0]) == told
    assert len(taken) == rounds
    assert folder.exists() == bool(told)  # the evidence of what is told stays


def test_what_was_not_suspected_is_told_as_well_when_fresh_rounds_show_it(watch, monkeypatch):
    """Rounds that ask about one function, slow once for another reason, do not keep another one waiting."""
    taken = []
    watch.rounds = SimpleNamespace(round=lambda levels: taken.append(levels) or ["run"], ends=lambda: False)
    other, metric = Component("db.save"), Metric("time", "ns")
    suspected = [SpecVerdict(other, metric, "", "violated", 0.4, 0.3, 0.5, 0.01, border=5.0, e_value=1e6)]
    fresh = [
        SpecVerdict(other, metric, "", "holds", 0.0, -0.1, 0.1, 1.0, border=5.0, e_value=0.2),
        SpecVerdict(Component("db.load"), metric, "", "violated", 0.4, 0.3, 0.5, 1e-9, border=5.0, e_value=1e9),
    ]
    monkeypatch.setattr(watch.judge, "verdicts", lambda runs, new=(), alpha=None: fresh)
    found, runs = watch.confirm(suspected)
    assert [one.component.name for one in found] == ["db.load"]
    assert runs == ["run"] * 3
    assert len(taken) == 3


def test_functions_of_which_no_group_was_mined_often_enough_are_not_watched(file):
    (mined,) = file.specs
    group = mined.spec.groups[0]

    def with_runs(*runs):
        groups = tuple(replace(group, id=f"g{place}", runs=number) for place, number in enumerate(runs))
        return replace(file, specs=(replace(mined, spec=replace(mined.spec, groups=groups)),))

    assert watched_functions(with_runs(1, 3)) == {"db.load"}
    assert watched_functions(with_runs(0)) == {"db.load"}  # as a person wrote it
    assert watched_functions(with_runs(1, 2)) == set()


def test_what_has_nothing_to_watch_is_refused_before_anything_is_measured(monkeypatch, file):
    (mined,) = file.specs
    groups = tuple(replace(group, runs=1) for group in mined.spec.groups)
    unknown = replace(file, specs=(replace(mined, spec=replace(mined.spec, groups=groups)),))
    monkeypatch.setattr("perflaw.cli.live_checking.read_specs", lambda source: unknown)
    with pytest.raises(UsageError, match="nothing to watch"):
        check_running("live.yaml", "held", 0, SpecOptions(), (0.05, "throughput"), OUTPUTS, watch=True)


def test_it_says_once_which_slowdowns_it_tells(watch, file, capsys):
    (mined,) = file.specs
    group = replace(mined.spec.groups[0], id="g", runs=8, durations=(1e3, 2e3, 3e3, 4e3, 5e3), duration_spread=0.1)
    watch.judge.file = replace(file, specs=(replace(mined, spec=replace(mined.spec, groups=(group,))),))
    watch.rounds = SimpleNamespace(idle=set())
    remarks = WatchRemarks(watch)
    component, metric = Component("db.load"), Metric("time", "ns")
    verdict = SpecVerdict(
        component, metric, "", "holds", 0.0, None, None, None, group="g", runs=1, calls=500, worth=400.0
    )
    remarks.tell([replace(verdict, worth=0.0)])
    assert not capsys.readouterr().err
    remarks.tell([verdict])
    said = capsys.readouterr().err
    assert "told within 2 minutes from" in said
    assert "(median of 1 group; " in said
    assert "at 500 calls of a group in a round, every 10 s" in said
    remarks.tell([verdict])
    assert not capsys.readouterr().err


def test_a_violation_is_told_once_until_its_own_groups_hold_again():
    """Other groups of the function hold all the time, so they do not say that it is over."""
    metric = Metric("time", "ns")
    slow, other = (
        SpecVerdict(Component("db.load"), metric, "", verdict, 0.4, 0.3, 0.5, 0.01, border=5.0, group=group)
        for verdict, group in (("violated", "g1"), ("holds", "g2"))
    )
    told = OpenViolations()
    told.add([slow])
    for verdicts in ([slow, other], [other], []):
        told.close(verdicts)
        assert not told.new([slow])
    told.close([replace(slow, verdict="holds"), replace(other, verdict="violated")])
    assert told.new([slow, other]) == [slow]


def test_functions_of_which_no_call_was_recorded_are_told(watch, capsys):
    """As with the specification of another program, of which a silent watch would look as if all held."""
    watch.rounds = SimpleNamespace(callers={"db.load": None, "db.save": None, "db.wait": None}, idle={"db.wait"})
    watch.number = 6

    def told():
        WatchRemarks(watch).tell([])
        return capsys.readouterr().err.replace(IDLE, "")

    assert "no call of db.load, db.save began and ended in the first 6 rounds: is this" in told()
    watch.judge.called = {"db.load"}
    assert told() == "perflaw: no call of db.save began and ended in the first 6 rounds\n"
    watch.judge.called = {"db.load", "db.save"}
    assert not told()


IDLE = "perflaw: db.wait is not watched: it waits until somebody asks for something, who decides how long\n"


def test_a_function_that_waits_until_somebody_asks_is_told_once(watch, capsys):
    watch.rounds = SimpleNamespace(callers={}, idle={"db.wait"})
    remarks = WatchRemarks(watch)
    remarks.tell([])
    assert capsys.readouterr().err == IDLE
    remarks.tell([])
    assert not capsys.readouterr().err


def test_rounds_without_any_call_judge_each_function_as_out_of_scope(watch, capsys):
    assert check_once(watch.judge, SimpleNamespace(round=lambda: [], idle=set()), OUTPUTS) == 0
    text = capsys.readouterr().out
    assert "db.load: not in the new recordings: not called, or no longer there" in " ".join(text.split())


PROGRAM = """
import sys

def load(size):
    return sum(range(size))

def page():
    return load(4000) + load(100)

def item():
    return load(200)

for turn in range(int(sys.argv[1])):
    page(), item()
"""


def test_a_recording_that_is_read_once_has_the_verdicts_of_one_that_is_read_each_time(perflaw, recorded, tmp_path):
    """Also where recordings have other callers, as those that confirm a violation have."""
    (tmp_path / "app.py").write_text(PROGRAM)
    recorded("--collect", "paths", "--repeat", "3", "--", "app.py", "2000", experiment="mined")
    file = parse_specs(perflaw("mine", "-e", "mined", "--export", "yaml").stdout, "spec.yaml")
    for select in ("app.load", "app.*", "app.load", "app.*", "app.page"):
        recordings = recorded("--collect", "paths", "--select", select, "--", "app.py", "1500", experiment="new")
    experiment, options = open_experiment("new", tmp_path), SpecOptions(plan=False)
    told = []
    judge = RecordingJudge(file, experiment, options, set, lambda observed, new: told.append((set(observed), new)))
    runs = [one.run.id for one in recordings]
    for window in (runs[:1], runs[:3], runs[1:4], runs, runs[-1:]):
        chosen = [one for one in recordings if one.run.id in window]
        expected, observed = judge_recordings(file, chosen, options)
        assert repr(judge.verdicts(window, window[-1:])) == repr(expected)
        assert told[-1] == (set(observed), window[-1:])
    assert "app.load" in judge.called
    judge.forget(runs)
    assert not judge._read
