"""What a collector hands over: records by ring, who they are of, and the account so far. Also as a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

import numpy as np

from perflaw.collect.probes import layout
from perflaw.collect.probes.areas import Probe
from perflaw.collect.probes.clock import Clock
from perflaw.collect.probes.rings import Records, Tally
from perflaw.collect.wire.channel import Message, WireError


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
