"""A ring file as a tracer writes it (native/ring.h): how records that are no program's reach the C core."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.collect.layout import RECORD

MAGIC: Final = 0x31474E4952465250
VERSION: Final = 1
START: Final = 4096
"""Where the records begin."""
WRITTEN: Final = 64
"""Where the count of written records stands."""


class RingWriter:
    """The writer's end of one ring, for whoever reads it between two calls of ``append``."""

    def __init__(self, path: Path, capacity: int) -> None:
        """Make the file; ``capacity`` is a power of two."""
        self.path, self.capacity, self.count = path, capacity, 0
        head = np.array([MAGIC], "<u8").tobytes() + np.array([VERSION, capacity], "<u4").tobytes()
        path.write_bytes(head.ljust(START + capacity * RECORD.itemsize, b"\0"))
        self.bytes = np.memmap(path, np.uint8, "r+")

    def append(self, rows: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write records, at most ``capacity``; all earlier ones have been read."""
        places = np.arange(self.count, self.count + len(rows)) % self.capacity
        self.bytes[START:].view(RECORD)[places] = rows
        self.count += len(rows)
        self.bytes[WRITTEN : WRITTEN + 8].view("<u8")[0] = self.count
