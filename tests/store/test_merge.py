"""Recordings merge by addition, in any order and grouping, to the same bytes."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.records import Definitions
from perflaw.record.tree.tables import tabulate
from perflaw.store.merge import merge
from perflaw.store.tables import read_tables, write_tables
from perflaw.types import Component
from tests.conftest import PROGRAMS, assert_identities, examples
from tests.record.test_tree_builder import Stream, trees


def recording(run, calls, shift):
    """One run; its functions are numbered otherwise than in the other runs."""
    stream, builder = Stream(), TreeBuilder(shift)
    for call in calls:
        stream.call(call)
    builder.feed(1, stream.events)
    return tabulate(
        run, builder.finish(), Definitions({code: Component(f"f{(code + shift) % 4}") for code in range(1, 5)})
    )


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.lists(trees(), max_size=2), min_size=3, max_size=3))
def test_any_order_and_grouping_gives_the_same_tables(runs):
    a, b, c = (recording(f"{index:04d}", calls, index) for index, calls in enumerate(runs))
    merged = merge([a, b, c])
    assert_identities(merged)
    for order in itertools.permutations([a, b, c]):
        assert merge(order) == merged
    assert merge([merge([a, b]), c]) == merged
    assert merge([c, merge([b, a])]) == merged
    assert merge([merged]) == merged


def test_any_order_gives_the_same_bytes(recorded, tmp_path):
    for size in (10, 20, 30):
        found = recorded("--clock", "fake", "--", PROGRAMS / "known.py", size, 0.1, 0)
    tables = [one.tables() for one in found]
    contents = set()
    for index, order in enumerate(itertools.permutations(tables)):
        folder = tmp_path / str(index)
        folder.mkdir()
        write_tables(folder, merge(order))
        contents.add(tuple(path.read_bytes() for path in sorted(folder.iterdir())))
    assert len(contents) == 1
    assert read_tables(tmp_path / "0") == merge(tables)


def test_sums_add_up(recorded):
    for size in (10, 20):
        found = recorded("--clock", "fake", "--", PROGRAMS / "known.py", size)
    tables = [one.tables() for one in found]
    merged = merge(tables)
    for table, column in (("components", 7), ("component_costs", 2), ("component_costs", 3), ("moments", 4)):
        parts = sum(row[column] for one in tables for row in one[table])
        assert sum(row[column] for row in merged[table]) == parts
    assert len(merged["components"]) == len(tables[0]["components"])


def test_samples_stay_bounded():
    calls = [(1, 0, 10, [], 0)] * 400
    merged = merge([recording(f"{run:04d}", calls, 4 * run) for run in range(4)])
    assert sum(row[9] >= 0 for row in merged["invocations"]) <= 512 + 32
    assert sum(row[-1] for row in merged["invocations"]) == pytest.approx(1600)
