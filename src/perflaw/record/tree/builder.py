"""Call events to a call tree with exact integer moments (specs: Moments; Kumar & Pande §2.2, one pass).

The readable twin of the C core, which is compared with it to the last bit. An invocation has a cost in every lane (time,
cpu, events, and what is measured besides). Sums are exact, so trees of threads and runs add in any order to the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack, unpack

from perflaw.record.records import (
    ASIDE,
    CHANGE,
    DEAD,
    ELSEWHERE,
    END,
    ENTER,
    EVENTS_LANE,
    EXIT,
    FEATURE,
    MAX_CODE,
    MAX_DISTANCE,
    RESUME,
    ROOT,
    SWITCH,
    THREAD,
    TIME_LANE,
    TURN,
    YIELD,
)
from perflaw.record.tree.call_tree import CallTree, Limits, Node, Sums, strata_of
from perflaw.record.tree.moments import Moments, add_wait
from perflaw.record.tree.path_twin import PathBuilder, Seen
from perflaw.record.tree.reservoir import Reservoirs
from perflaw.record.tree.spans import WorstCalls
from perflaw.record.tree.stacks import ASIDE_WORK, Invocation, Stack, Thread, add, touch

# ---- Calling contexts: which node of the call tree a call belongs to.


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


Event = tuple[int, int, int, int, int, int]
"""value, frame, code, site, key, kind: one record of ``layout``."""
ALWAYS = ("time", "cpu", "events")
"""The lanes that every recording has."""
LIMITS = Limits()


class TreeBuilder:
    """Consumes the events of a run's threads and builds the call tree, moments and samples learnt from them."""

    def __init__(self, seed: int = 0, metrics: Sequence[str] = ALWAYS, limits: Limits = LIMITS) -> None:
        self.metrics = tuple(metrics)
        self.lanes = len(self.metrics)
        self.same: dict[int, int] = {}
        """Number of a function → number of its component; the same where it is not in."""
        self.contexts = Contexts(self.lanes, limits.nodes)
        self.moments = Moments(self.lanes, limits)
        self.reservoirs = Reservoirs(seed, limits.components)
        self.worst = WorstCalls(limits.spans)
        self.paths: PathBuilder | None = None
        self.threads: dict[int, Thread] = {}
        """Number of a ring or of a series of segments → the thread that writes there."""
        self.suspended: dict[int, Invocation] = {}
        """Frame → generator or coroutine that waits."""
        self.totals: dict[int, list[int]] = {}
        self.selves: dict[int, list[int]] = {}
        self.calls = self.folded = 0
        self.first: int | None = None
        self.last = 0

    def collect_paths(self, with_cpu: bool) -> None:
        """Keep durations by call path too, of CPU time as well where that is measured; before the first event."""
        self.paths = PathBuilder(with_cpu, self.selves)

    def feed(self, ring: int, events: Iterable[Event]) -> None:
        """Take the next events of a thread, in order."""
        thread = self.threads.get(ring) or self._new_thread(ring)
        for value, frame, code, site, key, kind in events:
            if kind == FEATURE:
                top = thread.current.open[-1]
                if top.frame == frame:
                    top.features.append((code, _as_float(value)))
            elif kind == CHANGE:
                thread.current.change(code, value)
            elif kind == DEAD:
                self._bury(thread.current, frame)
            elif kind == SWITCH:
                thread.switch(frame, value)
            elif kind in (THREAD, END):
                self._end(thread)
                thread = self._new_thread(ring)
            elif kind == TURN:
                thread.taken = value
            elif 0 < code < MAX_CODE:  # function 0 is the tracer's calibration
                self._call_event(thread, kind, value, frame, self.same.get(code, code), site, key)

    def _call_event(self, thread: Thread, kind: int, stamp: int, frame: int, code: int, site: int, key: int) -> None:
        stack = thread.current
        if kind == ENTER:
            self._enter(stack, stamp, frame, code, site, key)
        elif kind == ASIDE:
            self._begin(stack, stamp, frame, code, site, key).manner = ASIDE_WORK
        elif kind == EXIT:
            self._exit(stack, stamp, frame)
        elif kind == YIELD:
            self._yield(thread, stamp, frame)
        elif kind == RESUME:
            self._resume(thread, stamp, frame, code, site)

    def finish(self) -> CallTree:
        """The call tree. What is still open is counted and gives no sample; nothing can be fed from now on."""
        for thread in self.threads.values():
            self._end(thread)
        self.threads.clear()
        for invocation in self.suspended.values():
            self.contexts.nodes[invocation.node].open += 1
        self.suspended.clear()
        return CallTree(
            self.metrics,
            self.contexts.nodes,
            self.totals,
            self.selves,
            strata=strata_of(self.contexts.nodes),
            samples={code: reservoir.finish() for code, reservoir in self.reservoirs.of.items()},
            calls=self.calls,
            first=self.first,
            last=self.last,
            folded=self.folded,
            unlinked=self.moments.unlinked,
            worst=self.worst.finish(),
            paths=self.paths.finish() if self.paths else {},
        )

    def _new_thread(self, ring: int) -> Thread:
        before = self.threads.get(ring)
        thread = self.threads[ring] = Thread(self.lanes, ring, before.taken if before else 0)
        return thread

    def _end(self, thread: Thread) -> None:
        for invocation in thread.invocations():
            self.contexts.nodes[invocation.node].open += 1

    def _enter(self, stack: Stack, stamp: int, frame: int, code: int, site: int, key: int) -> None:
        if frame in self.suspended:
            # A generator was closed unseen and its frame's address is in use again: it has all the cost it will have.
            unseen = self.suspended.pop(frame)
            if unseen.code > 0:
                self._record(unseen, stack.open[0])
        invocation = self._begin(stack, stamp, frame, code, site, key)
        self.folded += self.contexts.nodes[invocation.node].site == ELSEWHERE
        stack.counters[EVENTS_LANE] += 1
        self._see(stamp)

    def _begin(self, stack: Stack, stamp: int, frame: int, code: int, site: int, key: int) -> Invocation:
        """An invocation on top of the stack."""
        node = self.contexts.child(stack.open[-1].node, site, code)
        invocation = Invocation(frame, code, node, stamp, key, stack.reading(stamp))
        self.worst.begin(stack, invocation)
        stack.open.append(invocation)
        stack.depth_of[code] = stack.depth_of.get(code, 0) + 1
        return invocation

    def _resume(self, thread: Thread, stamp: int, frame: int, code: int, site: int) -> None:
        stack, invocation = thread.current, self.suspended.pop(frame, None)
        slot = self.contexts.child(stack.open[-1].node, site, code)
        known = invocation is not None
        if invocation is None:  # it began before the recording did
            invocation = Invocation(frame, -code, slot, stamp, -1, ())
        else:
            # Each thread's clock leaves out what was taken from that thread.
            apart = thread.taken - invocation.taken if invocation.thread != thread.ring else 0
            invocation.waited += max(stamp - invocation.suspended + apart, 0)
        invocation.slot, invocation.marks = slot, stack.reading(stamp)
        self.worst.begin(stack, invocation, resumed=known)
        stack.open.append(invocation)
        stack.depth_of[code] = stack.depth_of.get(code, 0) + 1

    def _yield(self, thread: Thread, stamp: int, frame: int) -> None:
        stack = thread.current
        invocation = self._pop(stack, frame)
        if invocation is not None:
            spent = self._close_segment(stack, invocation, stamp)
            self.worst.end(stack, invocation, spent)
            invocation.suspended, invocation.thread, invocation.taken = stamp, thread.ring, thread.taken
            self.suspended[frame] = invocation

    def _exit(self, stack: Stack, stamp: int, frame: int) -> None:
        invocation = self._pop(stack, frame)
        if invocation is None:
            return
        spent = self._close_segment(stack, invocation, stamp)
        if invocation.code > 0:
            self._record(invocation, stack.open[-1])
            self.worst.done(stack, invocation, self.calls, self.totals)
        self.worst.end(stack, invocation, spent)
        self._see(stamp)

    def _pop(self, stack: Stack, frame: int) -> Invocation | None:
        """The invocation of this frame; whatever stands above it died without an event."""
        if stack.open[-1].frame != frame or len(stack.open) == 1:
            if not stack.find(frame):
                return None
            self._bury(stack, frame)
        return stack.open.pop()

    def _bury(self, stack: Stack, frame: int) -> None:
        """Close what stands above the invocation of this frame, without a sample."""
        for dead in stack.bury(frame):
            self.contexts.nodes[dead.node].open += 1

    def _close_segment(self, stack: Stack, invocation: Invocation, stamp: int) -> int:
        """Give what was spent since the invocation was last (re)entered to it and to its caller; that time."""
        code = abs(invocation.code)
        spent = [now - then for now, then in zip(stack.reading(stamp), invocation.marks, strict=True)]
        touch(stack.open[-1].kids, invocation.slot, [int(invocation.fresh), *spent])
        invocation.fresh = False
        if invocation.costs:
            add(invocation.costs, spent)
        else:
            invocation.costs = spent
        stack.depth_of[code] -= 1
        if stack.depth_of[code] == 0:
            add(self.totals.setdefault(code, [0] * self.lanes), spent)
        return spent[TIME_LANE]

    def _record(self, invocation: Invocation, caller: Invocation) -> None:
        """Add a completed invocation to every moment it has a part in."""
        node = self.contexts.nodes[invocation.node]
        local = self.moments.add(node, invocation.costs, invocation.kids, invocation.deeper)
        if invocation.waited:
            add_wait(node, invocation.waited)
        code = invocation.code
        add(self.selves.setdefault(code, [0] * self.lanes), local)
        if invocation.kids:
            self._pass_up(invocation, caller)
        if invocation.manner == ASIDE_WORK:
            return
        self.calls += 1
        self.reservoirs.offer(code, self.calls, invocation)
        if self.paths:
            time, cpu, events = invocation.costs[: len(ALWAYS)]
            seen = Seen(invocation.started, invocation.started + time + invocation.waited, 1, max(events - 1, 0))
            self.paths.add(code, invocation.node, seen, time, time - cpu)

    def _pass_up(self, invocation: Invocation, caller: Invocation) -> None:
        """Let the caller know of everything below the invocation, within MAX_DISTANCE."""
        nodes = self.contexts.nodes
        floor = nodes[caller.node].depth
        for below in (invocation.kids, invocation.deeper):
            for descendant, done in below.items():
                if 1 < nodes[descendant].depth - floor <= MAX_DISTANCE:
                    touch(caller.deeper, descendant, done)

    def _see(self, stamp: int) -> None:
        if self.first is None:
            self.first = stamp
        if stamp > self.last:
            self.last = stamp


def _as_float(bits: int) -> float:
    """The float64 that an int64 of the record holds."""
    return float(unpack("<d", pack("<q", bits))[0])
