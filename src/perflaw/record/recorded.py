"""What a recording gives when it has ended: each process of it, with its definitions and its call tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from perflaw.record.records import Definitions
from perflaw.record.tree.call_tree import CallTree, Node, Sums, columns
from perflaw.record.tree.core_tables import CoreTree
from perflaw.types import Counts


@dataclass(frozen=True, slots=True)
class Counted:
    """How often places of a program were executed, with ``--collect lines``."""

    counts: Counts
    """The places and their counts."""
    sources: Mapping[str, str]
    """Source file → its text."""


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """A probe of a process, and how many records of it came."""

    id: int
    """0 … 1023."""
    name: str
    """As registered."""
    type: str
    """``LAT``, ``SNAPSHOT``, …"""
    unit: str
    """Unit of its values."""
    fields: tuple[str, ...]
    """Names of its fields."""
    subsample: int
    """Executions for one record."""
    received: int
    """Its records."""


@dataclass(frozen=True, slots=True)
class ProbeAccount:
    """A process with probes, and the account of its records: ``received + lost == produced``."""

    process: int
    """Its number."""
    parent: int
    """Its parent's, 0 where unknown."""
    command: tuple[str, ...]
    """Its command line, as far as known."""
    host: str
    """Where it ran; empty: here."""
    language: str
    """As its probes say."""
    produced: int
    """Records it made."""
    received: int
    """Those that came."""
    lost: int
    """Those that were overwritten or found no place."""
    ns_per_tick: float
    """Length of a tick of its clock."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of the probes of one process, with ``--collect probes``."""

    definitions: Definitions
    """Names of its probes as functions, of fields as features."""
    tree: CoreTree | None
    """Calls of LAT and TPT probes; None where there are none."""
    counts: tuple[ProbeCount, ...]
    """Its probes, by id."""
    account: ProbeAccount
    """The account of its records."""
    kept: int
    """Records that are in the table of them."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One process of a recording."""

    definitions: Definitions
    """What its tracer told: also its number, its parent's and its command line, where it says so."""
    tree: CoreTree
    """Its calls."""
    parent: int | None = None
    """Place of its parent among the processes of the recording; None for the first, which is the program itself."""
    alive: bool = False
    """Whether it still ran when the recording ended."""
    counted: Counted | None = None
    """Its execution counts; None where none were collected."""
    probed: tuple[Probed, ...] = ()
    """What came of its probes: of each program that the process was, one after the other."""


class Reader(Protocol):
    """The recorder's side of a recording, in a process of its own: takes in while the target runs, and after."""

    idle_s: float
    """How long to wait where nothing is new: less than the target takes to fill what it appends to."""
    paths: bool
    """Whether durations are kept by call path; may be set before the first step."""

    def step(self) -> int:
        """Take in what has arrived since; returns how many records that was (0: nothing new, wait a little)."""

    def finish(self, pid: int) -> Iterator[Recorded]:
        """Take in the rest, the process ``pid`` having ended; give it first, then its descendants, parents before children.

        Each call tree is made when it is asked for, so that only one is held at a time.
        """


def empty_tree(metrics: tuple[str, ...]) -> CoreTree:
    """The tree of a process without a recorded call: a root and nothing else."""
    return columns(CallTree(metrics, [Node(-1, -1, -1, 0, lanes=[Sums() for _ in metrics])], {}, {}, {}, {}))
