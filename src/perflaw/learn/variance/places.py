"""Where the rows of nodes are in a column, and which sampled invocations enclose another one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perflaw.types.call_trees import CallTree


class Places:
    """Where the rows of nodes are, for a column of nodes; asked for often, so that the rows are put in order once."""

    def __init__(self, node: NDArray[np.int64], size: int) -> None:
        """``node`` (n,) is that of each row, ``size`` the number of nodes."""
        self._order = np.argsort(node, kind="stable")
        self._ends = np.append(0, np.cumsum(np.bincount(node, minlength=size)))

    def of(self, nodes: Iterable[int]) -> NDArray[np.intp]:
        """Rows of these nodes, ascending."""
        rows = [self._order[self._ends[node] : self._ends[node + 1]] for node in dict.fromkeys(nodes)]
        return np.sort(np.concatenate(rows)) if rows else self._order[:0]

    def of_many(self, nodes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows of many nodes, each named once, ascending."""
        first, length = self._ends[nodes], self._ends[nodes + 1] - self._ends[nodes]
        # Where the rows of each node begin in the order, less where they begin in the result.
        shift = np.repeat(first - (np.cumsum(length) - length), length)
        return np.sort(self._order[shift + np.arange(len(shift))])


class EnclosingCalls:
    """Which sampled invocations enclose a sampled invocation."""

    def __init__(self, tree: CallTree) -> None:
        """The tree must have samples."""
        assert tree.samples is not None
        self.samples, self.parent = tree.samples, tree.parent

    @cached_property
    def _run(self) -> NDArray[np.intp]:
        """(S,) number of the run of each sampled invocation."""
        return np.unique(np.array(self.samples.run), return_inverse=True)[1]

    @cached_property
    def _sampled(self) -> tuple[list[int], list[int], dict[int, tuple[int, int]]]:
        """Places of the sampled invocations by run, node and start; the starts; where those of each run and node are.

        They are Python's own lists, because so little is asked of them at a time.
        """
        key = self._run * len(self.parent) + self.samples.node
        order = np.lexsort((self.samples.started, key))
        keys, first, count = np.unique(key[order], return_index=True, return_counts=True)
        spans = dict(zip(keys.tolist(), zip(first.tolist(), (first + count).tolist(), strict=True), strict=True))
        return order.tolist(), self.samples.started[order].tolist(), spans

    def of(self, place: int) -> list[tuple[int, int | None]]:
        """Node and place of each invocation around this one, itself the last; None where it was not sampled."""
        start = int(self.samples.started[place])
        end, node = start + float(self.samples.time[place]), int(self.samples.node[place])
        path: list[tuple[int, int | None]] = [(node, place)]
        order, starts, spans = self._sampled
        of_run = int(self._run[place]) * len(self.parent)
        while (node := int(self.parent[node])) > 0:
            first, behind = spans.get(of_run + node, (0, 0))
            last = bisect_right(starts, start, first, behind) - 1
            is_around = last >= first and starts[last] + float(self.samples.time[order[last]]) >= end
            path.append((node, order[last] if is_around else None))
        return path[::-1]
