"""Chooses the tracer and says why. A tracer is a module that enters the target, and a reader of what it appends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perflaw.collect.definitions import DefinitionsReader
from perflaw.collect.drain import Drain
from perflaw.collect.tree_builder import TreeBuilder
from perflaw.errors import UsageError


class Reader(Protocol):
    """The recorder's side of a recording, in a process of its own: takes in while the target runs, and after."""

    definitions: DefinitionsReader

    def step(self) -> int:
        """Take in what has arrived since; returns how many records that was (0: nothing new, wait a little)."""

    def finish(self) -> TreeBuilder:
        """Take in the rest, the target being gone, and give the finished call tree."""


class Tracer(Protocol):
    """One way to record a Python program. The native cores will stand beside the pure-Python one behind this."""

    @property
    def name(self) -> str:
        """What a person calls it."""

    @property
    def module(self) -> str:
        """The one module of ours that enters the target; found in ``collect/target``, its ``start(settings)`` called."""

    @property
    def reason(self) -> str:
        """Why this one was chosen, in words."""

    def reader(self, spool: Path, seed: int) -> Reader:
        """The reading side of a recording that this tracer appends to ``spool``."""


@dataclass(frozen=True, slots=True)
class PythonTracer:
    """``sys.setprofile`` in the target, plain records in mapped files, the tree built by the recorder."""

    reason: str
    name: str = "python"
    module: str = "_perflaw_tracer"

    def reader(self, spool: Path, seed: int) -> Reader:
        """A drain of the segments."""
        return Drain(spool, seed)


@dataclass(frozen=True, slots=True)
class NothingTracer:
    """Enters the target and records nothing: the floor that overheads are measured from."""

    reason: str
    name: str = "nothing"
    module: str = "_perflaw_nothing"

    def reader(self, spool: Path, seed: int) -> Reader:
        """A drain that finds no segment."""
        return Drain(spool, seed)


def choose(wish: str = "auto") -> Tracer:
    """The tracer for a wish: ``auto``, ``python`` or ``nothing``."""
    if wish == "auto":
        return PythonTracer("the only recording core of this version; it runs wherever CPython 3.11 or newer does")
    if wish == "python":
        return PythonTracer("asked for by --tracer")
    if wish == "nothing":
        return NothingTracer("asked for by --tracer")
    raise UsageError(f"--tracer {wish}", "there are auto, python and nothing", "perflaw doctor")
