"""The reader's side of rings: it copies records while the thread goes on writing, and accounts for every record.

The thread fills slot ``head & mask`` and then raises ``head``; it never waits. A record may thus be overwritten while it is
copied: ``head`` is read again after the copy, and records that the thread may have begun to overwrite count as lost.

Every process of a machine sees the same time stamp counter. An area has one moment read on both clocks; the collector reads
a second one, and so knows the length of a tick.
"""

from __future__ import annotations

import ctypes
import mmap
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


class RingReader:
    """The reader's side of a ring."""

    def __init__(self, head: Records, records: Records, from_now: bool = False) -> None:
        """``from_now``: ignore the records that were written before, in the account as well."""
        self._head, self._records = head, records
        self._last = self._last_nested = 0
        self._damaged = False
        self._base, self._base_nested = (self.head, self._nested) if from_now else (0, 0)
        self.tail = self._base
        """Records before this one are received or lost."""
        self.received = self.overwritten = 0

    @property
    def _nested(self) -> int:
        nested = int(self._head["lost_nested"][0])
        if plausible(nested, self._last_nested):
            self._last_nested = nested
        return self._last_nested

    @property
    def head(self) -> int:
        """Number of records ever written to the ring, as it was last known if the program has damaged the number.

        No later record is then read, and as many as the ring holds count as lost.
        """
        head = int(self._head["head"][0])
        if not self._damaged and not plausible(head, self._last):
            self._damaged = True
            self.overwritten += len(self._records)
        if not self._damaged:
            self._last = head
        return self._last

    def tally(self) -> RecordAccount:
        """The account so far."""
        nested, head = self._nested - self._base_nested, self.head
        damaged = len(self._records) if self._damaged else 0
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
        torn = min(max(self._oldest(self.head, quiet) - first, 0), count)
        self.overwritten += torn
        self.received += count - torn
        return taken[torn:]

    def _oldest(self, head: int, quiet: bool) -> int:
        """The oldest record that is whole. A thread that is writing may be overwriting the record before it."""
        return max(0, head - len(self._records) + (not quiet))

    def _copied(self, first: int, count: int) -> Records:
        capacity = len(self._records)
        at = first & (capacity - 1)
        if at + count <= capacity:
            return self._records[at : at + count].copy()
        return np.concatenate([self._records[at:], self._records[: at + count - capacity]])


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
