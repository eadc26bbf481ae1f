"""The area that a process with probes shares: a head, an entry for each probe, a ring for each thread.

    | Head 4096 B | ProbeEntry[1024] x 128 B | (RingHead 128 B + Record 64 B x ring_records) x rings |

``native/include/perflaw.h`` and ``perflaw/probes`` write the same layout; a test compares all three. All numbers are
little-endian.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

MAGIC: Final = int.from_bytes(b"perflawP", "little")
"""First word of an area; it is written last, so that a reader never sees an incomplete head."""
VERSION: Final = 1
PROBES: Final = 1024
"""Number of entries; the number of an entry, 0 to 1023, is the id of its probe."""
RING_RECORDS: Final = 4096
"""Records of a ring by default; always a power of two."""
RINGS: Final = 256
"""Rings of an area by default, which limits the threads that write at the same time."""
FIELDS: Final = 6
"""Fields that a record has at most."""
TSC, NANOSECONDS = 1, 2
"""Clocks: the processor's time stamp counter, or CLOCK_MONOTONIC in ns."""
FREE, IN_USE, ENDED = 0, 1, 2
"""States of a ring. The next thread takes a ring whose thread has ended; records stay until they are overwritten."""

CNT, LAT, TPT, LLC, FLT, CTXSW, PERFCNTR, SNAPSHOT = 1, 2, 3, 4, 5, 6, 7, 8
TYPES: Final = dict(enumerate(("CNT", "LAT", "TPT", "LLC", "FLT", "CTXSW", "PERFCNTR", "SNAPSHOT"), 1))
"""Names of the probes' types (SPEX, Table 1)."""
FIELD_NAMES: Final[dict[int, tuple[str, ...]]] = {
    CNT: ("executions",),
    LAT: ("cycles",),
    TPT: ("executions", "cycles"),
    LLC: ("references", "misses"),
    FLT: ("minor", "major"),
    CTXSW: ("voluntary", "involuntary"),
    PERFCNTR: ("value",),
    SNAPSHOT: ("v0", "v1", "v2", "v3", "v4", "v5"),
}
"""Names of the fields of a record; a SNAPSHOT probe may have its own names."""
CYCLES: Final[dict[int, int]] = {LAT: 0, TPT: 1}
"""Type → the field that is in ticks of the area's clock."""

HEAD_BYTES: Final = 4096
ENTRY_BYTES: Final = 128
RING_HEAD_BYTES: Final = 128
RECORD_BYTES: Final = 64


def _struct(size: int, **columns: tuple[int, Any]) -> np.dtype[Any]:
    """A structure of ``size`` bytes from name → (offset, type)."""
    offsets, formats = [at for at, _ in columns.values()], [kind for _, kind in columns.values()]
    return np.dtype({"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": size})


HEAD: Final = _struct(
    HEAD_BYTES,
    magic=(0, "<u8"),
    version=(8, "<u4"),
    pid=(12, "<u4"),
    rings=(16, "<u4"),
    ring_records=(20, "<u4"),
    probes=(24, "<u4"),
    clock=(28, "<u4"),
    tsc0=(32, "<u8"),
    ns0=(40, "<i8"),
    lost_no_ring=(48, "<u8"),
    conflicts=(56, "<u4"),
    enable_all=(60, "<u4"),
    language=(64, "S16"),
    image=(80, "<u8"),
    copies=(88, "<u4"),
    serial=(92, "<u4"),
    used=(96, "<u4"),
    refusal=(100, "S156"),
)
"""``tsc0`` (ticks) and ``ns0`` (CLOCK_MONOTONIC) were read at the same moment; ``lost_no_ring``: records for which no ring
was free; ``image``: the program of the process; ``copies``: programs and libraries that use the area; ``serial``: those that
ever used it; ``used``: rings ever taken; ``refusal``: why a hardware counter cannot be read."""
ENTRY: Final = _struct(
    ENTRY_BYTES,
    enabled=(0, "u1"),
    registered=(1, "u1"),
    type=(2, "u1"),
    conflict=(3, "u1"),
    subsample=(4, "<u4"),
    name=(8, "S48"),
    unit=(56, "S16"),
    fields=(72, "S48"),
    every=(120, "<u4"),
    refused=(124, "<u4"),
)
"""``conflict``: another probe has the same id; ``subsample``: executions for one record as set from outside, 0 for ``every``;
``every``: executions for one record by the code, 0 if not executed yet; ``refused``: executions without a record because a
counter cannot be read. Texts end at a zero byte."""
RING: Final = _struct(RING_HEAD_BYTES, state=(0, "<u4"), thread=(4, "<u4"), lost_nested=(8, "<u8"), head=(64, "<u8"))
"""``head``: records ever written to the ring, on its own cache line; ``lost_nested``: probes of a signal handler that
interrupted a probe."""
RECORD: Final = _struct(RECORD_BYTES, timestamp=(0, "<u8"), what=(8, "<u8"), fields=(16, ("<u8", FIELDS)))
"""``what``, from the low end: probe 16 bits, type 4, number of fields 4, CPU 16, thread 24."""


def ring_bytes(ring_records: int) -> int:
    """Size of a ring with its head."""
    return RING_HEAD_BYTES + RECORD_BYTES * ring_records


def ring_offset(ring: int, ring_records: int) -> int:
    """Where ring number ``ring`` begins in the area."""
    return HEAD_BYTES + ENTRY_BYTES * PROBES + ring * ring_bytes(ring_records)
