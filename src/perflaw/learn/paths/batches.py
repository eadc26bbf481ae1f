"""How many independent calls autocorrelated calls are worth, from sums over batches of consecutive calls.

The variance of the sums of batches of m calls grows as m·σ²·τ_m, and τ_m rises to the autocorrelation time
τ = 1 + 2·Σρ (the method of batch means; Flyvbjerg & Petersen, J. Chem. Phys. 91, 1989).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from perflaw.types import Batches
from perflaw.types.specifications import LEVELS, UNIT

FEWEST = 31
"""Batches beyond the first, below which their variance says too little: its own error is a quarter of it here."""


def batches_of(values: ArrayLike) -> Batches:
    """Sums over batches of 1, 2, 4, … durations (n,), in order.

    >>> batches_of([1, 2, 4, 0])
    Batches(batches=(4, 2, 1), sum_b=(3072, 3072, 3072), sum_bb=(5242880, 5242880, 9437184))
    """
    y = np.asarray(values, dtype=np.float64).ravel()
    above = y > 0
    sums = np.zeros(y.size, np.int64)
    sums[above] = np.floor(UNIT * np.log2(y[above])).astype(np.int64)
    count: list[int] = []
    first: list[int] = []
    second: list[int] = []
    while sums.size and len(count) < LEVELS:
        count.append(int(sums.size))
        first.append(int(sums.sum()))
        second.append(sum(part * part for part in sums.tolist()))
        sums = sums[: sums.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    return Batches(tuple(count), tuple(first), tuple(second))


def merged_batches(batches: Sequence[Batches]) -> Batches:
    """Batches of several stretches of time, added up.

    >>> merged_batches([batches_of([1, 2]), batches_of([4])])
    Batches(batches=(3, 1), sum_b=(3072, 1024), sum_bb=(5242880, 1048576))
    """
    levels = max((len(one.batches) for one in batches), default=0)

    def added(name: str) -> tuple[int, ...]:
        columns = [getattr(one, name) for one in batches]
        return tuple(sum(column[level] for column in columns if level < len(column)) for level in range(levels))

    return Batches(added("batches"), added("sum_b"), added("sum_bb"))


def time_within(stretches: Sequence[Batches]) -> float:
    """Autocorrelation time τ ≥ 1 within stretches of time: calls of one stretch that one independent call is worth.

    Variances are taken about each stretch's own mean, so what changes from one stretch to the next does not count. Of all
    sizes of batches of which there are ``FEWEST`` the one with the largest τ counts: smaller ones see part of the correlation.

    >>> rng = np.random.default_rng(0)
    >>> round(time_within([batches_of(level * rng.lognormal(5, 1, 1024)) for level in (1, 100)]), 1)
    1.1
    """
    time, first = 1.0, math.nan
    for level in range(max((len(one.batches) for one in stretches), default=0)):
        count, variance = _within([one for one in stretches if level < len(one.batches)], level)
        if level == 0:
            first = variance
        if count < FEWEST or not first > 0:
            break
        time = max(time, variance / first / 2.0**level)
    return time


def independent(batches: Batches, n: float) -> float:
    """How many independent calls n calls are worth, at most n.

    >>> rng = np.random.default_rng(0)
    >>> 2000 < independent(batches_of(rng.lognormal(5, 1, 4096)), 4096) <= 4096
    True
    """
    return n / time_within([batches])


def _within(stretches: Sequence[Batches], level: int) -> tuple[int, float]:
    """How many batches there are beyond the first of each stretch, and the variance of their sums within stretches."""
    count = sum(max(one.batches[level] - 1, 0) for one in stretches)
    squares = sum(_squares(one.batches[level], one.sum_b[level], one.sum_bb[level]) for one in stretches)
    return count, squares / max(count, 1)


def _squares(count: int, first: int, second: int) -> float:
    """Sum of squares about the mean; exact before it is divided. Damaged sums make no negative one."""
    return max(count * second - first * first, 0) / count if count > 1 else 0.0
