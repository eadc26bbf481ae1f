"""The analysis of variance: its steps in their order (§7), patterns as they are reported, and two recordings compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from perflaw.learn.variance.drivers import Response, drivers, responses
from perflaw.learn.variance.explain import explain
from perflaw.learn.variance.interruptions import Outliers, find_outliers, happened_once, remove_interruptions
from perflaw.learn.variance.latency import varying_latencies
from perflaw.learn.variance.moments import Stats, pooled
from perflaw.learn.variance.parts import find_cause, off_cpu_reasons, off_cpu_share, stats_by_metric
from perflaw.learn.variance.patterns import (
    Merger,
    SegmentsByNode,
    Steps,
    Vertex,
    extract,
    label,
    without_stack,
)
from perflaw.learn.variance.tail import CostDistribution
from perflaw.learn.variance.tree import Options, Tree, tracing_hides
from perflaw.parts import step_of, untold
from perflaw.types.call_trees import CallTree
from perflaw.types.recordings import Component
from perflaw.types.variance import (
    Contribution,
    Explanation,
    Pattern,
    PatternChange,
    PatternNode,
    ShareChange,
    Step,
    Variance,
)

CURVE_POINTS: Final = 40
"""Number of deadlines at which the curve of misses is known."""
OUTLIERS, INTERRUPTIONS, WALKED = 0.36, 0.49, 0.87
"""Part of a survey that is done when outliers are known, when interruptions are removed, and when the tree is walked."""
CURVE_MARGIN: Final = 1.5
"""Factor by which the curve extends beyond the fastest and the slowest call, where only Chebyshev's bound goes on."""


def variance(
    tree: CallTree,
    options: Options | None = None,
    component: Component | None = None,
    deadlines: Sequence[float] = (),
    tell: Callable[[float], None] = untold,
) -> Variance:
    """The patterns of variance of a program, most important first, and the explanation of one function.

    That is ``component``, whose drivers are learnt as well; by default the coroutine with the first of the
    latencies, else the root of the first pattern. ``deadlines`` are in the unit of the metric. ``tell`` is told the part
    that is done.
    """
    with_drivers = component is not None  # learning them takes as long as all else
    surveyed = 0.5 if with_drivers else 0.9
    found = survey(tree, options, step_of(tell, 0.0, surveyed))
    chosen = component or _first(found.variance)
    if chosen is None:
        return found.variance
    return replace(found.variance, explanation=found.explain(chosen, deadlines, with_drivers))


def _first(variance: Variance) -> Component | None:
    """The function to explain first: a coroutine whose latency varies highly, else the root of the first pattern."""
    if variance.latencies:
        return variance.latencies[0].component
    return variance.patterns[0].nodes[0].component if variance.patterns else None


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The patterns of one metric, and the tree that any function can be explained from."""

    tree: Tree
    """The call tree, with interruptions removed."""
    variance: Variance
    """Its patterns, without an explanation."""
    options: Options
    """The options by which they were found."""

    def explain(self, component: Component, deadlines: Sequence[float], with_drivers: bool) -> Explanation | None:
        """Why a function is sometimes slow; None if no call of it completed. The component must be in the tree."""
        number = self.tree.call_tree.components.index(component)
        [explanation] = explain(self.tree, [number], self.options, lambda _: deadlines)
        if not explanation or not with_drivers:
            return explanation
        [found] = drivers([responses(self.tree, self.tree.contexts(number), self.options)])
        return replace(explanation, drivers=found)

    def explain_with_curves(self, components: Sequence[Component]) -> list[Explanation | None]:
        """Why each of some functions is sometimes slow, with a whole curve of deadlines and without drivers.

        None if no call of it completed, or if the component is not in the tree.
        """
        number = {component: place for place, component in enumerate(self.tree.call_tree.components)}
        known = [component for component in components if component in number]
        explained = explain(self.tree, [number[component] for component in known], self.options, _curve)
        found = dict(zip(known, explained, strict=True))
        return [found.get(component) for component in components]

    def responses(self, component: Component) -> tuple[Response, ...]:
        """What varies of a function, for :func:`drivers`; nothing if no call of it completed, or if it is not in the tree."""
        if component not in self.tree.call_tree.components:
            return ()
        heads = self.tree.contexts(self.tree.call_tree.components.index(component))
        return responses(self.tree, heads, self.options) if heads else ()


def _curve(costs: CostDistribution) -> Sequence[float]:
    """Deadlines that are spread evenly on a logarithmic axis, from below the fastest call to above the slowest."""
    values = costs.values[(costs.values > 0) & (costs.weight > 0)]
    if not len(values):
        return []
    low, high = float(values.min()) / CURVE_MARGIN, float(values.max()) * CURVE_MARGIN
    deadlines: list[float] = np.geomspace(low, high, CURVE_POINTS).tolist()
    return deadlines


def survey(tree: CallTree, options: Options | None = None, tell: Callable[[float], None] = untold) -> Survey:
    """The patterns of a call tree, ready to explain its functions."""
    return surveys(tree, [options or Options()], tell)[0]


def surveys_of_metrics(
    trees: Sequence[CallTree], options: Options | None = None, tell: Callable[[float], None] = untold
) -> list[Survey]:
    """The patterns in several metrics of the same recordings. Outliers are found once, for they are those of CPU time."""
    options, outliers, found = options or Options(), None, list[Survey]()
    for number, tree in enumerate(trees):
        if outliers is None and not options.keep_outliers:
            outliers = find_outliers(tree)
        step = step_of(tell, number / len(trees), (number + 1) / len(trees))
        found += surveys(tree, [options], step, outliers)
    return found


def surveys(
    tree: CallTree,
    several: Sequence[Options],
    tell: Callable[[float], None] = untold,
    outliers: Outliers | None = None,
) -> list[Survey]:
    """The patterns under several pressures and trims (§8.1); labels are those of the first options.

    ``outliers`` are those of the tree, if they are known.
    """
    keep = several[0].keep_outliers
    if outliers is None:
        outliers = Outliers() if keep else find_outliers(tree)
    tell(OUTLIERS)
    without = remove_interruptions(tree, outliers)
    tell(INTERRUPTIONS)
    walked = Tree(without, happened_once(tree, outliers), keep_losses=keep)
    tell(WALKED)
    labels = label(walked, several[0])
    segments, extracted = labels.segments_by_node(), extract(walked, labels)
    merged = {
        (pressure, paper): ordered(Merger(segments, pressure, paper).merge(extracted))
        for pressure, paper in {(options.pressure, options.paper) for options in several}
    }
    found = []
    for options in several:
        vertices = merged[options.pressure, options.paper]
        patterns = patterns_of(walked, trimmed(vertices, options.trim, segments), segments, options)
        too_few = sum(stats.n < options.least for stats in walked.stats[1:])
        sizes = _nodes_and_patterns(extracted), _nodes_and_patterns(vertices)
        notes = (*walked.call_tree.notes, *_note_of_tracing(walked, options))
        latencies = varying_latencies(walked, options)
        result = Variance(tree.metric, patterns, *sizes, walked.size - 1, too_few, notes=notes, latencies=latencies)
        found.append(Survey(walked, result, options))
    return found


def _note_of_tracing(tree: Tree, options: Options) -> list[str]:
    """Functions in whose contexts recording takes longer than what varies there, so that nothing is told of them."""
    hidden = {
        tree.name(tree.component[node]): None
        for node in range(1, tree.size)
        if tracing_hides(tree, (node,), tree.stats[node], options) is not None
    }
    if not hidden:
        return []
    names = ", ".join(list(hidden)[:MAX_NAMED]) + (
        f" and {len(hidden) - MAX_NAMED} more" if len(hidden) > MAX_NAMED else ""
    )
    what = f"whether {tree.call_tree.metric.name} varies in {names} is unknown"
    return [f"{what}: recording the calls and items within takes longer than what varies"]


MAX_NAMED: Final = 3
"""Number of functions that a note names."""


def _nodes_and_patterns(patterns: Sequence[Vertex]) -> tuple[int, int]:
    return sum(1 for pattern in patterns for _ in pattern.walk()), len(patterns)


def ordered(vertices: Sequence[Vertex]) -> list[Vertex]:
    """Vertices by variance impact at every depth, the largest first (§4; §7, step 5).

    Patterns of contrasts alone come last: many calls of a steady function have a large σ·N as well.
    """
    return without_stack(_ordered(vertices))


def _ordered(vertices: Sequence[Vertex]) -> Steps[list[Vertex]]:
    inner = []
    for one in vertices:
        below: list[Vertex] = yield _ordered(one.children)
        inner.append(replace(one, children=tuple(below)))
    return sorted(inner, key=lambda one: (not one.varies, -one.vim, one.order))


def trimmed(vertices: Sequence[Vertex], beta: float, segments: SegmentsByNode) -> list[Vertex]:
    """Vertices without those that have less than β of the largest VIM at their level.

    What lies on a linear segment stays if the segment's head stands above it.
    """
    return without_stack(_trimmed(vertices, beta, segments, frozenset()))


def _trimmed(
    vertices: Sequence[Vertex], beta: float, segments: SegmentsByNode, above: frozenset[int]
) -> Steps[list[Vertex]]:
    """:func:`trimmed` below vertices whose nodes of the tree are ``above``."""
    rivals = [one for one in vertices if one.varies] or vertices
    most = max((one.vim for one in rivals), default=0.0)
    kept = []
    for one in vertices:
        on_segment = any(head in above for member in one.members for head, _ in segments.get(member, ()))
        if one.vim >= beta * most or on_segment:
            below: list[Vertex] = yield _trimmed(one.children, beta, segments, above | one.members)
            kept.append(replace(one, children=tuple(below)))
    return kept


# ---- Patterns as they are reported: numbered nodes and back-edges with their shares.


def patterns_of(
    tree: Tree, vertices: Sequence[Vertex], segments: SegmentsByNode, options: Options
) -> tuple[Pattern, ...]:
    """The patterns in the order given, their nodes numbered depth first."""
    lines = {(tree.component[tree.parent[node]], tree.site[node]): tree.line[node] for node in range(1, tree.size)}
    result: list[Pattern] = []
    numbers: dict[Vertex, int] = {}
    for root in vertices:
        rows = list(_with_parents(root))
        numbers |= {vertex: number for number, (vertex, _) in enumerate(rows, len(numbers))}
        ends_of: dict[int, list[Vertex]] = {}
        for vertex, _ in rows:
            for start, last in (segment for member in vertex.members for segment in segments.get(member, ())):
                if last in vertex.members:
                    ends_of.setdefault(start, []).append(vertex)
        nodes = []
        for vertex, parent in rows:
            stats = vertex.stats
            contexts = [
                tuple(Step(tree.name(top), lines.get((top, site), 0), site, tree.name(to)) for top, site, to in path)
                for path in vertex.contexts
            ]
            contexts.sort(key=lambda path: [(step.caller, step.site, step.callee) for step in path])
            by_metric = stats_by_metric(tree, sorted(vertex.members))
            off_cpu = off_cpu_share(tree, sorted(vertex.members), by_metric, options)
            off_for = {} if off_cpu is None else off_cpu_reasons(tree, sorted(vertex.members))
            nodes.append(
                PatternNode(
                    numbers[vertex],
                    None if parent is None else numbers[parent],
                    tree.call_tree.components[vertex.function],
                    vertex.kind,
                    stats.n,
                    stats.mean,
                    stats.cov,
                    float(stats.x),
                    vertex.vim,
                    tuple(contexts),
                    find_cause(by_metric, tree.call_tree.metric.name, off_cpu, off_for, options, tree.noise),
                    off_cpu,
                    off_for,
                )
            )
        parents = dict(rows)
        edges = [
            edge for vertex, _ in rows for edge in _back_edges(tree, vertex, numbers, parents, ends_of, options.paper)
        ]
        result.append(Pattern(tuple(nodes), tuple(edges)))
    return tuple(result)


def _with_parents(root: Vertex) -> Iterator[tuple[Vertex, Vertex | None]]:
    """A vertex and all below it, depth first, each with that right above."""
    ahead: list[tuple[Vertex, Vertex | None]] = [(root, None)]
    while ahead:
        vertex, parent = ahead.pop()
        yield vertex, parent
        ahead += [(child, vertex) for child in reversed(vertex.children)]


def _back_edges(
    tree: Tree,
    head: Vertex,
    numbers: Mapping[Vertex, int],
    above: Mapping[Vertex, Vertex | None],
    ends_of: Mapping[int, Sequence[Vertex]],
    paper: bool,
) -> list[Contribution]:
    """Back-edges to a vertex: how much of its variance comes from each vertex below, the largest share first (§6.1).

    ``above`` has the vertex right above each of the pattern, ``ends_of`` the vertices in which segments from a node end.
    """
    found: dict[Vertex, Contribution] = {}
    below: dict[Vertex, float] = {}  # of each source, the shares of those below with no other one between
    for end in sorted({end for node in head.members for end in ends_of.get(node, ())}, key=numbers.__getitem__):
        path, on_the_way = [end], above[end]
        while on_the_way is not None and on_the_way is not head:
            path.append(on_the_way)
            on_the_way = above[on_the_way]
        if on_the_way is None:
            continue
        heads, ends = sorted(head.members), sorted(end.members)
        total = tree.total(heads)
        sums = pooled(tree.links[node][inner] for node in heads for inner in ends if inner in tree.links[node])
        within = pooled_cost(tree, heads, ends) if paper else cost_within(tree, heads, ends)
        cf_self = within.variance * total.n**2 / total.spread if within else None
        cf_net = sums.net(total) / total.spread
        ids = (numbers[head], *(numbers[each] for each in reversed(path)))
        if nearest := next((each for each in path[1:] if each in found), None):
            below[nearest] += cf_net
        found[end], below[end] = Contribution(numbers[head], numbers[end], ids, cf_self, cf_net), 0.0
    # Of a source that has others below it, the share is without theirs.
    apart = [replace(edge, cf_net=edge.cf_net - below[end]) for end, edge in found.items()]
    return sorted(apart, key=lambda edge: (-edge.cf_net, edge.source))


def cost_within(tree: Tree, heads: Sequence[int], ends: Sequence[int]) -> Stats | None:
    """Moments of Y, the cost of all ends together in an invocation of a head; None if a product was not kept.

    Contexts below one head add up to one Y, whose square contains their products. Below a head that has none of them, Y
    is 0 in all invocations.
    """
    total = Stats(0, 0, 0)
    for head in heads:
        inner = [end for end in ends if end in tree.links[head]]
        products = 0
        for place, a in enumerate(inner):
            for b in inner[place + 1 :]:
                product = _product_within(tree, head, a, b)
                if product is None:
                    return None
                products += 2 * product
        sums = pooled(tree.links[head][end] for end in inner)
        total += Stats(tree.stats[head].n, sums.y, sums.yy + products)
    return total


def _product_within(tree: Tree, head: int, a: int, b: int) -> int | None:
    """ΣY_a·Y_b over the invocations of a head; None if it was not kept.

    Products are kept of two calls of one caller, in each of the caller's invocations. They are the head's if the caller
    is the head, or is called at most once in each of the head's invocations.
    """
    caller = tree.parent[a]
    if tree.parent[b] != caller:
        return None
    within = tree.links[head].get(caller)
    if caller == head or (within is not None and within.once == within.n):
        return tree.product(caller, a, b)
    return None


def pooled_cost(tree: Tree, heads: Sequence[int], ends: Sequence[int]) -> Stats:
    """The paper's formula of §6.1, applied within one head as well: the head's invocations count once for each end."""
    total = Stats(0, 0, 0)
    for head in heads:
        for sums in (tree.links[head][end] for end in ends if end in tree.links[head]):
            total += Stats(tree.stats[head].n, sums.y, sums.yy)
    return total


# ---- Two recordings compared.

MIN_SHARE_CHANGE: Final = 0.1
"""Change of a share of the variance from which on it matters."""
MIN_COV_RATIO: Final = 1.5
"""Ratio of two coefficients of variation from which on they differ."""


def compare(old: Variance, new: Variance) -> tuple[PatternChange, ...]:
    """Which patterns appeared, went, or changed where their variance comes from.

    The patterns of the new recording come first, in their order.
    """
    left, changes = list(old.patterns), []
    for pattern in new.patterns:
        counterpart = _counterpart(pattern, left)
        if counterpart is not None:
            left.remove(counterpart)
        changes.append(_change(counterpart, pattern))
    return (*changes, *(_change(pattern, None) for pattern in left))


def _counterpart(pattern: Pattern, candidates: Sequence[Pattern]) -> Pattern | None:
    """The candidate with the same root; of several the one with most call paths and functions in common."""

    def root(one: Pattern) -> tuple[str, str]:
        return one.nodes[0].component.name, one.nodes[0].kind

    def functions(one: Pattern) -> set[str]:
        return {node.component.name for node in one.nodes}

    def call_paths(one: Pattern) -> set[tuple[str, ...]]:
        # Paths are compared by names, because call sites move where code is edited.
        return {tuple(step.callee for step in path) for path in one.nodes[0].contexts}

    return max(
        (one for one in candidates if root(one) == root(pattern)),
        key=lambda one: (len(call_paths(one) & call_paths(pattern)), len(functions(pattern) & functions(one))),
        default=None,
    )


def _change(old: Pattern | None, new: Pattern | None) -> PatternChange:
    """The change of a pattern, of which one side may be missing."""
    pattern = new or old
    assert pattern is not None
    component = pattern.nodes[0].component
    roots = (old.nodes[0] if old else None, new.nodes[0] if new else None)
    before, now = (_shares_by_path(one) if one else {} for one in (old, new))
    moved = tuple(
        ShareChange(path, before.get(path), now.get(path))
        for path in sorted({**before, **now})
        if abs(now.get(path, 0.0) - before.get(path, 0.0)) >= MIN_SHARE_CHANGE
    )
    if old is None or new is None:
        own = tuple(change for change in moved if change.path[0] == component.name)
        return PatternChange(component, "appeared" if new else "went", *roots, own)
    low, high = sorted((old.nodes[0].cov, new.nodes[0].cov))
    differs = bool(moved) or high >= MIN_COV_RATIO * low > 0
    return PatternChange(component, "changed" if differs else "stays", *roots, moved)


def _shares_by_path(pattern: Pattern) -> dict[tuple[str, ...], float]:
    """Names along a segment → share of the variance; shares of segments with the same names add up."""
    names = {node.id: node.component.name for node in pattern.nodes}
    found: dict[tuple[str, ...], float] = {}
    for edge in pattern.contributions:
        path = tuple(names[one] for one in edge.path)
        found[path] = found.get(path, 0.0) + edge.cf_net
    return found
