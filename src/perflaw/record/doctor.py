"""What this machine can measure: each finding says how, or why not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perflaw.errors import PerflawError, TargetError
from perflaw.record.build import BuildError, build, cache_folder, compiler, core
from perflaw.record.compiled.gcov_files import OLDEST, here
from perflaw.record.launch import understand
from perflaw.record.python.interpreter import Interpreter, probe
from perflaw.record.tracers import WAYS, foresee
from perflaw.record.tree.core import way
from perflaw.store.experiment import STORE

PERF_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that can or cannot be measured here."""

    what: str
    """The thing."""
    ok: bool
    """Whether it can."""
    detail: str
    """How, or why not."""


def examine() -> list[Finding]:
    """All findings; takes about a second where many Pythons are installed, for each of them is started."""
    tracers = [_tracer(interpreter) for interpreter in pythons()]
    return [*tracers, _compiler(), _python(), *_clocks(), _store(), _native(), _gcov(), _counters()]


def pythons() -> Iterator[Interpreter]:
    """Every different Python that perflaw can record: our own, the active environment's, those on PATH and pyenv's."""
    seen: set[Path] = set()
    for path in _candidates():
        real = path.resolve()  # the interpreter of a virtual environment is that which it was made from
        if real in seen or not os.access(real, os.X_OK):
            continue
        seen.add(real)
        with suppress(TargetError):  # a file of that name that is no Python which starts
            yield probe(str(path))


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    if active := os.environ.get("VIRTUAL_ENV"):
        yield Path(active, "bin", "python")
    names = ("python3", *(f"python{major}.{minor}" for major, minor in WAYS))
    for folder in os.get_exec_path():
        if Path(folder).name != "shims":  # pyenv's: scripts that choose one of the versions below
            yield from (Path(folder, name) for name in names)
    root = os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()
    yield from sorted(Path(root, "versions").glob("*/bin/python"))


def _tracer(interpreter: Interpreter) -> Finding:
    name, why = foresee(interpreter)
    what = f"calls of functions in Python {interpreter.version}"
    return Finding(what, True, f"tracer {name}: {why} ({interpreter.path})")


def _compiler() -> Finding:
    what, command = "building the native core", " ".join(compiler())
    if not command:
        return Finding(what, False, "no C compiler found (CC, cc, gcc, clang); apt-get install -y gcc libc6-dev")
    return Finding(what, True, f"{command}; kept in {cache_folder()}")


def _python() -> Finding:
    try:
        launch = understand(("-m", "this"))
    except PerflawError as error:
        return Finding("scripts named without python", False, str(error))
    return Finding("scripts named without python", True, f"run by {launch.argv[0]} (Python {launch.python})")


def _clocks() -> list[Finding]:
    """The native tracer's clocks where its core can be built, else Python's."""
    try:
        library = build(core())
    except BuildError:
        return [_clock(), Finding("CPU time", False, "the pure-Python tracer reads it where asked: --metric cpu")]
    return [Finding("wall time", True, way(library, "clock")), Finding("CPU time", True, way(library, "cpu"))]


def _clock() -> Finding:
    info = time.get_clock_info("perf_counter")
    start = time.perf_counter_ns()
    for _ in range(1000):
        time.perf_counter_ns()
    each = (time.perf_counter_ns() - start) / 1000
    return Finding(
        "wall time", True, f"{info.implementation}, tick {info.resolution * 1e9:.0f} ns, {each:.0f} ns a reading"
    )


def _store() -> Finding:
    place = Path(STORE) if Path(STORE).exists() else Path()
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        return Finding("keeping recordings here", False, f"{place.resolve()} cannot be written")
    return Finding("keeping recordings here", free > 1 << 27, f"{place.resolve()}, {free / 1e9:.1f} GB free")


def _native() -> Finding:
    detail = f"compiled programs are not recorded yet; this is {platform.system()} {platform.machine()}"
    return Finding("calls of C and C++ functions", False, detail)


def _gcov() -> Finding:
    what, found = "executions of C and C++ lines", here()
    if found is None:
        return Finding(what, False, f"no gcov of gcc {OLDEST} or newer found (GCOV, gcov); apt-get install -y gcc")
    detail = f"programs built by gcc {found.major} with --coverage, by record --collect lines ({found.path})"
    return Finding(what, True, detail)


def _counters() -> Finding:
    detail = "no hardware counters are read by this version"
    if sys.platform == "linux" and not PERF_PARANOID.exists():
        detail += "; this kernel offers none (no perf_event)"
    return Finding("cycles, instructions, cache misses", False, detail)
