"""Call trees from records that this process makes itself: those of traces that other tools wrote."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.call_tree import to_tables
from perflaw.record.tree.core import RING_CAPACITY, Core, RingWriter, TreeTables
from perflaw.record.tree.records import ENTER, RECORD, THREAD, Event
from perflaw.record.tree.reservoir import scramble
from perflaw.store.columns import Array

_KEYS = (1 << 31) - 1


class TreeFeed:
    """Takes the records of a process, some of one thread at a time, and gives its call tree.

    The C core builds the tree, or its Python twin where there is no library of it. Records that were taken are not kept.
    """

    def __init__(self, library: Path | None, seed: int, lanes: tuple[str, ...]) -> None:
        """``seed`` decides which calls are sampled, so that runs draw independent samples."""
        self.seed, self.thread = seed, 0
        self.builder = TreeBuilder(seed, lanes) if library is None else None
        if library is not None:
            self.core = Core(library, seed, lanes)
            with tempfile.TemporaryDirectory(prefix="perflaw-") as folder:  # both ends stay mapped when it is gone
                self.ring = RingWriter(Path(folder) / "feed.ring")
                self.core.attach(self.ring.path)

    def take(self, thread: int, events: Sequence[Event] | Array) -> None:
        """Add records of a thread, in the order of their stamps; an array is of the type RECORD."""
        rows = np.array(events, RECORD)  # a copy, which the keys below may be written to
        entered = rows["kind"] == ENTER
        rows["key"][entered] ^= scramble(self.seed) & _KEYS
        if self.builder:
            self.builder.feed(thread, rows.tolist())
            return
        if thread != self.thread:
            self.thread = thread
            rows = np.concatenate((np.array([(thread, 0, 0, -1, -1, THREAD)], RECORD), rows))
        for start in range(0, len(rows), RING_CAPACITY):
            self.ring.append(rows[start : start + RING_CAPACITY])
            while self.core.step():
                pass

    def finish(self) -> TreeTables:
        """The call tree; nothing can be taken afterwards."""
        if self.builder:
            return to_tables(self.builder.finish())
        self.core.leave()
        return self.core.finish()
