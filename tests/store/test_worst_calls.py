"""The worst invocations and their spans on disk: merged over runs, absent in old recordings, read for one function."""

import itertools

import pytest

from perflaw.errors import StoreError
from perflaw.store.call_trees import worst_calls
from perflaw.store.merge import merge
from perflaw.store.schema import ADDED_SINCE
from perflaw.store.tables import read_tables, write_tables
from perflaw.types import Component
from tests.conftest import PROGRAMS
from tests.store.test_merge import recording


def runs():
    """Three runs of f0, which calls f1; in the third it takes longest."""
    found = []
    for run in range(3):
        inner = [(1, 0, 7, [], 0)] * 2
        calls = [(4, 0, 100 * (run + 1) + at, inner, 3) for at in range(10)]
        found.append(recording(f"{run:04d}", calls, 0))
    return found


def test_merging_keeps_the_longest_of_all_runs_in_any_order():
    merged = merge(runs())
    f0 = next(row[0] for row in merged["components"] if row[1] == "f0")
    worst = [row for row in merged["worst"] if row[2] == f0]
    assert [(row[0], row[5]) for row in worst] == [("0002", 317 + at) for at in range(2, 10)]
    assert [row[1] for row in worst] == [3 * at for at in range(3, 11)], "the order in which they ended"
    spans = [row for row in merged["spans"] if row[:2] == worst[0][:2]]
    assert [(row[2], row[3], row[5], row[6]) for row in spans] == [(0, -1, 302, 7), (1, -1, 309, 7)]
    for order in itertools.permutations(runs()):
        assert merge(order) == merged
    assert merge([merged, *runs()])["worst"] == merged["worst"]


def test_no_span_stays_without_its_invocation():
    merged = merge(runs())
    kept = {row[:2] for row in merged["worst"]}
    assert {row[:2] for row in merged["spans"]} <= kept


def test_recordings_of_earlier_versions_are_read(tmp_path):
    tables = runs()[0]
    write_tables(tmp_path, tables)
    for name in ADDED_SINCE:
        (tmp_path / f"{name}.parquet").unlink(missing_ok=True)
    old = read_tables(tmp_path)
    assert [len(old[name]) for name in ("worst", "spans")] == [0, 0]
    assert old["moments"] == tables["moments"]
    both = merge([old, runs()[1]])
    assert {row[0] for row in both["worst"]} == {"0001"}


def test_a_damaged_table_is_told(tmp_path):
    write_tables(tmp_path, runs()[0])
    (tmp_path / "worst.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"worst\.parquet: cannot be read"):
        read_tables(tmp_path)


@pytest.mark.slow
def test_calls_of_a_function_over_all_runs(recorded, tmp_path):
    for size in (10, 20):
        found = recorded("--clock", "fake", "--", PROGRAMS / "known.py", size, 0.1, 0)
    component = next(one for one in _components(found[0]) if one.name == "known.outer")
    calls = worst_calls(found, component)
    assert [call.time_ns for call in calls] == sorted((call.time_ns for call in calls), reverse=True)
    longest = calls[0]
    assert longest.path[-1] == "known.outer"
    assert longest.spans
    assert all(span.name.startswith("known.") for span in longest.spans)
    assert longest.left_out == longest.calls - 1 - len(longest.spans)
    (found[0].folder / "worst.parquet").unlink()
    (found[1].folder / "worst.parquet").unlink()
    assert worst_calls(found, component) == ()


def _components(one):
    return [Component(*row[1:4], row[4], row[5]) for row in one.tables()["components"]]
