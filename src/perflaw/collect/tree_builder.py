"""Call events to a call tree with exact integer moments (specs: Moments; Kumar & Pande §2.2, one pass).

The tree is keyed by (parent, call site, callee); from the third repetition of a (site, callee) on a path, recursion is
folded into the first. Sums are exact, so trees of threads and runs add in any order to the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perflaw.collect.invocation import Invocation
from perflaw.collect.layout import DEAD, ENTER, EXIT, FEATURE, RESUME, YIELD
from perflaw.collect.moments import Node
from perflaw.collect.reservoir import Reservoir

ROOT = 0
MAX_DISTANCE = 16
"""Ancestor–descendant moments are kept for the nearest ancestors up to this distance."""

Event = tuple[int, int, int, int, int, int]
"""value, frame, code, site, key, kind: one record of ``layout``."""


class Thread:
    """The open invocations of one thread."""

    __slots__ = ("depth_of", "stack")

    def __init__(self) -> None:
        self.stack: list[Invocation] = [Invocation(0, 0, ROOT, 0, -1)]
        self.depth_of: dict[int, int] = {}
        """Code → its open invocations on this thread."""


class TreeBuilder:
    """Consumes the events of a run's threads and holds the call tree, moments and samples learnt from them."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.same: dict[int, int] = {}
        """Number of a function → number of its component; the same where it is not in."""
        self.nodes: list[Node] = [Node(-1, -1, -1, 0)]
        self.children: dict[tuple[int, int, int], int] = {}
        self.threads: dict[int, Thread] = {}
        self.suspended: dict[int, Invocation] = {}
        self.samples: dict[int, Reservoir] = {}
        self.totals: dict[int, int] = {}
        self.selves: dict[int, int] = {}
        self.calls = 0
        self.first: int | None = None
        self.last = 0

    def feed(self, thread: int, events: Iterable[Event]) -> None:
        """Take the next events of a thread, in order."""
        state = self.threads.setdefault(thread, Thread())
        for value, frame, code, site, key, kind in events:
            if kind == FEATURE:
                top = state.stack[-1]
                if top.frame == frame:
                    top.features.append((code, _as_float(value)))
            elif kind == ENTER:
                self._enter(state, value, frame, self.same.get(code, code), site, key)
            elif kind == EXIT:
                self._exit(state, value, frame)
            elif kind == YIELD:
                self._yield(state, value, frame)
            elif kind == RESUME:
                self._resume(state, value, frame, self.same.get(code, code), site)
            elif kind == DEAD:
                self._bury(state, frame)

    def finish(self) -> None:
        """Count what is still open: such invocations give no sample."""
        for thread in self.threads.values():
            for invocation in thread.stack[1:]:
                self.nodes[invocation.node].open += 1
            del thread.stack[1:]
        for invocation in self.suspended.values():
            self.nodes[invocation.node].open += 1
        self.suspended.clear()

    def _enter(self, thread: Thread, stamp: int, frame: int, code: int, site: int, key: int) -> None:
        if frame in self.suspended:
            # A generator was closed unseen and its frame's address is in use again: it has all the cost it will have.
            self._record(self.suspended.pop(frame), thread.stack[0])
        node = self._child(thread.stack[-1].node, site, code)
        thread.stack.append(Invocation(frame, code, node, stamp, key))
        thread.depth_of[code] = thread.depth_of.get(code, 0) + 1
        self._see(stamp)

    def _resume(self, thread: Thread, stamp: int, frame: int, code: int, site: int) -> None:
        invocation = self.suspended.pop(frame, None)
        slot = self._child(thread.stack[-1].node, site, code)
        if invocation is None:  # it began before the recording did
            invocation = Invocation(frame, -code, slot, stamp, -1)
        else:
            invocation.waited += stamp - invocation.segment
        invocation.slot, invocation.segment = slot, stamp
        thread.stack.append(invocation)
        thread.depth_of[code] = thread.depth_of.get(code, 0) + 1

    def _yield(self, thread: Thread, stamp: int, frame: int) -> None:
        invocation = self._pop(thread, frame)
        if invocation is not None:
            self._close_segment(thread, invocation, stamp)
            invocation.segment = stamp
            self.suspended[frame] = invocation

    def _exit(self, thread: Thread, stamp: int, frame: int) -> None:
        invocation = self._pop(thread, frame)
        if invocation is None:
            return
        self._close_segment(thread, invocation, stamp)
        if invocation.code > 0:
            self._record(invocation, thread.stack[-1])
        self._see(stamp)

    def _pop(self, thread: Thread, frame: int) -> Invocation | None:
        """The invocation of this frame; whatever stands above it died without an event."""
        stack = thread.stack
        if len(stack) > 1 and stack[-1].frame == frame:
            return stack.pop()
        return stack.pop() if self._bury(thread, frame) else None

    def _bury(self, thread: Thread, frame: int) -> bool:
        """Close what stands above the invocation of this frame, without a sample; False if the frame is not open."""
        stack = thread.stack
        for index in range(len(stack) - 1, 0, -1):
            if stack[index].frame == frame:
                for dead in stack[index + 1 :]:
                    self.nodes[dead.node].open += 1
                    thread.depth_of[abs(dead.code)] -= 1
                del stack[index + 1 :]
                return True
        return False

    def _close_segment(self, thread: Thread, invocation: Invocation, stamp: int) -> None:
        """Give the time since the invocation was last (re)entered to it and to its caller."""
        spent, code = stamp - invocation.segment, abs(invocation.code)
        kids = thread.stack[-1].kids
        found = kids.get(invocation.slot)
        if found is None:
            kids[invocation.slot] = [spent, int(invocation.fresh)]
        else:
            found[0] += spent
            found[1] += invocation.fresh
        invocation.fresh = False
        invocation.x += spent
        thread.depth_of[code] -= 1
        if thread.depth_of[code] == 0:
            self.totals[code] = self.totals.get(code, 0) + spent

    def _record(self, invocation: Invocation, caller: Invocation) -> None:
        """Add a completed invocation to every moment it has a part in."""
        node = self.nodes[invocation.node]
        local = node.add(invocation.x, invocation.kids, invocation.deeper)
        if invocation.waited:
            node.wait(invocation.waited)
        code = invocation.code
        self.selves[code] = self.selves.get(code, 0) + local
        self.calls += 1
        if invocation.kids:
            self._pass_up(invocation, caller)
        reservoir = self.samples.get(code)
        if reservoir is None:
            reservoir = self.samples[code] = Reservoir(self.seed)
        reservoir.offer(self.calls, invocation)

    def _pass_up(self, invocation: Invocation, caller: Invocation) -> None:
        """Let the caller know of everything below the invocation, within MAX_DISTANCE."""
        nodes, deeper = self.nodes, caller.deeper
        floor = nodes[caller.node].depth
        for below in (invocation.kids, invocation.deeper):
            for descendant, (cost, calls) in below.items():
                if 1 < nodes[descendant].depth - floor <= MAX_DISTANCE:
                    found = deeper.get(descendant)
                    if found is None:
                        deeper[descendant] = [cost, calls]
                    else:
                        found[0] += cost
                        found[1] += calls

    def _child(self, parent: int, site: int, code: int) -> int:
        key = (parent, site, code)
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = self._fold(parent, site, code)
        return found

    def _fold(self, parent: int, site: int, code: int) -> int:
        """A new node, or the head of a recursion that repeats (site, callee) for the third time."""
        repeated, node = [], parent
        while node > ROOT:
            if self.nodes[node].site == site and self.nodes[node].code == code:
                repeated.append(node)
            node = self.nodes[node].parent
        if len(repeated) >= 2:
            return repeated[-1]
        self.nodes.append(Node(parent, site, code, self.nodes[parent].depth + 1))
        return len(self.nodes) - 1

    def _see(self, stamp: int) -> None:
        if self.first is None:
            self.first = stamp
        if stamp > self.last:
            self.last = stamp


def _as_float(bits: Any) -> float:
    """The float64 that an int64 of the record holds."""
    from struct import pack, unpack

    return float(unpack("<d", pack("<q", bits))[0])
