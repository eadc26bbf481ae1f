"""Two patterns laid over each other: whether they fit, what merging them costs, and the merged pattern (§6).

Which children correspond does not depend on their order: they are the connected components of "call-context sets
intersect". The printed algorithm (``paper``) goes through the contexts one after the other instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perflaw.learn.variance.distance import difference
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.vertex import CallPath, Vertex

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
