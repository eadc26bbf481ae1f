"""Areas as programs make them, written by the layout alone: known records, at known times, of known threads."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from perflaw.record.probes import layout
from perflaw.record.probes.areas import start_time


def what(probe, kind, count, cpu=0, thread=1):
    """The word that says what a record is."""
    return probe | kind << 16 | count << 20 | cpu << 24 | thread << 40


class FakeArea:
    """The area of a process: ours, where none is named, so that it lives."""

    def __init__(self, folder, *, pid=None, rings=4, records=16, clock=layout.NANOSECONDS, tsc0=0, ns0=0, name=None):
        pid = os.getpid() if pid is None else pid
        began = start_time(pid) if start_time(pid) >= 0 else 7
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        self.path = folder / (name or f"{pid}.{began}")
        size = layout.ring_offset(rings, records)
        self.path.write_bytes(b"")
        os.truncate(self.path, size)
        self.data = np.memmap(self.path, np.uint8, "r+", shape=(size,))
        self.records = records
        head = self.data[: layout.HEAD_BYTES].view(layout.HEAD)
        head["version"], head["pid"], head["rings"], head["ring_records"] = layout.VERSION, pid, rings, records
        head["probes"], head["clock"], head["tsc0"], head["ns0"] = layout.PROBES, clock, tsc0, ns0
        head["language"], head["magic"] = b"fake", layout.MAGIC
        self.head = head
        end = layout.HEAD_BYTES + layout.PROBES * layout.ENTRY_BYTES
        self.entries = self.data[layout.HEAD_BYTES : end].view(layout.ENTRY)

    def register(self, number, name, kind, fields="", unit="", conflict=0):
        entry = self.entries[number : number + 1]
        entry["registered"], entry["name"], entry["type"] = 1, name.encode(), kind
        entry["fields"], entry["unit"], entry["conflict"] = fields.encode(), unit.encode(), conflict

    def ring(self, number):
        at = layout.ring_offset(number, self.records)
        end = at + layout.ring_bytes(self.records)
        head = self.data[at : at + layout.RING_HEAD_BYTES].view(layout.RING)
        return head, self.data[at + layout.RING_HEAD_BYTES : end].view(layout.RECORD)

    def take_ring(self, number, thread):
        head, _ = self.ring(number)
        head["state"], head["thread"] = layout.IN_USE, thread

    def write(self, number, record_what, timestamp, *fields):
        """One record, as a thread writes it: the slot first, then the head."""
        head, records = self.ring(number)
        if not head["state"][0]:
            self.take_ring(number, 1)
        at = int(head["head"][0])
        slot = records[at & (self.records - 1) :][:1]
        slot["timestamp"], slot["what"] = timestamp, record_what
        slot["fields"][0, : len(fields)] = fields
        head["head"] = at + 1

    def lat(self, probe, begin, end, ring=0, thread=1):
        self.write(ring, what(probe, layout.LAT, 1, thread=thread), end, end - begin)

    def shot(self, probe, at, *values, ring=0, thread=1):
        self.write(ring, what(probe, layout.SNAPSHOT, len(values), thread=thread), at, *values)


def drain_all(collector):
    """Every record that there is, by turns."""
    collector.look()
    batches = []
    while (batch := collector.drain()).count:
        batches.append(batch)
    return [*batches, batch]
