"""Drains a spool: reads the segments that a tracer appends while it runs, and after it is gone, into the call tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perflaw.collect.definitions import DefinitionsReader
from perflaw.collect.layout import RECORD
from perflaw.collect.recorded import Recorded
from perflaw.collect.tree_builder import TreeBuilder
from perflaw.collect.tree_objects import columns


class Drain:
    """The reading side of one spool. Whole segments are removed once read; the last of each thread is read as it fills."""

    idle_s = 0.005

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.seed = folder, seed
        self.builder: TreeBuilder | None = None
        """Made when the first records are there: the metrics are defined by then."""
        self.definitions = DefinitionsReader(folder / "definitions")
        self.read: dict[Path, int] = {}

    def step(self) -> int:
        """Take in what has arrived; returns the number of records."""
        segments = sorted(self.folder.glob("*.events"))
        newest = {_thread(path): path for path in segments}
        taken = 0
        for path in segments:
            # A thread opens its next segment when this one is full, so only its newest can still grow.
            taken += self._take(path, may_grow=newest[_thread(path)] == path)
        return taken

    def finish(self, pid: int) -> Iterator[Recorded]:
        """Take in everything that is left, the target being gone. This tracer records one process alone."""
        while self.step():
            pass
        known = self.definitions.update()
        yield Recorded(known, columns((self.builder or TreeBuilder(self.seed, known.lanes())).finish()))

    def _take(self, path: Path, may_grow: bool) -> int:
        offset = self.read.get(path, 0) * RECORD.itemsize
        written = np.fromfile(path, dtype=RECORD, offset=offset)["kind"] != 0
        count = len(written) if written.all() else int(np.argmin(written))
        if count:
            # Read again: a record may have been half written when the kernel copied its first bytes, and whole at its last.
            batch = np.fromfile(path, dtype=RECORD, offset=offset, count=count)
            known = self.definitions.update()
            if self.builder is None:
                self.builder = TreeBuilder(self.seed, known.lanes())
            self.builder.same = known.same
            columns = (batch[name].tolist() for name in ("value", "frame", "code", "site", "key", "kind"))
            self.builder.feed(_thread(path), zip(*columns, strict=True))
            self.read[path] = self.read.get(path, 0) + count
        if not may_grow:
            path.unlink()
            self.read.pop(path, None)
        return count


def _thread(path: Path) -> int:
    return int(path.stem.split("-")[1])
