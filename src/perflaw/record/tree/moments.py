"""Exact raw moments of call-tree nodes (Kumar & Pande, §2.2, in one pass). All sums are integers; nothing is rounded."""

from __future__ import annotations

from perflaw.record.tree.call_tree import LaneSums, LinkSums, TreeLink, TreeNode
from perflaw.record.tree.records import EVENTS_LANE, MAX_KIDS_APART, TIME_LANE, TreeLimits
from perflaw.record.tree.stacks import WorkBelow
from perflaw.store.schema import LOCAL, OTHER
from perflaw.types.call_trees import log_bucket


class MomentSums:
    """Adds completed invocations to the sums of their nodes and limits the number of links and pairs."""

    def __init__(self, lanes: int, limits: TreeLimits) -> None:
        self.lanes, self.limits = lanes, limits
        self.links = self.pairs = 0
        self.unlinked = 0
        """How often the part of a descendant was dropped because there were too many links."""

    def add(self, node: TreeNode, x: list[int], callees: WorkBelow, deeper: WorkBelow) -> list[int]:
        """Add a completed invocation with costs ``x`` by lane; returns its own costs Y_0 = X − ΣY_i by lane."""
        for lane, (sums, cost) in enumerate(zip(node.lanes, x, strict=True)):
            _add_cost(sums, cost, node.n + node.counted * (lane == EVENTS_LANE))
        node.n += 1
        bucket = log_bucket(x[TIME_LANE])
        node.histogram[bucket] = node.histogram.get(bucket, 0) + 1
        own = x
        if callees:
            _, *costs = map(sum, zip(*callees.values(), strict=True))  # the first sum is that of the calls
            own = [cost - part for cost, part in zip(x, costs, strict=True)]
        self._add_pairs(node, own, callees)
        if callees:
            self._add_links(node, x, callees)
            self._add_links(node, x, deeper)
        return own

    def count(self, node: TreeNode) -> None:
        """Add a call without a time: an invocation without callees in events, and none in any other metric."""
        _add_cost(node.lanes[EVENTS_LANE], 1, node.n + node.counted)
        node.pairs.setdefault((LOCAL, LOCAL), [0] * self.lanes)[EVENTS_LANE] += 1
        node.counted += 1

    def _add_pairs(self, node: TreeNode, own: list[int], callees: WorkBelow) -> None:
        """Add the products of all pairs of cost parts; the parts of least time beyond MAX_KIDS_APART are one, OTHER."""
        parts = [(LOCAL, own), *((callee, work[1:]) for callee, work in callees.items())]
        if len(parts) > MAX_KIDS_APART:
            parts.sort(key=lambda part: (-abs(part[1][TIME_LANE]), part[0]))
            others = [sum(lane) for lane in zip(*(costs for _, costs in parts[MAX_KIDS_APART:]), strict=True)]
            parts[MAX_KIDS_APART:] = [(OTHER, others)]
        parts.sort()
        for index, (i, y_i) in enumerate(parts):
            for j, y_j in parts[index:]:
                pair, weight = (i, j), 1
                if pair not in node.pairs:
                    if pair != (LOCAL, LOCAL) and self.pairs >= self.limits.pairs:
                        # A product of two different parts counts twice in the sums of the others, so that ΣΣP == ΣX².
                        pair, weight = (OTHER, OTHER), 1 if i == j else 2
                    if pair not in node.pairs:
                        node.pairs[pair] = [0] * self.lanes
                        self.pairs += pair != (LOCAL, LOCAL)
                products = node.pairs[pair]
                for lane in range(self.lanes):
                    products[lane] += weight * y_i[lane] * y_j[lane]

    def _add_links(self, node: TreeNode, x: list[int], below: WorkBelow) -> None:
        """Add an invocation of the ancestor ``node`` with costs ``x`` to the sums of each descendant that it called."""
        for descendant, (k, *costs) in below.items():
            link = node.links.get(descendant)
            if link is None:
                if self.links >= self.limits.links:
                    self.unlinked += 1
                    continue
                self.links += 1
                link = node.links[descendant] = TreeLink(lanes=[LinkSums() for _ in range(self.lanes)])
            link.n += 1
            link.n_once += k == 1
            link.sum_k += k
            link.sum_kk += k * k
            for sums, y, whole in zip(link.lanes, costs, x, strict=True):
                sums.sum_ky += k * y
                sums.sum_y += y
                sums.sum_yy += y * y
                sums.sum_yx += y * whole


def _add_cost(sums: LaneSums, cost: int, before: int) -> None:
    """Add a cost to sums that have this many already."""
    sums.min_x = cost if not before or cost < sums.min_x else sums.min_x
    sums.max_x = max(cost, sums.max_x)
    sums.sum_x += cost
    sums.sum_xx += cost * cost


def add_wait(node: TreeNode, waited: int) -> None:
    """Add the time that a completed generator or coroutine was suspended; of an async generator, in what it awaits."""
    n, total, squares, least, most = node.waits
    node.waits = [n + 1, total + waited, squares + waited**2, min(least, waited) if n else waited, max(most, waited)]
