"""Chooses the tracer and says why. A tracer is a module that enters the target, and a reader of what it appends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perflaw.errors import TargetError, UsageError
from perflaw.record.build import BuildError, Tell, build, core, extension, obstacle, ready
from perflaw.record.python.drain import Drain
from perflaw.record.python.interpreter import Interpreter
from perflaw.record.python.native import NativeReader
from perflaw.record.recorded import Reader

WISHES = ("auto", "native", "python", "nothing")
_ASKED = "asked for by --tracer"
WAYS = {(3, 11): "frame evaluation, PEP 523", (3, 12): "sys.monitoring", (3, 13): "sys.monitoring"}
"""What the native core uses, by version of Python."""
_MACHINES = ("x86_64-linux", "aarch64-linux")


class Tracer(Protocol):
    """One way to record a Python program."""

    @property
    def name(self) -> str:
        """What a person calls it."""

    @property
    def module(self) -> str:
        """The one module of ours that enters the target; its ``start(settings)`` is called."""

    @property
    def file(self) -> Path | None:
        """Where that module is; None: in ``collect/target``."""

    @property
    def reason(self) -> str:
        """Why this one was chosen, or how it works, in words."""

    def reader(self, spool: Path, seed: int) -> Reader:
        """The reading side of a recording that this tracer appends to ``spool``."""


@dataclass(frozen=True, slots=True)
class NativeTracer:
    """An extension of the target's interpreter writes records to rings; a C library of the recorder builds the trees."""

    reason: str
    file: Path
    library: Path
    """The recorder's side."""
    name: str = "native"
    module: str = "_perflaw_native"

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the rings of all processes."""
        return NativeReader(spool, seed, self.library)


@dataclass(frozen=True, slots=True)
class PythonTracer:
    """``sys.setprofile`` in the target, plain records in mapped files, the tree built by the recorder in Python."""

    reason: str
    file: Path | None = None
    name: str = "python"
    module: str = "_perflaw_tracer"

    def reader(self, spool: Path, seed: int) -> Reader:
        """A drain of the segments."""
        return Drain(spool, seed)


@dataclass(frozen=True, slots=True)
class NothingTracer:
    """Enters the target and records nothing: the floor that overheads are measured from."""

    reason: str
    file: Path | None = None
    name: str = "nothing"
    module: str = "_perflaw_nothing"

    def reader(self, spool: Path, seed: int) -> Reader:
        """A drain that finds no segment."""
        return Drain(spool, seed)


def choose(wish: str, interpreter: Interpreter, tell: Tell = lambda text: None) -> Tracer:
    """The tracer for an interpreter and a wish: ``auto``, ``native``, ``python`` or ``nothing``.

    The native core is built now if it was not yet, and ``tell`` hears of it. TargetError where the native one is asked
    for and cannot be had; ``auto`` takes the pure-Python one then.
    """
    if wish == "python":
        return PythonTracer(_ASKED)
    if wish == "nothing":
        return NothingTracer(_ASKED)
    if wish not in WISHES:
        raise UsageError(f"--tracer {wish}", f"there are {', '.join(WISHES[:-1])} and {WISHES[-1]}", "perflaw doctor")
    why_not, remedy = unfit(interpreter), "perflaw doctor"
    if not why_not:
        try:
            return NativeTracer(way(interpreter), build(extension(interpreter), tell), build(core(), tell))
        except BuildError as error:
            why_not, remedy = f"{error.what}: {error.why}", error.next_command
    if wish == "native":
        raise TargetError("--tracer native", why_not, remedy)
    return PythonTracer(f"{why_not}; try: {remedy}")


def way(interpreter: Interpreter) -> str:
    """How the native core records this Python, in words."""
    return f"{WAYS[interpreter.numbers]} (Python {interpreter.short})"


def unfit(interpreter: Interpreter) -> str:
    """Why the native core does not record this Python, in words; empty if it does, where it can be built."""
    if interpreter.numbers not in WAYS:
        return f"Python {interpreter.short} is newer than the native core knows"
    if interpreter.free_threaded:
        return f"Python {interpreter.version} is built without the global interpreter lock"
    if not any(machine in interpreter.suffix for machine in _MACHINES):
        return f"the native core is for Linux on x86-64 and aarch64, this Python is for {interpreter.suffix.strip('.')}"
    return ""


def foresee(interpreter: Interpreter) -> tuple[str, str]:
    """Name of the tracer that ``auto`` would choose, and why, as far as can be told without building anything."""
    if why_not := unfit(interpreter):
        return "python", why_not
    try:
        products = extension(interpreter), core()
        if all(map(ready, products)):
            return "native", f"{way(interpreter)}, built"
        trouble = next(filter(None, map(obstacle, products)), None)
    except BuildError as error:
        trouble = error
    if trouble:
        return "python", f"{trouble.what}: {trouble.why}; try: {trouble.next_command}"
    return "native", f"{way(interpreter)}, will be built at the first recording"
