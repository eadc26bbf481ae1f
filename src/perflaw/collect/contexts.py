"""Calling contexts: which node of the call tree a call belongs to."""

from __future__ import annotations

from perflaw.collect.call_tree import Node, Sums
from perflaw.collect.layout import ELSEWHERE, ROOT


class Contexts:
    """The nodes, keyed by (parent, call site, callee).

    From the third repetition of a (site, callee) on a path, recursion is folded into the first. Beyond ``limit`` nodes,
    calls from new contexts are put together by function, whatever the program does.
    """

    def __init__(self, lanes: int, limit: int) -> None:
        self.lanes, self.limit = lanes, limit
        self.nodes = [self._node(-1, -1, -1, 0)]
        self._found: dict[tuple[int, int, int], int] = {}

    def child(self, parent: int, site: int, code: int) -> int:
        """The node of a call, made on first sight."""
        found = self._found.get((parent, site, code))
        if found is None:
            if len(self.nodes) >= self.limit:
                parent, site = ROOT, ELSEWHERE  # not remembered by its own key: there may be any number of them
                found = self._found.get((parent, site, code))
            else:
                found = self._recursion(parent, site, code)
            if found is None:
                found = self._new(parent, site, code)
            self._found[parent, site, code] = found
        return found

    def _recursion(self, parent: int, site: int, code: int) -> int | None:
        """The head of a recursion that repeats (site, callee) for the third time."""
        repeated, node = [], parent
        while node > ROOT:
            if self.nodes[node].site == site and self.nodes[node].code == code:
                repeated.append(node)
            node = self.nodes[node].parent
        return repeated[-1] if len(repeated) >= 2 else None

    def _new(self, parent: int, site: int, code: int) -> int:
        self.nodes.append(self._node(parent, site, code, self.nodes[parent].depth + 1))
        return len(self.nodes) - 1

    def _node(self, parent: int, site: int, code: int, depth: int) -> Node:
        return Node(parent, site, code, depth, lanes=[Sums() for _ in range(self.lanes)])
