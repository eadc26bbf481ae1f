"""Exact raw moments of call-tree nodes (specs: Moments). Integers only; nothing is ever rounded."""

from __future__ import annotations

from perflaw.record.records import MAX_KIDS_APART, TIME_LANE
from perflaw.record.tree.call_tree import Limits, Link, LinkSums, Node, Sums
from perflaw.record.tree.stacks import Below
from perflaw.store.schema import LOCAL, OTHER

Part = tuple[int, list[int]]
"""A part of an invocation's cost (LOCAL, OTHER or a callee's node), its cost by lane."""


class Moments:
    """Adds completed invocations to their nodes, and knows how many links and pairs there are in all."""

    def __init__(self, lanes: int, limits: Limits) -> None:
        self.lanes, self.limits = lanes, limits
        self.links = self.pairs = 0
        self.unlinked = 0
        """How often a descendant's part was not kept, because there were too many links."""

    def add(self, node: Node, x: list[int], kids: Below, deeper: Below) -> list[int]:
        """Take in a completed invocation of costs ``x``; returns its local costs Y_0 = x − ΣY_i."""
        for sums, cost in zip(node.lanes, x, strict=True):
            _add_cost(sums, cost, first=not node.n)
        node.n += 1
        bucket = log_bucket(x[TIME_LANE])
        node.histogram[bucket] = node.histogram.get(bucket, 0) + 1
        local = x
        if kids:
            below = map(sum, zip(*kids.values(), strict=True))
            next(below)  # the calls
            local = [cost - part for cost, part in zip(x, below, strict=True)]
        self._add_pairs(node, local, kids)
        if kids:
            self._add_links(node, x, kids)
            self._add_links(node, x, deeper)
        return local

    def _add_pairs(self, node: Node, local: list[int], kids: Below) -> None:
        parts = _parts(local, kids)
        for index, (i, y_i) in enumerate(parts):
            for j, y_j in parts[index:]:
                found = node.pairs.get((i, j))
                if found is not None:
                    weight = 1
                else:
                    found, weight = self._new_pair(node, i, j)
                for lane in range(self.lanes):
                    found[lane] += weight * y_i[lane] * y_j[lane]

    def _new_pair(self, node: Node, i: int, j: int) -> tuple[list[int], int]:
        """The sums of a pair that its node has not met, and how often to add to them.

        Where there are too many it is OTHER's, in which a product of two parts stands twice: ΣΣP == ΣX² still holds.
        """
        weight = 1
        if (i, j) != (LOCAL, LOCAL) and self.pairs >= self.limits.pairs:
            weight = 1 if i == j else 2
            i = j = OTHER
        found = node.pairs.get((i, j))
        if found is None:
            found = node.pairs[i, j] = [0] * self.lanes
            self.pairs += (i, j) != (LOCAL, LOCAL)
        return found, weight

    def _add_links(self, node: Node, x: list[int], below: Below) -> None:
        for descendant, (calls, *costs) in below.items():
            link = node.links.get(descendant)
            if link is None:
                if self.links >= self.limits.links:
                    self.unlinked += 1
                    continue
                self.links += 1
                link = node.links[descendant] = Link(lanes=[LinkSums() for _ in range(self.lanes)])
            _add_link(link, calls, costs, x)


def _add_cost(sums: Sums, cost: int, first: bool) -> None:
    sums.min_x = cost if first or cost < sums.min_x else sums.min_x
    sums.max_x = max(cost, sums.max_x)
    sums.sum_x += cost
    sums.sum_xx += cost * cost


def _add_link(link: Link, k: int, costs: list[int], x: list[int]) -> None:
    """Take in one invocation of the ancestor of costs ``x`` in which the descendant was called ``k`` times."""
    link.n += 1
    link.n_once += k == 1
    link.sum_k += k
    link.sum_kk += k * k
    for sums, y, whole in zip(link.lanes, costs, x, strict=True):
        sums.sum_ky += k * y
        sums.sum_y += y
        sums.sum_yy += y * y
        sums.sum_yx += y * whole


def _parts(local: list[int], kids: Below) -> list[Part]:
    """The parts in order of their nodes; the least in time beyond MAX_KIDS_APART are one, OTHER."""
    parts = [(LOCAL, local), *((node, kid[1:]) for node, kid in kids.items())]
    if len(parts) > MAX_KIDS_APART:
        parts.sort(key=lambda part: (-abs(part[1][TIME_LANE]), part[0]))
        rest = [sum(lane) for lane in zip(*(costs for _, costs in parts[MAX_KIDS_APART:]), strict=True)]
        parts[MAX_KIDS_APART:] = [(OTHER, rest)]
    return sorted(parts)


def add_wait(node: Node, waited: int) -> None:
    """Take in how long a completed generator or coroutine was suspended."""
    n, total, squares, least, most = node.waits
    node.waits = [
        n + 1,
        total + waited,
        squares + waited**2,
        min(least, waited) if n else waited,
        max(most, waited),
    ]


def log_bucket(x: int) -> int:
    """Bucket of a log histogram: four to a power of two.

    >>> [log_bucket(x) for x in (0, 1, 2, 4, 5, 6, 7, 8, 1000)]
    [0, 4, 8, 12, 13, 14, 15, 16, 43]
    """
    bits = x.bit_length()
    return bits * 4 + ((x >> (bits - 3)) & 3 if bits >= 3 else 0)
