"""How much two results of ``perflaw variance`` share: the edit distance of their pattern trees (Zhang & Shasha, 1989).

Nodes are the same where function and type are; taking one out of either side costs its weight, 1 or σN, its own variance
impact. Of weights that add up to 1 on either side, the part that need not be taken out is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from perflaw.types.variance import Pattern, PatternNode, Variance

Label = tuple[str, str]
"""Function and type."""


@dataclass(slots=True)
class Twig:
    """A node of a tree."""

    label: Label
    weight: float
    order: tuple[object, ...] = ()
    """Where it stands among its siblings: by what it is and where it is called."""
    children: list[Twig] = field(default_factory=list)

    def walk(self) -> Iterator[Twig]:
        """Children before parents, from the first to the last."""
        for child in self.children:
            yield from child.walk()
        yield self


@dataclass(frozen=True, slots=True)
class Shared:
    """What two trees have in common."""

    distance: float
    """Weight that must be taken out of one or the other."""
    whole: float
    """Weight of both."""

    @property
    def share(self) -> float:
        """Part of both that stays."""
        return 1 - self.distance / self.whole if self.whole else 1.0


def by_count(_: PatternNode) -> float:
    """Every node alike."""
    return 1.0


def by_impact(node: PatternNode) -> float:
    """σN of the node alone."""
    return node.cov * node.weight


def shared(a: Variance, b: Variance, weight: Callable[[PatternNode], float]) -> Shared:
    """What the patterns of two results share, all below one root that weighs nothing."""
    one, two = tree(a.patterns, weight), tree(b.patterns, weight)
    whole = sum(node.weight for side in (one, two) for node in side.walk())
    return Shared(0.0 if same(one, two) else distance(one, two), whole)


def same(one: Twig, two: Twig) -> bool:
    """Whether they have the same nodes in the same places."""
    pairs = zip(one.children, two.children, strict=False)
    return one.label == two.label and len(one.children) == len(two.children) and all(same(*pair) for pair in pairs)


def tree(patterns: tuple[Pattern, ...], weight: Callable[[PatternNode], float]) -> Twig:
    """The patterns as one tree, siblings in an order that does not depend on their figures."""
    top = Twig(("", ""), 0.0)
    twigs: dict[int, Twig] = {}
    total = sum(weight(node) for one in patterns for node in one.nodes) if weight is not by_count else 1.0
    for node in (node for one in patterns for node in one.nodes):
        label = (node.component.name, node.kind)
        calls = sorted([step.callee for step in path] for path in node.contexts)
        twigs[node.id] = Twig(label, weight(node) / total if total else 0.0, (*label, calls))
        (top if node.parent is None else twigs[node.parent]).children.append(twigs[node.id])
    for twig in (top, *twigs.values()):
        twig.children.sort(key=lambda child: child.order)
    return top


class _Order:
    """A tree in postorder: labels, weights, the first leaf below each node, and the keyroots of Zhang and Shasha."""

    def __init__(self, root: Twig) -> None:
        nodes = list(root.walk())
        place = {id(node): number for number, node in enumerate(nodes)}
        self.labels = [node.label for node in nodes]
        self.weights = np.array([node.weight for node in nodes])
        self.first = np.zeros(len(nodes), dtype=np.int64)
        for number, node in enumerate(nodes):
            self.first[number] = self.first[place[id(node.children[0])]] if node.children else number
        self.keyroots = sorted({first: number for number, first in enumerate(self.first.tolist())}.values())


def distance(one: Twig, two: Twig) -> float:
    """The least weight that must be taken out of both so that the same is left.

    >>> leaf = lambda name, *below: Twig((name, "Task"), 1.0, (), list(below))
    >>> distance(leaf("a", leaf("b"), leaf("c")), leaf("a", leaf("x", leaf("b")), leaf("c")))
    1.0
    >>> distance(leaf("a", leaf("b")), leaf("c", leaf("b")))
    2.0
    """
    a, b = _Order(one), _Order(two)
    numbers = {label: number for number, label in enumerate({*a.labels, *b.labels})}
    codes = np.array([numbers[label] for label in b.labels])
    found = np.zeros((len(a.labels), len(b.labels)))
    for i in a.keyroots:
        for j in b.keyroots:
            _below(a, b, i, j, [numbers[label] for label in a.labels], codes, found)
    return float(found[-1, -1])


def _below(
    a: _Order, b: _Order, i: int, j: int, mine: list[int], codes: np.ndarray, found: np.ndarray
) -> None:  # fmt: skip
    """Distances of all pairs of subtrees whose leftmost leaves are those of ``i`` and ``j``, into ``found``."""
    low, left = int(a.first[i]), int(b.first[j])
    columns = np.arange(left, j + 1)
    put_in = np.concatenate([[0.0], np.cumsum(b.weights[left : j + 1])])
    rows = np.empty((i - low + 2, len(columns) + 1))
    rows[0] = put_in
    whole = b.first[columns] == left
    before = b.first[columns] - left
    for row, x in enumerate(range(low, i + 1), start=1):
        taken_out = rows[row - 1] + a.weights[x]
        if a.first[x] == low:  # whole subtrees stand where the other side's subtree is whole as well
            inner = np.where(whole, np.where(codes[columns] == mine[x], rows[row - 1, :-1], np.inf), 0.0)
            inner = np.where(whole, inner, rows[0, before] + found[x, columns])
        else:
            inner = rows[int(a.first[x]) - low, before] + found[x, columns]
        best = np.minimum(taken_out, np.concatenate([[np.inf], inner]))
        rows[row] = np.minimum.accumulate(best - put_in) + put_in
        if a.first[x] == low:
            found[x, columns[whole]] = rows[row, 1:][whole]
