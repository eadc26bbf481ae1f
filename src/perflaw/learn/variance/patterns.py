"""Labels of calling contexts, the patterns extracted from them, and how these are merged (§4; §5; §7, steps 2 to 4).

A context is labelled by whether its own cost is of high variance and by the linear segments that it lies on: paths from a
head of high variance to an underlier, where that variance comes from. Labelled contexts become the vertices of patterns.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop
from itertools import combinations
from math import erf, isclose, log, sqrt
from typing import Any, Final, TypeVar, cast

from perflaw.learn.variance.moments import Link, Stats, pooled, split
from perflaw.learn.variance.tree import Options, Tree, is_high
from perflaw.types.recordings import WAITING
from perflaw.types.variance import Kind

Group = tuple[tuple[int, int], ...]
"""Pairs of a head and a node below it: one relative call path below every head that has it."""
PAPER_ONCE: Final = 0.95
"""Probability of exactly one call from which on the paper descends into a callee."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A linear segment: the path from a head to what underlies it (§5)."""

    groups: tuple[Group, ...]
    """The path below the head, one group for each call; the last is the underlier."""
    sums: Link
    """Sums of the underlier within the heads' invocations."""
    net: int
    """N² times its share of the heads' variance, without the underliers below it."""
    y: int
    """ΣY of the underlier, without the underliers below it."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes of the path below a single head."""
        return tuple(group[0][1] for group in self.groups)


def underliers(tree: Tree, heads: Sequence[int], options: Options) -> list[Segment]:
    """Segments from heads, contexts of one function, to their underliers (§2.2).

    The walk goes down through calls whose share of the head's variance is significant. A node is an underlier if the
    variance that these calls leave unexplained is significant as well. Others may lie below it, where its calls differ in
    cost and not in number alone. This is exact and takes one pass, where the paper profiles again and again.
    """
    total = tree.total(heads)
    if total.spread <= 0:
        return []
    return _Walk(tree, total, options).segments(heads)


@dataclass(slots=True)
class _Step:
    """A path that a walk has followed."""

    path: tuple[Group, ...]
    sums: Link
    above: int
    """Number of the step that it goes on from, −1 for a first one."""
    ends: bool
    """Whether a segment ends here."""
    net: int = 0
    """N² times the share of the underliers below."""
    y: int = 0
    """ΣY of the underliers below."""


class _Walk:
    """A walk down from some heads. Call trees are deeper than Python's stack, so nothing here calls itself."""

    def __init__(self, tree: Tree, total: Stats, options: Options) -> None:
        self.tree, self.total, self.paper = tree, total, options.paper
        self.threshold = options.theta * total.spread
        """N² times the variance that is significant."""

    def segments(self, heads: Sequence[int]) -> list[Segment]:
        """The segments from the heads, each before those that go on from where it ends."""
        steps = self._steps(heads)
        found: list[Segment] = []
        for step in reversed(steps):
            net, y = step.net, step.y
            if step.ends:
                net, y = step.sums.net(self.total), step.sums.y
                found.append(Segment(step.path, step.sums, net - step.net, y - step.y))
            if step.above >= 0:
                steps[step.above].net += net
                steps[step.above].y += y
        return found[::-1]

    def _steps(self, heads: Sequence[int]) -> list[_Step]:
        """All paths that are followed, each before those that go on from it.

        ``passed`` is the part of a share below that does not come from how often the underliers above are called: what
        they call varies as they do, and is no source for that.
        """
        steps: list[_Step] = []
        first = self.significant(tuple((head, head) for head in heads))
        ahead: list[tuple[tuple[Group, ...], float, int]] = [((group,), 1.0, -1) for group, _ in reversed(first)]
        while ahead:
            path, passed, above = ahead.pop()
            sums, below = self._sums(path[-1]), self.significant(path[-1])
            explained = sum(share for _, share in below)
            # The paper walks on as long as any call is significant.
            ends = not below if self.paper else sums.net(self.total) - explained >= self.threshold
            if ends:
                parts = split(sums, self.total.n)
                whole = parts.called + parts.trips + parts.cost
                passed *= parts.cost / whole if whole > 0 else 0.0
            steps.append(_Step(path, sums, above, ends))
            here = len(steps) - 1
            goes_on = (child for child, share in reversed(below) if share * passed >= self.threshold)
            ahead += [((*path, child), passed, here) for child in goes_on]
        return steps

    def significant(self, group: Group) -> list[tuple[Group, float]]:
        """Calls made at the end of a path with a significant share of the heads' variance, and N²·share.

        The paper's share is C_WW of its contribution fraction. Calls are in a canonical order.
        """
        calls: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for head, node in group:
            for callee in self.tree.children[node]:
                if callee in self.tree.links[head]:
                    calls.setdefault(self.tree.key(callee), []).append((head, callee))
        found: list[tuple[Group, float]] = []
        for key in sorted(calls, key=lambda key: min(self.tree.rank[node] for _, node in calls[key])):
            child = tuple(calls[key])
            sums = self._sums(child)
            share = sums.spread(self.total.n) if self.paper else sums.net(self.total)
            if share < self.threshold:
                continue
            if self.paper and any(head != node for head, node in group):
                # The paper's heuristic: below the first call the walk goes on only where callees are called once.
                links, parents = self.tree.links, [self.tree.parent[node] for _, node in child]
                ends = zip(parents, (node for _, node in child), strict=True)
                once = sum(links[parent][node].once for parent, node in ends if node in links[parent])
                if once < PAPER_ONCE * sum(self.tree.stats[parent].n for parent in parents):
                    continue
            found.append((child, share))
        return found

    def _sums(self, group: Group) -> Link:
        return pooled(self.tree.links[head][node] for head, node in group)


SegmentsByNode = Mapping[int, frozenset[tuple[int, int]]]
"""Node → head and end of each linear segment that it lies on; heads are left out."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a tree's nodes."""

    segments: dict[int, tuple[tuple[int, ...], ...]]
    """Head → the paths of its linear segments, the head itself left out."""
    kinds: dict[int, Kind]
    """Node → its type; nodes without a label are missing."""

    def segments_by_node(self) -> SegmentsByNode:
        """Linear segments by the nodes that lie on them."""
        found: dict[int, set[tuple[int, int]]] = {}
        for head, paths in self.segments.items():
            for path in paths:
                for node in path:
                    found.setdefault(node, set()).add((head, path[-1]))
        return {node: frozenset(segments) for node, segments in found.items()}


def label(tree: Tree, options: Options) -> Labels:
    """Segments and types of all nodes: independent flags first, then Task, Contributor and Contrast derived from them.

    A label needs at least ``options.least`` invocations. A segment ends at the last of its nodes that has as many. A node
    that underlies an established variance and varies as much itself is a Task, for it is not steady. The time in which
    generators and coroutines are suspended is no function, and has no label: others have it, or it is part of a latency.
    """
    functions_of = (tree.name(component) for component in tree.component)
    often = [stats.n >= options.least and name != WAITING for stats, name in zip(tree.stats, functions_of, strict=True)]
    # Whether the moments vary highly is quickly known. Whether that is the program's doing, and where it comes from, is not.
    nodes = [node for node in range(1, tree.size) if often[node] and tree.stats[node].is_high(options.high, tree.noise)]
    paths_from = {
        node: [one.nodes for one in underliers(tree, (node,), options)]
        for node in nodes
        if is_high(tree, (node,), tree.stats[node], options)
    }
    high = set(paths_from)
    segments: dict[int, tuple[tuple[int, ...], ...]] = {}
    for head, whole in paths_from.items():
        ends = [max((place for place, node in enumerate(path, 1) if often[node]), default=0) for path in whole]
        # Several of them may end at the same node now.
        paths = dict.fromkeys(path[:end] for path, end in zip(whole, ends, strict=True) if end)
        if paths:
            segments[head] = tuple(paths)
    underlie = {path[-1] for paths in segments.values() for path in paths}
    transmit = {node for paths in segments.values() for path in paths for node in path[:-1]}
    functions = {tree.component[node] for node in high | underlie}
    kinds: dict[int, Kind] = {}
    for node in range(1, tree.size):
        if not often[node]:
            continue
        # High variance that a node only passes on is observed principally at the head; the paper's list of types (§5)
        # makes every such node a contrast.
        ends_segment = not options.paper and (node in segments or node in underlie)
        if node in high and (node not in transmit or ends_segment):
            kinds[node] = "Task"
        elif node in underlie and node not in high:
            kinds[node] = "Task" if tree.stats[node].is_high(options.high, tree.noise) else "Contributor"
        elif node in transmit or tree.component[node] in functions:
            kinds[node] = "Contrast"
    return Labels(segments, kinds)


Call = tuple[int, int, int]
"""Caller's function, call site, callee."""
CallPath = tuple[Call, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Vertex:
    """A node of a pattern with all below it: a set of calling contexts.

    Its statistics are sums over these contexts, so merging is union: exact, and in any order. Linear segments stay those
    between calling contexts: a vertex lies on every segment that one of its contexts lies on.
    """

    function: int
    """Number of the function."""
    kind: Kind
    """Its type, which never changes after extraction."""
    members: frozenset[int]
    """Nodes of the tree."""
    contexts: frozenset[CallPath]
    """Call-context set: paths from the pattern's parent, or from the root of the tree."""
    stats: Stats
    """Moments over the members."""
    order: int
    """Smallest rank of the members, which breaks ties."""
    children: tuple[Vertex, ...] = ()
    """Vertices right below."""
    vim: float = field(init=False)
    """Variance impact: σN, summed over the vertex and all below it (§4)."""
    varies: bool = field(init=False)
    """Whether it or one below it is more than a contrast."""

    def __post_init__(self) -> None:
        """What is asked of every vertex again and again is added up once, from those right below."""
        vim = self.stats.sigma * self.stats.n + sum(child.vim for child in self.children)
        object.__setattr__(self, "vim", vim)
        varies = self.kind != "Contrast" or any(child.varies for child in self.children)
        object.__setattr__(self, "varies", varies)

    def walk(self) -> Iterator[Vertex]:
        """The vertex and all below it, depth first."""
        ahead = [self]
        while ahead:
            yield (one := ahead.pop())
            ahead += reversed(one.children)


def in_order(vertices: Iterable[Vertex]) -> list[Vertex]:
    """Vertices by the smallest rank of their members."""
    return sorted(vertices, key=lambda vertex: vertex.order)


def extract(tree: Tree, labels: Labels) -> list[Vertex]:
    """The labelled nodes as trees: a node's parent is its nearest labelled ancestor."""
    below: dict[int, list[Vertex]] = {}
    roots = below[0] = []
    # Children have greater ranks than their parents: going backwards, all below a node is ready.
    for node in sorted(labels.kinds, key=lambda node: -tree.rank[node]):
        above = tree.parent[node]
        while above > 0 and above not in labels.kinds:
            above = tree.parent[above]
        path = tree.path(node, above)
        context = tuple((tree.component[tree.parent[one]], tree.site[one], tree.component[one]) for one in path)
        vertex = Vertex(
            tree.component[node],
            labels.kinds[node],
            frozenset((node,)),
            frozenset((context,)),
            tree.stats[node],
            tree.rank[node],
            tuple(in_order(below.pop(node, []))),
        )
        below.setdefault(above, []).append(vertex)
    return in_order(roots)


# ---- Merging within and across patterns: hierarchical agglomeration in layers (§4; §7, step 4).


def difference(one: Stats | None, two: Stats | None) -> float:
    """Kolmogorov–Smirnov difference D of the costs of two nodes, 0 to 1; a missing node has a constant cost of 0 (§6)."""
    (mean, sigma), (other, width) = ((stats.mean, stats.sigma) if stats else (0.0, 0.0) for stats in (one, two))
    return gaussian_difference((mean, sigma), (other, width))


def gaussian_difference(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The supremum of |F_a − F_b| of two Gaussians, given by mean and standard deviation.

    In closed form: the difference of two distribution functions is largest where the densities cross.

    >>> [round(gaussian_difference(x, y), 6) for x, y in (((10, 4), (14, 4)), ((10, 4), (14, 8)), ((10, 4), (10, 8)))]
    [0.382925, 0.345144, 0.161337]
    >>> [round(gaussian_difference(x, (0, 0)), 6) for x in ((10, 4), (10, 20))]
    [0.99379, 0.691462]
    """
    (mean, sigma), (other, width) = a, b
    if sigma == 0 and width == 0:
        return float(mean != other)
    if sigma == 0 or width == 0:
        z = (mean - other) / width if sigma == 0 else (other - mean) / sigma
        return max(_phi(z), 1 - _phi(z))
    if isclose(sigma, width, rel_tol=1e-9):
        return 2 * _phi(abs(mean - other) / (2 * sigma)) - 1
    # In z = (x − mean)/sigma, which keeps the numbers near 1, densities cross at z² = ((z − shift)/ratio)² + 2·log(ratio).
    shift, ratio = (other - mean) / sigma, width / sigma
    square, linear, constant = 1 - ratio**-2, 2 * shift / ratio**2, -((shift / ratio) ** 2) - 2 * log(ratio)
    root = sqrt(max(linear * linear - 4 * square * constant, 0.0))
    far = -(linear + (root if linear >= 0 else -root)) / 2
    near = constant / far if far else 0.0
    crossings = mean + sigma * far / square, mean + sigma * near
    return max(abs(_phi((x - mean) / sigma) - _phi((x - other) / width)) for x in crossings)


def _phi(z: float) -> float:
    """Standard normal distribution function."""
    return (1 + erf(z / sqrt(2))) / 2


# ---- Two patterns laid over each other: whether they fit, what merging them costs, and the merged pattern (§6).

MergedAncestors = Mapping[int, int]
"""Nodes of the vertices above those that are merged → number of the vertex, counted from the root."""
Pair = tuple[Vertex | None, Vertex | None]
"""Corresponding children; one may be missing."""


@dataclass(slots=True)
class Overlay:
    """A place of the merged pattern, with a vertex of either side or of both."""

    sides: Pair
    """The vertices that correspond; one may be missing."""
    children: list[Overlay] = field(default_factory=list)
    """Places below."""

    @property
    def vertices(self) -> list[Vertex]:
        """The vertices that are present."""
        return [one for one in self.sides if one is not None]

    def walk(self) -> Iterator[Overlay]:
        """All places from here down, depth first."""
        ahead = [self]
        while ahead:
            yield (one := ahead.pop())
            ahead += reversed(one.children)


def overlay(one: Vertex | None, two: Vertex | None, paper: bool = False) -> Overlay | None:
    """Two patterns laid over each other; None if they do not fit.

    They do not fit if functions or types differ, or if a child would correspond to several children. ``paper``: children
    correspond as in Function MergePatternTrees. One of the patterns may be missing.
    """
    root = Overlay((one, two))
    ahead = [root]
    while ahead:
        place = ahead.pop()
        pairs = _below(*place.sides, paper)
        if pairs is None:
            return None
        place.children += map(Overlay, pairs)
        ahead += place.children
    return root


def _below(one: Vertex | None, two: Vertex | None, paper: bool) -> list[Pair] | None:
    """The children of a place of an overlay; None if its sides do not fit."""
    if one is None or two is None:
        alone: list[Pair] = [(child, None) for child in one.children] if one else []
        return alone + ([(None, child) for child in two.children] if two else [])
    if (one.function, one.kind) != (two.function, two.kind):
        return None
    return (corresponding_as_printed if paper else corresponding)(one.children, two.children)


def corresponding(ones: Sequence[Vertex], twos: Sequence[Vertex]) -> list[Pair] | None:
    """Children correspond if their call-context sets intersect; None if one would correspond to several."""
    partner: dict[int, int] = {}
    for i, one in enumerate(ones):
        for j, two in enumerate(twos):
            if not one.contexts.isdisjoint(two.contexts):
                if i in partner or j in partner.values():
                    return None
                partner[i] = j
    return _pairs(ones, twos, partner)


def corresponding_as_printed(ones: Sequence[Vertex], twos: Sequence[Vertex]) -> list[Pair] | None:
    """Correspondence by lines 8 to 36 of Function MergePatternTrees (§6), which visits the contexts in sorted order.

    The result depends on that order: a context that is visited first may give a child a place of its own, with which
    another child's contexts then conflict.
    """
    sides = [
        {context: place for place, child in enumerate(children) for context in child.contexts}
        for children in (ones, twos)
    ]
    assigned: dict[CallPath, int] = {}
    for number, context in enumerate(sorted({**sides[0], **sides[1]})):
        mine = assigned.setdefault(context, number)
        for side, children in zip(sides, (ones, twos), strict=True):
            for other in children[side[context]].contexts if context in side else ():
                if assigned.setdefault(other, mine) != mine:
                    return None
    first, second = ({assigned[context]: place for context, place in side.items()} for side in sides)
    return _pairs(ones, twos, {place: second[number] for number, place in first.items() if number in second})


def _pairs(ones: Sequence[Vertex], twos: Sequence[Vertex], partner: Mapping[int, int]) -> list[Pair]:
    """All children of both sides, paired where they have a partner."""
    taken = set(partner.values())
    pairs: list[Pair] = [(one, twos[partner[i]] if i in partner else None) for i, one in enumerate(ones)]
    return pairs + [(None, two) for j, two in enumerate(twos) if j not in taken]


def contributions_fit(root: Overlay, segments: SegmentsByNode, ancestors: MergedAncestors) -> bool:
    """Whether both sides have the same linear segments through every place that both have.

    Segments are compared by the places of their ends; places above the overlay count from -1 downwards.
    """
    places: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for number, place in enumerate(root.walk()):
        for side, vertex in enumerate(place.sides):
            if vertex is not None:
                places[side].update(dict.fromkeys(vertex.members, number))

    def through(vertex: Vertex, here: Mapping[int, int]) -> set[tuple[int, int]]:
        found = set()
        for head, end in (segment for member in vertex.members for segment in segments.get(member, ())):
            start = here.get(head, -1 - ancestors[head] if head in ancestors else None)
            if start is not None:
                found.add((start, here[end]))
        return found

    both = [place.vertices for place in root.walk() if all(place.sides)]
    return all(through(one, places[0]) == through(two, places[1]) for one, two in both)


def merge_cost(root: Overlay, pressure: float = 1.0) -> float | None:
    """Differences averaged breadth first, weighted by cost; None if the average exceeds τ_S after a level (§6)."""
    averages = running_averages(root, pressure)
    return averages[-1] if averages[-1] <= pressure else None


def running_averages(root: Overlay, pressure: float = 1.0) -> list[float]:
    """The average difference after each place, until a level ends above τ_S.

    The order of the places within a level matters only to the values within that level.
    """
    level, averages = [root], list[float]()
    total = total_weight = 0.0
    while level:
        for place in level:
            one, two = (vertex.stats if vertex else None for vertex in place.sides)
            weight = float(sum(vertex.stats.x for vertex in place.vertices))
            total += weight * difference(one, two)
            total_weight += weight
            averages.append(total / total_weight if total_weight else 0.0)
        if averages[-1] > pressure:
            break
        level = [child for place in level for child in place.children]
    return averages


def merged(root: Overlay) -> Vertex:
    """The merged pattern: contexts, members and moments of both sides together."""
    ready: dict[int, Vertex] = {}
    for place in reversed(list(root.walk())):  # from the bottom up
        one, *others = place.vertices
        children = [ready.pop(id(child)) for child in place.children]
        for two in others:
            one = Vertex(
                one.function,
                one.kind,
                one.members | two.members,
                one.contexts | two.contexts,
                one.stats + two.stats,
                min(one.order, two.order),
                tuple(in_order(children)),
            )
        ready[id(place)] = one
    return ready[id(root)]


T = TypeVar("T")
Steps = Generator["Steps[Any]", Any, T]
"""A function that yields each call of such a function instead of making it, and is sent its result."""


def without_stack(call: Steps[T]) -> T:
    """The result of a call. Calls may be within each other as deeply as call trees are, which Python's stack is not."""
    open_calls: list[Steps[Any]] = [call]
    result = None
    while open_calls:
        try:
            open_calls.append(open_calls[-1].send(result))
            result = None
        except StopIteration as end:
            open_calls.pop()
            result = end.value
    return cast("T", result)


@dataclass(slots=True)
class Merger:
    """Merges patterns of one program under one pressure.

    In every layer the cheapest pair merges first and both are consumed; the merged pattern belongs to the next layer. The
    canonical order of contexts breaks ties, so the order of the input never matters.
    """

    segments: SegmentsByNode
    """Linear segments by node."""
    pressure: float
    """τ_S."""
    paper: bool = False
    """Whether children correspond as printed in the paper."""

    def merge(self, patterns: Sequence[Vertex]) -> list[Vertex]:
        """Merge inside each pattern, then across patterns."""
        return without_stack(self._merge(patterns))

    def _merge(self, patterns: Sequence[Vertex]) -> Steps[list[Vertex]]:
        inside = []
        for pattern in patterns:
            one: Vertex = yield self._merge_inside(pattern, {})
            inside.append(one)
        across: list[Vertex] = yield self._agglomerate(inside, {})
        return across

    def _merge_inside(self, vertex: Vertex, ancestors: MergedAncestors) -> Steps[Vertex]:
        """Merge among the vertices below, from the bottom up."""
        if not vertex.children:
            return vertex
        here = {**ancestors, **dict.fromkeys(vertex.members, len(set(ancestors.values())))}
        inside = []
        for child in vertex.children:
            one: Vertex = yield self._merge_inside(child, here)
            inside.append(one)
        children: list[Vertex] = yield self._agglomerate(inside, here)
        return replace(vertex, children=tuple(in_order(children)))

    def _agglomerate(self, vertices: Sequence[Vertex], ancestors: MergedAncestors) -> Steps[list[Vertex]]:
        """Merge vertices that stand side by side, layer by layer, until no two merge."""
        groups: dict[tuple[int, str], list[Vertex]] = {}
        for vertex in vertices:
            groups.setdefault((vertex.function, vertex.kind), []).append(vertex)
        result: list[Vertex] = []
        for layer in groups.values():
            # Most pairs stay unmerged over many layers. Vertices are compared by identity and stay alive in the values.
            known: dict[tuple[Vertex, Vertex], tuple[float, Overlay] | None] = {}
            while len(layer) > 1:
                heap = []
                for one, two in combinations(in_order(layer), 2):
                    if (one, two) not in known:
                        known[one, two] = self._cost(one, two, ancestors)
                    if (found := known[one, two]) is not None:
                        heap.append((found[0], one.order, two.order, one, two, found[1]))
                heapify(heap)
                consumed: set[Vertex] = set()
                created: list[Vertex] = []
                while heap:
                    _, _, _, one, two, place = heappop(heap)
                    if one not in consumed and two not in consumed:
                        consumed |= {one, two}
                        created.append((yield self._merge_inside(merged(place), ancestors)))
                if not created:
                    break
                layer = [one for one in layer if one not in consumed] + created
            result += layer
        return result

    def _cost(self, one: Vertex, two: Vertex, ancestors: MergedAncestors) -> tuple[float, Overlay] | None:
        """Merge cost and overlay of two vertices; None if they do not fit or the cost exceeds τ_S."""
        if difference(one.stats, two.stats) > self.pressure:  # the first running average already exceeds τ_S
            return None
        place = overlay(one, two, self.paper)
        if place is None or not contributions_fit(place, self.segments, ancestors):
            return None
        cost = merge_cost(place, self.pressure)
        return None if cost is None else (cost, place)
