"""The collector: drains the rings of all processes in turn, with a limit on the records a ring and turn (SPEX, §3.1).

So no ring makes the others wait, and memory is bounded by the turn. Records that a slow reader leaves in the rings are
overwritten there, and counted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.record.machine import stat_of
from perflaw.record.probes import layout
from perflaw.record.probes.areas import AttachedArea, RegisteredProbe, area_files
from perflaw.record.probes.rings import RecordAccount, Records, RingReader, TickClock, clock_of, moment
from perflaw.wire.channel import SAME_VERSION, Message, WireError


@dataclass(frozen=True, slots=True)
class ProbeProcess:
    """A process with probes."""

    number: int
    """Number of the process, in the order in which processes were met."""
    pid: int
    """Process id on its host."""
    started: int
    """Start time of the process in the system's ticks; pid and start name its area."""
    parent: int
    """Process id of its parent when it was met; 0 where unknown."""
    command: tuple[str, ...]
    """Its command line when it was met."""
    language: str
    """Language of the program."""
    probes: tuple[RegisteredProbe, ...]
    """Probes that are registered so far."""
    clock: TickClock
    """Conversion of its ticks to ns."""
    tally: RecordAccount = field(default_factory=RecordAccount)
    """The account of all its records so far."""
    gone: bool = False
    """Whether it has ended and all its records were taken."""
    host: str = ""
    """Address of the collector that drains it; empty for this machine."""


@dataclass(frozen=True, slots=True)
class RingRecords:
    """Records of one ring, in the order they were made."""

    source: int
    """Number of the process."""
    ring: int
    """Number of the ring."""
    records: Records
    """(n,) of ``layout.RECORD``."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of one turn of a collector."""

    pieces: tuple[RingRecords, ...]
    """Records by ring; rings without new records are left out."""
    sources: Mapping[int, ProbeProcess]
    """Every process met so far, by number."""
    at_ns: int
    """CLOCK_MONOTONIC of the collector's host at the end of the turn."""

    @property
    def count(self) -> int:
        """Number of records."""
        return sum(len(piece.records) for piece in self.pieces)

    @property
    def tally(self) -> RecordAccount:
        """The account of all processes so far."""
        return sum((source.tally for source in self.sources.values()), RecordAccount())


def as_message(batch: Batch, known: Mapping[int, ProbeProcess]) -> tuple[dict[str, Any], bytes]:
    """Document and payload of a batch, for a receiver with these ``known`` processes: only changes of them are sent."""
    changes = []
    for number, one in batch.sources.items():
        before = known.get(number)
        if before != one:
            names = [each.name for each in fields(ProbeProcess)]
            same = [name for name in names if before and getattr(one, name) == getattr(before, name)]
            changed = {name: value for name, value in asdict(one).items() if name not in same}
            changes.append({"number": one.number} | changed)
    pieces = [(piece.source, piece.ring, len(piece.records)) for piece in batch.pieces]
    document = {"sources": changes, "pieces": pieces, "at_ns": batch.at_ns}
    return document, b"".join(piece.records.tobytes() for piece in batch.pieces)


@dataclass(frozen=True, slots=True)
class Sender:
    """The collector that sends a batch."""

    host: str = ""
    """Its address; empty for the collector of this machine."""
    base: int = 0
    """Added to its numbers of processes, so that those of several collectors differ."""
    ahead_ns: int = 0
    """Added to its times, to convert them to this machine's clock."""


THIS_MACHINE: Final = Sender()


def from_message(message: Message, known: Mapping[int, ProbeProcess], sender: Sender = THIS_MACHINE) -> Batch:
    """The batch in a message; WireError if the message is inconsistent."""
    try:
        told = []
        for one in message.document["sources"]:
            news = {**one, "host": sender.host, "number": one["number"] + sender.base}
            if "probes" in news:
                news["probes"] = tuple(
                    RegisteredProbe(**{**each, "fields": tuple(each["fields"])}) for each in news["probes"]
                )
            if "command" in news:
                news["command"] = tuple(news["command"])
            news |= {
                name: kind(**news[name])
                for name, kind in (("clock", TickClock), ("tally", RecordAccount))
                if name in news
            }
            if "clock" in news:
                news["clock"] = replace(news["clock"], ns0=news["clock"].ns0 + sender.ahead_ns)
            before = known.get(news["number"])
            told.append(replace(before, **news) if before else ProbeProcess(**news))
        records = np.frombuffer(message.payload, layout.RECORD)
        pieces, at = [], 0
        for source, ring, count in message.document["pieces"]:
            pieces.append(RingRecords(int(source) + sender.base, int(ring), records[at : at + count]))
            at += count
        sources = {**known, **{one.number: one for one in told}}
        if at != len(records) or any(piece.source not in sources for piece in pieces):
            raise ValueError("counts and payload differ")
        return Batch(tuple(pieces), sources, int(message.document["at_ns"]) + sender.ahead_ns)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError("a batch of records that cannot be read", str(error), SAME_VERSION) from error


MOST: Final = 2048
"""Records taken from a ring in one turn."""
TURN: Final = 1 << 16
"""Records taken from all rings in one turn: 4 MB."""


@dataclass(slots=True)
class _Attached:
    """A process whose rings are drained."""

    area: AttachedArea
    source: ProbeProcess
    rings: list[RingReader] = field(default_factory=list)
    probes: tuple[RegisteredProbe, ...] = ()
    no_ring: int = 0
    """Records without a ring from before the process was attached, which do not count."""
    dead: bool = False
    """Whether the process had ended before the rings were last checked, so that no record can follow."""

    def look(self, from_now: bool = False) -> None:
        """Check whether the process is alive, and only then for new rings: in the other order one could be missed."""
        self.dead = not self.area.alive()
        self.no_ring = self.area.lost_no_ring if from_now else self.no_ring
        self.rings += (RingReader(self.area.ring(number), from_now) for number in self.area.used_rings(len(self.rings)))
        self.probes = tuple(self.area.probes())

    def tally(self) -> RecordAccount:
        """The account of the process."""
        no_ring = self.area.lost_no_ring - self.no_ring
        return sum((ring.tally() for ring in self.rings), RecordAccount(no_ring, 0, no_ring))


class Collector:
    """Attaches areas as they appear in folders and drains them in turns; for use by one thread."""

    def __init__(
        self,
        folders: Sequence[Path],
        pids: Collection[int] = (),
        *,
        most: int = MOST,
        remove: bool = True,
        from_now: bool = False,
    ) -> None:
        """``pids``: drain only these processes. ``remove``: remove the areas of processes that have ended, once drained.

        ``from_now``: ignore the records that running processes wrote before the first look.
        """
        self.folders, self.pids, self.most, self.remove, self._from_now = folders, pids, most, remove, from_now
        self.sources: dict[int, ProbeProcess] = {}
        self.refused: dict[Path, str] = {}
        """Files that have the name of an area but are none → why."""
        self._attached: dict[int, _Attached] = {}
        self._known: set[Path] = set()
        self._next = (0, 0)
        """Process and ring with which the next turn begins."""

    def look(self) -> None:
        """Attach new areas, and new rings in attached areas."""
        for path in area_files(self.folders):
            pid, _, _ = path.name.partition(".")
            if path in self._known or (self.pids and int(pid) not in self.pids):
                continue
            try:
                area = AttachedArea(path)
            except StoreError as error:
                self.refused[path] = error.why  # usually it is not complete yet, and is tried again
                continue
            self.refused.pop(path, None)
            self._known.add(path)
            parent, words = 0, b""
            with suppress(OSError, IndexError):  # of a process that has ended neither is known
                parent = int(stat_of(area.pid)[1])
                words = Path(f"/proc/{area.pid}/cmdline").read_bytes()[: 1 << 16]
            command = tuple(word.decode("utf-8", "backslashreplace") for word in words.split(b"\0")[:-1])
            number, clock = len(self.sources), clock_of(True, 0, 0, None)
            source = ProbeProcess(number, area.pid, area.started, parent, command, area.language, (), clock)
            self.sources[number], self._attached[number] = source, _Attached(area, source)
        for one in self._attached.values():
            one.look(self._from_now)
        self._from_now = False

    def drain(self) -> Batch:
        """One turn: at most ``most`` records of each ring, ``TURN`` in all. The next turn continues where this one ended."""
        pieces: list[RingRecords] = []
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
                pieces.append(RingRecords(number, ring, records))
        # Accounts of the processes; those that have ended and are drained go.
        now = moment() if any(one.area.clock == layout.TSC for one in self._attached.values()) else None
        for number, one in list(self._attached.items()):
            area, before = one.area, self.sources[number]
            tally = one.tally()
            gone = one.dead and tally.received + tally.lost == tally.produced
            clock = clock_of(area.clock == layout.NANOSECONDS, area.tsc0, area.ns0, now)
            self.sources[number] = ProbeProcess(
                number, area.pid, area.started, before.parent, before.command, area.language, one.probes,
                clock, tally, gone,
            )  # fmt: skip
            if gone:
                one.rings.clear()
                area.close()
                del self._attached[number]
                if self.remove:
                    with suppress(OSError):  # the folder belongs to another user: the file stays
                        area.path.unlink(missing_ok=True)
        return Batch(tuple(pieces), dict(self.sources), time.monotonic_ns())

    def areas(self) -> list[AttachedArea]:
        """Areas of the processes that have not ended, for switching their probes."""
        return [one.area for one in self._attached.values()]

    def close(self) -> None:
        """Detach all areas."""
        for one in self._attached.values():
            one.rings.clear()
            one.area.close()
        self._attached.clear()
