"""Drains a spool: reads the segments that a tracer appends while it runs, and after it is gone, into the call tree."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import numpy as np

from perflaw.record.recorded import Recorded
from perflaw.record.records import CPU_LANE, ENTER, RECORD, RESUME, TURN, Definitions, DefinitionsReader
from perflaw.record.tree.builder import Event, TreeBuilder
from perflaw.record.tree.call_tree import columns

# ---- The order in which threads' events are read, where it matters: the twin of native/order.h, which says why.


class ReadingOrder:
    """Events that have arrived and wait for their turn, by thread."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Event]] = {}
        self.turns: dict[int, int] = {}
        """The turn that the last event read of a thread belongs to."""
        self._asked: set[int] = set()
        """Threads whose next event resumes a frame that nobody has seen: it waits until the others were read once more."""

    def add(self, thread: int, events: Iterable[Event]) -> None:
        """Events have arrived."""
        self.waiting.setdefault(thread, []).extend(events)

    def ready(self, suspended: Container[int]) -> Iterator[tuple[int, list[Event]]]:
        """The events whose turn has come, in pieces; feed each before the next, which ``suspended`` must know of."""
        asked, self._asked = self._asked, set()
        found = True
        while found:
            found = False
            for thread, events in self.waiting.items():
                count = self._length(thread, events, suspended, asked)
                if count:
                    found = True
                    piece, events[:count] = events[:count], []
                    self.turns[thread] = next(
                        (one[1] for one in reversed(piece) if one[5] == TURN), self.turns.get(thread, 0)
                    )
                    asked.discard(thread)
                    yield thread, piece

    def __bool__(self) -> bool:
        return any(self.waiting.values())

    def _length(self, thread: int, events: list[Event], suspended: Container[int], asked: set[int]) -> int:
        """How many of the events may be read."""
        others = [self._turn_of(at, other[0]) for at, other in self.waiting.items() if other and at != thread]
        earliest, turn = min(others, default=None), self.turns.get(thread, 0)
        for place, (_, frame, _, _, _, kind) in enumerate(events):
            if kind == TURN:
                turn = frame
            if not (kind == RESUME or (kind == ENTER and frame in suspended)):
                continue
            if earliest is not None and earliest < turn:
                return place
            if kind == RESUME and frame not in suspended and (place or thread not in asked):
                if not place:
                    self._asked.add(thread)
                return place
        return len(events)

    def _turn_of(self, thread: int, event: Event) -> int:
        return event[1] if event[5] == TURN else self.turns.get(thread, 0)


PIECE = 1024
"""Records read at once."""


class Drain:
    """The reading side of one spool. Whole segments are removed once read; the last of each thread is read as it fills."""

    idle_s = 0.005
    paths = False

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.seed = folder, seed
        self.builder: TreeBuilder | None = None
        """Made when the first records are there: the metrics are defined by then."""
        self.definitions = DefinitionsReader(folder / "definitions")
        self.read: dict[Path, int] = {}
        self.order = ReadingOrder()

    def step(self) -> int:
        """Take in what has arrived; returns the number of records."""
        segments = sorted(self.folder.glob("*.events"))
        newest = {_thread(path): path for path in segments}
        for path in segments:
            # A thread opens its next segment when this one is full, so only its newest can still grow, while it lives.
            self._read(path, may_grow=newest[_thread(path)] == path and _lives(path))
        return self._feed() if self.order else 0

    def finish(self, pid: int) -> Iterator[Recorded]:
        """Take in everything that is left, the target being gone. This tracer records one process alone."""
        while self.step() or self.order:
            pass
        known = self.definitions.update()
        yield Recorded(known, columns((self.builder or self._new_builder(known)).finish()))

    def _new_builder(self, known: Definitions) -> TreeBuilder:
        builder = TreeBuilder(self.seed, known.lanes())
        if self.paths:
            builder.collect_paths(CPU_LANE in known.metrics)
        return builder

    def _read(self, path: Path, may_grow: bool) -> None:
        done = self.read.get(path, 0)
        while batch := self._next(path, done):
            self.order.add(_thread(path), batch)
            done = self.read[path] = done + len(batch)
        if not may_grow:
            path.unlink()
            self.read.pop(path, None)

    def _next(self, path: Path, done: int) -> list[Event]:
        """Some of the records that are there and were not read yet: programs have hundreds of threads that do nothing."""
        offset = done * RECORD.itemsize
        written = np.fromfile(path, dtype=RECORD, offset=offset, count=PIECE)["kind"] != 0
        count = len(written) if written.all() else int(np.argmin(written))
        # Read again: a record may have been half written when the kernel copied its first bytes, and whole at its last.
        batch = np.fromfile(path, dtype=RECORD, offset=offset, count=count)
        columns = (batch[name].tolist() for name in ("value", "frame", "code", "site", "key", "kind"))
        return list(zip(*columns, strict=True))

    def _feed(self) -> int:
        known = self.definitions.update()
        if self.builder is None:
            self.builder = self._new_builder(known)
        self.builder.same = known.same
        taken = 0
        for thread, events in self.order.ready(self.builder.suspended):
            self.builder.feed(thread, events)
            taken += len(events)
        return taken


def _thread(path: Path) -> int:
    return int(path.stem.split("-")[1])


def _lives(path: Path) -> bool:
    """Whether the thread that writes there still runs; its number, the last in the name, is the system's."""
    return Path("/proc", path.stem.split("-")[2]).exists()
