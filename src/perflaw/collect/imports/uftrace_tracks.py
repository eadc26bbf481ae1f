"""Records of one task of uftrace, by stamp, to a track: each says how deep on the stack it stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from perflaw.collect.imports.begin_end import UNBEGUN
from perflaw.collect.imports.events import ProcessEvents
from perflaw.collect.imports.numbers import Number
from perflaw.types import Component

SLEEP: Final = "linux:sched-"
"""Events of the kernel: ``out``, ``out (pre-empted)`` and ``in``. They have no depth."""
WAITING: Final = "linux:schedule"
"""What uftrace's own reports call the time between them."""
_AGAIN: Final = ("setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "fork")
"""What returns a second time."""


@dataclass(frozen=True, slots=True)
class Record:
    """An event of one task."""

    stamp: int
    """ns."""
    begins: bool
    """Whether a call begins, or ends."""
    name: str
    """Of the function, or of the kernel's event."""
    depth: int
    """Calls below it on the stack; -1 for the kernel's."""
    numbers: list[tuple[str, Number]]
    """Arguments that came with it."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that has not ended."""

    name: str
    """Of its function."""
    depth: int
    """Calls below it."""
    frame: int
    """Its identity in the records."""
    code: int
    """Number of its component."""


class _Track:
    """The calls of one task."""

    def __init__(self, process: ProcessEvents) -> None:
        self.process, self.track = process, process.track()
        self.open: list[_Open] = []

    def enter(self, record: Record, name: str, depth: int) -> None:
        """A call begins; what stands as deep or deeper has died."""
        self.bury(record.stamp, depth)
        code, caller = self.process.component(Component(name)), self.open[-1].code if self.open else 0
        frame = self.process.enter(self.track, record.stamp, code, caller, record.numbers)
        self.open.append(_Open(name, depth, frame, code))

    def leave(self, record: Record) -> None:
        """The call of that depth ends; where another function stands there, this is the second return of ``setjmp``."""
        self.bury(record.stamp, record.depth + 1)
        if self.open and (self.open[-1].name, self.open[-1].depth) == (record.name, record.depth):
            self.end(record.stamp)
        elif record.name not in _AGAIN:
            self.process.said[UNBEGUN] += 1

    def end(self, stamp: int) -> None:
        """The innermost call ends."""
        self.process.exit(self.track, stamp, self.open.pop().frame)

    def bury(self, stamp: int, depth: int) -> None:
        """Calls of this depth and more are no more."""
        before = len(self.open)
        while self.open and self.open[-1].depth >= depth:
            self.open.pop()
        if len(self.open) < before:
            self.process.bury(self.track, stamp, self.open[-1].frame if self.open else 0)


def play(process: ProcessEvents, records: Iterable[Record]) -> None:
    """Put them on a track of the process. Waiting is a callee of what waits."""
    track = _Track(process)
    for record in records:
        if record.depth >= 0 and record.begins:
            track.enter(record, record.name, record.depth)
        elif record.depth >= 0:
            track.leave(record)
        elif not record.name.startswith(SLEEP + "in"):
            if track.open and track.open[-1].name != WAITING:
                track.enter(record, WAITING, track.open[-1].depth + 1)
        elif track.open and track.open[-1].name == WAITING:
            track.end(record.stamp)
