"""What a reader of a format gives."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.collect.imports.events import ProcessEvents


@dataclass(frozen=True, slots=True)
class Trace:
    """All calls of a file."""

    tool: str
    """What wrote it, in words: ``viztracer``."""
    processes: tuple[ProcessEvents, ...]
    """Its processes that have calls, by their first stamp."""
    tick_ns: int
    """Step of its clock, as its stamps show it."""
    lost: str = ""
    """Why it does not reach to its end; empty where it does."""
    epoch: bool = False
    """Whether stamps count from 1970."""

    def first(self) -> int:
        """Its first stamp, ns."""
        return min(process.ordered()[0][0][0] for process in self.processes)
