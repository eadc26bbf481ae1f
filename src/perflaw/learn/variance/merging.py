"""Merging within and across patterns: hierarchical agglomeration in layers (§4, step 4 of §7).

In every layer the cheapest pair merges first and both are consumed; what comes of it belongs to the next layer. Ties go by
the canonical order of contexts, so that the order of input never matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop
from itertools import combinations
from math import erf, isclose, log, sqrt

from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.vertex import CallPath, Labels, Vertex

# ---- Kolmogorov–Smirnov difference of two costs taken as Gaussians (§6), in closed form.
#
# The difference of two distribution functions is largest where the densities cross.

Normal = tuple[float, float]
"""Mean and standard deviation."""


def difference(one: Stats | None, two: Stats | None) -> float:
    """D of the costs of two nodes, 0 to 1; a missing counterpart costs nothing, always."""
    a = (one.mean, one.sigma) if one else (0.0, 0.0)
    b = (two.mean, two.sigma) if two else (0.0, 0.0)
    return gaussian_difference(a, b)


def gaussian_difference(a: Normal, b: Normal) -> float:
    """The supremum of |F_a − F_b|.

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
    points = _crossings(a, b)
    return max(abs(_phi((x - mean) / sigma) - _phi((x - other) / width)) for x in points)


def _crossings(a: Normal, b: Normal) -> tuple[float, float]:
    """Where the densities of two Gaussians of different width are equal, in units that keep the numbers near 1."""
    (mean, sigma), (other, width) = a, b
    shift, ratio = (other - mean) / sigma, width / sigma
    # z² = ((z − shift)/ratio)² + 2·log(ratio), z counted from the first mean in its sigmas.
    square, linear, rest = 1 - ratio**-2, 2 * shift / ratio**2, -((shift / ratio) ** 2) - 2 * log(ratio)
    root = sqrt(max(linear * linear - 4 * square * rest, 0.0))
    far = -(linear + (root if linear >= 0 else -root)) / 2
    near = rest / far if far else 0.0
    return mean + sigma * far / square, mean + sigma * near


def _phi(z: float) -> float:
    """Standard normal distribution function."""
    return (1 + erf(z / sqrt(2))) / 2


# ---- Two patterns laid over each other: whether they fit, what merging them costs, and the merged pattern (§6).
#
# Which children correspond does not depend on their order: they are the connected components of "call-context sets
# intersect". The printed algorithm (``paper``) goes through the contexts one after the other instead.

Above = Mapping[int, int]
"""Nodes of the vertices above those that are merged → which vertex, counted from the root."""
Pair = tuple[Vertex | None, Vertex | None]
"""A child of either side, or of both."""
Passing = Mapping[int, frozenset[tuple[int, int]]]
"""Node → head and end of each linear segment that it lies on, heads left out."""


@dataclass(slots=True)
class Joint:
    """A place of the merged pattern: a vertex of either side or of both."""

    sides: tuple[Vertex | None, Vertex | None]
    """The vertices that correspond; one may be missing."""
    children: list[Joint] = field(default_factory=list)
    """Places below."""

    @property
    def vertices(self) -> list[Vertex]:
        """Those that are there."""
        return [one for one in self.sides if one is not None]

    @property
    def stats(self) -> Stats:
        """Moments of both sides together."""
        one, *others = (vertex.stats for vertex in self.vertices)
        return one + others[0] if others else one

    def walk(self) -> Iterator[Joint]:
        """All places from here down, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()


def join(one: Vertex | None, two: Vertex | None, paper: bool = False) -> Joint | None:
    """The overlap of two patterns, None where they do not fit: other functions or types, or contexts torn apart.

    ``paper``: children correspond as in Function MergePatternTrees.
    """
    if one is None or two is None:
        return _alone(one, two)
    if (one.function, one.kind) != (two.function, two.kind):
        return None
    pairs = (as_printed if paper else corresponding)(one.children, two.children)
    if pairs is None:
        return None
    joint = Joint((one, two))
    for pair in pairs:
        child = join(*pair, paper)
        if child is None:
            return None
        joint.children.append(child)
    return joint


def _alone(one: Vertex | None, two: Vertex | None) -> Joint:
    children: list[Pair] = [(child, None) for child in one.children] if one else []
    children += [(None, child) for child in two.children] if two else []
    return Joint((one, two), [_alone(*pair) for pair in children])


def corresponding(ones: Sequence[Vertex], twos: Sequence[Vertex]) -> list[Pair] | None:
    """Children that correspond; None where one would correspond to several."""
    partner: dict[int, int] = {}
    for i, one in enumerate(ones):
        for j, two in enumerate(twos):
            if not one.contexts.isdisjoint(two.contexts):
                if i in partner or j in partner.values():
                    return None
                partner[i] = j
    return _pairs(ones, twos, partner)


def _pairs(ones: Sequence[Vertex], twos: Sequence[Vertex], partner: Mapping[int, int]) -> list[Pair]:
    taken = set(partner.values())
    pairs: list[Pair] = [(one, twos[partner[i]] if i in partner else None) for i, one in enumerate(ones)]
    return pairs + [(None, two) for j, two in enumerate(twos) if j not in taken]


def as_printed(ones: Sequence[Vertex], twos: Sequence[Vertex]) -> list[Pair] | None:
    """Lines 8 to 36 of Function MergePatternTrees (§6), its contexts in sorted order.

    A context that is met first may give a child a place of its own, with which another child's contexts then clash.
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
    at = [{assigned[context]: place for context, place in side.items()} for side in sides]
    return _pairs(ones, twos, {place: at[1][number] for number, place in at[0].items() if number in at[1]})


def contributions_fit(joint: Joint, passing: Passing, above: Above) -> bool:
    """Whether both sides have the same linear segments through every place that both have."""
    maps: tuple[dict[int, int], dict[int, int]] = ({}, {})
    both = []
    for number, place in enumerate(joint.walk()):
        for side, vertex in enumerate(place.sides):
            if vertex is not None:
                maps[side].update(dict.fromkeys(vertex.members, number))
        if all(place.sides):
            both.append(place)
    return all(_segments(place, 0, passing, maps, above) == _segments(place, 1, passing, maps, above) for place in both)


def _segments(
    place: Joint, side: int, passing: Passing, maps: tuple[dict[int, int], dict[int, int]], above: Above
) -> set[tuple[int, int]]:
    """Segments through a place on one side, by the places of their ends; what lies above both counts from -1 down."""
    vertex, here = place.sides[side], maps[side]
    assert vertex is not None
    found = set()
    for member in vertex.members:
        for head, end in passing.get(member, ()):
            start = here.get(head, -1 - above[head] if head in above else None)
            if start is not None:
                found.add((start, here[end]))
    return found


def merge_cost(joint: Joint, pressure: float = 1.0) -> float | None:
    """Differences averaged breadth first, weighted by cost; None where the average passes τ_S after a level (§6)."""
    averages = running_averages(joint, pressure)
    return averages[-1] if averages[-1] <= pressure else None


def running_averages(joint: Joint, pressure: float = 1.0) -> list[float]:
    """The average after each place, until a level ends above τ_S.

    Within a level the order of the places matters to no other value than those between.
    """
    level, averages = [joint], list[float]()
    total = weight = 0.0
    while level:
        for place in level:
            heavy = float(place.stats.x)
            one, two = (vertex.stats if vertex else None for vertex in place.sides)
            total += heavy * difference(one, two)
            weight += heavy
            averages.append(total / weight if weight else 0.0)
        if averages[-1] > pressure:
            break
        level = [child for place in level for child in place.children]
    return averages


def merged(joint: Joint) -> Vertex:
    """The merged pattern: contexts, members and moments of both sides together."""
    one, *others = joint.vertices
    if not others:
        return one
    two = others[0]
    children = sorted((merged(child) for child in joint.children), key=lambda child: child.order)
    return Vertex(
        one.function,
        one.kind,
        one.members | two.members,
        one.contexts | two.contexts,
        one.stats + two.stats,
        min(one.order, two.order),
        tuple(children),
    )


Known = dict[tuple[int, int], tuple[float, Joint] | None]
"""Pairs of vertices by identity → their cost and overlap; None: they do not merge."""


@dataclass(slots=True)
class Merger:
    """Merges patterns of one program under one pressure."""

    passing: Passing
    """Linear segments by node."""
    pressure: float
    """τ_S."""
    paper: bool = False
    """Whether children correspond as printed."""
    known: Known = field(default_factory=dict)
    """Pairs that were looked at: most stay unmerged over many layers."""
    alive: list[Vertex] = field(default_factory=list)
    """Every vertex of such pairs: identities must not be used again."""

    def everything(self, patterns: Sequence[Vertex]) -> list[Vertex]:
        """Merge inside each pattern, then across them."""
        return self.agglomerate([self.inside(pattern, {}) for pattern in patterns], {})

    def inside(self, vertex: Vertex, above: Above) -> Vertex:
        """Merge among the vertices below, from the bottom up."""
        if not vertex.children:
            return vertex
        here = {**above, **dict.fromkeys(vertex.members, len(set(above.values())))}
        children = self.agglomerate([self.inside(child, here) for child in vertex.children], here)
        return replace(vertex, children=tuple(sorted(children, key=lambda child: child.order)))

    def agglomerate(self, vertices: Sequence[Vertex], above: Above) -> list[Vertex]:
        """Merge vertices that stand side by side, layer by layer, until no two merge."""
        groups: dict[tuple[int, str], list[Vertex]] = {}
        for vertex in vertices:
            groups.setdefault((vertex.function, vertex.kind), []).append(vertex)
        result: list[Vertex] = []
        for group in groups.values():
            self.known.clear()
            self.alive.clear()
            layer = group
            while len(layer) > 1 and len(following := self._next_layer(layer, above)) < len(layer):
                layer = following
            result += layer
        return result

    def _next_layer(self, layer: Sequence[Vertex], above: Above) -> list[Vertex]:
        heap = [
            (found[0], one.order, two.order, one, two, found[1])
            for one, two in combinations(sorted(layer, key=lambda one: one.order), 2)
            if (found := self._pair(one, two, above))
        ]
        heapify(heap)
        consumed: set[int] = set()
        born: list[Vertex] = []
        while heap:
            _, _, _, one, two, joint = heappop(heap)
            if id(one) not in consumed and id(two) not in consumed:
                consumed |= {id(one), id(two)}
                born.append(Merger(self.passing, self.pressure, self.paper).inside(merged(joint), above))
        return [one for one in layer if id(one) not in consumed] + born

    def _pair(self, one: Vertex, two: Vertex, above: Above) -> tuple[float, Joint] | None:
        """Cost and overlap of two vertices, None where they do not fit or it is too dear."""
        key = (id(one), id(two))
        if key not in self.known:
            self.alive += (one, two)
            self.known[key] = self._looked_at(one, two, above)
        return self.known[key]

    def _looked_at(self, one: Vertex, two: Vertex, above: Above) -> tuple[float, Joint] | None:
        if difference(one.stats, two.stats) > self.pressure:  # the first running average: no need for the rest
            return None
        joint = join(one, two, self.paper)
        if joint is None or not contributions_fit(joint, self.passing, above):
            return None
        cost = merge_cost(joint, self.pressure)
        return None if cost is None else (cost, joint)


def passing_of(labels: Labels) -> Passing:
    """Linear segments by the nodes that lie on them, heads left out."""
    found: dict[int, set[tuple[int, int]]] = {}
    for head, paths in labels.segments.items():
        for path in paths:
            for node in path:
                found.setdefault(node, set()).add((head, path[-1]))
    return {node: frozenset(segments) for node, segments in found.items()}
