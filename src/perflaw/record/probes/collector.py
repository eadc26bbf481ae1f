"""Drains the rings of all processes in turn, at most so many records a ring and turn (SPEX, §3.1).

So no ring can keep the others waiting, and memory is bounded by the turn: what a slow reader leaves in the rings is
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
from perflaw.record.probes import layout
from perflaw.record.probes.areas import Area, Probe, area_files
from perflaw.record.probes.rings import Clock, Records, Ring, Tally, clock_of, moment
from perflaw.wire.channel import Message, WireError

# ---- What a collector hands over: records by ring, who they are of, and the account so far. Also as a message.


@dataclass(frozen=True, slots=True)
class Source:
    """A process with probes."""

    number: int
    """Its number, in the order in which processes were met."""
    pid: int
    """Process id on its host."""
    started: int
    """Its start as the system tells it: with the pid the name of its area."""
    parent: int
    """Process id of its parent when it was met; 0 where unknown."""
    command: tuple[str, ...]
    """Its command line when it was met."""
    language: str
    """Language of the program, as its probes say."""
    probes: tuple[Probe, ...]
    """What is registered so far."""
    clock: Clock
    """Its ticks to ns."""
    tally: Tally = Tally()  # noqa: RUF009 (frozen)
    """The account of all its records so far."""
    gone: bool = False
    """Whether it has ended and all it wrote was taken."""
    host: str = ""
    """Address of the collector that drains it; empty for this machine."""

    @property
    def pending(self) -> int:
        """Records produced and neither received nor lost yet."""
        return self.tally.produced - self.tally.received - self.tally.lost


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one ring, in the order they were made."""

    source: int
    """Number of the process."""
    ring: int
    """Number of the ring."""
    records: Records
    """(n,) of ``layout.RECORD``."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one turn of a collector took."""

    pieces: tuple[Piece, ...]
    """By ring; rings without new records are left out."""
    sources: Mapping[int, Source]
    """Every process met so far, by number."""
    at_ns: int
    """CLOCK_MONOTONIC of the collector's host at the end of the turn."""

    @property
    def count(self) -> int:
        """Records in it."""
        return sum(len(piece.records) for piece in self.pieces)

    @property
    def tally(self) -> Tally:
        """The account over all processes so far."""
        return sum((source.tally for source in self.sources.values()), Tally())


def as_message(batch: Batch, known: Mapping[int, Source]) -> tuple[dict[str, Any], bytes]:
    """Document and payload of a batch for somebody who knows these sources already: of those only what is new."""
    told = [_news(one, known.get(number)) for number, one in batch.sources.items() if known.get(number) != one]
    pieces = [(piece.source, piece.ring, len(piece.records)) for piece in batch.pieces]
    document = {"sources": told, "pieces": pieces, "at_ns": batch.at_ns}
    return document, b"".join(piece.records.tobytes() for piece in batch.pieces)


def _news(source: Source, before: Source | None) -> dict[str, Any]:
    same = (
        ()
        if before is None
        else [one.name for one in fields(Source) if getattr(source, one.name) == getattr(before, one.name)]
    )
    return {"number": source.number} | {name: value for name, value in asdict(source).items() if name not in same}


@dataclass(frozen=True, slots=True)
class Sender:
    """The collector that a batch comes from."""

    host: str = ""
    """Its address; empty: this machine's own."""
    base: int = 0
    """What is added to its numbers of processes, so that those of several collectors differ."""
    ahead_ns: int = 0
    """What is added to its times, so that they are as if taken here."""


HERE: Final = Sender()


def from_message(message: Message, known: Mapping[int, Source], sender: Sender = HERE) -> Batch:
    """The batch that a message carries; WireError where it does not hold together."""
    try:
        told = [_source(one, known, sender) for one in message.document["sources"]]
        records = np.frombuffer(message.payload, layout.RECORD)
        pieces, at = [], 0
        for source, ring, count in message.document["pieces"]:
            pieces.append(Piece(int(source) + sender.base, int(ring), records[at : at + count]))
            at += count
        sources = {**known, **{one.number: one for one in told}}
        if at != len(records) or any(piece.source not in sources for piece in pieces):
            raise ValueError("counts and payload differ")
        return Batch(tuple(pieces), sources, int(message.document["at_ns"]) + sender.ahead_ns)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError("a batch of records that cannot be read", str(error)) from error


def _source(document: Mapping[str, Any], known: Mapping[int, Source], sender: Sender) -> Source:
    news = {**document, "host": sender.host, "number": document["number"] + sender.base}
    if "probes" in news:
        news["probes"] = tuple(Probe(**{**one, "fields": tuple(one["fields"])}) for one in news["probes"])
    if "command" in news:
        news["command"] = tuple(news["command"])
    news |= {name: kind(**news[name]) for name, kind in (("clock", Clock), ("tally", Tally)) if name in news}
    if "clock" in news:
        news["clock"] = replace(news["clock"], ns0=news["clock"].ns0 + sender.ahead_ns)
    before = known.get(news["number"])
    return replace(before, **news) if before else Source(**news)


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
