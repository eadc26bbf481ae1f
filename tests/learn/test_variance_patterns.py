"""Labels, extraction, merging, ordering and trimming of patterns; nothing depends on the order of input."""

import inspect
import sys
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.learn.variance.analyse import cost_within, ordered, trimmed, variance
from perflaw.learn.variance.moments import Stats
from perflaw.learn.variance.parts import parts_of
from perflaw.learn.variance.patterns import (
    Merger,
    Vertex,
    contributions_fit,
    corresponding,
    corresponding_as_printed,
    extract,
    label,
    overlay,
    underliers,
)
from perflaw.learn.variance.tree import Options, Tree
from perflaw.types import CPU
from perflaw.types.call_trees import LinkMoments, NodeMoments, PairMoments
from tests.conftest import examples
from tests.learn.variance_data import Call, Recorder, deep_tree

N = 40


def leaf(contexts, order, function=1, kind="Task"):
    paths = frozenset(((0, site, function),) for site in contexts)
    return Vertex(function, kind, frozenset((order,)), paths, Stats(2, 4, 10), order)


@pytest.mark.parametrize("names", list(permutations("ab")))
def test_children_correspond_whatever_the_order_of_contexts(names):
    first, second = leaf([ord(name) for name in names], 1), leaf([ord("b"), ord("c")], 2)
    assert corresponding([first], [second]) == [(first, second)]
    assert corresponding([second], [first]) == [(second, first)]


def test_the_printed_algorithm_depends_on_which_context_comes_first():
    """{a, b} and {b, c}: where a context of one alone comes first, the other's clash with it."""
    ones, twos = [leaf([1, 2], 1)], [leaf([2, 3], 2)]
    assert corresponding_as_printed(ones, twos) is not None
    ones, twos = [leaf([1, 3], 1)], [leaf([2, 3], 2)]
    assert corresponding_as_printed(ones, twos) is None
    assert corresponding(ones, twos) is not None


def test_a_child_that_would_correspond_to_two_does_not_fit():
    wide, narrow, other = leaf([1, 2], 1), leaf([1], 2), leaf([2], 3)
    assert corresponding([wide], [narrow, other]) is None
    assert corresponding([narrow, other], [wide]) is None


def test_no_child_is_lost():
    one, two, three = leaf([1], 1), leaf([2], 2), leaf([3], 3)
    assert corresponding([one, two], [three]) == [(one, None), (two, None), (None, three)]


def test_names_and_types_must_match():
    assert overlay(leaf([1], 1), leaf([1], 2, function=2)) is None
    assert overlay(leaf([1], 1), leaf([1], 2, kind="Contrast")) is None


def test_contributions_must_correspond():
    """Two children of one head: the head's variance comes from one of them alone."""
    place = overlay(leaf([1], 1), leaf([2], 2))
    assert contributions_fit(place, {}, {0: 0})
    assert not contributions_fit(place, {1: frozenset({(0, 1)})}, {0: 0})
    both = {1: frozenset({(0, 1)}), 2: frozenset({(0, 2)})}
    assert contributions_fit(place, both, {0: 0})


def server(sites=(1, 2, 3), spread=(1, 2, 1), n=N):
    """Requests of one function from several sites, with the same variance at some of them."""
    recorder = Recorder()
    for number in range(n):
        calls = []
        for site, factor in zip(sites, spread, strict=True):
            inner = Call("slow", 100 * factor * (1 + 9 * (number % 4 == site % 4)))
            calls.append((site, Call("handle", 10, [(1, inner), (2, Call("steady", 50))])))
        recorder.add(Call("main", 1, calls))
    return recorder


def shape(found):
    """What a person sees of patterns, without what orders them."""
    return [
        [(node.component.name, node.kind, node.n, round(node.mean, 6), round(node.cov, 9), node.parent, node.contexts)
         for node in pattern.nodes] + [(edge.to, edge.source, round(edge.cf_net, 9)) for edge in pattern.contributions]
        for pattern in found.patterns
    ]  # fmt: skip


def test_like_patterns_merge_and_unlike_stay():
    # A function that calls all of them would vary as they do together: main is called once.
    recorder, calls = Recorder(), []
    for number in range(N):
        for site, factor in ((1, 1), (2, 50), (3, 1)):
            inner = Call("slow", 100 * factor * (1 + 9 * (number % 4 == 0)))
            calls.append((site, Call("handle", 10, [(1, inner), (2, Call("steady", 50))])))
    recorder.add(Call("main", 1, calls))
    options = Options(trim=0)
    found = variance(recorder.tree(), replace(options, pressure=0.01))
    assert (found.extracted, found.merged) == ((6, 3), (4, 2))
    roots = {len(one.nodes[0].contexts): one for one in found.patterns}
    assert sorted(roots) == [1, 2]
    assert [node.component.name for node in roots[2].nodes] == ["handle", "slow"]
    assert roots[2].nodes[0].n == 2 * N
    [edge] = roots[2].contributions
    assert (edge.cf_self, edge.cf_net) == (pytest.approx(1), pytest.approx(1))
    assert variance(recorder.tree(), replace(options, pressure=1.0)).merged == (2, 1)
    assert variance(recorder.tree(), replace(options, trim=0.5, pressure=0.01)).patterns[0].nodes[0].n == N


def test_contributor_task_and_contrast():
    """A steady function called a varying number of times contributes; what passes variance on is in contrast."""
    recorder, calls = Recorder(), []
    for number in range(N):
        trips = [(1, Call("item", 100))] * (1 + 9 * (number % 4 == 0))
        calls.append((1, Call("handle", 10, [(1, Call("loop", 5, trips)), (2, Call("pad", 400))])))
        calls.append((2, Call("item", 100)))
    recorder.add(Call("main", 1, calls))
    tree = Tree(recorder.tree())
    labels = label(tree, Options())
    kinds = {
        (tree.name(tree.component[tree.parent[node]]), tree.name(tree.component[node])): kind
        for node, kind in labels.kinds.items()
    }
    assert kinds == {
        ("main", "handle"): "Task",
        ("handle", "loop"): "Task",
        ("loop", "item"): "Contributor",
        ("main", "item"): "Contrast",
    }
    assert label(tree, Options(paper=True)).kinds.keys() == labels.kinds.keys()


def test_few_invocations_get_no_label():
    found = variance(server(n=20).tree(), Options())
    assert found.patterns == ()
    assert found.too_few == found.tree_nodes


def test_nodes_on_a_segment_are_never_trimmed():
    recorder = Recorder()
    calls = []
    for number in range(N):
        trips = [(1, Call("item", 3))] * (1 + 99 * (number % 2))
        calls.append((1, Call("handle", 10, [*trips, (2, Call("own", 300 + 400 * (number % 3)))])))
    recorder.add(Call("main", 1, calls))
    found = variance(recorder.tree(), Options(high=0.2, trim=0.99))
    [pattern] = found.patterns
    kept = {node.component.name for node in pattern.nodes}
    assert kept == {"handle", "item", "own"}


def test_what_is_there_for_contrast_comes_last_and_trims_nothing():
    """A steady context of far more variance impact than the Task that it is held against."""
    recorder, calls = Recorder(), []
    for number in range(N):
        calls.append((1, Call("work", 10 + 90 * (number % 2))))
        calls += [(2, Call("work", 100_000 + 10_000 * (number % 2)))] * 5
    recorder.add(Call("main", 1, calls))
    found = variance(recorder.tree(), Options(trim=0.1))
    assert [one.nodes[0].kind for one in found.patterns] == ["Task", "Contrast"]
    assert found.patterns[1].nodes[0].vim > 100 * found.patterns[0].nodes[0].vim


def permuted(tree, seed):
    """The same tree with nodes and functions numbered otherwise and rows in another order."""
    rng = np.random.default_rng(seed)
    count = len(tree.parent)
    new = np.concatenate([[0], 1 + rng.permutation(count - 1)])
    old = np.argsort(new)
    functions = rng.permutation(len(tree.components))

    def node(numbers):
        return np.where(numbers >= 0, new[numbers], numbers)

    def shuffled(moments, ends):
        order = rng.permutation(len(moments.n if hasattr(moments, "n") else moments.node))
        return {
            name: (node(getattr(moments, name)) if name in ends else getattr(moments, name))[order]
            for name in type(moments).__slots__
        }

    pairs = shuffled(tree.pairs, ("node", "i", "j"))
    pairs["i"], pairs["j"] = np.minimum(pairs["i"], pairs["j"]), np.maximum(pairs["i"], pairs["j"])
    return replace(
        tree,
        components=tuple(tree.components[place] for place in np.argsort(functions)),
        parent=node(tree.parent[old]),
        component=np.where(tree.component[old] >= 0, functions[tree.component[old]], -1),
        site=tree.site[old],
        site_line=tree.site_line[old],
        moments={name: NodeMoments(one.n[old], one.sum_x[old], one.sum_xx[old]) for name, one in tree.moments.items()},
        pairs=PairMoments(**pairs),
        links=LinkMoments(**shuffled(tree.links, ("ancestor", "descendant"))),
        samples=None,
    )


@pytest.mark.parametrize("pressure", [0.01, 0.4, 1.0])
def test_the_order_of_input_does_not_matter(pressure):
    options = Options(pressure=pressure, trim=0)
    tree = replace(server((1, 2, 3, 4, 5), (1, 2, 1, 7, 2)).tree(), samples=None)
    expected = shape(variance(tree, options))
    assert expected
    for seed in range(6):
        assert shape(variance(permuted(tree, seed), options)) == expected


def random_call(draw, depth, names="abc"):
    calls = draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(names)), max_size=3 if depth < 3 else 0))
    own = draw(st.integers(0, 50))
    return own, calls


@st.composite
def call_trees(draw):
    """Up to 40 invocations of functions that call each other at random, recursion folded nowhere."""

    def one(depth, name):
        own, calls = random_call(draw, depth)
        return Call(name, own, [(site, one(depth + 1, f"{inner}{depth}")) for site, inner in calls])

    recorder = Recorder()
    for _ in range(draw(st.integers(2, 8))):
        recorder.add(one(0, "top"))
    return recorder.tree()


@settings(max_examples=examples(60), deadline=None)
@given(call_trees())
def test_identities(given_tree):
    """Parts add up to X, shares to 1, underliers lie on no common path, and merging keeps every context once."""
    tree = Tree(given_tree)
    options = Options(high=0.1, least=2, pressure=1.0)
    for node in range(1, tree.size):
        parts = parts_of(tree, [node])
        assert sum(sum(row) for row in parts.covariance) == sum(parts.net) == parts.total.spread
        assert sum(one.y for one in parts.sums) == parts.total.x
        found = underliers(tree, [node], options)
        for one in found:
            below = [two for two in found if two is not one and two.nodes[: len(one.nodes)] == one.nodes]
            assert one.net == one.sums.net(tree.stats[node]) - sum(two.net for two in below)
            assert one.y == one.sums.y - sum(two.y for two in below)
    labels = label(tree, options)
    base = extract(tree, labels)
    merged = Merger(labels.segments_by_node(), 1.0).merge(base)
    members = [member for root in merged for one in root.walk() for member in one.members]
    assert sorted(members) == sorted(labels.kinds)


DEEP = 1500
"""More calls within each other than Python's own stack has room for."""


def test_variance_is_followed_down_a_deep_call_tree():
    costs = [100, 900] * N
    [segment] = underliers(Tree(deep_tree(DEEP, costs)), [1], Options())
    assert segment.nodes == tuple(range(2, DEEP + 1))
    assert segment.y == sum(costs)
    assert segment.net == len(costs) * sum(cost * cost for cost in costs) - sum(costs) ** 2


def chain(start, depth, twins_at=-1, site=1):
    """A pattern in which each vertex has one child, and the one at a depth two of the same function."""
    below = ()
    for level in reversed(range(depth)):
        order = start + level
        first = replace(leaf([site], order, function=level), children=below)
        below = (first, leaf([2], order + DEEP, function=level)) if level == twins_at else (first,)
    return below[0]


def test_deep_patterns_are_merged_within_and_with_each_other():
    one, two = chain(0, DEEP, twins_at=DEEP - 1), chain(2 * DEEP, DEEP - 1)
    [merged] = Merger({}, 1.0).merge([one, two])
    vertices = list(merged.walk())
    assert len(vertices) == DEEP
    assert [len(vertex.members) for vertex in vertices] == [2] * DEEP


def test_patterns_that_only_come_to_stand_side_by_side_by_merging_are_merged_at_any_depth():
    """Nothing below corresponds at first: each merge puts two vertices right below side by side, which merge then."""
    depth, limit = 100, sys.getrecursionlimit()
    patterns = [chain(0, depth), chain(depth, depth, site=2)]
    sys.setrecursionlimit(len(inspect.stack()) + depth)
    try:
        [merged] = trimmed(ordered(Merger({}, 1.0).merge(patterns)), 0.0, {})
    finally:
        sys.setrecursionlimit(limit)
    assert [len(vertex.members) for vertex in merged.walk()] == [2] * depth


def test_costs_by_cpu_leave_waiting_out():
    recorder = Recorder()
    for number in range(N):
        waits = 10_000 * (number % 7 == 0)
        recorder.add(Call("handle", 1000 + waits, [(1, Call("work", 500))], off=waits))
    assert variance(recorder.tree(CPU)).patterns == ()
    [pattern] = variance(recorder.tree()).patterns
    assert pattern.nodes[0].cause == "interference"
    assert pattern.nodes[0].off_cpu == pytest.approx(1.0)
    assert pattern.nodes[0].off_for == {"queued": pytest.approx(1.0), "other": pytest.approx(0.0)}


@pytest.mark.parametrize("why", ["sleep", "lock", "io", "network", "child", "other"])
def test_waiting_is_no_interference(why):
    recorder = Recorder((why,) if why != "other" else ())
    for number in range(N):
        waits, queued = 10_000 * (number % 7 == 0), 1000 * (number % 11 == 0)
        inner = [(1, Call("work", 500)), (2, Call("block", 100 + waits, off=waits, why=why))]
        recorder.add(Call("handle", 1000 + queued, inner, off=queued))
    [pattern] = variance(recorder.tree()).patterns
    assert pattern.nodes[0].cause == "waiting"
    assert pattern.nodes[0].off_for[why] > 0.9
    assert pattern.nodes[0].off_for["queued"] < 0.1
    assert sum(pattern.nodes[0].off_for.values()) == pytest.approx(pattern.nodes[0].off_cpu)


def test_off_the_cpu_for_no_known_reason_is_unknown():
    recorder = Recorder()
    for number in range(N):
        waits = 10_000 * (number % 7 == 0)
        recorder.add(Call("handle", 1000 + waits, off=waits))
    tree = recorder.tree()
    [pattern] = variance(replace(tree, samples=replace(tree.samples, marks={}))).patterns
    assert (pattern.nodes[0].cause, pattern.nodes[0].off_for) == ("unknown", {})


def callees_below(calls_of_middle):
    """A head whose middle call has two calls of one function; the tree, the head, those two contexts and their costs."""
    recorder, costs = Recorder(), []
    for number in range(N):
        first, second = Call("leaf", 10 + number % 5), Call("leaf", 20 + 3 * (number % 7))
        middle = Call("middle", 5, [(1, first), (2, second)])
        recorder.add(Call("head", 3, [(4, middle)] * (calls_of_middle if number % 3 else 0)))
        costs.append((first.x + second.x) * calls_of_middle if number % 3 else 0)
    tree = Tree(recorder.tree())
    ends = [node for node in range(tree.size) if tree.name(tree.component[node]) == "leaf"]
    return tree, next(node for node in range(1, tree.size) if tree.name(tree.component[node]) == "head"), ends, costs


def test_the_square_of_a_sum_is_exact_below_a_call_made_once():
    tree, head, ends, costs = callees_below(1)
    assert len(ends) == 2
    assert cost_within(tree, [head], ends) == Stats(N, sum(costs), sum(cost * cost for cost in costs))


def test_it_is_not_known_below_a_call_made_again():
    tree, head, ends, _ = callees_below(2)
    assert cost_within(tree, [head], ends) is None


def test_the_walk_goes_on_below_a_source():
    """The middle varies by itself, and what it calls far below varies as well: both are sources, with shares of their own."""
    recorder = Recorder()
    for number in range(N):
        inner = Call("page", 600 if number % 5 == 0 else 10)
        for name in ("d", "c", "b"):
            inner = Call(name, 10, [(1, inner)])
        middle = Call("middle", 1200 if number % 7 == 0 else 10, [(1, inner)])
        recorder.add(Call("handle", 10, [(1, middle)]))
    tree = recorder.tree()
    handle = next(one for one in tree.components if one.name == "handle")
    found = {one.component.name: one for one in variance(tree, Options(), handle).explanation.sources}
    assert set(found) == {"middle", "page"}
    assert found["page"].cf_net > 0.1
    assert found["middle"].cf_net + found["page"].cf_net == pytest.approx(1)
    [pattern] = variance(tree).patterns
    names = {node.id: node.component.name for node in pattern.nodes}
    shares = {names[edge.source]: edge.cf_net for edge in pattern.contributions if names[edge.to] == "handle"}
    assert shares == {name: pytest.approx(one.cf_net) for name, one in found.items()}


def test_no_label_without_thirty_invocations():
    """A flush in 10 of 3,000 calls is a source of variance that is named, but not called steady or varying itself."""
    recorder = Recorder()
    for number in range(3000):
        calls = [(1, Call("item", 10))] * 3
        if number % 300 == 0:
            calls = [*calls, (2, Call("flush", 10, [(3, Call("item", 10))] * 400))]
        recorder.add(Call("handle", 10, calls))
    tree = recorder.tree()
    found = variance(tree)
    assert {node.component.name for one in found.patterns for node in one.nodes} == {"handle", "item"}
    assert all(node.n >= 30 for one in found.patterns for node in one.nodes)
    handle = next(one for one in tree.components if one.name == "handle")
    assert [one.path[0].callee for one in variance(tree, Options(), handle).explanation.sources] == ["flush"]


def test_what_varies_as_much_as_its_caller_is_no_contributor():
    recorder = Recorder()
    for number in range(N):
        recorder.add(Call("handle", 10, [(1, Call("inner", 3000 if number % 9 == 0 else 10))]))
    [pattern] = variance(recorder.tree()).patterns
    assert {node.kind for node in pattern.nodes if node.cov > 0.4} == {"Task"}
