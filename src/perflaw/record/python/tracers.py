"""The tracers of Python programs: the native one, its readable pure-Python twin, and one that records nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.launch import Launch
from perflaw.record.python.native_reader import NativeReader
from perflaw.record.reader import Reader
from perflaw.record.tree.core import clock_tick

TARGET_FOLDER: Final = Path(__file__).parent / "target"
"""Modules that enter the program; ``sitecustomize`` among them starts the tracer before the program's first line."""


@dataclass(frozen=True, slots=True)
class NativeTracer:
    """An extension of the program's interpreter writes records to rings; a C library of the recorder builds the trees."""

    reason: str
    file: Path
    """The extension, built for exactly the program's interpreter."""
    library: Path
    """The recorder's library."""
    name: str = "native"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """See :class:`~perflaw.record.tracers.Tracer`."""
        return _environment(launch, "_perflaw_native", {**settings, "TRACER_FILE": str(self.file)})

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the rings of all processes."""
        return NativeReader(spool, seed, self.library)

    def tick_ns(self) -> float:
        """The step of the clock that the extension reads."""
        return clock_tick(self.library)


@dataclass(frozen=True, slots=True)
class PythonTracer:
    """``sys.setprofile`` in the program, records in mapped files; the recorder builds the tree in Python."""

    reason: str
    name: str = "python"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """See :class:`~perflaw.record.tracers.Tracer`."""
        return _environment(launch, "_perflaw_tracer", settings)

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the segments."""
        return _segment_reader(spool, seed)

    def tick_ns(self) -> float:
        """The step of the interpreter's clock."""
        return _interpreter_tick()


@dataclass(frozen=True, slots=True)
class NothingTracer:
    """Enters the program and records nothing: overheads are measured against it."""

    reason: str
    name: str = "nothing"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """See :class:`~perflaw.record.tracers.Tracer`."""
        return _environment(launch, "_perflaw_nothing", settings)

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader that finds no segment."""
        return _segment_reader(spool, seed)

    def tick_ns(self) -> None:
        """Nothing is timed."""


def _segment_reader(spool: Path, seed: int) -> Reader:
    from perflaw.record.python.segment_reader import SegmentReader  # the native tracer does without

    return SegmentReader(spool, seed)


def _environment(launch: Launch, module: str, settings: dict[str, str]) -> dict[str, str]:
    """The environment in which ``module`` begins before the program's first line; settings become ``PERFLAW_TARGET_*``."""
    env = dict(os.environ)
    original = env.get("PYTHONPATH")
    if original is not None:
        env["PERFLAW_TARGET_PYTHONPATH"] = original
    env["PYTHONPATH"] = str(TARGET_FOLDER) + (os.pathsep + original if original else "")
    own = ",".join(filter(None, (launch.own, settings.get("OWN"))))
    settings = {"TRACER": module, "MAIN": launch.main, **settings, "OWN": own}
    env.update({f"PERFLAW_TARGET_{name}": value for name, value in settings.items()})
    return env


@cache
def _interpreter_tick() -> float:
    return clock_step()


READINGS: Final = 2000
ROUNDING: Final = 2
"""A difference of two readings may miss a multiple of the step by this many ns."""
COARSE: Final = 8
"""A smaller step is none: nearly every number is a multiple of it, up to the rounding."""
FEW_STEPS: Final = 3
CERTAIN: Final = 0.95
"""Share of the differences that have to be multiples of the step."""


def clock_step(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Step of a clock that gives whole ns: readings differ by multiples of it. At least 1.

    Some processors count in steps of ten ns. Readings are taken with pauses of many lengths between them; the longest
    tenth of the differences are interruptions. The readable twin of ``clock_step_ns`` in native/core/base/clock.c.
    """
    differences = []
    for turn in range(READINGS):
        before = clock()
        for _ in range(turn % 61):
            pass
        differences.append(clock() - before)
    passed = np.sort(differences)[: READINGS * 9 // 10].astype(np.float64)
    passed = np.sort(abs(passed - passed[len(passed) // 2]))  # still multiples, but small ones
    gaps = np.diff(passed)
    guess = gaps[gaps > ROUNDING].min(initial=np.inf)
    if not np.isfinite(guess):
        return 1.0
    few = passed[passed <= FEW_STEPS * guess]
    # The guess is wrong by at most the rounding, which matters little over few steps; these give a guess for many.
    steps = (_step_near(passed, _step_near(few, guess + off)) for off in range(-ROUNDING, ROUNDING + 1))
    return next((step for step in steps if step >= COARSE), 1.0)


def _step_near(passed: NDArray[np.float64], guess: float) -> float:
    """The step near a guess; 0 if the differences are not multiples of it."""
    if not guess:
        return 0.0
    times = np.round(passed / guess)
    right = np.mean(abs(passed - times * guess) <= ROUNDING)
    return float(times @ passed / (times @ times)) if right > CERTAIN and times.any() else 0.0
