"""The tracer: takes batches, hands columns downstream, counts what each probe gave (SPEX, §3.1).

Downstream components are whatever takes :class:`ProbeRecords`: the store, call trees, a live view, a callback of the explorer.
One that fails is left out from then on, with its reason; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.record.probes import layout
from perflaw.record.probes.collector import Batch, ProbeProcess
from perflaw.record.probes.decoding import ProbeRecords, decode
from perflaw.record.probes.rings import RecordAccount
from perflaw.store.probe_tables import RecordParts

Downstream = Callable[[ProbeRecords], Any]
"""Takes the records of one ring, in order; its memory must be bounded."""


class Tracer:
    """Decodes batches, and gives their records to all components downstream."""

    def __init__(self, downstream: Sequence[Downstream] = ()) -> None:
        self.downstream = list(downstream)
        self.sources: Mapping[int, ProbeProcess] = {}
        """The latest account of every process met so far, by number."""
        self.received: dict[int, Any] = {}
        """Process → (1024,) number of records of each probe."""
        self.failures: list[str] = []
        """Why components downstream were left out."""

    def take(self, batch: Batch) -> None:
        """Process one batch."""
        self.sources = {**self.sources, **batch.sources}
        for piece in batch.pieces:
            records = decode(piece, batch.sources[piece.source])
            counts = self.received.setdefault(piece.source, np.zeros(layout.PROBES, np.int64))
            counts += np.bincount(records.probe % layout.PROBES, minlength=layout.PROBES)
            for component in list(self.downstream):
                try:
                    component(records)
                except (OSError, MemoryError, ValueError, ArithmeticError) as error:
                    self.downstream.remove(component)
                    self.failures.append(f"{getattr(component, '__qualname__', component)}: {error}")

    @property
    def tally(self) -> RecordAccount:
        """The account over all processes."""
        return sum((source.tally for source in self.sources.values()), RecordAccount())

    def conflicts(self) -> list[str]:
        """Warnings about probes whose id is used twice."""
        found = {
            (probe.id, probe.name) for source in self.sources.values() for probe in source.probes if probe.conflict
        }
        return [f"probe id {number} is used twice: by {name} and another" for number, name in sorted(found)]


PART: Final = 1 << 17
"""Records of a part: 14 MB in memory."""
MOST: Final = 50_000_000
"""Records that a run keeps. Further records still count for metrics and laws, and are reported."""


class KeptRecords:
    """The component downstream that writes the records of all processes of a run, part by part."""

    def __init__(self, folder: Path, most: int = MOST, part: int = PART) -> None:
        self.most, self.part = most, part
        self.kept: dict[int, int] = {}
        """Number of a process → number of its records that were kept."""
        self.left_out = 0
        """Number of records beyond the limit."""
        self._parts = RecordParts(folder)
        self._waiting: list[ProbeRecords] = []
        self._count = 0

    def take(self, records: ProbeRecords) -> None:
        """Keep records, up to the limit; OSError if the disk refuses."""
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
        """Write the remaining records, and make one file of the parts."""
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
