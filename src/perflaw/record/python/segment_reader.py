"""Reads the segments that the pure-Python tracer appends, while the program runs and afterwards, into a call tree."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.record.reader import RecordedProcess
from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.call_tree import to_tables
from perflaw.record.tree.records import (
    CPU_LANE,
    ENTER,
    RECORD,
    RESUME,
    TURN,
    Definitions,
    DefinitionsReader,
    Event,
)

PIECE: Final = 1024
"""Number of records read at once."""


class ReadingOrder:
    """Events that wait for their turn, by thread: the twin of native/core/library/order.h, which says where order matters."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Event]] = {}
        self.turns: dict[int, int] = {}
        """Thread → turn of its last event that was read."""
        self._unseen: set[int] = set()
        """Threads whose next event resumes an unknown frame: it waits until the other threads were read once more."""

    def add(self, thread: int, events: list[Event]) -> None:
        """Add events that have arrived."""
        self.waiting.setdefault(thread, []).extend(events)

    def ready(self, suspended: Container[int]) -> Iterator[tuple[int, list[Event]]]:
        """The events whose turn has come, in pieces. Feed each piece before the next, so that ``suspended`` is current."""
        unseen, self._unseen = self._unseen, set()
        progress = True
        while progress:
            progress = False
            for thread, events in self.waiting.items():
                count = self._readable(thread, events, suspended, unseen)
                if count:
                    progress = True
                    piece, events[:count] = events[:count], []
                    turns = (event[1] for event in reversed(piece) if event[5] == TURN)
                    self.turns[thread] = next(turns, self.turns.get(thread, 0))
                    unseen.discard(thread)
                    yield thread, piece

    def __bool__(self) -> bool:
        return any(self.waiting.values())

    def _readable(self, thread: int, events: list[Event], suspended: Container[int], unseen: set[int]) -> int:
        """Number of events that may be read now."""
        turns = []
        for at, other in self.waiting.items():
            if other and at != thread:
                event = other[0]
                turns.append(event[1] if event[5] == TURN else self.turns.get(at, 0))
        earliest = min(turns, default=None)
        turn = self.turns.get(thread, 0)
        for place, (_, frame, _, _, _, kind) in enumerate(events):
            if kind == TURN:
                turn = frame
            if not (kind == RESUME or (kind == ENTER and frame in suspended)):
                continue
            if earliest is not None and earliest < turn:
                return place
            if kind == RESUME and frame not in suspended and (place or thread not in unseen):
                if not place:
                    self._unseen.add(thread)
                return place
        return len(events)


class SegmentReader:
    """Reads one spool. Whole segments are removed once read; the last segment of each thread is read while it fills."""

    idle_s = 0.005
    paths = False

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.seed = folder, seed
        self.builder: TreeBuilder | None = None
        """Made when the first records arrive, because the metrics are defined by then."""
        self.definitions = DefinitionsReader(folder / "definitions")
        self.read: dict[Path, int] = {}
        self.order = ReadingOrder()

    def step(self) -> int:
        """Read what has arrived; returns the number of records."""
        segments = sorted(self.folder.glob("*.events"))
        newest = {_thread(path): path for path in segments}
        for path in segments:
            # A thread opens a segment when the one before is full, so only its newest can grow, while the thread runs.
            done = self.read.get(path, 0)
            while batch := _next_records(path, done):
                self.order.add(_thread(path), batch)
                done = self.read[path] = done + len(batch)
            if not (newest[_thread(path)] == path and Path("/proc", path.stem.split("-")[2]).exists()):
                path.unlink()
                self.read.pop(path, None)
        if not self.order:
            return 0
        known = self.definitions.update()
        builder = self.builder = self.builder or self._new_builder(known)
        builder.same = known.same
        taken = 0
        for thread, events in self.order.ready(builder.suspended):
            builder.feed(thread, events)
            taken += len(events)
        return taken

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """Read everything that is left after the program has ended. The pure-Python tracer records one process only."""
        while self.step() or self.order:
            pass
        known = self.definitions.update()
        yield RecordedProcess(known, to_tables((self.builder or self._new_builder(known)).finish()))

    def _new_builder(self, known: Definitions) -> TreeBuilder:
        builder = TreeBuilder(self.seed, known.lanes())
        if self.paths:
            builder.collect_paths(CPU_LANE in known.metrics)
        return builder


def _next_records(path: Path, done: int) -> list[Event]:
    """Some of the unread records: a program may have hundreds of threads that do nothing, so segments are read in part."""
    offset = done * RECORD.itemsize
    written = np.fromfile(path, dtype=RECORD, offset=offset, count=PIECE)["kind"] != 0
    count = len(written) if written.all() else int(np.argmin(written))
    # Read again: a record may have been half written when the kernel copied its first bytes, and whole at its last.
    batch = np.fromfile(path, dtype=RECORD, offset=offset, count=count)
    columns = (batch[name].tolist() for name in ("value", "frame", "code", "site", "key", "kind"))
    return list(zip(*columns, strict=True))


def _thread(path: Path) -> int:
    return int(path.stem.split("-")[1])
