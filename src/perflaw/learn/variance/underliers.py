"""Underlying sources of variance at any depth (§2.2), exactly and in one pass, where the paper profiles again and again.

From a head, walk down through calls whose share of the head's variance is significant. Where what such calls leave
unexplained is significant as well, the walk ends: that node underlies the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from perflaw.learn.variance.options import Options
from perflaw.learn.variance.sums import Link, Stats, pooled
from perflaw.learn.variance.tree import Tree

Group = tuple[tuple[int, int], ...]
"""Pairs of a head and a node below it: one relative call path below every head that has it."""
ONCE: Final = 0.95
"""The paper descends where a callee is called exactly once with at least this probability."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A linear segment: the path from a head to what underlies it (§5)."""

    groups: tuple[Group, ...]
    """The path below the head, one group a call; the last is the underlier."""
    sums: Link
    """Of the underlier within the heads' invocations."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes of the path below a single head."""
        return tuple(group[0][1] for group in self.groups)


def underliers(tree: Tree, heads: Sequence[int], options: Options) -> list[Segment]:
    """Segments from these heads, contexts of one function, to their underliers; no two lie on one path."""
    total = tree.total(heads)
    if total.spread <= 0:
        return []
    walk = _Walk(tree, total, options)
    start = tuple((head, head) for head in heads)
    for group, _ in walk.significant(start):
        walk.visit((group,))
    return walk.found


class _Walk:
    """One walk down from some heads."""

    def __init__(self, tree: Tree, total: Stats, options: Options) -> None:
        self.tree, self.total, self.options = tree, total, options
        self.bar = options.theta * total.spread
        self.found: list[Segment] = []

    def visit(self, path: tuple[Group, ...]) -> None:
        """Look at the last group of the path."""
        group = path[-1]
        below = self.significant(group)
        if self._ends(group, below):
            self.found.append(Segment(path, self._sums(group)))
            return
        for child, _ in below:
            self.visit((*path, child))

    def _ends(self, group: Group, below: Sequence[tuple[Group, float]]) -> bool:
        """Whether what those calls leave unexplained is significant; the paper walks on as long as there are any."""
        if self.options.paper:
            return not below
        return self._net(group) - sum(share for _, share in below) >= self.bar

    def significant(self, group: Group) -> list[tuple[Group, float]]:
        """Calls made there with a significant share of the heads' variance, and N²·share."""
        shares = [(child, self._share(group, child)) for child in self._children(group)]
        return [(child, share) for child, share in shares if share >= self.bar and self._reaches(group, child)]

    def _children(self, group: Group) -> Iterable[Group]:
        """Relative call paths one call longer, in a canonical order."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for head, node in group:
            for child in self.tree.children[node]:
                if child in self.tree.links[head]:
                    found.setdefault(self.tree.key(child), []).append((head, child))
        keys = sorted(found, key=lambda key: min(self.tree.rank[node] for _, node in found[key]))
        return [tuple(found[key]) for key in keys]

    def _share(self, group: Group, child: Group) -> int:
        if not self.options.paper:
            return self._net(child)
        sums = self._sums(child)  # C_WW of the paper's contribution fraction
        return self.total.n * sums.yy - sums.y * sums.y

    def _net(self, group: Group) -> int:
        """N²·Cov(Y, X)."""
        sums = self._sums(group)
        return self.total.n * sums.yx - sums.y * self.total.x

    def _sums(self, group: Group) -> Link:
        return pooled(self.tree.links[head][node] for head, node in group)

    def _reaches(self, group: Group, child: Group) -> bool:
        """The paper's heuristic: below the first call it goes on only where callees are called once."""
        if not self.options.paper or all(head == node for head, node in group):
            return True
        parents = [self.tree.parent[node] for _, node in child]
        once = sum(
            self.tree.links[parent][node].once for parent, (_, node) in zip(parents, child, strict=True)
            if node in self.tree.links[parent]
        )  # fmt: skip
        return once >= ONCE * sum(self.tree.stats[parent].n for parent in parents)
