"""Counters of a spool, read: whatever code objects there are, their executions add up by source line."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perflaw.record.python.native_reader import LineOwners, read_line_counts
from perflaw.record.tree.records import Definitions

LINES = st.dictionaries(st.integers(0, 9), st.integers(0, 2**40), min_size=1)
CODES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 50), LINES, LINES, st.integers(0, 5)), max_size=6)
"""Component, first line, executions by line, times taken by branch, room left before it."""


def written(folder, codes):
    """A spool with these code objects: its definitions, and what should be read."""
    known, counters, expected = Definitions(), [], Counter()
    for number in (1, 2, 3):
        known.take(repr(("code", number, f"m.f{number}", "/s/m.py", number, "own", (), ())))
    for component, first, lines, taken, gap in codes:
        span = max(lines) + 1
        counters += [9] * gap
        blocks = tuple((branch, first, 50 * len(known.counted) + branch + 1) for branch in taken)
        known.take(repr(("counts", component, 1, len(counters), first, span, tuple(lines), blocks)))
        counters += [lines.get(line, 9) for line in range(span)]
        counters += [value for branch in range(max(taken) + 1) for value in (7, taken.get(branch, 9))]
        expected.update({f"m.py:{first + line}": count for line, count in lines.items()})
        for branch, _, rank in blocks:
            name = f"m.py:{first}" + f"_{rank}" * (rank > 1)
            expected.update({f"{name} taken": taken[branch], f"{name} not taken": 7})
    np.array(counters, dtype=np.uint64).tofile(folder / "1.counts")
    return known, expected


@given(codes=CODES)
def test_counts_add_up(tmp_path_factory, codes):
    folder = tmp_path_factory.mktemp("spool")
    known, expected = written(folder, codes)
    counts = read_line_counts(folder, known)
    assert (counts is None) == (not codes)
    if counts:
        table = counts.table(LineOwners())
        assert {place.name: int(count) for place, count in zip(table.locations, table.counts, strict=True)} == expected
        assert not (folder / "1.counts").exists()
        assert {place.kind for place in table.locations} <= {"line", "block"}


def test_an_earlier_process_says_where_a_line_lies(tmp_path):
    known, _ = written(tmp_path, [(2, 7, {0: 1}, {0: 1}, 0)])
    other, _ = written(tmp_path, [(2, 7, {0: 1}, {0: 1}, 0), (1, 5, {2: 4}, {0: 1}, 0)])
    owners = LineOwners()
    counts = read_line_counts(tmp_path, other)
    assert {place.line: place.function for place in counts.table(owners).locations if place.kind == "line"} == {
        7: "m.f1"
    }
    written(tmp_path, [(2, 7, {0: 1}, {0: 1}, 0)])
    child = read_line_counts(tmp_path, known).table(owners)
    assert {place.line: place.function for place in child.locations if place.kind == "line"} == {7: "m.f1"}


def test_files_that_are_gone_or_cut_short(tmp_path):
    known, _ = written(tmp_path, [(1, 7, {0: 1, 3: 2}, {0: 1}, 0)])
    whole = (tmp_path / "1.counts").read_bytes()
    (tmp_path / "1.counts").write_bytes(whole[:16])
    assert not read_line_counts(tmp_path, known).counts
    assert not read_line_counts(tmp_path, known).counts
