"""Programs of which probes alone are collected: nothing of ours enters them but what they were built with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perflaw.collect.definitions import Definitions, Ended, Process, Started
from perflaw.collect.recorded import Reader, Recorded, empty_tree

_LANES = ("time", "cpu", "events")


@dataclass(frozen=True, slots=True)
class ProbesTracer:
    """Records no calls: the collector of probes is the whole recording."""

    reason: str = "the program has no hooks: probes alone"
    file: Path | None = None
    name: str = "probes"
    module: str = ""

    def environment(self, spool: Path) -> dict[str, str]:
        """The person's own."""
        return dict(os.environ)

    def reader(self, spool: Path, seed: int) -> Reader:
        """One that finds the program, and no call in it."""
        return _NoCalls()


@dataclass(slots=True)
class _NoCalls:
    idle_s: float = 0.002
    paths: bool = False

    def step(self) -> int:
        """Nothing."""
        return 0

    def finish(self, pid: int) -> Iterator[Recorded]:
        """The program alone."""
        yield Recorded(silent(pid, 0, ()), empty_tree(_LANES))


def silent(pid: int, parent: int, command: tuple[str, ...]) -> Definitions:
    """What is known of a process that told no tracer anything."""
    known = Definitions(process=Process(pid, parent, command))
    known.started, known.ended = Started(0, 0, 0, ""), Ended(0, 0, 0, "", 0, 0, ())
    return known


def nothing_recorded(pid: int, parent: int, command: tuple[str, ...], place: int) -> Recorded:
    """A process that no tracer recorded, child of the one at ``place``."""
    return Recorded(silent(pid, parent, command), empty_tree(_LANES), place)
