"""Suspicion of a missing feature: runs with equal features differ far more than repeats within a run suggest.

Rows with equal features are compared by one-way analysis of variance: between runs against within runs (Fisher 1925,
§38). What no given feature explains and repeats do not show must differ between the runs: a setting, a machine, data
that nobody declared. Where the spread follows a given feature that one may explain it, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from perflaw.learn.laws.ranks import ranks, student_tail
from perflaw.learn.laws.series import Array, Series
from perflaw.types import Law

FEWEST_ROWS = 6
"""Fewer cannot show it."""

CERTAIN = 1e-4
"""p of the analysis of variance."""

FAR = 3.0
"""How many times the spread of repeats the spread between runs is."""

RELEVANT = 0.1
"""Least relative spread between runs that is told."""

FOLLOWS = 0.01
"""p from which the size of residuals follows a given feature."""


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Spread between runs of equal features."""

    between: float
    """Its standard deviation, relative to the response."""
    repeats: float
    """That of repeats within a run, relative to the response."""

    @property
    def reason(self) -> str:
        """In words, with what to do."""
        return (
            f"a feature seems to be missing: runs with equal features differ by {100 * self.between:.0f} %, repeats by "
            f"{100 * self.repeats:.0f} %: declare what differs with --feature NAME=VALUE"
        )


def suspected(law: Law, series: Series, residuals: Callable[[], Array]) -> Law:
    """The law, its reason saying where a feature seems to be missing; ``residuals`` gives those of the series, (n,)."""
    if series.runs is None or series.y.size < FEWEST_ROWS:
        return law
    found = unexplained(series, residuals)
    return law if found is None else replace(law, reason="; ".join(part for part in (law.reason, found.reason) if part))


def unexplained(series: Series, residuals: Callable[[], Array]) -> Unexplained | None:
    """What runs differ by beyond repeats, where that is far.

    >>> run = np.repeat(np.arange(6), 4)
    >>> noise = np.tile([1.0, 1.01, 0.99, 1.0], 6)
    >>> hidden = Series("f", noise * np.repeat([10.0, 31, 12, 29, 11, 30], 4), {"n": np.full(24, 5.0)}, run)
    >>> unexplained(hidden, lambda: hidden.y - hidden.y.mean()).reason[:70]
    'a feature seems to be missing: runs with equal features differ by 74 %'
    """
    if series.runs is None or not (series.y > 0).all():
        return None
    run = np.unique(series.runs, return_inverse=True)[1].reshape(-1)
    n, runs = series.y.size, int(run.max()) + 1
    if not 2 < runs < n:
        return None
    group = _alike(list(series.features.values()), n)
    cell = np.unique(group * runs + run, return_inverse=True)[1].reshape(-1)
    found = _compared(np.log(series.y), group, cell)
    return None if found is None or _follows(series, residuals()) else found


def _alike(columns: Sequence[Array], n: int) -> NDArray[np.intp]:
    """Number of the group of equal features of every row, (n,)."""
    group = np.zeros(n, dtype=np.intp)
    for column in columns:
        code = np.unique(column, return_inverse=True)[1].reshape(-1)
        group = np.unique(group * (int(code.max()) + 1) + code, return_inverse=True)[1].reshape(-1)
        if int(group.max()) == n - 1:
            break
    return group


def _compared(log_y: Array, group: NDArray[np.intp], cell: NDArray[np.intp]) -> Unexplained | None:
    """Analysis of variance of cells (group and run) within groups of equal features."""
    size = np.bincount(cell)
    first = np.unique(cell, return_index=True)[1]
    middle = np.bincount(cell, log_y) / size
    of = np.unique(group[first], return_inverse=True)[1].reshape(-1)
    whole = np.bincount(of, middle * size) / np.bincount(of, size)
    inner, outer = int(log_y.size - size.size), int(size.size - whole.size)
    if inner < 3 or outer < 2:
        return None
    inside = float(((log_y - middle[cell]) ** 2).sum()) / inner
    across = float((size * (middle - whole[of]) ** 2).sum()) / outer
    rows = float(log_y.size / size.size)
    between, repeats = np.sqrt(max(across - inside, 0.0) / rows), np.sqrt(inside)
    p = float(fdtrc(outer, inner, across / inside)) if inside > 0 else 0.0
    if p > CERTAIN or between < max(FAR * repeats, RELEVANT):
        return None
    return Unexplained(float(np.expm1(between)), float(np.expm1(repeats)))


def _follows(series: Series, residual: Array) -> bool:
    """The size of the residuals follows a given feature (Spearman's test)."""
    varying = [x for x in series.features.values() if np.ptp(x) > 0]
    if not varying or residual.size < 8:
        return False
    size = ranks(np.abs(residual))
    size = size - size.mean()
    columns = ranks(np.array(varying))
    columns = columns - columns.mean(axis=-1, keepdims=True)
    scale = np.sqrt((size @ size) * np.maximum((columns**2).sum(axis=-1), 1e-300))
    rho = np.abs(columns @ size) / np.maximum(scale, 1e-300)
    runs = np.unique(series.runs).size if series.runs is not None else residual.size
    degrees = max(min(residual.size, runs) - 2, 1)
    t = rho * np.sqrt(degrees / np.maximum(1.0 - rho**2, 1e-12))
    return bool((2.0 * student_tail(t, degrees)).min() * len(varying) < FOLLOWS)
