"""One ring drained: records copied out while the thread goes on writing, and every record accounted for.

The thread fills slot ``head & mask`` and then raises ``head``; it never waits. So what is copied may have been overwritten
meanwhile: ``head`` is read again after the copy, and records that the thread may have begun to overwrite count as lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perflaw.collect.probes import layout

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
