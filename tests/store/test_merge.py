"""Recordings merge by addition, in any order and grouping, to the same bytes."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.records import Definitions
from perflaw.record.tree.tables import tabulate
from perflaw.store.merge import merge
from perflaw.store.schema import COLUMNS, PER_STRATUM, UNIFORM, WORST
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


@pytest.mark.slow
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


# ---- A reference in plain Python, which identifies functions and calling contexts by name and path.

NODES = {"node", "parent", "i", "j", "ancestor", "descendant"}
KEYS = {"component_costs": 2, "moments": 2, "pairs": 4, "links": 3, "histograms": 2, "strata": 2}
"""Summed table → number of its first columns that identify a row."""


def spelled(tables):
    """Rows of each table as dictionaries, with functions by their description and contexts by their path from the root."""
    functions = {row[0]: row[1:7] for row in tables["components"]}
    paths = {-1: "local", -2: "other"}
    for node, parent, component, site, _, depth in sorted(tables["calltree"], key=lambda row: row[5]):
        paths[node] = (*(paths[parent] if depth else ()), (functions.get(component), site))
    for name, table in tables.items():
        rows = [dict(zip(COLUMNS[name], row, strict=True)) for row in table]
        for row in rows:
            for column in row.keys() & NODES:
                if (name, column) not in {("spans", "parent"), ("calltree", "parent")}:
                    row[column] = paths[row[column]]
            if "component" in row and name != "components":
                row["component"] = functions.get(row["component"])
        yield name, rows


def summed(recordings):
    """Sums of the rows of each key over recordings, by table."""
    sums = {name: {} for name in KEYS}
    for tables in recordings:
        for name, rows in spelled(tables):
            for row in rows if name in KEYS else ():
                if name == "pairs":
                    row["i"], row["j"] = sorted((row["i"], row["j"]), key=str)
                values = list(row.items())
                key = tuple(value for _, value in values[: KEYS[name]])
                of_key = sums[name].setdefault(key, {})
                for column, value in values[KEYS[name] :]:
                    of_key.setdefault(column, []).append((value, row.get("n", 1)))
    for of_table in sums.values():
        for of_key in of_table.values():
            for column, values in of_key.items():
                called = [value for value, n in values if n]
                extreme = {"min_x": min, "max_x": max}.get(column)
                of_key[column] = extreme(called, default=0) if extreme else sum(value for value, _ in values)
    return sums


def kept_samples(recordings):
    """Run and sequence of the samples that are kept, with the number of samples in each stratum of a function."""
    uniform, strata = {}, {}
    for tables in recordings:
        for row in dict(spelled(tables))["invocations"]:
            sample = row["run"], row["sequence"]
            strata.setdefault((row["component"], row["stratum"]), []).append((row["stratum_key"], sample))
            if row["uniform_key"] >= 0:
                uniform.setdefault(row["component"], []).append((row["uniform_key"], sample))
    kept = {sample for keyed in uniform.values() for _, sample in sorted(keyed)[:UNIFORM]}
    return kept | {sample for keyed in strata.values() for _, sample in sorted(keyed)[:PER_STRATUM]}


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.lists(trees(), max_size=3), min_size=2, max_size=3), st.integers(0, 500))
def test_tables_are_those_of_the_reference(runs, more):
    leaves = [(1, 0, 10 + number % 7, [], 0) for number in range(more)]
    recordings = [recording(f"{index:04d}", [*calls, *leaves], index) for index, calls in enumerate(runs)]
    merged = merge(recordings)
    assert summed([merged]) == summed(recordings)
    rows = dict(spelled(merged))
    samples = {(row["run"], row["sequence"]): row for row in rows["invocations"]}
    assert samples.keys() == kept_samples(recordings)
    for name in ("features", "invocation_costs", "callees"):
        wanted = [row for one in recordings for row in dict(spelled(one))[name]]
        wanted = [row for row in wanted if (row["run"], row["sequence"]) in samples]
        assert sorted(map(repr, rows[name])) == sorted(map(repr, wanted))
    counts = {(row["component"], row["stratum"]): row["count"] for row in rows["strata"]}
    weights = {}
    for row in samples.values():
        weights.setdefault((row["component"], row["stratum"]), []).append(row["weight"])
    for stratum, of_stratum in weights.items():
        assert of_stratum == pytest.approx([counts[stratum] / len(of_stratum)] * len(of_stratum))
    longest = {}
    for one in recordings:
        for row in dict(spelled(one))["worst"]:
            longest.setdefault(row["component"], []).append(row["x"])
    for component, durations in longest.items():
        worst = [row for row in rows["worst"] if row["component"] == component]
        assert sorted(row["x"] for row in worst) == sorted(durations)[-WORST:]
    owners = {(row["run"], row["sequence"]) for row in rows["worst"]}
    spans = [row for one in recordings for row in dict(spelled(one))["spans"]]
    spans = [row for row in spans if (row["run"], row["sequence"]) in owners]
    assert sorted(map(repr, rows["spans"])) == sorted(map(repr, spans))


def test_rows_are_sorted_by_what_identifies_them():
    calls = [(1, 0, 10, [(2, 1, 3, [], 0), (3, 2, 4, [], 0)], 0), (2, 0, 5, [], 0)]
    merged = merge([recording(f"{run:04d}", calls, run) for run in range(3)])
    for name, count in {
        **KEYS,
        "components": 1,
        "calltree": 1,
        "features": 3,
        "callees": 3,
        "worst": 2,
        "spans": 3,
    }.items():
        keys = [row[:count] for row in merged[name]]
        assert keys == sorted(set(keys)), name
    parents = {row[0]: row[1] for row in merged["calltree"]}
    assert all(parent < node for node, parent in parents.items())
    assert list(parents) == list(range(len(parents)))
