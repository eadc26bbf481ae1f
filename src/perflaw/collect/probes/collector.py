"""Drains the rings of all processes in turn, at most so many records a ring and turn (SPEX, §3.1).

So no ring can keep the others waiting, and memory is bounded by the turn: what a slow reader leaves in the rings is
overwritten there, and counted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perflaw.collect.probes import layout
from perflaw.collect.probes.areas import Area, Probe
from perflaw.collect.probes.batches import Batch, Piece, Source
from perflaw.collect.probes.clock import clock_of, moment
from perflaw.collect.probes.folders import area_files
from perflaw.collect.probes.rings import Ring, Tally
from perflaw.errors import StoreError

MOST: Final = 2048
"""Records taken of a ring in one turn."""
TURN: Final = 1 << 16
"""Records taken of all rings in one turn: 4 MB."""


@dataclass(slots=True)
class _Attached:
    """A process whose rings are drained."""

    area: Area
    source: Source
    rings: list[Ring] = field(default_factory=list)
    probes: tuple[Probe, ...] = ()
    no_ring: int = 0
    """Records without a ring that are in no account: from before it was attached."""
    dead: bool = False
    """Whether the process had ended before the rings were last looked at: nothing can arrive any more."""

    def look(self, from_now: bool = False) -> None:
        """See whether the process lives, and then to rings that threads took: in the other order one could be missed."""
        self.dead = not self.area.alive()
        self.no_ring = self.area.lost_no_ring if from_now else self.no_ring
        self.rings += (Ring(*self.area.ring(number), from_now) for number in self.area.used_rings(len(self.rings)))
        self.probes = tuple(self.area.probes())

    def tally(self) -> Tally:
        """The account of the process."""
        no_ring = self.area.lost_no_ring - self.no_ring
        return sum((ring.tally() for ring in self.rings), Tally(no_ring, 0, no_ring))


class Collector:
    """Attaches areas as they appear in folders and drains them in turns. Not for several threads."""

    def __init__(
        self,
        folders: Sequence[Path],
        pids: Collection[int] = (),
        *,
        most: int = MOST,
        remove: bool = True,
        from_now: bool = False,
    ) -> None:
        """``pids``: drain these processes alone. ``remove``: remove areas of processes that have gone, once drained.

        ``from_now``: of processes that run already, only what they write from the first look on.
        """
        self.folders, self.pids, self.most, self.remove, self._from_now = folders, pids, most, remove, from_now
        self.sources: dict[int, Source] = {}
        self.refused: dict[Path, str] = {}
        """Files named as areas that are none, and why."""
        self._attached: dict[int, _Attached] = {}
        self._known: set[Path] = set()
        self._next = (0, 0)
        """Process and ring that the next turn begins with."""

    def look(self) -> None:
        """Attach areas that have appeared, and rings in those that are attached."""
        for path in area_files(self.folders):
            if path not in self._known:
                self._attach(path)
        for one in self._attached.values():
            one.look(self._from_now)
        self._from_now = False

    def drain(self) -> Batch:
        """One turn: at most ``most`` records of each ring, ``TURN`` in all; the next goes on where this one ended."""
        pieces: list[Piece] = []
        order = sorted((number, ring) for number, one in self._attached.items() for ring in range(len(one.rings)))
        begin = next((place for place, at in enumerate(order) if at >= self._next), 0)
        left = TURN
        for number, ring in order[begin:] + order[:begin]:
            if left <= 0:
                self._next = (number, ring)
                break
            one = self._attached[number]
            records = one.rings[ring].take(min(self.most, left), quiet=one.dead)
            left -= len(records)
            if len(records):
                pieces.append(Piece(number, ring, records))
        self._account()
        return Batch(tuple(pieces), dict(self.sources), time.monotonic_ns())

    def areas(self) -> list[Area]:
        """Areas of the processes that have not gone: for switching their probes."""
        return [one.area for one in self._attached.values()]

    def close(self) -> None:
        """Let go of everything."""
        for one in self._attached.values():
            one.rings.clear()
            one.area.close()
        self._attached.clear()

    def _attach(self, path: Path) -> None:
        pid, _, _ = path.name.partition(".")
        if self.pids and int(pid) not in self.pids:
            return
        try:
            area = Area(path)
        except StoreError as error:
            self.refused[path] = error.why  # as a rule not whole yet: looked at again
            return
        self.refused.pop(path, None)
        self._known.add(path)
        number = len(self.sources)
        source = Source(
            number, area.pid, area.started, *_origin(area.pid), area.language, (), clock_of(True, 0, 0, None)
        )
        self.sources[number] = source
        self._attached[number] = _Attached(area, source)

    def _account(self) -> None:
        """Bring what is told of every process up to date; be done with those that have gone and are drained."""
        now = moment() if any(one.area.clock == layout.TSC for one in self._attached.values()) else None
        for number, one in list(self._attached.items()):
            area, before = one.area, self.sources[number]
            tally = one.tally()
            gone = one.dead and tally.received + tally.lost == tally.produced
            clock = clock_of(area.clock == layout.NANOSECONDS, area.tsc0, area.ns0, now)
            self.sources[number] = Source(
                number, area.pid, area.started, before.parent, before.command, area.language, one.probes,
                clock, tally, gone,
            )  # fmt: skip
            if gone:
                one.rings.clear()
                area.close()
                del self._attached[number]
                if self.remove:
                    with suppress(OSError):
                        area.path.unlink(missing_ok=True)


def _origin(pid: int) -> tuple[int, tuple[str, ...]]:
    """Parent and command line of a process, as far as the system still tells."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[: 1 << 16].split(b"\0")
    except OSError:
        return 0, ()
    parent = int(stat[stat.rfind(")") + 2 :].split()[1])
    return parent, tuple(word.decode("utf-8", "backslashreplace") for word in words[:-1])
