"""Threads, their stacks of open invocations, and the counters whose differences are costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.record.tree.records import CPU_LANE, EVENTS_LANE, ROOT

PLAIN, RESUMED, ASIDE_WORK = 0, 1, 2
"""Manners of an invocation: a call, a call that was suspended at least once, work of the interpreter itself."""
WorkBelow = dict[int, list[int]]
"""Node → [calls K, cost Y in lane 0, in lane 1, …] of one invocation's work there."""


class Invocation:
    """One execution of a function that has not ended. Mutable, because this is the hot path."""

    __slots__ = (
        "callees", "code", "consumed", "costs", "deeper", "features", "first_span", "frame", "fresh", "handed", "key",
        "least_span", "manner", "marks", "node", "observed", "parts", "resumes", "resumes_mark", "slot", "started",
        "suspended", "taken", "thread", "waited",
    )  # fmt: skip

    def __init__(self, frame: int, code: int, node: int, started: int, key: int, marks: Sequence[int]) -> None:
        self.frame, self.code, self.node, self.slot = frame, code, node, node
        self.started, self.suspended, self.waited = started, 0, 0
        self.consumed, self.handed = 0, False
        """Part of the waiting in which the consumer of an async generator had a value of it, and whether it has one now."""
        self.taken = self.thread = 0
        """While suspended: the thread it ran in, and the time taken out of that thread's clock until then."""
        self.resumes = self.resumes_mark = 0
        """How often generators and coroutines went on within it; reading of its stack's number when it was entered last."""
        self.key, self.fresh = key, True
        self.marks = marks
        """Readings of its stack's counters by lane when it was last entered or resumed."""
        self.costs: list[int] = []
        """X so far, by lane; empty until the end of the first segment."""
        self.features: list[tuple[int, float]] = []
        self.first_span = self.least_span = 0
        """Index in the stack's spans where its own begin; spans of at most this time are not kept within it."""
        self.manner = PLAIN
        self.callees: WorkBelow = {}
        """Work of direct callees."""
        self.deeper: WorkBelow = {}
        """Work of descendants below the callees."""
        self.observed = False
        """Whether it is an observation."""
        self.parts: WorkBelow = {}
        """Of an observation: node → calls, own time and own CPU time of all work within it, its own included."""


def add_work(below: WorkBelow, node: int, work: list[int]) -> None:
    """Add calls and costs to the work at a node."""
    known = below.get(node)
    if known is None:
        below[node] = work.copy()
    else:
        add(known, work)


def add(sums: list[int], more: Sequence[int]) -> None:
    """Add to each of the sums."""
    for lane, value in enumerate(more):
        sums[lane] += value


class CallStack:
    """Open invocations, outermost first, and the counters of their time. A thread has one, and one for each greenlet.

    What passes while the stack is switched out is no cost of any invocation on it.
    """

    __slots__ = ("away", "counters", "depth_of", "left", "observed", "open", "resumes", "spans")

    def __init__(self, lanes: int) -> None:
        self.open = [Invocation(0, 0, ROOT, 0, -1, ())]
        self.depth_of: dict[int, int] = {}
        """Code → number of its open invocations here."""
        self.counters = [0] * lanes
        """By lane. CPU_LANE holds the time off the CPU; TIME_LANE is unused because events carry the clock."""
        self.observed = 0
        """Place of the open invocation that is observed; 0: none. One that is beyond the top has ended."""
        self.resumes = 0
        """How often a generator or coroutine went on here."""
        self.away = self.left = 0
        """Total time switched out; stamp at which it was last switched out."""
        self.spans: list[tuple[int, int, int, int]] = []
        """Recently completed calls: node, height, start, time."""

    def change(self, lane: int, increase: int) -> None:
        """Raise a counter. Lanes that are counted otherwise or not at all are ignored."""
        if lane == CPU_LANE or EVENTS_LANE < lane < len(self.counters):
            self.counters[lane] += increase

    def reading(self, stamp: int) -> list[int]:
        """The clock of every lane; costs are differences of such readings."""
        clock = stamp - self.away
        return [clock, clock - self.counters[CPU_LANE], *self.counters[EVENTS_LANE:]]

    def find(self, frame: int) -> int:
        """Index of this frame's invocation, 0 if it is not on the stack."""
        return next((place for place in range(len(self.open) - 1, 0, -1) if self.open[place].frame == frame), 0)

    def bury(self, frame: int) -> Iterator[Invocation]:
        """Remove and yield the invocations above that of this frame, if it is on the stack; all of them for frame 0."""
        place = self.find(frame)
        while (place or not frame) and len(self.open) > place + 1:
            dead = self.open.pop()
            self.depth_of[abs(dead.code)] -= 1
            yield dead


class ThreadStacks:
    """The stacks of a thread, by serial number."""

    __slots__ = ("current", "lanes", "ring", "stacks", "taken")

    def __init__(self, lanes: int, ring: int, taken: int = 0) -> None:
        self.lanes, self.ring = lanes, ring
        self.taken = taken
        """Time taken out of its clock before its present turn."""
        self.current = CallStack(lanes)
        self.stacks = {0: self.current}

    def switch(self, serial: int, stamp: int) -> None:
        """Leave the current stack at ``stamp`` for another one, which is made on first sight."""
        self.current.left = stamp
        known = self.stacks.get(serial)
        if known is None:
            known = self.stacks[serial] = CallStack(self.lanes)
        else:
            known.away += stamp - known.left
        self.current = known

    def invocations(self) -> Iterator[Invocation]:
        """All open invocations on any stack."""
        for stack in self.stacks.values():
            yield from stack.open[1:]
