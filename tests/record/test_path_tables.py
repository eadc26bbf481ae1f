"""From the call tree to tables: nodes of equal names are one call path, hot functions stay."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.reader import RecordedProcess
from perflaw.record.tree.call_tree import RecordedTree, TreeNode, to_tables
from perflaw.record.tree.core import TreeTables
from perflaw.record.tree.path_builder import (
    ON_CPU,
    WALL,
    WHOLE,
    DurationSums,
    FunctionPaths,
    PathObservation,
    PathPiece,
    merged,
    narrowed,
)
from perflaw.record.tree.path_tables import ALWAYS, path_tables, shares_of, summed_pieces, wilson
from perflaw.record.tree.records import Definitions, TracerStart
from perflaw.store.paths import PathsAbout
from perflaw.types import CPU, Clock, Component, Losses, Run
from perflaw.types.recordings import TIME
from perflaw.types.specifications import MOST_SCALE

ABOUT = PathsAbout("b", 10.0, 6.0)
RUN = Run(
    "0001", (), "app.py", {}, "2026-01-01T00:00:00.000+00:00", 1, 1, 0, True, "", "", "3.11", Clock("fake", 1, 0, 0),
    Losses(), "here", {}, {}, 1, 1, 1, metrics=(TIME, CPU),
)  # fmt: skip


def piece(node: int, durations: list[int], clock: int = WALL) -> PathPiece:
    measured = DurationSums()
    for x in durations:
        measured.add(x)
    scale, counts = narrowed(measured.buckets, MOST_SCALE)
    return PathPiece(node, 0, clock, scale, measured.zeros, counts, measured.levels())


def tree(pieces: list[PathPiece], selves: dict[int, int] | None = None) -> TreeTables:
    """Function 2 called from two sites of function 1 and from function 3: nodes 2, 3 and 5."""
    nodes = [
        TreeNode(*row, n=1)
        for row in ((-1, -1, -1, 0), (0, 0, 1, 1), (1, 0, 2, 2), (1, 8, 2, 2), (0, 0, 3, 1), (4, 0, 2, 2))
    ]
    costs = {code: [cost] * 3 for code, cost in (selves or {1: 5, 2: 10**9, 3: 5}).items()}
    paths = {2: FunctionPaths(0, [PathObservation(5, 9, 4, 1)], pieces), 3: FunctionPaths(1)}
    return to_tables(RecordedTree(("time", "cpu", "events"), nodes, costs, costs, {}, {}, paths=paths))


durations = st.lists(st.integers(0, 2**40), min_size=1, max_size=20)


@settings(deadline=None)
@given(a=durations, b=durations, c=durations)
def test_sites_of_one_path_are_added_up(a, b, c):
    found = summed_pieces(tree([piece(2, a), piece(3, b), piece(5, c)]), np.array([2]), np.array([0, 1, 2, 2, 3, 4]))
    assert found.path.tolist() == [2, 4]
    expected = [merged(piece(2, a), piece(3, b)), piece(5, c)]
    for place, one in enumerate(expected):
        assert (found.scale[place], found.zeros[place]) == (one.scale, one.zeros)
        mine = found.bucket_of == place
        assert dict(zip(found.bucket[mine].tolist(), found.count[mine].tolist(), strict=True)) == one.buckets
        mine = found.level_of == place
        sums = (found.batches[mine].tolist(), found.sum_b[mine]["low"].tolist(), found.sum_bb[mine]["low"].tolist())
        assert list(zip(*sums, strict=True)) == one.levels


def test_cpu_time_of_a_site_without_any_is_its_wall_time():
    a, b, on_cpu = [8, 8], [8, 16, 16], [2, 8]
    pieces = [piece(2, a), piece(2, on_cpu, ON_CPU), piece(3, b), piece(WHOLE, a + b)]
    found = summed_pieces(tree(pieces), np.array([2]), np.array([0, 1, 2, 2, 3, 4]))
    rows = list(zip(found.path.tolist(), found.clock.tolist(), strict=True))
    assert rows == [(WHOLE, WALL), (2, WALL), (2, ON_CPU)]
    counts = Counter(
        dict(zip(found.bucket[found.bucket_of == 2].tolist(), found.count[found.bucket_of == 2].tolist(), strict=True))
    )
    one = merged(piece(2, on_cpu), piece(3, b))
    assert counts == one.buckets and found.scale[2] == one.scale


def known() -> Definitions:
    definitions = Definitions(started=TracerStart(3, 0, 0, ""))
    for code, name in enumerate(("app.main", "app.work", "app.tiny"), 1):
        definitions.define(code, Component(name), ())
    return definitions


def test_tables_name_paths_and_say_when():
    recorded = RecordedProcess(known(), tree([piece(2, [8]), piece(5, [9]), piece(WHOLE, [8, 9])]))
    tables = path_tables(recorded, RUN, (), ABOUT)
    assert tables is not None
    assert list(tables["call_paths"]) == [
        (2, 0, "app.main"),
        (2, 1, "app.work"),
        (4, 0, "app.tiny"),
        (4, 1, "app.work"),
    ]
    assert [row[:2] for row in tables["path_functions"]] == [(2, "app.work")], "3 was dropped"
    began = 1767225600 * 10**9
    assert list(tables["path_observations"]) == [(2, 0, began + 2, began + 6, 4, 1)]
    assert {row[3] for row in tables["path_histograms"]} == {"time"}
    assert (
        path_tables(RecordedProcess(known(), to_tables(RecordedTree(("time",), [], {}, {}, {}, {}))), RUN, (), ABOUT)
        is None
    )


def test_hot_functions_stay_and_those_that_are_named():
    many = dict.fromkeys(range(10, 10 + 2 * ALWAYS), 10**4) | {1: 10**10, 2: 6 * 10**7, 3: 10**7}
    shares = shares_of(tree([], many))
    assert {1, 2, 3} <= shares.hot and len(shares.hot) == ALWAYS, "the most even of a run in which few are hot"
    many |= dict.fromkeys(range(100, 100 + ALWAYS), 10**9)
    assert 2 not in shares_of(tree([], many)).hot
    recorded = RecordedProcess(known(), tree([piece(2, [8])], many))
    assert not list((path_tables(recorded, RUN, (), ABOUT) or {})["path_functions"])
    assert list((path_tables(recorded, RUN, ("app.w*",), ABOUT) or {})["path_functions"])


def test_the_lower_bound_of_a_share():
    assert wilson(0.0, 100) < 1e-9
    assert wilson(0.02, 1000) > 0.005 > wilson(0.015, 100)
