"""Where durations were measured: which build of the program, and by which clock. Absolute times compare within one of each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path

from perflaw.collect.clock_step import clock_step
from perflaw.collect.core import NativeTracer, PythonTracer, Tracer
from perflaw.collect.core_library import tick
from perflaw.collect.core_tables import Export
from perflaw.collect.definitions import Definitions
from perflaw.collect.elf import open_elf
from perflaw.collect.hooks import HooksTracer
from perflaw.collect.paths import dropped
from perflaw.collect.recorded import Recorded
from perflaw.store.path_tables import PathsAbout
from perflaw.types import Run

UNCERTAIN = 5
"""Recording a call is taken out of its callers' time by its mean, which single ones are off by a fifth of and more."""


def about_paths(recorded: Recorded, run: Run, tracer: Tracer) -> PathsAbout | None:
    """What holds for all durations by call path of a process; None where there are none."""
    if not len(recorded.tree.tables[Export.PATH_CODES]):
        return None
    fake = run.clock.name == "fake"
    step = float(run.clock.tick_ns) if fake else _tick(tracer, run)
    probe = 0.0 if fake else run.clock.event_ns / UNCERTAIN
    return PathsAbout(build_of(recorded.definitions), step, probe, dropped(recorded.tree))


def _tick(tracer: Tracer, run: Run) -> float:
    if isinstance(tracer, NativeTracer | HooksTracer):
        return _measured(tracer.library)
    return _interpreters() if isinstance(tracer, PythonTracer) else float(run.clock.tick_ns)


@cache
def _interpreters() -> float:
    return clock_step()


@cache
def _measured(library: Path) -> float:
    return tick(library)


def build_of(known: Definitions) -> str:
    """Build id of a compiled program, a digest of the modules of a Python program; "" where neither is known.

    A program's modules are its own files whose top level was executed; where that is not recorded, all of its own.
    """
    if known.addresses:
        return _one(_identity(Path(module)) for module in sorted({module for module, _, _ in known.addresses.values()}))
    own = [one for one in known.components.values() if one.origin == "own" and one.file]
    modules = {one.file for one in own if one.name.endswith("<module>")} or {one.file for one in own}
    return _one(map(_digest, sorted(modules)))


def _one(identities: Iterable[str]) -> str:
    """A single one as it is; several as one of them all."""
    found = [identity for identity in identities if identity]
    return (
        found[0] if len(found) == 1 else blake2b("\n".join(found).encode(), digest_size=20).hexdigest() if found else ""
    )


def _identity(module: Path) -> str:
    elf = open_elf(module)
    if elf is None:
        return ""
    with elf:
        return elf.identity


def _digest(file: str) -> str:
    try:
        return blake2b(Path(file).read_bytes(), digest_size=20).hexdigest()
    except OSError:
        return ""  # made by the program, or removed since
