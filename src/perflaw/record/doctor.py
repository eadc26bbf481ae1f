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
from importlib import metadata
from pathlib import Path
from typing import Final

from perflaw.errors import PerflawError, TargetError
from perflaw.record.attach.injection import refusal
from perflaw.record.build import BuildError, build, compiler, core
from perflaw.record.cache import cache_folder
from perflaw.record.compiled.gcov_files import OLDEST, installed_gcov
from perflaw.record.compiled.inject import frida
from perflaw.record.launch import understand
from perflaw.record.php.tracer import PACKAGES as PHP_PACKAGES
from perflaw.record.php.tracer import xdebug_version
from perflaw.record.python.interpreter import Interpreter, probe
from perflaw.record.tracers import MECHANISMS, foresee
from perflaw.record.tree.core import clock_words
from perflaw.store.experiment import STORE

PERF_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that can or cannot be measured here."""

    what: str
    """The thing."""
    ok: bool
    """Whether it can be measured."""
    detail: str
    """How, or why not."""


def examine() -> list[Finding]:
    """All findings. Takes about a second if many Pythons are installed, because each of them is started."""
    findings = []
    for interpreter in pythons():
        tracer, why = foresee(interpreter)
        detail = f"tracer {tracer}: {why} ({interpreter.path})"
        findings.append(Finding(f"calls of functions in Python {interpreter.version}", True, detail))

    if php := shutil.which("php"):
        version = xdebug_version(php)
        detail = f"function traces of Xdebug {version} ({php})" if version else f"Xdebug is missing: {PHP_PACKAGES}"
        findings.append(Finding("calls of functions in PHP", bool(version), detail))
    what, command = "building the native core", " ".join(compiler())
    detail = "no C compiler found (CC, cc, gcc, clang); apt-get install -y gcc libc6-dev"
    findings.append(Finding(what, bool(command), f"{command}; kept in {cache_folder()}" if command else detail))
    what = "scripts named without python"
    try:
        usual = understand(("-m", "this")).interpreter
        assert usual is not None
        findings.append(Finding(what, True, f"run by {usual.path} (Python {usual.version})"))
    except PerflawError as error:
        findings.append(Finding(what, False, str(error)))
    findings += _clocks()

    what, place = "keeping recordings here", Path(STORE) if Path(STORE).exists() else Path()
    free = shutil.disk_usage(place).free
    if os.access(place, os.W_OK):
        findings.append(Finding(what, free > 1 << 27, f"{place.resolve()}, {free / 1e9:.1f} GB free"))
    else:
        findings.append(Finding(what, False, f"{place.resolve()} cannot be written"))

    refused = refusal()
    detail = (
        f"{refused[0]}; {refused[1]}" if refused else "perflaw attach PID: those of one's own, with a Python from above"
    )
    findings.append(Finding("Python programs that run already", refused is None, detail))
    if not command:
        detail = "no C compiler found for the library that is loaded into them; apt-get install -y gcc libc6-dev"
    elif not refused:
        detail = "perflaw attach PID: those of one's own that are linked dynamically; from within their container"
    findings.append(Finding("compiled programs that run already", bool(command) and refused is None, detail))

    what = "calls of C and C++ functions"
    if sys.platform != "linux":
        findings.append(Finding(what, False, f"compiled programs are recorded on Linux; this is {platform.system()}"))
    elif not command:
        detail = "no C compiler found for the hooks' library; apt-get install -y gcc libc6-dev"
        findings.append(Finding(what, False, detail))
    else:
        findings.append(Finding(what, True, "programs built with -finstrument-functions (gcc, clang)"))

    what = "calls of C and C++ functions, told by Frida"
    detail = f"record --native=frida, Frida {metadata.version(frida.NAME)}" if frida.is_installed() else frida.INSTALL
    findings.append(Finding(what, frida.is_installed(), detail))

    what, gcov = "executions of C and C++ lines", installed_gcov()
    if gcov is None:
        detail = f"no gcov of gcc {OLDEST} or newer found (GCOV, gcov); apt-get install -y gcc"
    else:
        detail = f"programs built by gcc {gcov.major} with --coverage, by record --collect lines ({gcov.path})"
    findings.append(Finding(what, gcov is not None, detail))

    detail = "only probes read hardware counters (LLC_PROBE, PERFCNTR_PROBE)"
    if sys.platform == "linux" and not PERF_PARANOID.exists():
        detail += "; this kernel offers none (no perf_event)"
    findings.append(Finding("cycles, instructions, cache misses", False, detail))
    return findings


def pythons() -> Iterator[Interpreter]:
    """Every different Python that perflaw can record: perflaw's own, the active environment's, those on PATH, pyenv's."""
    seen: set[Path] = set()
    found = [Path(sys.executable)]
    if active := os.environ.get("VIRTUAL_ENV"):
        found.append(Path(active, "bin", "python"))
    names = ("python3", *(f"python{major}.{minor}" for major, minor in MECHANISMS))
    for folder in os.get_exec_path():
        if Path(folder).name != "shims":  # of pyenv: scripts that choose one of the versions below
            found += [Path(folder, name) for name in names]
    root = os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()
    for path in (*found, *sorted(Path(root, "versions").glob("*/bin/python"))):
        real = path.resolve()  # the interpreter of a virtual environment is a link to that of its base
        if real in seen or not os.access(real, os.X_OK):
            continue
        seen.add(real)
        with suppress(TargetError):  # a file of that name that is no Python or does not start
            yield probe(str(path))


def _clocks() -> list[Finding]:
    """The native tracer's clocks if its core can be built, else Python's."""
    try:
        library = build(core())
    except BuildError:
        info = time.get_clock_info("perf_counter")
        start = time.perf_counter_ns()
        for _ in range(1000):
            time.perf_counter_ns()
        each = (time.perf_counter_ns() - start) / 1000
        wall = f"{info.implementation}, tick {info.resolution * 1e9:.0f} ns, {each:.0f} ns a reading"
        cpu = "the pure-Python tracer reads it where asked: --metric cpu"
        return [Finding("wall time", True, wall), Finding("CPU time", False, cpu)]
    names = {"wall time": "clock", "CPU time": "cpu"}
    return [Finding(name, True, clock_words(library, clock)) for name, clock in names.items()]
