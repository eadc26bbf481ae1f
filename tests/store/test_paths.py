"""Durations by call path on disk: what was written is read back; runs, processes and machines are put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.errors import StoreError
from perflaw.store.columns import Column, Table, texts, wide
from perflaw.store.experiment import Recording
from perflaw.store.paths import PathsAbout, about_table, read_observed
from perflaw.store.schema import PATHS
from perflaw.store.tables import read_table, write_tables
from perflaw.types import CPU, EVENTS, TIME, Clock, Losses, Platform, Run
from tests.conftest import examples

RUN = Run(
    "0001", (), "app.py", {}, "2026-01-01T00:00:00.000+00:00", 1, 1000, 0, True, "", "", "3.11", Clock("fake", 1, 0, 0),
    Losses(), "here", {}, {}, 1, 1, 1, metrics=(TIME, CPU, EVENTS),
)  # fmt: skip
Rows = list[tuple[int, int, int, str, int, int, dict[int, int]]]
"""function, observation, path, metric, scale, zeros, buckets."""
ROWS: Rows = [
    (7, 0, 1, "time", 9, 1, {-1: 2, 511: 3}),
    (7, 0, 2, "time", 10, 0, {4: 1}),
    (7, 0, 2, "cpu", 10, 0, {3: 1}),
    (7, 1, 2, "time", 10, 0, {5: 9}),
]


def ints(values) -> Column:
    return Column(np.array(values, np.int64).reshape(-1))


def tables(rows: Rows, about: PathsAbout):
    function, observation, path, metric, scale, zeros, buckets = zip(*rows, strict=True)
    keys = {"function": ints(function), "observation": ints(observation), "path": ints(path), "metric": texts(metric)}
    flat = [(row, bucket, count) for row, some in enumerate(buckets) for bucket, count in sorted(some.items())]
    counts = [sum(some.values()) for some in buckets]
    seen = sorted({(one[0], one[1]) for one in rows})
    return {
        "path_about": about_table(about),
        "path_functions": Table({"function": ints([7]), "name": texts(["app.f"]), "share": Column(np.array([0.5]))}),
        "call_paths": Table(
            {"path": ints([1, 2, 2]), "place": ints([0, 0, 1]), "name": texts(["app.f", "app.main", "app.f"])}
        ),
        "path_observations": Table(
            {
                "function": ints([one[0] for one in seen]),
                "observation": ints([one[1] for one in seen]),
                "begin": ints([100 + one[1] for one in seen]),
                "end": ints([200 + one[1] for one in seen]),
                "calls": ints([9 for _ in seen]),
                "nested": ints([4 for _ in seen]),
            }
        ),
        "path_histograms": Table({**keys, "scale": ints(scale), "zeros": ints(zeros)}),
        "path_buckets": Table(
            {name: ints([row[at] for row in flat]) for at, name in enumerate(("histogram", "bucket", "count"))}
        ),
        "path_batches": Table(
            {
                **keys,
                "level": ints([0 for _ in rows]),
                "batches": ints(counts),
                "sum_b": Column(wide(counts)),
                "sum_bb": Column(wide([count << 70 for count in counts])),
            }
        ),
    }


def recording(folder: Path, name: str, run: Run = RUN, about: PathsAbout | None = None, rows: Rows = ROWS) -> Recording:
    place = folder / name
    place.mkdir()
    write_tables(place, tables(rows, about or PathsAbout("build", 10.0, 6.0)))
    return Recording(replace(run, id=name), place)


def test_what_was_written_is_read_back(tmp_path):
    (observed,) = read_observed([recording(tmp_path, "0001")])
    assert (observed.component, observed.metric, observed.unit, observed.share, observed.probe_ns) == (
        "app.f", "time", "ns", 0.5, 6.0,
    )  # fmt: skip
    assert observed.paths == (("app.f",), ("app.main", "app.f"))
    first, second = observed.observations
    assert (first.start_ns, first.end_ns, first.nested, first.run) == (100, 200, 4, "0001")
    one = first.paths[0]
    assert (one.scale, one.offset, one.zeros, int(one.counts.sum()), len(one.counts)) == (9, -1, 1, 5, 513)
    assert first.path_batches[0].sum_bb == (5 << 70,)
    assert second.paths.keys() == {1} and second.batches.batches == ()


def test_the_part_that_is_read_is_told_by_the_size_of_the_tables(tmp_path):
    buckets = {place: place * place % 9973 for place in range(1, 8000)}
    large, told = [*ROWS[:3], (7, 1, 2, "time", 10, 0, buckets)], []
    read_observed([recording(tmp_path, "0001"), recording(tmp_path, "0002", rows=large)], tell=told.append)
    assert len(told) == 2 and 0.0 < told[0] < 0.4 and told[1] == 1.0


def test_cpu_time_is_the_wall_time_where_it_has_no_row(tmp_path):
    (observed,) = read_observed([recording(tmp_path, "0001")], metric="cpu")
    assert [one.paths[1].offset for one in observed.observations] == [3, 5]
    assert observed.observations[0].paths[0].counts.sum() == 5


def test_runs_and_machines_are_put_together(tmp_path):
    there = replace(RUN, host="there", span_ns=3000)
    recordings = [
        recording(tmp_path, "0002", there, PathsAbout("build", 1.0, 9.0, dropped=3)),
        recording(tmp_path, "0001"),
    ]
    (observed,) = read_observed(recordings, ["app.f", "app.g"])
    assert observed.platforms == (Platform("there", "build", 1.0), Platform("here", "build", 10.0))
    assert [(one.run, one.platform) for one in observed.observations] == [
        ("0001", 1),
        ("0002", 0),
        ("0001", 1),
        ("0002", 0),
    ]
    assert observed.probe_ns == 9.0 and len(observed.paths) == 2
    assert "3 functions" in observed.notes[0]
    assert read_observed(recordings, ["app.g"]) == []


@pytest.mark.parametrize(("language", "build"), [("python", "a"), ("c", "1")])
def test_recordings_of_other_functions_of_one_program_are_one_platform_until_a_file_changes(tmp_path, language, build):
    """A run knows the files of what was selected, and the digest of all of these differs by the selection."""
    seen = [{"a.py": "a", "b.py": "b"}, {"a.py": "a"}, {"a.py": "a", "c.py": "c"}, {"a.py": "a", "b.py": "changed"}]
    recordings = []
    for number, sources in enumerate(seen, 1):
        one = recording(tmp_path, f"000{number}", replace(RUN, sources=sources), PathsAbout(str(number), 1.0, 9.0))
        columns = {"component": ints([7]), "name": texts(["app.f"]), "file": texts(["a.py"]), "line": ints([1])}
        columns |= {"language": texts([language]), "origin": texts(["own"]), "parameters": texts([""])}
        write_tables(one.folder, {"components": Table({**columns, "calls": ints([9]), "open": ints([0])})})
        recordings.append(one)
    (observed,) = read_observed(recordings)
    assert observed.platforms == (Platform("here", build, 1.0), Platform("here", "4", 1.0))
    assert {one.run: one.platform for one in observed.observations} == {"0001": 0, "0002": 0, "0003": 0, "0004": 1}


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(StoreError, match="--collect paths"):
        read_observed([Recording(RUN, tmp_path)])
    one = recording(tmp_path, "0001", replace(RUN, metrics=(TIME, EVENTS)))
    for metric in ("cpu", "events"):
        with pytest.raises(StoreError, match=f"no durations of {metric}"):
            read_observed([one], metric=metric)
    (one.folder / "path_buckets.parquet").write_bytes(b"no table")
    with pytest.raises(StoreError, match="path_buckets"):
        read_observed([one])


row = st.tuples(
    st.just(7), st.integers(0, 3), st.integers(1, 2), st.sampled_from(("time", "cpu")), st.integers(-10, 10), st.integers(0, 5),
    st.dictionaries(st.integers(-700, 60000), st.integers(1, 2**40), max_size=5),
)  # fmt: skip


@settings(max_examples=examples(25), deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=8, unique_by=lambda one: one[1:4]))
def test_tables_keep_every_row(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("paths")
    about = PathsAbout("", 0.0, 0.0)
    write_tables(folder, tables(rows, about))
    assert {name: list(read_table(folder, name)) for name in PATHS} == {
        name: list(table) for name, table in tables(rows, about).items()
    }
