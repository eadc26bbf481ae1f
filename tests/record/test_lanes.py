"""Costs in every metric: random streams against a plain recount, stacks, ends of threads, and the bounds of memory."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.records import (
    CHANGE,
    CPU_LANE,
    ELSEWHERE,
    END,
    ENTER,
    EXIT,
    RESUME,
    SWITCH,
    THREAD,
    TURN,
    YIELD,
    Definitions,
    TreeLimits,
)
from perflaw.record.tree.tables import tabulate
from perflaw.store.merge import merge
from perflaw.store.schema import OTHER, PER_STRATUM, UNIFORM
from perflaw.types import CPU, Component, Metric
from tests.conftest import PROGRAMS, assert_identities, costs_of, examples
from tests.native.streams import Program
from tests.record.test_tree_builder import Stream, trees

METRICS = ("time", "cpu", "events", "allocated_bytes")
BYTES = Metric("allocated_bytes", "bytes")


def definitions(codes=5, metrics=(CPU, None, BYTES)):
    known = Definitions({code: Component(f"f{code}") for code in range(1, codes + 1)})
    known.metrics.update({lane: metric for lane, metric in enumerate(metrics, 1) if metric})
    return known


def enter(stamp, frame, code, site=0, key=-1):
    return (stamp, frame, code, site, key, ENTER)


def leave(stamp, frame, code):
    return (stamp, frame, code, -1, -1, EXIT)


def change(lane, increase):
    return (increase, 0, lane, -1, -1, CHANGE)


def tree_of(*events, metrics=METRICS, limits=TreeLimits()):  # noqa: B008 (it is frozen)
    builder = TreeBuilder(0, metrics, limits)
    builder.feed(1, events)
    return builder.finish()


def sums(tree, lane):
    """Code → ΣX of its nodes."""
    found = {}
    for node in tree.nodes[1:]:
        found[node.code] = found.get(node.code, 0) + node.lanes[lane].sum_x
    return found


class LanesStream(Stream):
    """Calls that are off the CPU and allocate by chance; remembers the cost of each in every lane."""

    def __init__(self, seed):
        super().__init__()
        self.random, self.off, self.bytes, self.calls = Random(seed), 0, 0, 0

    def call(self, tree, path=()):
        self.pass_by()
        before = (self.clock, self.clock - self.off, self.calls, self.bytes)
        self.calls += 1
        super().call(tree, path)
        after = (self.clock, self.clock - self.off, self.calls, self.bytes)
        _, cost = self.invocations[-1]
        costs = tuple(b - a for a, b in zip(before, after, strict=True))
        assert costs[0] == cost
        self.invocations[-1] = (path, costs)
        self.pass_by()

    def pass_by(self):
        """Between two events some time off the CPU and some allocations; what a call costs must have both or none."""
        off, size = self.random.choice((0, 0, 7, 10**6)), self.random.choice((0, 0, 64, 4096))
        self.off, self.bytes = self.off + off, self.bytes + size
        self.events += [change(CPU_LANE, off)] * bool(off) + [change(3, size)] * bool(size)


@given(st.lists(trees(), max_size=4), st.integers(0, 1000))
def test_every_lane_equals_a_plain_recount(calls, seed):
    stream = LanesStream(seed)
    for call in calls:
        stream.call(call)
    tree = tree_of(*stream.events)
    tables = tabulate("0001", tree, definitions())
    assert_identities(tables)
    for lane, metric in enumerate(METRICS):
        costs = [costs[lane] for _, costs in stream.invocations]
        rows = [row for row in tables["moments"] if row[1] == metric]
        assert sum(row[3] for row in rows) == sum(costs)
        assert sum(row[4] for row in rows) == sum(cost**2 for cost in costs)
        tops = sum(costs[lane] for path, costs in stream.invocations if not path)
        assert sum(row[3] for row in tables["component_costs"] if row[1] == metric) == tops
    by_sequence = [costs for _, costs in stream.invocations]
    for row in tables["invocations"]:
        assert row[5:8] == by_sequence[row[1] - 1][:3]
    sizes = {row[1]: row[3] for row in tables["invocation_costs"]}
    assert all(sizes.get(row[1], 0) == by_sequence[row[1] - 1][3] for row in tables["invocations"])


steps = st.tuples(st.integers(0, 1), st.integers(0, 11), st.integers(0, 10**6), st.integers(0, 10**12))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(steps, max_size=150), st.sampled_from([TreeLimits(), TreeLimits(nodes=4, links=6, pairs=5, components=2)])
)
def test_identities_hold_on_any_stream_and_within_any_bounds(taken, limits):
    program, builder = Program(), TreeBuilder(0, METRICS, limits)
    for thread, choice, argument, passed in taken:
        if choice < 8:
            program.step(thread, choice, argument, passed)
            continue
        more = (
            change(argument % 4, passed - 5),
            change(CPU_LANE, passed // 2),
            (program.clock, argument % 3, 0, -1, -1, SWITCH),
            (1, 0, 0, -1, -1, END if argument % 9 == 0 else CHANGE),
        )
        program.pieces.append((thread, [more[choice - 8]]))
    for thread, events in program.pieces:
        builder.feed(thread, events)
    tree = builder.finish()
    assert len(tree.nodes) <= limits.nodes + 5
    assert sum(len(node.links) for node in tree.nodes) <= limits.links
    assert_identities(tabulate("0001", tree, definitions()))


def test_a_call_counts_itself_and_what_it_calls():
    tree = tree_of(enter(0, 1, 1), enter(1, 2, 2), leave(2, 2, 2), enter(3, 3, 2), leave(4, 3, 2), leave(5, 1, 1))
    assert sums(tree, 2) == {1: 3, 2: 2}
    assert tree.selves == {1: [3, 3, 1, 0], 2: [2, 2, 2, 0]}


def test_a_sleeping_function_costs_no_cpu():
    tree = tree_of(enter(0, 1, 1), enter(10, 2, 2), change(CPU_LANE, 990), leave(1000, 2, 2), leave(1010, 1, 1))
    assert sums(tree, 0) == {1: 1010, 2: 990}
    assert sums(tree, 1) == {1: 20, 2: 0}
    assert tree.samples[1][0].callees == ((2, 1, 990, 0),)


def test_a_generator_has_its_segments_in_every_lane():
    tree = tree_of(
        enter(0, 1, 1), change(3, 8), (5, 1, 1, -1, -1, YIELD), change(3, 100), change(CPU_LANE, 40),
        (50, 1, 1, 0, -1, RESUME), change(3, 16), enter(51, 2, 2), leave(52, 2, 2), leave(60, 1, 1),
    )  # fmt: skip
    assert [lane.sum_x for lane in tree.nodes[1].lanes] == [15, 15, 2, 24]
    assert tree.nodes[1].waits[:2] == [1, 45]


def test_a_generator_that_goes_on_in_another_thread_waited_by_the_same_clock():
    """What was taken out of one thread's clock was not taken out of the other's."""
    builder = TreeBuilder(0, METRICS)
    builder.feed(1, [(100, 1, 0, -1, -1, TURN), enter(0, 1, 1), (5, 1, 1, -1, -1, YIELD)])
    builder.feed(2, [(70, 2, 0, -1, -1, TURN), (50, 1, 1, 0, -1, RESUME), leave(60, 1, 1)])
    assert builder.finish().nodes[1].waits[:2] == [1, 15]


def test_what_passes_on_another_stack_is_no_cost_here():
    tree = tree_of(
        enter(0, 1, 1), change(3, 1), (10, 5, 0, -1, -1, SWITCH),
        enter(10, 2, 2), change(3, 70), change(CPU_LANE, 30), (50, 0, 0, -1, -1, SWITCH),
        change(3, 2), (55, 5, 0, -1, -1, SWITCH), leave(60, 2, 2), (61, 0, 0, -1, -1, SWITCH), leave(65, 1, 1),
    )  # fmt: skip
    assert [(node.parent, node.code) for node in tree.nodes[1:]] == [(0, 1), (0, 2)]
    assert [lane.sum_x for lane in tree.nodes[1].lanes] == [19, 19, 1, 3]
    assert [lane.sum_x for lane in tree.nodes[2].lanes] == [45, 15, 1, 70]


def test_the_end_of_a_thread_leaves_its_calls_open():
    tree = tree_of(
        (7, 0, 0, -1, -1, THREAD), enter(0, 1, 1), (1, 3, 0, -1, -1, SWITCH), enter(2, 2, 2), (0, 0, 0, -1, -1, END),
        leave(3, 1, 1), (8, 0, 0, -1, -1, THREAD), enter(4, 1, 1), leave(9, 1, 1),
    )  # fmt: skip
    assert [(node.code, node.n, node.open) for node in tree.nodes[1:]] == [(1, 1, 1), (2, 0, 1)]


def test_contexts_beyond_the_bound_are_put_together_by_function():
    events = [event for n in range(5) for event in (enter(n, n + 1, 1, n), enter(n, n + 9, 2), leave(n, n + 9, 2))]
    tree = tree_of(*events, *(leave(9, n, 1) for n in range(5, 0, -1)), limits=TreeLimits(nodes=4))
    assert len(tree.nodes) == 6
    assert [(node.site, node.n) for node in tree.nodes if node.site == ELSEWHERE] == [(ELSEWHERE, 4), (ELSEWHERE, 3)]
    assert tree.folded == 7
    assert_identities(tabulate("0001", tree, definitions()))


def test_pairs_beyond_the_bound_keep_the_identity():
    calls = [event for n in range(2, 5) for event in (enter(n, n, n), leave(2 * n, n, n))]
    tree = tree_of(enter(0, 1, 1), *calls, leave(20, 1, 1), limits=TreeLimits(pairs=2, links=1))
    assert len([pair for pair in tree.nodes[1].pairs if OTHER not in pair]) == 3
    assert tree.unlinked == 2
    assert_identities(tabulate("0001", tree, definitions()))


def test_many_functions_keep_fewer_samples():
    builder = TreeBuilder()
    key = iter(range(1 << 30))
    for code in (1, 2, *range(3, 259)):
        for n in range(600 if code < 3 or code == 258 else 1):
            builder.feed(1, [enter(0, 1, code, key=next(key)), leave(5 + n % 2, 1, code)])
    tree = builder.finish()
    for code in (1, 258):
        uniform = [sample for sample in tree.samples[code] if sample.uniform_key >= 0]
        assert len(uniform) == UNIFORM // 4
        assert len(tree.samples[code]) <= UNIFORM // 4 + PER_STRATUM // 4


def test_recordings_of_different_metrics_merge():
    events = [enter(0, 1, 1), enter(2, 2, 2), change(CPU_LANE, 3), change(3, 64), leave(7, 2, 2), leave(9, 1, 1)]
    tree = tree_of(*events)
    plain, rich = tabulate("0001", tree, definitions(metrics=())), tabulate("0002", tree, definitions())
    both = merge([plain, rich])
    assert both == merge([rich, plain]) == merge([merge([plain]), rich])
    assert_identities(both)
    n = {row[1]: row[2] for row in both["moments"] if row[0] == 1}
    assert n == {"time": 2, "events": 2, "cpu": 1, "allocated_bytes": 1}
    assert {row[6] for row in both["invocations"] if row[0] == "0001"} == {None}


def test_python_tracer_measures_cpu(recorded):
    program = PROGRAMS / "sleepy.py"
    [recording] = recorded("--tracer", "python", "--clock", "fake", "--metric", "cpu", "--", program)
    assert [metric.name for metric in recording.run.metrics] == ["time", "cpu", "events"]
    assert costs_of(recording)["sleepy.sleep"][2:] == (3000, 3000)
    assert costs_of(recording, "cpu")["sleepy.sleep"][2:] == (0, 0)
    assert costs_of(recording, "cpu")["sleepy.work"][2:] == (1500, 1500)
    assert costs_of(recording, "cpu")["sleepy.main"][2:] == (1507, 7)


def test_python_tracer_measures_real_cpu(recorded, tmp_path):
    (tmp_path / "app.py").write_text(
        "import time\ndef sleep(): time.sleep(0.2)\ndef work():\n    for _ in range(6_000_000): pass\nsleep(); work()\n"
    )
    [recording] = recorded("--tracer", "python", "--metric", "cpu", "--", "app.py")
    cpu = costs_of(recording, "cpu")
    # A busy machine moves both by milliseconds: what matters is that waiting is not taken for work.
    assert abs(cpu["app.sleep"][2]) < 0.3 * costs_of(recording)["app.sleep"][2]
    assert cpu["app.work"][2] > abs(cpu["app.sleep"][2])
