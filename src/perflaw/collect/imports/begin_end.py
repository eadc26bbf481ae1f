"""Begin and end events of one thread: to a track as they stand, or to spans where other spans have to be put between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perflaw.collect.imports.events import ProcessEvents
from perflaw.collect.imports.nest import Span
from perflaw.collect.imports.numbers import Number

UNBEGUN: Final = "ends of calls that began before the trace: left out"


@dataclass(frozen=True, slots=True)
class Mark:
    """One such event."""

    stamp: int
    """ns."""
    code: int
    """Number of the component that begins; 0: the end of one."""
    name: str
    """Its name; an end may have none: then it ends what began last."""
    features: tuple[tuple[str, Number], ...] = ()
    """Numbers that came with it."""


def play(process: ProcessEvents, marks: list[Mark]) -> None:
    """Put them on a track, by stamp, those of one stamp in the order of the file."""
    track = process.track()
    stack: list[tuple[str, int]] = []
    codes = [0]
    for mark in sorted(marks, key=lambda one: one.stamp):
        if mark.code:
            stack.append((mark.name, process.enter(track, mark.stamp, mark.code, codes[-1], mark.features)))
            codes.append(mark.code)
        elif (place := _ended(stack, mark.name)) is not None:
            process.exit(track, mark.stamp, stack[place][1])
            del stack[place:], codes[place + 1 :]  # the exit tells the builder that those above never ended
        else:
            process.said[UNBEGUN] += 1


def pair(process: ProcessEvents, marks: list[Mark]) -> list[Span]:
    """The same as spans, in the order in which they begin; what has no end has none."""
    ordered = sorted(marks, key=lambda one: one.stamp)
    ends: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for index, mark in enumerate(ordered):
        if mark.code:
            stack.append((mark.name, index))
        elif (place := _ended(stack, mark.name)) is not None:
            ends[stack[place][1]] = mark.stamp
            del stack[place:]
        else:
            process.said[UNBEGUN] += 1
    begun = [(index, mark) for index, mark in enumerate(ordered) if mark.code]
    return [Span(mark.stamp, ends.get(index), mark.code, mark.features) for index, mark in begun]


def _ended(stack: list[tuple[str, int]], name: str) -> int | None:
    """Place of what an end of this name ends: the innermost call, or the innermost one of the name."""
    if not name:
        return len(stack) - 1 if stack else None
    return next((place for place in range(len(stack) - 1, -1, -1) if stack[place][0] == name), None)
