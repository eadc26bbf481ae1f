"""Records of the ring made columns: who, what, when in ns. No value is interpreted but ticks, which become ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.collect.probes import layout
from perflaw.collect.probes.batches import Piece, Source

_LONGEST: Final = np.uint64(1 << 53)
"""No span takes so many cycles."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Records of one ring, in the order they were made."""

    source: Source
    """The process."""
    ring: int
    """The ring's number in it."""
    probe: NDArray[Any]
    """(n,) ids."""
    type: NDArray[Any]
    """(n,) types, as ``layout.TYPES`` numbers them."""
    count: NDArray[Any]
    """(n,) how many fields each has."""
    cpu: NDArray[Any]
    """(n,) processors."""
    thread: NDArray[Any]
    """(n,) the system's numbers of threads, their lower 24 bits."""
    at: NDArray[np.int64]
    """(n,) CLOCK_MONOTONIC of the host, ns."""
    fields: NDArray[Any]
    """(n, 6) values, unsigned; those of LAT and TPT that are cycles in the record are ns here."""
    ticks: NDArray[np.int64]
    """(n,) the same as ``at`` in ticks of the process's clock since its area was made: exact."""
    length: NDArray[np.int64]
    """(n,) cycles of LAT and TPT; 0 of others."""

    def __len__(self) -> int:
        return len(self.probe)

    def take(self, rows: NDArray[Any]) -> Decoded:
        """These records alone, by number or by a mask."""
        arrays = (
            self.probe,
            self.type,
            self.count,
            self.cpu,
            self.thread,
            self.at,
            self.fields,
            self.ticks,
            self.length,
        )
        return Decoded(self.source, self.ring, *(array[rows] for array in arrays))


def decode(piece: Piece, source: Source) -> Decoded:
    """The records of a piece as columns. Counts of fields beyond the six are cut: the record has no more."""
    what = piece.records["what"]
    kind = (what >> np.uint64(16) & np.uint64(15)).astype(np.uint8)
    fields, length = piece.records["fields"].copy(), np.zeros(len(what), np.int64)
    for of, place in layout.CYCLES.items():
        rows = kind == of
        length[rows] = np.minimum(fields[rows, place], _LONGEST).astype(np.int64)
        fields[rows, place] = source.clock.lengths(length[rows]).astype(np.uint64)
    return Decoded(
        source,
        piece.ring,
        (what & np.uint64(0xFFFF)).astype(np.uint16),
        kind,
        np.minimum(what >> np.uint64(20) & np.uint64(15), layout.FIELDS).astype(np.uint8),
        (what >> np.uint64(24) & np.uint64(0xFFFF)).astype(np.uint16),
        (what >> np.uint64(40)).astype(np.uint32),
        source.clock.ns(piece.records["timestamp"]),
        fields,
        (piece.records["timestamp"] - np.uint64(source.clock.ticks0)).view(np.int64),
        length,
    )


def executions(records: Decoded) -> NDArray[np.float64]:
    """(n,) how many executions each record tells of: counted by CNT and TPT, else one record for ``subsample`` of them."""
    each = np.ones(1 << 16)
    for probe in records.source.probes:
        each[probe.id] = probe.executions
    counted = (records.type == layout.CNT) | (records.type == layout.TPT)
    return np.where(counted, records.fields[:, 0].astype(np.float64), each[records.probe])
