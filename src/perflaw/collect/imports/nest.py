"""Spans of one thread to calls within calls, by their times alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from perflaw.collect.imports.events import ProcessEvents
from perflaw.collect.imports.numbers import Number
from perflaw.collect.tree_builder import Event

ASIDE: Final = "calls overlap others of their thread: kept on tracks of their own, outside those"
CUT: Final = "calls end one tick of the clock after the call that they lie in: cut to its end"


@dataclass(frozen=True, slots=True)
class Span:
    """One call: when, and of what."""

    start: int
    """ns."""
    end: int | None
    """ns; None where it never ended."""
    code: int
    """Number of its component."""
    features: tuple[tuple[str, Number], ...] = ()
    """Numbers that came with it."""

    @property
    def until(self) -> float:
        """Its end, infinite where there is none."""
        return math.inf if self.end is None else self.end


def nest(process: ProcessEvents, spans: list[Span], tick_ns: int) -> None:
    """Put spans, in the order of the file, on tracks.

    A span lies in the shortest one that holds it. Of two of equal times the outer one is the first, in a file that is
    written as calls end the last. What begins where another ends follows it. Overlaps go to a track of their own.
    """
    last_is_outer = _by_end(spans)
    numbered = sorted(
        enumerate(spans), key=lambda one: (one[1].start, -one[1].until, -one[0] if last_is_outer else one[0])
    )
    left = [span for _, span in numbered]
    first = True
    while left:
        left = _one_track(process, left, tick_ns)
        process.said[ASIDE] += first * len(left)
        first = False


def _one_track(process: ProcessEvents, spans: list[Span], tick_ns: int) -> list[Span]:
    """Put on one track what fits there; gives the others, in order."""
    track, over = process.track(), []
    stack: list[tuple[float, int, int]] = []
    for span in spans:
        while stack and stack[-1][0] <= span.start:
            _leave(process, track, stack)
        until = span.until
        if stack and until > stack[-1][0]:
            if until - stack[-1][0] > tick_ns:
                over.append(span)
                continue
            until = stack[-1][0]
            process.said[CUT] += 1
        frame = process.enter(track, span.start, span.code, stack[-1][2] if stack else 0, span.features)
        stack.append((until, frame, span.code))
    while stack:
        _leave(process, track, stack)
    return over


def _leave(process: ProcessEvents, track: list[Event], stack: list[tuple[float, int, int]]) -> None:
    end, frame, _ = stack.pop()
    if end < math.inf:
        process.exit(track, int(end), frame)


def _by_end(spans: list[Span]) -> bool:
    ends = [span.until for span in spans]
    starts = [span.start for span in spans]
    return ends == sorted(ends) and starts != sorted(starts)
