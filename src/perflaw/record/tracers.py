"""Chooses what records a command: a tracer of Python programs, hooks or counters of compiled ones, or probes alone.

A tracer puts something into the program, by its environment, that appends records; its reader, in the recorder's process,
makes call trees and counts of them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from perflaw.errors import TargetError, UsageError
from perflaw.record.build import BuildError, Tell, build, core, extension, obstacle, ready
from perflaw.record.compiled.elf import is_elf
from perflaw.record.compiled.gcov_files import BuildPlaces
from perflaw.record.launch import Launch, NotPython, understand
from perflaw.record.python.interpreter import Interpreter
from perflaw.record.reader import Reader, RecordingSource
from perflaw.record.settings import BRANCHES, LINES, PATHS, PROBES, RecordSettings, require_collectable

CHOICES: Final = ("auto", "native", "python", "nothing")
"""Values of ``--tracer``."""
MECHANISMS: Final = {(3, 11): "frame evaluation, PEP 523", (3, 12): "sys.monitoring", (3, 13): "sys.monitoring"}
"""Version of Python → how the native tracer hears of calls."""
PHP_NAME: Final = re.compile(r"php[\d.]*")
"""Names of PHP's interpreter."""
_MACHINES: Final = ("x86_64-linux", "aarch64-linux")


class Tracer(RecordingSource, Protocol):
    """One way to record a program."""

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """Environment of the program, in which recording begins; ``settings`` are the tracer's, the spool among them."""

    def reader(self, spool: Path, seed: int) -> Reader:
        """The reader of a recording that this tracer appends to ``spool``; ``seed`` decides which calls are sampled."""


class TracerChoice:
    """Chooses the tracer of each command of a session, once an interpreter: a failed build is slow and fails again."""

    def __init__(self, option: str, tell: Tell) -> None:
        """``option``: ``--tracer``. ``tell`` is called with messages about a library that is being built."""
        self.option, self.tell = option, tell
        self._chosen: dict[Interpreter, Tracer] = {}

    def for_command(self, command: tuple[str, ...], settings: RecordSettings) -> tuple[Launch, Tracer]:
        """The launch of a command and its tracer; TargetError if no tracer collects what the settings ask for."""
        try:
            launch = understand(command)
        except NotPython as error:
            return _for_compiled(error, command, settings)
        assert launch.interpreter is not None
        tracer = self._chosen.get(launch.interpreter)
        if tracer is None:
            tracer = self._chosen[launch.interpreter] = choose(self.option, launch.interpreter, self.tell)
        require_collectable(settings.collect, tracer.name, tracer.reason)
        return launch, tracer


def _for_compiled(error: NotPython, command: tuple[str, ...], settings: RecordSettings) -> tuple[Launch, Tracer]:
    """The launch and tracer of a program that is not written in Python; ``error`` says which program that is."""
    launch = Launch(command, command[1:], error.path.name)
    if PHP_NAME.fullmatch(error.path.name):
        from perflaw.record.php.tracer import php_launch

        return php_launch(command), _php_tracer(error.path, settings)
    if LINES in settings.collect or settings.native == "gcov":
        if PATHS in settings.collect:
            why = "a program that counts its lines reports no calls; record paths with hooks, in another recording"
            remedy = f"perflaw record --collect {PATHS} -- …"
            raise TargetError(f"--collect {LINES},{PATHS}: not both at once", why, remedy)
        return launch, _coverage_tracer(error.path, settings.places, settings.select, settings.exclude)
    only_probes = PROBES in settings.collect
    if not is_elf(error.path):
        if only_probes:
            return launch, _probes_tracer("not a program of Python or C: probes alone")
        raise error
    if BRANCHES in settings.collect:
        _require_branches(error.path)
    try:
        # Who asks for probes gets nothing injected beside them, unless it is asked for too.
        native = "hooks" if only_probes and settings.native == "auto" else settings.native
        return launch, _hooks_tracer(error.path, settings.select, settings.exclude, settings.per, native)
    except TargetError as refused:
        if only_probes and not settings.select:
            return launch, _probes_tracer(f"{refused.why}: probes alone")
        raise


# A program is inspected once a session. Python programs need none of these modules, so they are imported here.


@cache
def _coverage_tracer(path: Path, places: BuildPlaces, select: tuple[str, ...], exclude: tuple[str, ...]) -> Tracer:
    from perflaw.record.compiled.gcov_files import mapped_objects

    if objects := mapped_objects(path):
        from perflaw.record.compiled.llvm_cov import llvm_tracer

        return llvm_tracer(objects, places, select, exclude)
    from perflaw.record.compiled.gcov import gcov_tracer

    return gcov_tracer(path, places, select, exclude)


@cache
def _require_branches(path: Path) -> None:
    from perflaw.record.compiled.branches import require_branches

    require_branches(path)


def _php_tracer(path: Path, settings: RecordSettings) -> Tracer:
    from perflaw.record.compiled.selection import Globs
    from perflaw.record.php.tracer import php_tracer

    if settings.collect:
        why = "of a PHP program, Xdebug's function trace tells calls, their arguments, time and memory"
        raise TargetError(f"--collect {','.join(settings.collect)}: cannot be collected", why, "leave --collect out")
    return php_tracer(path, Globs(settings.select, settings.exclude))


@cache
def _hooks_tracer(path: Path, select: tuple[str, ...], exclude: tuple[str, ...], per: str, native: str) -> Tracer:
    from perflaw.record.compiled.hooks import hooks_tracer
    from perflaw.record.compiled.selection import Globs

    return hooks_tracer(path, Globs(select, exclude, per), native)


def _probes_tracer(reason: str) -> Tracer:
    from perflaw.record.probes.session import ProbesTracer

    return ProbesTracer(reason)


def choose(option: str, interpreter: Interpreter, tell: Tell = lambda text: None) -> Tracer:
    """The tracer for an interpreter and the option ``--tracer``: ``auto``, ``native``, ``python`` or ``nothing``.

    The native core is built now if it was not built yet. If it cannot be built, ``auto`` chooses the pure-Python tracer,
    and ``native`` raises TargetError.
    """
    from perflaw.record.python.tracers import NativeTracer, NothingTracer, PythonTracer  # for programs in Python alone

    if option == "python":
        return PythonTracer("asked for by --tracer")
    if option == "nothing":
        return NothingTracer("asked for by --tracer")
    if option not in CHOICES:
        known = f"there are {', '.join(CHOICES[:-1])} and {CHOICES[-1]}"
        raise UsageError(f"--tracer {option}", known, "perflaw doctor")
    why_not, remedy = unfit(interpreter), "perflaw doctor"
    if not why_not:
        try:
            return NativeTracer(_mechanism(interpreter), build(extension(interpreter), tell), build(core(), tell))
        except BuildError as error:
            why_not, remedy = f"{error.what}: {error.why}", error.next_command
    if option == "native":
        raise TargetError("--tracer native", why_not, remedy)
    return PythonTracer(f"{why_not}; try: {remedy}")


def _mechanism(interpreter: Interpreter) -> str:
    return f"{MECHANISMS[interpreter.numbers]} (Python {interpreter.short})"


def unfit(interpreter: Interpreter) -> str:
    """Why the native core cannot record this Python even if it could be built, in words; empty if it can."""
    if interpreter.numbers not in MECHANISMS:
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
            return "native", f"{_mechanism(interpreter)}, built"
        trouble = next(filter(None, map(obstacle, products)), None)
    except BuildError as error:
        trouble = error
    if trouble:
        return "python", f"{trouble.what}: {trouble.why}; try: {trouble.next_command}"
    return "native", f"{_mechanism(interpreter)}, will be built at the first recording"
