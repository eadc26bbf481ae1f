"""Ring files as a target writes them (native/core/base/ring.h), for tests of who reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perflaw.record.tree.records import RECORD, Event

MAGIC, VERSION, START, WRITTEN, READ, STOP = 0x31474E4952465250, 1, 4096, 64, 128, 192
"""See RingHead; the last four are places in the file."""


class RingFile:
    """One ring, its writer's end."""

    def __init__(self, path: Path, capacity: int) -> None:
        self.path, self.capacity, self.count = path, capacity, 0
        head = np.array([MAGIC], "<u8").tobytes() + np.array([VERSION, capacity], "<u4").tobytes()
        path.write_bytes(head.ljust(START + capacity * RECORD.itemsize, b"\0"))
        self.bytes = np.memmap(path, np.uint8, "r+")

    def append(self, events: list[Event]) -> None:
        """Write records, of which there must be room for all."""
        self.append_rows(np.array(events, RECORD))

    def append_rows(self, rows: np.ndarray) -> None:
        assert self.count + len(rows) - self.word(READ) <= self.capacity
        places = np.arange(self.count, self.count + len(rows)) % self.capacity
        self.bytes[START:].view(RECORD)[places] = rows
        self.count += len(rows)
        self.set_word(WRITTEN, self.count)

    def word(self, place: int) -> int:
        return int(self.bytes[place : place + 8].view("<u8")[0])

    def set_word(self, place: int, value: int) -> None:
        self.bytes[place : place + 8].view("<u8")[0] = value
