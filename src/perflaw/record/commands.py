"""What a command runs and what records it: a Python program and its tracer, or a compiled one that counts by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from perflaw.errors import TargetError
from perflaw.record.compiled.elf import instrumented, is_elf
from perflaw.record.compiled.gcov import NO_INTERPRETER, GcovTracer, launch_of
from perflaw.record.compiled.gcov_files import Places
from perflaw.record.compiled.hooks import HooksTracer, hooked
from perflaw.record.compiled.selection import Globs
from perflaw.record.launch import Launch, NotPython, understand
from perflaw.record.metrics import LINES, PROBES, require, require_no_paths
from perflaw.record.probes.session import ProbesTracer
from perflaw.record.python.interpreter import Interpreter
from perflaw.record.run import Settings
from perflaw.record.tracers import Tracer


def understood(
    command: tuple[str, ...], settings: Settings, tracer_of: Callable[[Interpreter], Tracer]
) -> tuple[Launch, Tracer]:
    """The launch of a command and its tracer; TargetError where there is none that collects what is asked for."""
    try:
        launch = understand(command)
    except NotPython as error:
        if LINES not in settings.collect:
            return Launch(command, command[1:], error.path.name, "", "", NO_INTERPRETER), _of_calls(error, settings)
        require_no_paths(settings.collect)
        tracer = _counting(error.path, settings.places, settings.select, settings.exclude)
        return launch_of(tracer.program, command), tracer
    found = tracer_of(launch.interpreter)
    require(settings.collect, found.name, found.reason)
    return launch, found


def _of_calls(error: NotPython, settings: Settings) -> Tracer:
    """What records a program that is not Python's: by its hooks, or, where probes are collected, these alone."""
    if is_elf(error.path):
        try:
            return _hooked(error.path, Globs(settings.select, settings.exclude))
        except TargetError as refused:
            if PROBES in settings.collect and not settings.select:
                return ProbesTracer(f"{refused.why}: probes alone")
            raise
    if PROBES in settings.collect:
        return ProbesTracer("not a program of Python or C: probes alone")
    raise error


@cache
def _counting(path: Path, places: Places, select: tuple[str, ...], exclude: tuple[str, ...]) -> GcovTracer:
    """What reads the counts of a program, which is looked through once a session."""
    tracer = GcovTracer(instrumented(path), places, select, exclude)
    tracer.check()
    return tracer


@cache
def _hooked(path: Path, globs: Globs) -> HooksTracer:
    """What records a compiled program with hooks, which is looked at once a session."""
    return hooked(path, globs)
