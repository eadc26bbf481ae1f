"""What features cannot tell: those that say the same in these data, and one that seems to be missing.

Collinear features (|r| ≥ 0.9 of logarithms, ranks or values) form a class. The feature of least prior cost represents
it, of several the one of the shallowest name (fewest dots), then of the shortest (Freud §3.2). If the responses
themselves clearly single out another member, that one represents the class: a name is no reason to predict worse.

A feature seems to be missing if runs with equal features differ far more than repeats within a run suggest. What no
given feature explains and repeats do not show must differ between the runs: a setting, a machine, data that nobody
declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.independence import logs_if_positive, ranks, standardised, student_tail, t_of_correlation
from perflaw.learn.series.law import ranges
from perflaw.learn.series.series import Array, Series
from perflaw.special import fdtrc, stdtrit
from perflaw.types import Law

COLLINEAR = 0.9
"""Correlation from which two features say the same."""
CHANCE = 0.01
"""Two-sided p that a correlation must reach, shared by all pairs: three points are nearly always correlated."""
RANKS_TOO = 0.7
"""Rank correlation that values must have as well: one common extreme point is no relation."""
CLEARLY, LOSS = 10.0, 0.05
"""Twice the log likelihood ratio, and share of the variance, from which responses single out a member."""
FEWEST_ROWS = 6
"""Fewest rows that can show a missing feature."""
CERTAIN = 1e-4
"""Largest p of the analysis of variance for a missing feature."""
FAR = 3.0
"""Least spread between runs, relative to that of repeats."""
RELEVANT = 0.1
"""Least spread between runs, relative to the response."""
FOLLOWS = 0.01
"""Largest p for which the size of the residuals follows a given feature."""


@dataclass(frozen=True, slots=True)
class ReducedSeries:
    """A series reduced to one feature of each collinear class."""

    series: Series
    """The series with the representatives alone, in their original order."""
    others: Mapping[str, tuple[str, ...]]
    """Other members of a class by its representative; classes of one are left out."""


def reduce_collinear(series: Series) -> ReducedSeries:
    """Keep one feature of each collinear class of a series.

    >>> x = np.array([1.0, 3, 10, 40, 100, 300])
    >>> reduced = reduce_collinear(Series("f", 2 * x, {"docs.items.len": 3 * x, "n": x, "seed": x[[2, 0, 5, 3, 1, 4]]}))
    >>> list(reduced.series.features), dict(reduced.others)
    (['n', 'seed'], {'n': ('docs.items.len',)})
    """
    names = list(series.features)
    if len(names) < 2:
        return ReducedSeries(series, {})
    x = np.array([series.features[name] for name in names])
    same = collinear(x)
    if same.sum() == len(names):
        return ReducedSeries(series, {})
    # Every feature joins the first representative that it is collinear with.
    classes: dict[int, list[int]] = {}
    costs = series.costs_of(names, series.y.size)
    for i in sorted(range(len(names)), key=lambda i: (costs[i], names[i].count("."), len(names[i]), i)):
        first = next((j for j in classes if same[i, j]), i)
        classes.setdefault(first, []).append(i)
    members: dict[int, list[int]] = {}
    for first, group in classes.items():
        members[_representative(series.y, x, costs, group, [f for f in classes if f != first])] = group
    others = {names[i]: tuple(names[j] for j in group if j != i) for i, group in members.items() if len(group) > 1}
    kept = {names[i]: series.features[names[i]] for i in sorted(members)}
    return ReducedSeries(replace(series, features=kept), others)


def collinear(x: Array) -> NDArray[np.bool_]:
    """Whether two features say the same, (F, n) -> (F, F)."""
    n = x.shape[-1]
    pairs = max(len(x) * (len(x) - 1) // 2, 1)
    quantile = float(stdtrit(max(n - 2, 1), 1.0 - CHANCE / pairs / 2.0))
    least = max(COLLINEAR, quantile / np.sqrt(max(n - 2, 1) + quantile**2))
    columns = (standardised(rows) for rows in (x, ranks(x), logs_if_positive(x)))
    # Rounding is taken for a perfect correlation.
    of_values, of_ranks, of_logs = (np.abs(rows @ rows.T) + 1e-12 for rows in columns)
    same = (of_ranks >= least) | (of_logs >= least) | ((of_values >= least) & (of_ranks >= RANKS_TOO))
    return np.asarray(same | np.eye(len(x), dtype=bool))


def _representative(y: Array, x: Array, costs: Array, group: list[int], firsts: list[int]) -> int:
    """Member that represents a class: the first, unless the responses clearly follow another one.

    The members compare by their prior ``costs`` (F,) and by the least share of the variance, of y or of log y, that a
    parabola of the member and lines of ``firsts``, which represent the other classes, leave.
    """
    if len(group) == 1 or y.size < 4:
        return group[0]

    def scaled(values: Array) -> Array:
        return np.asarray(values / np.maximum(np.abs(values).max(axis=-1, keepdims=True, initial=0.0), 1e-300))

    others, unexplained = x[firsts[: max(y.size // 4 - 3, 0)]], []
    for values in x[group]:
        scales = [(scaled(values), scaled(y), scaled(others))]
        if (values > 0).all() and (y > 0).all():
            scales.append((np.log(values), np.log(y), logs_if_positive(others)))
        shares = []
        for u, v, rows in scales:
            design = np.column_stack([np.ones_like(u), u - u.mean(), (u - u.mean()) ** 2, *rows])
            residual = v - design @ np.linalg.lstsq(design, v, rcond=None)[0]
            total = float(((v - v.mean()) ** 2).sum())
            shares.append(float((residual**2).sum()) / total if total > 0 else 1.0)
        unexplained.append(max(min(shares), 1e-12))
    scores = y.size * np.log(unexplained) + costs[group]
    best = int(np.argmin(scores))
    gain = scores[0] - scores[best]
    return group[best] if gain > CLEARLY and unexplained[0] - unexplained[best] > LOSS else group[0]


def restore_collinear(law: Law, series: Series, reduced: ReducedSeries) -> Law:
    """A law learnt from representatives as one of all features of the series, with the classes of collinear ones."""
    if not reduced.others:
        return law
    classes = {name: others for name, others in reduced.others.items() if name in law.features}
    law = replace(law, collinear=classes, range=ranges(series))
    if law.features:
        return law
    representative = {other: name for name, others in reduced.others.items() for other in others}
    slope, low, high = (
        {name: limits.get(representative.get(name, name), 0.0) for name in series.features}
        for limits in (law.slope, law.slope_low, law.slope_high)
    )
    return replace(law, slope=slope, slope_low=low, slope_high=high)


@dataclass(frozen=True, slots=True)
class UnexplainedVariation:
    """Variation between runs with equal features that repeats within a run do not show."""

    between: float
    """Standard deviation between runs, relative to the response."""
    repeats: float
    """Standard deviation of repeats within a run, relative to the response."""

    @property
    def reason(self) -> str:
        """The finding in words, with what to do."""
        return (
            f"a feature seems to be missing: runs with equal features differ by {100 * self.between:.0f} %, repeats by "
            f"{100 * self.repeats:.0f} %: declare what differs with --feature NAME=VALUE"
        )


def warn_missing_feature(law: Law, series: Series, residuals: Callable[[], Array]) -> Law:
    """Add to the law's reason that a feature seems to be missing; ``residuals`` gives those of the series, (n,)."""
    found = unexplained_variation(series, residuals)
    return law if found is None else replace(law, reason="; ".join(part for part in (law.reason, found.reason) if part))


def unexplained_variation(series: Series, residuals: Callable[[], Array]) -> UnexplainedVariation | None:
    """Variation between runs with equal features, if it far exceeds that of repeats and no given feature explains it.

    Rows with equal features are compared by one-way analysis of variance of log y: between runs against within runs
    (Fisher 1925, §38).

    >>> run = np.repeat(np.arange(6), 4)
    >>> noise = np.tile([1.0, 1.01, 0.99, 1.0], 6)
    >>> hidden = Series("f", noise * np.repeat([10.0, 31, 12, 29, 11, 30], 4), {"n": np.full(24, 5.0)}, run)
    >>> unexplained_variation(hidden, lambda: hidden.y - hidden.y.mean()).reason[:70]
    'a feature seems to be missing: runs with equal features differ by 74 %'
    """
    n = series.y.size
    if series.runs is None or n < FEWEST_ROWS or not (series.y > 0).all():
        return None
    run, runs = _codes(series.runs)
    if not 2 < runs < n:
        return None
    group = np.zeros(n, dtype=np.intp)
    for column in series.features.values():
        code, count = _codes(column)
        group, groups = _codes(group * count + code)
        if groups == n:
            break
    cell, cells = _codes(group * runs + run)
    log_y, size = np.log(series.y), np.bincount(cell)
    cell_mean = np.bincount(cell, log_y) / size
    group_of_cell, groups = _codes(group[np.unique(cell, return_index=True)[1]])
    group_mean = np.bincount(group_of_cell, cell_mean * size) / np.bincount(group_of_cell, size)
    inner, outer = n - cells, cells - groups
    if inner < 3 or outer < 2:
        return None
    inside = float(((log_y - cell_mean[cell]) ** 2).sum()) / inner
    across = float((size * (cell_mean - group_mean[group_of_cell]) ** 2).sum()) / outer
    between, repeats = np.sqrt(max(across - inside, 0.0) / (n / cells)), np.sqrt(inside)
    p = float(fdtrc(outer, inner, across / inside)) if inside > 0 else 0.0
    if p > CERTAIN or between < max(FAR * repeats, RELEVANT) or _spread_follows(series, residuals()):
        return None
    return UnexplainedVariation(float(np.expm1(between)), float(np.expm1(repeats)))


def _codes(values: NDArray[np.generic]) -> tuple[NDArray[np.intp], int]:
    """Number of the distinct value of each row, (n,), and how many distinct values there are."""
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1), distinct.size


def _spread_follows(series: Series, residual: Array) -> bool:
    """Whether the size of the residuals follows a given feature, by Spearman's test: that feature may explain it."""
    varying = [x for x in series.features.values() if np.ptp(x) > 0]
    if not varying or residual.size < 8:
        return False
    rho = np.abs(standardised(ranks(np.array(varying))) @ standardised(ranks(np.abs(residual))))
    runs = np.unique(series.runs).size if series.runs is not None else residual.size
    degrees = max(min(residual.size, runs) - 2, 1)
    p = 2.0 * student_tail(t_of_correlation(rho, degrees), degrees)
    return bool(p.min() * len(varying) < FOLLOWS)
