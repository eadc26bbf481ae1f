"""Merging within and across patterns: hierarchical agglomeration in layers (§4, step 4 of §7).

In every layer the cheapest pair merges first and both are consumed; what comes of it belongs to the next layer. Ties go by
the canonical order of contexts, so that the order of input never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop
from itertools import combinations

from perflaw.learn.variance.distance import difference
from perflaw.learn.variance.joining import Above, Joint, Passing, contributions_fit, join, merge_cost, merged
from perflaw.learn.variance.labels import Labels
from perflaw.learn.variance.vertex import Vertex

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
