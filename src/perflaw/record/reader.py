"""The recorder's side of a recording: what reads it while the program runs, and what it gives of each process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from perflaw.record.tree.call_tree import LaneSums, RecordedTree, TreeNode, to_tables
from perflaw.record.tree.core import TreeTables
from perflaw.record.tree.records import DEFAULT_LANES, Definitions

if TYPE_CHECKING:
    from perflaw.types import Counts


@dataclass(frozen=True, slots=True)
class ExecutionCounts:
    """How often places of a program were executed, with ``--collect lines``."""

    counts: Counts
    """Places and their counts."""
    sources: Mapping[str, str]
    """Source file → text."""


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """A probe of a process and the number of records received from it."""

    id: int
    """0 … 1023."""
    name: str
    """Registered name."""
    type: str
    """``LAT``, ``SNAPSHOT``, …"""
    unit: str
    """Unit of its values."""
    fields: tuple[str, ...]
    """Names of its fields."""
    subsample: int
    """Executions for one record."""
    received: int
    """Number of records received."""


@dataclass(frozen=True, slots=True)
class ProbeAccount:
    """Balance of the probe records of a process: ``received + lost == produced``."""

    process: int
    """Process id."""
    parent: int
    """Process id of its parent, 0 if unknown."""
    command: tuple[str, ...]
    """Command line, as far as known."""
    host: str
    """Host it ran on; empty for this one."""
    language: str
    """Language that its probes name."""
    produced: int
    """Records produced."""
    received: int
    """Records received."""
    lost: int
    """Records that were overwritten or found no room."""
    ns_per_tick: float
    """Length of a tick of its clock."""


@dataclass(frozen=True, slots=True)
class ProbedProcess:
    """The probes of one process, with ``--collect probes``."""

    definitions: Definitions
    """Names of its probes as functions, of fields as features."""
    tree: TreeTables | None
    """Calls of LAT and TPT probes; None if there are none."""
    counts: tuple[ProbeCount, ...]
    """Its probes, by id."""
    account: ProbeAccount
    """Balance of its records."""
    kept: int
    """Number of records kept in the table of records."""


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """One process of a recording."""

    definitions: Definitions
    """Everything its tracer defined, its process id, parent and command line if the tracer names them."""
    tree: TreeTables
    """Its calls."""
    parent: int | None = None
    """Index of its parent among the processes of the recording; None for the first, which is the program itself."""
    alive: bool = False
    """Whether it was still running when the recording ended."""
    counted: ExecutionCounts | None = None
    """Its execution counts; None if none were collected."""
    probed: tuple[ProbedProcess, ...] = ()
    """Its probes: one element for each program that the process executed in turn (``exec``)."""

    @property
    def is_silent(self) -> bool:
        """Whether nothing was recorded of it: no call, no counted line and no probe."""
        executed = self.counted is not None and bool(self.counted.counts.counts.any())
        return self.tree.is_empty and not executed and not self.probed


class Reader(Protocol):
    """Reads a recording, in the recorder's process, while the program runs and after it has ended."""

    idle_s: float
    """Seconds to wait when nothing is new: less than the program needs to fill what it appends to."""
    paths: bool
    """Whether durations are kept by call path; may be set before the first step."""

    def step(self) -> int:
        """Read what has arrived; returns the number of records, 0 if there was nothing new."""

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """Read the rest after process ``pid`` has ended; yields it first, then its descendants, parents before children.

        Each call tree is made when it is asked for, so that only one is held at a time.
        """


class RecordingSource(Protocol):
    """What made a recording, for its manifest: a tracer of this machine, or a tool whose trace is imported."""

    @property
    def name(self) -> str:
        """Name: ``native``, ``python``, ``hooks``, ``gcov`` or ``import``, for example."""

    @property
    def reason(self) -> str:
        """Why it was chosen, or how it works, in words."""

    def tick_ns(self) -> float | None:
        """Measured step of the clock that its stamps come from; None if the manifest's clock says it."""


def empty_tree(metrics: tuple[str, ...] = DEFAULT_LANES) -> TreeTables:
    """The tree of a process without a recorded call: a root and nothing else."""
    root = TreeNode(-1, -1, -1, 0, lanes=[LaneSums() for _ in metrics])
    return to_tables(RecordedTree(metrics, [root], {}, {}, {}, {}))
