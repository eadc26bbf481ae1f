"""The step of the interpreter's clock, measured: the readable twin of ``clock_tick`` in native/clock.c."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

READINGS: Final = 2000
ROUNDING: Final = 2
"""ns by which a difference of two readings may miss a multiple of the step."""
COARSE: Final = 8
"""A step below it is none: multiples of it, give or take the rounding, are nearly all numbers."""
FEW_STEPS: Final = 3
CERTAIN: Final = 0.95
"""Share of the differences that have to be multiples."""


def clock_step(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """What readings of a clock of whole ns differ by multiples of, at least 1.

    Some processors count in steps of ten ns. Readings are taken with pauses of many lengths between them; the tenth of
    longest differences are interruptions.
    """
    passed = np.sort([_passed(clock, turn % 61) for turn in range(READINGS)])[: READINGS * 9 // 10].astype(np.float64)
    passed = np.sort(abs(passed - passed[len(passed) // 2]))  # multiples all the same, and small ones
    gaps = np.diff(passed)
    guess = gaps[gaps > ROUNDING].min(initial=np.inf)
    if not np.isfinite(guess):
        return 1.0
    few = passed[passed <= FEW_STEPS * guess]
    # A guess is off by the rounding, which few steps bear; what they say is good enough for many.
    steps = (_step_near(passed, _step_near(few, guess + off)) for off in range(-ROUNDING, ROUNDING + 1))
    return next((step for step in steps if step >= COARSE), 1.0)


def _passed(clock: Callable[[], int], pause: int) -> int:
    before = clock()
    for _ in range(pause):
        pass
    return clock() - before


def _step_near(passed: NDArray[np.float64], guess: float) -> float:
    """The step near a guess of it; 0 where the differences are no multiples."""
    if not guess:
        return 0.0
    times = np.round(passed / guess)
    right = np.mean(abs(passed - times * guess) <= ROUNDING)
    return float(times @ passed / (times @ times)) if right > CERTAIN and times.any() else 0.0
