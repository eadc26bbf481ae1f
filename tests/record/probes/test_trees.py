"""Spans of a thread become the tree that made them; snapshots their features; both builders give the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.build import build, core
from perflaw.record.probes import layout, trees
from perflaw.record.probes import trees as builders
from perflaw.record.probes.collector import ProbeProcess
from perflaw.record.probes.decoding import ProbeRecords, Spans, innermost, nest
from perflaw.record.probes.rings import TickClock
from perflaw.record.probes.trees import CoreBuilder, ProcessTree, TwinBuilder, feature_name
from perflaw.record.tree.core import Export
from tests.conftest import examples
from tests.record.tree_objects import from_tables

TREES = st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=25)
SOURCE = ProbeProcess(0, 1, 2, 0, (), "c", (), TickClock())


def execute(shape, clock, out, probe=0):
    """Spans of nested calls in the order of their ends: (probe, begin, end, depth)."""
    begin = clock[0] = clock[0] + 1
    for inner in shape:
        execute(inner, clock, out, probe + 1)
    clock[0] += 1
    out.append((probe, begin, clock[0]))


def spans_from(rows):
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return Spans(columns[0].astype(np.uint16), columns[1], columns[2])


def records(rows, shots=(), thread=1, ring=0):
    """Columns of LAT records and snapshots (probe, at, value), in order."""
    every = [(end, probe, layout.LAT, (end - begin,)) for probe, begin, end in rows]
    every += [(at, probe, layout.SNAPSHOT, values) for probe, at, *values in shots]
    every.sort(key=lambda row: row[0])
    fields = np.zeros((len(every), 6), np.uint64)
    for place, row in enumerate(every):
        fields[place, : len(row[3])] = row[3]
    at, kind = np.array([row[0] for row in every], np.int64), np.array([row[2] for row in every], np.uint8)
    count = np.array([len(row[3]) for row in every], np.uint8)
    probe = np.array([row[1] for row in every], np.uint16)
    length = np.where(kind == layout.LAT, fields[:, 0].astype(np.int64), 0)
    same = np.full(len(every), thread, np.uint32)
    return ProbeRecords(SOURCE, ring, probe, kind, count, count.astype(np.uint16) * 0, same, at, fields, at, length)


@given(st.lists(TREES, max_size=4))
def test_nesting_is_that_of_the_calls(shapes):
    clock, rows = [0], []
    for shape in shapes:
        execute(shape, clock, rows)
    nested = nest(spans_from(rows))
    assert sorted(nested.order.tolist()) == list(range(len(rows)))
    for place, of in enumerate(nested.order.tolist()):
        probe, begin, end = rows[of]
        assert nested.depth[place] == probe  # a call's probe is how deep it is
        inside = [row for row in rows if begin <= row[1] and row[2] <= end]
        assert nested.size[place] == len(inside)
        parent = nested.parent[place]
        assert (parent == -1) == (probe == 0)
        assert parent == -1 or nested.begin[parent] < begin <= end < nested.end[parent]


def test_spans_of_no_length_and_equal_ones():
    nested = nest(spans_from([(1, 5, 5), (2, 5, 5), (3, 5, 9), (4, 9, 9)]))
    assert nested.begin.tolist() == [5, 5, 5, 9]
    assert (nested.depth.tolist(), nested.size.tolist()) == ([0, 1, 2, 1], [4, 2, 1, 1])


def test_innermost():
    nested = nest(spans_from([(1, 10, 20), (2, 30, 40), (0, 5, 50)]))
    found = innermost(nested, np.array([1, 5, 7, 15, 25, 40, 50, 60]))
    assert nested.begin[found[found >= 0]].tolist() == [5, 5, 10, 5, 30, 5]
    assert found.tolist()[:1] + found.tolist()[-1:] == [-1, -1]


def told(tree):
    nodes = from_tables(tree).nodes
    return sorted((node.depth, node.code - 1, node.n, node.lanes[0].sum_x) for node in nodes[1:])


@given(st.lists(TREES, max_size=6), st.integers(1, 5))
@settings(max_examples=examples(40))
def test_however_records_are_cut_the_tree_is_the_same(shapes, piece):
    clock, rows = [0], []
    for shape in shapes:
        execute(shape, clock, rows)
    whole, cut = trees.ProcessTree(1), trees.ProcessTree(1)
    if rows:
        whole.take(records(rows))
    for at in range(0, len(rows), piece):
        cut.take(records(rows[at : at + piece]))
    one, other = whole.finish(), cut.finish()
    assert (one is None) == (other is None) == (not rows)
    if one and other:
        assert told(one) == told(other)
        assert one.calls == len(rows)


def test_both_builders_give_the_same_tree(monkeypatch):
    monkeypatch.setattr(builders, "CAPACITY", 64)  # so that events go round the ring of the C core
    clock, rows, shots = [0], [], []
    rng = np.random.default_rng(5)
    for number in range(300):
        at = clock[0]
        execute([[]] * int(rng.integers(0, 4)), clock, rows)
        shots.append((7, at + 1, number, 2))
    found = []
    for make in (lambda seed: CoreBuilder(build(core()), seed), TwinBuilder):
        monkeypatch.setattr(trees, "builder", make)
        tree = ProcessTree(3)
        tree.take(records(rows, shots))
        found.append(from_tables(tree.finish()))
    assert found[0] == found[1]


def test_a_snapshot_is_a_feature_of_the_innermost_span_and_the_last_of_a_probe_holds():
    tree = ProcessTree(1)
    tree.take(records([(1, 10, 20), (2, 5, 50)], [(8, 7, 1), (8, 15, 2), (8, 17, 3), (9, 30, 2**64 - 4), (8, 60, 9)]))
    samples = from_tables(tree.finish()).samples
    assert samples[2][0].features == ((8 * 6, 3.0),)
    assert dict(samples[3][0].features) == {8 * 6: 1.0, 9 * 6: -4.0}


def test_what_waits_is_bounded_and_older_spans_stand_by_themselves(monkeypatch):
    monkeypatch.setattr(trees, "HELD", 8)
    tree, count = ProcessTree(1), 100
    rows = [(1, 10 * n, 10 * n + 5) for n in range(1, count)]
    for row in rows:
        tree.take(records([row], [(8, row[1] + 1, row[0])]))
        held = tree._waiting[0]
        assert len(held.spans) <= 16 and len(held.shots) <= 16
    tree.take(records([(2, 0, 2000)]))
    nodes = told(tree.finish())
    within = next(n for depth, probe, n, _ in nodes if (depth, probe) == (2, 1))
    apart = next(n for depth, probe, n, _ in nodes if (depth, probe) == (1, 1))
    assert within + apart == count - 1 and within >= 8


def test_snapshots_without_a_span_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(trees, "HELD", 8)
    tree = ProcessTree(1)
    for at in range(200):
        tree.take(records([], [(8, at, 1)]))
    assert len(tree._waiting[0].shots) <= 16
    assert tree.finish() is None


def test_another_thread_in_the_ring_begins_anew():
    tree = ProcessTree(1)
    tree.take(records([(1, 10, 20)], thread=1))
    tree.take(records([(2, 0, 30)], thread=2))  # of another thread: what lies in it by time alone is none of its calls
    assert told(tree.finish()) == [(1, 1, 1, 10), (1, 2, 1, 30)]


def test_throughput_of_several_executions_is_one_invocation_with_nothing_in_it():
    decoded = records([(1, 10, 20), (2, 5, 25)])
    decoded.type[1], decoded.fields[1] = layout.TPT, (4, 20, 0, 0, 0, 0)
    tree = ProcessTree(1)
    tree.take(decoded)
    assert told(tree.finish()) == [(1, 1, 1, 10), (1, 2, 1, 20)]


def test_ticks_become_ns_at_the_end():
    tree = ProcessTree(1)
    decoded = records([(1, 10, 20), (0, 0, 40)])
    source = ProbeProcess(0, 1, 2, 0, (), "c", (), TickClock(0, 100, 0.5))
    moved = ProbeRecords(source, *(getattr(decoded, name) for name in decoded.__slots__[1:]))
    tree.take(moved)
    tables = tree.finish()
    assert told(tables) == [(1, 0, 1, 20), (2, 1, 1, 5)]
    assert tables.tables[Export.SAMPLES]["started"].min() == 100


@pytest.mark.parametrize(
    ("probe", "field", "name"), [("work", "rows", "work.rows"), ("7 x", "a b", "_7_x.a_b"), ("é", "v0", "é.v0")]
)
def test_names_of_features(probe, field, name):
    assert feature_name(probe, field) == name
