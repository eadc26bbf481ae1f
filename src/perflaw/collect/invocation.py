"""An execution of a function that has not ended yet."""

from __future__ import annotations

from collections.abc import Sequence

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
