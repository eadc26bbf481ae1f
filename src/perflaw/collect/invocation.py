"""An execution of a function that has not ended yet."""

from __future__ import annotations

from collections.abc import Sequence

Below = dict[int, list[int]]
"""Node → [calls K, cost Y in lane 0, in lane 1, …] of what one invocation did there."""


class Invocation:
    """One open execution of a function. Mutable: this is the hot path."""

    __slots__ = (
        "code", "costs", "deeper", "features", "frame", "fresh", "key", "kids", "marks", "node", "slot", "started",
        "suspended", "taken", "thread", "waited",
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
        self.kids: Below = {}
        """Direct callees."""
        self.deeper: Below = {}
        """Descendants below the callees."""
