"""Drains a spool: reads the segments that a tracer appends while it runs, and after it is gone, into the call tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perflaw.collect.definitions import Definitions, DefinitionsReader
from perflaw.collect.layout import CPU_LANE, RECORD
from perflaw.collect.reading_order import ReadingOrder
from perflaw.collect.recorded import Recorded
from perflaw.collect.tree_builder import Event, TreeBuilder
from perflaw.collect.tree_objects import columns

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
