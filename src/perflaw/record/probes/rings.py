"""One ring drained: records copied out while the thread goes on writing, and every record accounted for.

The thread fills slot ``head & mask`` and then raises ``head``; it never waits. So what is copied may have been overwritten
meanwhile: ``head`` is read again after the copy, and records that the thread may have begun to overwrite count as lost.
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
class Tally:
    """What happened to the records of a ring so far: ``received + lost <= produced``, equal once all is drained."""

    produced: int = 0
    """Records that the ring's threads made, those included that found no place."""
    received: int = 0
    """Copied out whole."""
    lost: int = 0
    """Overwritten before they were copied, or never written."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.produced + other.produced, self.received + other.received, self.lost + other.lost)


class Ring:
    """The reader's side of a ring."""

    def __init__(self, head: Records, records: Records, from_now: bool = False) -> None:
        """``from_now``: what was written before is nobody's affair; it is in no account."""
        self._head, self._records = head, records
        self._base, self._base_nested = (self.head, self._nested) if from_now else (0, 0)
        self.tail = self._base
        """Records before it are received or lost."""
        self.received = self.overwritten = 0

    @property
    def _nested(self) -> int:
        return int(self._head["lost_nested"][0])

    @property
    def head(self) -> int:
        """Records ever produced here."""
        return int(self._head["head"][0])

    def tally(self) -> Tally:
        """The account so far."""
        nested = self._nested - self._base_nested
        return Tally(max(self.head, self.tail) - self._base + nested, self.received, self.overwritten + nested)

    def take(self, most: int, quiet: bool = False) -> Records:
        """At most so many of the records that are new, oldest first. ``quiet``: nobody writes any more."""
        head = self.head
        self._skip_to(self._oldest(head, quiet))
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
        """The oldest record that is whole. While a thread writes, it may be at work on the slot of the one before."""
        return max(0, head - len(self._records) + (not quiet))

    def _skip_to(self, oldest: int) -> None:
        if oldest > self.tail:
            self.overwritten += oldest - self.tail
            self.tail = oldest

    def _copied(self, first: int, count: int) -> Records:
        capacity = len(self._records)
        at = first & (capacity - 1)
        if at + count <= capacity:
            return self._records[at : at + count].copy()
        return np.concatenate([self._records[at:], self._records[: at + count - capacity]])


# ---- Ticks of a target's clock to ns. One moment read on both clocks is in the area; the collector reads a second
# one.
#
# Every process of a machine sees the same time stamp counter, so the collector can read it beside CLOCK_MONOTONIC.

_RDTSC: Final = bytes.fromhex("0f31 48c1e220 4809d0 c3")
"""rdtsc; shl rdx, 32; or rax, rdx; ret."""
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Clock:
    """A line through two moments: ticks and ns of each."""

    ticks0: int = 0
    """Ticks at the first moment."""
    ns0: int = 0
    """CLOCK_MONOTONIC then."""
    ns_per_tick: float = 1.0
    """Length of a tick."""

    def ns(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        """Times (n,) of readings (n,)."""
        return self.since(ticks - np.uint64(self.ticks0))

    def since(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        """Times (n,) of ticks (n,) after the first moment; in their order."""
        return self.ns0 + self.lengths(ticks)

    def lengths(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        """Durations (n,) in ns of numbers of ticks (n,)."""
        signed = ticks.astype(np.int64)
        return signed if self.ns_per_tick == 1.0 else np.rint(signed * self.ns_per_tick).astype(np.int64)


def clock_of(kind_is_ns: bool, ticks0: int, ns0: int, now: tuple[int, int] | None) -> Clock:
    """The clock of an area; ``now``: ticks and ns of a later moment, None where this machine's counter cannot be read."""
    if kind_is_ns:
        return Clock()
    if now is None or now[0] <= ticks0 or now[1] <= ns0:
        return Clock(ticks0, ns0, _nominal())
    return Clock(ticks0, ns0, (now[1] - ns0) / (now[0] - ticks0))


def moment() -> tuple[int, int] | None:
    """Ticks and CLOCK_MONOTONIC of now, read so close together as can be; None where there is no counter to read."""
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
    """A function that reads the counter: four instructions in a page of their own, for Python has none."""
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
    """Length of a tick as the kernel says the processor's frequency: within some percent; 1 where it says nothing."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            megahertz = next((float(line.split(":")[1]) for line in file if line.startswith("cpu MHz")), 0.0)
    except OSError:
        megahertz = 0.0
    return 1000.0 / megahertz if megahertz else 1.0
