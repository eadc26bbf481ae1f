"""What this machine can measure: each finding says how, or why not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from perflaw.collect.core import choose
from perflaw.collect.launch import understand
from perflaw.errors import PerflawError
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
    """All findings; takes well under a second."""
    return [_tracer(), _python(), _clock(), _store(), _native(), _counters()]


def _tracer() -> Finding:
    tracer = choose()
    return Finding("calls of Python functions", True, f"tracer {tracer.name}: {tracer.reason}")


def _python() -> Finding:
    try:
        launch = understand(("-m", "this"))
    except PerflawError as error:
        return Finding("scripts named without python", False, str(error))
    return Finding("scripts named without python", True, f"run by {launch.argv[0]} (Python {launch.python})")


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


def _counters() -> Finding:
    detail = "no hardware counters are read by this version"
    if sys.platform == "linux" and not PERF_PARANOID.exists():
        detail += "; this kernel offers none (no perf_event)"
    return Finding("cycles, instructions, cache misses", False, detail)
