"""Threads, their stacks of open invocations, and the counters that costs are differences of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.record.records import CPU_LANE, EVENTS_LANE, ROOT

# ---- An execution of a function that has not ended yet.

PLAIN, RESUMED, ASIDE_WORK = 0, 1, 2
Below = dict[int, list[int]]
"""Node → [calls K, cost Y in lane 0, in lane 1, …] of what one invocation did there."""


class Invocation:
    """One open execution of a function. Mutable: this is the hot path."""

    __slots__ = (
        "code", "costs", "deeper", "features", "first_span", "frame", "fresh", "key", "kids", "least_span", "manner", "marks",
        "node", "slot", "started", "suspended", "taken", "thread", "waited",
    )  # fmt: skip

    def __init__(self, frame: int, code: int, node: int, started: int, key: int, marks: Sequence[int]) -> None:
        self.frame, self.code, self.node, self.slot = frame, code, node, node
        self.started, self.suspended, self.waited = started, 0, 0
        self.taken = self.thread = 0
        """While suspended: what was taken out of the clock of the thread that it was in, and which."""
        self.key, self.fresh = key, True
        self.marks = marks
        """What the counters of its stack stood at when it was last (re)entered, by lane."""
        self.costs: list[int] = []
        """X so far, by lane; empty until the end of the first segment."""
        self.features: list[tuple[int, float]] = []
        self.first_span = self.least_span = 0
        """Where in the stack's spans those within it begin; spans of this time and below are not taken within it."""
        self.manner = PLAIN
        """Whether it is a call, one that was suspended, or work that the interpreter does aside."""
        self.kids: Below = {}
        """Direct callees."""
        self.deeper: Below = {}
        """Descendants below the callees."""


def touch(below: Below, node: int, done: list[int]) -> None:
    """Add calls and costs to what was done at a node."""
    found = below.get(node)
    if found is None:
        below[node] = done.copy()
    else:
        add(found, done)


def add(sums: list[int], more: Sequence[int]) -> None:
    """Add to each of the sums."""
    for lane, value in enumerate(more):
        sums[lane] += value


class Stack:
    """Open invocations, outermost first, and what passed while they ran; a thread has one, and one a greenlet.

    What passes while the stack is switched out is no cost of anything open on it.
    """

    __slots__ = ("away", "counters", "depth_of", "left", "open", "spans")

    def __init__(self, lanes: int) -> None:
        self.open = [Invocation(0, 0, ROOT, 0, -1, ())]
        self.depth_of: dict[int, int] = {}
        """Code → its open invocations here."""
        self.counters = [0] * lanes
        """By lane; in CPU_LANE the time off it, in TIME_LANE nothing: events carry the clock."""
        self.away = self.left = 0
        """Time for which it was switched out; stamp at which it was last."""
        self.spans: list[tuple[int, int, int, int]] = []
        """What completed lately: node, height, start, time."""

    def change(self, lane: int, increase: int) -> None:
        """Move a counter; lanes that are counted otherwise or not at all are left alone."""
        if lane == CPU_LANE or EVENTS_LANE < lane < len(self.counters):
            self.counters[lane] += increase

    def reading(self, stamp: int) -> list[int]:
        """What stands on the clock of every lane: costs are differences of such readings."""
        clock = stamp - self.away
        return [clock, clock - self.counters[CPU_LANE], *self.counters[EVENTS_LANE:]]

    def find(self, frame: int) -> int:
        """Place of this frame's invocation, 0 where it is not here."""
        return next((place for place in range(len(self.open) - 1, 0, -1) if self.open[place].frame == frame), 0)

    def bury(self, frame: int) -> Iterator[Invocation]:
        """Remove and yield what stands above the invocation of this frame, if it is here; all for frame 0."""
        place = self.find(frame)
        while (place or not frame) and len(self.open) > place + 1:
            dead = self.open.pop()
            self.depth_of[abs(dead.code)] -= 1
            yield dead


class Thread:
    """The stacks of a thread, by serial number."""

    __slots__ = ("current", "lanes", "ring", "stacks", "taken")

    def __init__(self, lanes: int, ring: int, taken: int = 0) -> None:
        self.lanes, self.ring = lanes, ring
        self.taken = taken
        """What was taken out of its clock before its present turn."""
        self.current = Stack(lanes)
        self.stacks = {0: self.current}

    def switch(self, serial: int, stamp: int) -> None:
        """Leave the current stack at ``stamp`` for another one, made on first sight."""
        self.current.left = stamp
        found = self.stacks.get(serial)
        if found is None:
            found = self.stacks[serial] = Stack(self.lanes)
        else:
            found.away += stamp - found.left
        self.current = found

    def invocations(self) -> Iterator[Invocation]:
        """Everything open on any stack."""
        for stack in self.stacks.values():
            yield from stack.open[1:]
