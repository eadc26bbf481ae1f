"""The longest invocations of a function with what happened within them, as a recording has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NestedSpan:
    """A call within an invocation; a segment, where it is of a generator or coroutine."""

    name: str
    """Component that was called."""
    line: int
    """Source line of the call, 0 where unknown."""
    parent: int
    """Place of the span that it lies in; -1: the invocation itself."""
    started_ns: int
    """After the invocation's start."""
    time_ns: int
    """How long it took."""


@dataclass(frozen=True, slots=True)
class WorstCall:
    """One of the longest invocations of a function."""

    run: str
    """Id of its run."""
    sequence: int
    """Order of completion within the run."""
    started_ns: int
    """Start, since the run's first event."""
    time_ns: int
    """How long it took."""
    cpu_ns: float
    """Its part on the CPU; NaN where unknown."""
    calls: int
    """Recorded calls in it, itself included."""
    path: tuple[str, ...]
    """Components that led to it, itself last."""
    spans: tuple[NestedSpan, ...]
    """Calls within it, callers first: the longest of them."""
    features: Mapping[str, float | str] = field(default_factory=dict)
    """What was read at its entry; empty where it was not sampled."""

    @property
    def left_out(self) -> int:
        """Calls within it, shorter than those kept, that are no span."""
        return max(self.calls - 1 - len(self.spans), 0)
