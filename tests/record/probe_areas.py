"""Areas of probes as they lie on disk, read by the layout alone: what the tests of the writers hold them against."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perflaw.record.probes import layout


@dataclass(frozen=True)
class Area:
    """An area, copied."""

    name: str
    head: np.void
    entries: np.ndarray
    rings: list[np.void]
    records: list[np.ndarray]
    """By ring, in the order of their writing; what was overwritten is missing."""

    @property
    def all(self):
        return np.concatenate([*self.records, np.empty(0, layout.RECORD)])

    def of(self, probe):
        """Fields of the records of a probe, cut to their number."""
        return [tuple(one["fields"][: count_of(one)].tolist()) for one in self.all if probe_of(one) == probe]

    def probes(self):
        """Id → name and type of those that are registered."""
        return {
            int(at): (one["name"].decode(), layout.TYPES.get(int(one["type"]), ""))
            for at, one in enumerate(self.entries)
            if one["registered"]
        }


def probe_of(record):
    return int(record["what"]) & 0xFFFF


def type_of(record):
    return int(record["what"]) >> 16 & 15


def count_of(record):
    return int(record["what"]) >> 20 & 15


def cpu_of(record):
    return int(record["what"]) >> 24 & 0xFFFF


def thread_of(record):
    return int(record["what"]) >> 40


def read_area(path: Path) -> Area:
    with path.open("rb") as file:
        head = np.frombuffer(file.read(layout.HEAD_BYTES), layout.HEAD)[0]
        assert head["magic"] == layout.MAGIC
        assert head["version"] == layout.VERSION
        many = int(head["ring_records"])
        assert path.stat().st_size == layout.ring_offset(int(head["rings"]), many)
        entries = np.frombuffer(file.read(layout.ENTRY_BYTES * layout.PROBES), layout.ENTRY)
        both = [_ring(file, layout.ring_offset(ring, many), many) for ring in range(int(head["rings"]))]
    return Area(path.name, head, entries, [ring for ring, _ in both], [records for _, records in both])


def _ring(file, offset, many):
    file.seek(offset)
    ring = np.frombuffer(file.read(layout.RING_HEAD_BYTES), layout.RING)[0]
    end = int(ring["head"])
    slots = np.frombuffer(file.read(layout.RECORD_BYTES * min(end, many)), layout.RECORD)
    return ring, slots[np.arange(max(0, end - many), end) % many]


def areas(folder: Path) -> list[Area]:
    """Every area in a folder; nothing else may lie there."""
    return [read_area(path) for path in sorted(folder.iterdir())]
