"""Exact raw moments of one call-tree node (specs: Moments). Integers only; nothing is ever rounded."""

from __future__ import annotations

from perflaw.store.schema import LOCAL, OTHER

MAX_KIDS_APART = 64
"""Callees of one invocation kept apart in the pair moments; the lightest beyond fold into OTHER."""

Below = dict[int, list[int]]
"""Node → [cost Y, calls K]."""


class Link:
    """Sums over the invocations of an ancestor in which a descendant took part."""

    __slots__ = ("n", "n_once", "sum_k", "sum_kk", "sum_ky", "sum_y", "sum_yx", "sum_yy")

    def __init__(self) -> None:
        self.n = self.n_once = self.sum_k = self.sum_kk = self.sum_ky = self.sum_y = self.sum_yy = self.sum_yx = 0

    def add(self, y: int, k: int, x: int) -> None:
        """Take in one invocation of the ancestor of cost ``x``."""
        self.n += 1
        self.n_once += k == 1
        self.sum_k += k
        self.sum_kk += k * k
        self.sum_ky += k * y
        self.sum_y += y
        self.sum_yy += y * y
        self.sum_yx += y * x


class Node:
    """A calling context and the raw sums over its completed invocations."""

    __slots__ = (
        "code", "depth", "histogram", "links", "max_x", "min_x", "n", "open", "pairs", "parent", "site", "sum_x", "sum_xx",
        "waits",
    )  # fmt: skip

    def __init__(self, parent: int, site: int, code: int, depth: int) -> None:
        self.parent, self.site, self.code, self.depth = parent, site, code, depth
        self.n = self.sum_x = self.sum_xx = self.max_x = self.open = 0
        self.min_x = 0
        self.pairs: dict[tuple[int, int], int] = {}
        self.links: dict[int, Link] = {}
        self.histogram: dict[int, int] = {}
        self.waits = [0, 0, 0, 0, 0]
        """n, ΣW, ΣW², least and most of the time generators and coroutines of this node were suspended: outside X."""

    def add(self, x: int, kids: Below, deeper: Below) -> int:
        """Take in a completed invocation of cost ``x``; returns its local time Y_0 = x − ΣY_i."""
        self.min_x = x if not self.n or x < self.min_x else self.min_x
        self.max_x = max(x, self.max_x)
        self.n += 1
        self.sum_x += x
        self.sum_xx += x * x
        bucket = log_bucket(x)
        self.histogram[bucket] = self.histogram.get(bucket, 0) + 1
        if not kids:
            pair = (LOCAL, LOCAL)
            self.pairs[pair] = self.pairs.get(pair, 0) + x * x
            return x
        local = x - sum(kid[0] for kid in kids.values())
        self._add_pairs(local, kids)
        self._add_links(x, kids, deeper)
        return local

    def wait(self, waited: int) -> None:
        """Take in how long a completed generator or coroutine was suspended."""
        n, total, squares, least, most = self.waits
        self.waits = [
            n + 1,
            total + waited,
            squares + waited**2,
            min(least, waited) if n else waited,
            max(most, waited),
        ]

    def _add_pairs(self, local: int, kids: Below) -> None:
        parts = [(LOCAL, local), *((node, kid[0]) for node, kid in kids.items())]
        if len(parts) > MAX_KIDS_APART:
            parts.sort(key=lambda part: (-abs(part[1]), part[0]))
            parts[MAX_KIDS_APART:] = [(OTHER, sum(cost for _, cost in parts[MAX_KIDS_APART:]))]
        parts.sort()
        pairs = self.pairs
        for index, (i, y_i) in enumerate(parts):
            for j, y_j in parts[index:]:
                pairs[i, j] = pairs.get((i, j), 0) + y_i * y_j

    def _add_links(self, x: int, kids: Below, deeper: Below) -> None:
        links = self.links
        for below in (kids, deeper):
            for node, (cost, calls) in below.items():
                link = links.get(node)
                if link is None:
                    link = links[node] = Link()
                link.add(cost, calls, x)


def log_bucket(x: int) -> int:
    """Bucket of a log histogram: four to a power of two.

    >>> [log_bucket(x) for x in (0, 1, 2, 4, 5, 6, 7, 8, 1000)]
    [0, 4, 8, 12, 13, 14, 15, 16, 43]
    """
    bits = x.bit_length()
    return bits * 4 + ((x >> (bits - 3)) & 3 if bits >= 3 else 0)
