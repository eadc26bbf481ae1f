"""The reader's side of rings: it copies records while the thread goes on writing, and accounts for every record.

The thread fills slot ``head & mask`` and then raises ``head``; it never waits. A record may thus be overwritten while it is
copied: ``head`` is read again after the copy, and records that the thread may have begun to overwrite count as lost.

Every process of a machine sees the same time stamp counter. An area has one moment read on both clocks; the collector reads
a second one, and so knows the length of a tick.

Rings are read by system calls. Their owner may make the file shorter at any moment, and a look at a mapping beyond its end
would end the reader with SIGBUS; such a call only gives fewer bytes, and the ring counts as damaged.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.probes import layout

Records = NDArray[Any]
"""(n,) of ``layout.RECORD``."""


@dataclass(frozen=True, slots=True)
class RecordAccount:
    """The account of the records of a ring: ``received + lost <= produced``, equal once all records are drained."""

    produced: int = 0
    """Records that the threads of the ring made, including those that were never written for lack of room."""
    received: int = 0
    """Records that were copied whole."""
    lost: int = 0
    """Records that were overwritten before they were copied, or never written."""

    def __add__(self, other: RecordAccount) -> RecordAccount:
        return RecordAccount(self.produced + other.produced, self.received + other.received, self.lost + other.lost)


_MOST_STEP: Final = 1 << 48
"""More records than a program can write between two looks, or in its life: it would take ten days at a ns a record."""


def plausible(count: int, before: int) -> bool:
    """Whether a counter that a program only raises can say ``count`` after it said ``before``; if not, it was damaged."""
    return before <= count <= before + _MOST_STEP


_READINGS: Final = 4


@dataclass(frozen=True, slots=True)
class RingFile:
    """A ring in the file of an area, whose descriptor belongs to the area."""

    descriptor: int
    """Descriptor of the file."""
    offset: int
    """Where the ring begins, in bytes."""
    capacity: int
    """Number of records that it holds."""

    def counter(self, name: str, before: int) -> int | None:
        """A number that the program only raises, and that was ``before``; None if the file has become shorter.

        The kernel need not copy a number in one piece while the program changes it: one half would be old. It is thus read
        again until the next reading is no smaller.
        """
        count = -1
        for _ in range(_READINGS):
            first, second = self._number(name), self._number(name)
            if first is None or second is None:
                return None
            count = first
            if before <= first <= second:
                break
        return count

    def _number(self, name: str) -> int | None:
        raw = os.pread(self.descriptor, 8, self.offset + _COUNTERS[name])
        return int.from_bytes(raw, "little") if len(raw) == 8 else None

    def copied(self, at: int, count: int) -> Records:
        """Records from place ``at`` to the end of the ring at most; fewer than ``count`` if the file has become shorter."""
        size = layout.RECORD_BYTES
        raw = os.pread(self.descriptor, count * size, self.offset + layout.RING_HEAD_BYTES + at * size)
        return np.frombuffer(raw, layout.RECORD, len(raw) // size)


_COUNTERS: Final = {name: layout.RING.fields[name][1] for name in ("head", "lost_nested")}  # type: ignore[index]  # a structure has fields
"""Offsets in the head of a ring."""


class RingReader:
    """The reader's side of a ring."""

    def __init__(self, file: RingFile, from_now: bool = False) -> None:
        """``from_now``: ignore the records that were written before, in the account as well."""
        self._file = file
        self._last = self._last_nested = 0
        self._damaged = False
        self._base, self._base_nested = (self.head, self._nested) if from_now else (0, 0)
        self.tail = self._base
        """Records before this one are received or lost."""
        self.received = self.overwritten = 0

    @property
    def _nested(self) -> int:
        nested = self._file.counter("lost_nested", self._last_nested)
        if nested is not None and plausible(nested, self._last_nested):
            self._last_nested = nested
        return self._last_nested

    @property
    def head(self) -> int:
        """Number of records ever written to the ring, as it was last known if the program has damaged number or file.

        No later record is then read, and as many as the ring holds count as lost.
        """
        if not self._damaged:
            head = self._file.counter("head", self._last)
            if head is not None and plausible(head, self._last):
                self._last = head
            else:
                self._damaged = True
                self.overwritten += self._file.capacity
        return self._last

    def tally(self) -> RecordAccount:
        """The account so far."""
        nested, head = self._nested - self._base_nested, self.head
        damaged = self._file.capacity if self._damaged else 0
        produced = max(head, self.tail) - self._base + nested + damaged
        return RecordAccount(produced, self.received, self.overwritten + nested)

    def take(self, most: int, quiet: bool = False) -> Records:
        """Up to ``most`` new records, oldest first. ``quiet``: no thread writes any more."""
        head = self.head
        oldest = self._oldest(head, quiet)
        if oldest > self.tail:
            self.overwritten += oldest - self.tail
            self.tail = oldest
        first = self.tail
        count = min(head - first, most)
        if count <= 0:
            return np.empty(0, layout.RECORD)
        taken = self._copied(first, count)
        self.tail = first + count
        torn = min(max(self._oldest(self.head, quiet) - first, 0), count) if len(taken) == count else count
        self.overwritten += torn
        self.received += count - torn
        return taken[torn:]

    def _oldest(self, head: int, quiet: bool) -> int:
        """The oldest record that is whole. A thread that is writing may be overwriting the record before it."""
        return max(0, head - self._file.capacity + (not quiet))

    def _copied(self, first: int, count: int) -> Records:
        capacity = self._file.capacity
        at = first & (capacity - 1)
        if at + count <= capacity:
            return self._file.copied(at, count)
        return np.concatenate([self._file.copied(at, capacity - at), self._file.copied(0, at + count - capacity)])


_RDTSC: Final = bytes.fromhex("0f31 48c1e220 4809d0 c3")
"""rdtsc; shl rdx, 32; or rax, rdx; ret."""
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class TickClock:
    """Conversion of a target's ticks to ns: a line through two moments that were read on both clocks."""

    ticks0: int = 0
    """Ticks at the first moment."""
    ns0: int = 0
    """CLOCK_MONOTONIC at the first moment."""
    ns_per_tick: float = 1.0
    """Length of a tick."""

    def ns(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        """Times (n,) of readings (n,) of the counter, ns."""
        return self.since(ticks - np.uint64(self.ticks0))

    def since(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        """Times (n,) of ticks (n,) after the first moment, ns."""
        return self.ns0 + self.lengths(ticks)

    def lengths(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        """Durations (n,) of numbers of ticks (n,), ns."""
        signed = ticks.astype(np.int64)
        return signed if self.ns_per_tick == 1.0 else np.rint(signed * self.ns_per_tick).astype(np.int64)


def clock_of(kind_is_ns: bool, ticks0: int, ns0: int, now: tuple[int, int] | None) -> TickClock:
    """The clock of an area. ``now``: ticks and ns of a later moment; None if the counter of this machine cannot be read."""
    if kind_is_ns:
        return TickClock()
    if now is None or now[0] <= ticks0 or now[1] <= ns0:
        return TickClock(ticks0, ns0, _nominal())
    return TickClock(ticks0, ns0, (now[1] - ns0) / (now[0] - ticks0))


def moment() -> tuple[int, int] | None:
    """The present ticks and CLOCK_MONOTONIC, read as close together as possible; None if there is no counter to read."""
    read = _reader()
    if read is None:
        return None
    best = (1 << 62, 0, 0)
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        ticks = read()
        after = time.monotonic_ns()
        best = min(best, (after - before, ticks, (before + after) // 2))
    return best[1], best[2]


@lru_cache(maxsize=1)
def _reader() -> Callable[[], int] | None:
    """A function that reads the counter, as machine code in a memory page, for Python has no such function."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(_RDTSC)
        function = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    except (OSError, ValueError):
        return None  # a system that forbids executable pages
    function.perflaw_page = page  # type: ignore[attr-defined]  # the page must live as long as the function
    return function


@lru_cache(maxsize=1)
def _nominal() -> float:
    """Length of a tick by the processor's frequency in /proc/cpuinfo, off by a few per cent; 1 where that is unknown."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            megahertz = next((float(line.split(":")[1]) for line in file if line.startswith("cpu MHz")), 0.0)
    except OSError:
        megahertz = 0.0
    return 1000.0 / megahertz if megahertz else 1.0
