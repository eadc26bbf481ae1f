"""Random event streams against a plain reference that remembers every invocation."""

from hypothesis import given
from hypothesis import strategies as st

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.records import ENTER, EXIT, Definitions
from perflaw.record.tree.tables import tabulate
from perflaw.types import Component
from tests.conftest import assert_identities


def trees():
    """A call: (code, site, own time before, calls within, own time after)."""
    times = st.integers(0, 10**12)
    leaf = st.tuples(st.integers(1, 4), st.integers(0, 2), times, st.just([]), times)
    return st.recursive(
        leaf,
        lambda calls: st.tuples(st.integers(1, 4), st.integers(0, 2), times, st.lists(calls, max_size=4), times),
        max_leaves=30,
    )


class Stream:
    """Turns calls into events, and remembers what a path of calls cost."""

    def __init__(self):
        self.clock, self.frame, self.events, self.invocations = 0, 0, [], []

    def call(self, tree, path=()):
        code, site, before, within, after = tree
        self.frame += 1
        frame, start = self.frame, self.clock
        self.events.append((self.clock, frame, code, site, 1, ENTER))
        self.clock += before
        for inner in within:
            self.call(inner, (*path, (site, code)))
        self.clock += after
        self.events.append((self.clock, frame, code, -1, -1, EXIT))
        self.invocations.append(((*path, (site, code)), self.clock - start))


def build(calls, seed=0):
    stream, builder = Stream(), TreeBuilder(seed)
    for call in calls:
        stream.call(call)
    builder.feed(1, stream.events)
    definitions = Definitions({code: Component(f"f{code}") for code in range(1, 5)})
    return stream, builder.finish(), definitions


@given(st.lists(trees(), max_size=4))
def test_moments_equal_a_plain_recount(calls):
    stream, tree, definitions = build(calls)
    tables = tabulate("0001", tree, definitions)
    assert_identities(tables)
    moments = [row for row in tables["moments"] if row[1] == "time"]
    assert sum(row[2] for row in moments) == len(stream.invocations)
    assert sum(row[3] for row in moments) == sum(cost for _, cost in stream.invocations)
    assert sum(row[4] for row in moments) == sum(cost**2 for _, cost in stream.invocations)
    selves = sum(row[3] for row in tables["component_costs"] if row[1] == "time")
    assert selves == sum(c for p, c in stream.invocations if len(p) == 1)
    unfolded = [p for p, _ in stream.invocations if all(p.count(step) < 3 for step in p)]
    if len(unfolded) == len(stream.invocations):
        assert len(tables["calltree"]) - 1 == len(set(unfolded))


@given(st.lists(trees(), min_size=1, max_size=3), st.randoms())
def test_feeding_in_pieces_changes_nothing(calls, chance):
    stream, tree, _ = build(calls)
    pieces = TreeBuilder()
    position = 0
    while position < len(stream.events):
        step = chance.randint(1, 7)
        pieces.feed(1, stream.events[position : position + step])
        position += step
    assert pieces.finish() == tree


def test_moments_of_large_numbers_lose_nothing():
    builder = TreeBuilder()
    big, spread = 10**9, 10**3
    for index in range(1000):
        cost = big + (spread if index % 2 else -spread)
        builder.feed(1, [(0, index + 1, 1, 0, -1, ENTER), (cost, index + 1, 1, -1, -1, EXIT)])
    node = builder.finish().nodes[1]
    assert (node.n * node.lanes[0].sum_xx - node.lanes[0].sum_x ** 2) == node.n**2 * spread**2


def test_dead_frames_are_closed_without_a_sample():
    builder = TreeBuilder()
    builder.feed(1, [(0, 1, 1, 0, -1, ENTER), (5, 2, 2, 0, -1, ENTER), (9, 1, 1, -1, -1, EXIT)])
    assert [(node.n, node.open) for node in builder.finish().nodes[1:]] == [(1, 0), (0, 1)]


def test_open_invocations_are_counted():
    builder = TreeBuilder()
    builder.feed(1, [(0, 1, 1, 0, -1, ENTER), (5, 2, 2, 0, -1, ENTER), (9, 2, 2, -1, -1, EXIT)])
    assert [(node.n, node.open) for node in builder.finish().nodes[1:]] == [(0, 1), (1, 0)]
