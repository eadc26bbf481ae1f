"""The tracer's downstream towards the store: records in parts of bounded size, and at most so many of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from perflaw.collect.probes.decoding import Decoded
from perflaw.store.probe_tables import RecordParts

PART: Final = 1 << 17
"""Records of a part: 14 MB in memory."""
MOST: Final = 50_000_000
"""Records that a run keeps; later ones still count for metrics and laws, and are told."""


class KeptRecords:
    """Gathers records of all processes of a run and writes them part by part."""

    def __init__(self, folder: Path, most: int = MOST, part: int = PART) -> None:
        self.most, self.part = most, part
        self.kept: dict[int, int] = {}
        """Number of a process → its records kept."""
        self.left_out = 0
        """Records beyond the most."""
        self._parts = RecordParts(folder)
        self._waiting: list[Decoded] = []
        self._count = 0

    def take(self, records: Decoded) -> None:
        """Keep them; OSError where the disk refuses."""
        room = self.most - sum(self.kept.values())
        if room < len(records):
            self.left_out += len(records) - room
            records = records.take(np.arange(room))
        number = records.source.number
        self.kept[number] = self.kept.get(number, 0) + len(records)
        if len(records):
            self._waiting.append(records)
            self._count += len(records)
        if self._count >= self.part:
            self._write()

    def finish(self) -> None:
        """Write the rest, and make the parts one file."""
        if self._count:
            self._write()
        self._parts.finish()

    def _write(self) -> None:
        some = sorted(self._waiting, key=lambda one: (one.source.number, one.ring))  # a thread's records stand together
        self._waiting, self._count = [], 0
        columns = {
            "process": np.repeat([one.source.pid for one in some], [len(one) for one in some]),
            **{name: np.concatenate([getattr(one, name) for one in some]).astype(np.int64) for name in _COLUMNS},
            "values": np.ascontiguousarray(np.concatenate([one.fields for one in some])).view(np.int64),
        }
        self._parts.write(columns, np.concatenate([one.count for one in some]))


_COLUMNS: Final = ("thread", "cpu", "probe", "at")
