"""Features that say the same in these data: classes of collinear features, each told by one of them.

Correlated features (|r| ≥ 0.9 of logarithms, ranks or values) form a class whose representative is the shallowest
(fewest dots), then the shortest name (Freud §3.2). Where the responses themselves clearly single out another member
that one stands for the class: a name is no reason to predict worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtrit

from perflaw.learn.series.prepare import unit
from perflaw.learn.series.ranks import ranks, student_tail
from perflaw.learn.series.series import Array, Series
from perflaw.types import Law

ALIKE = 0.9
"""Correlation from which two features say the same."""

CHANCE = 0.01
"""Two-sided p a correlation has to have, shared by all pairs: three points are nearly always correlated."""

ROUGHLY = 0.7
"""Where values alone are correlated their ranks are at least so: one common extreme point is no relation."""

CLEARLY, LOSS = 10.0, 0.05
"""Twice the log likelihood ratio and share of the variance from which responses single out a member."""


@dataclass(frozen=True, slots=True)
class Classes:
    """A series reduced to one feature a class."""

    series: Series
    """With representatives alone, in the order of the original."""
    others: Mapping[str, tuple[str, ...]]
    """Representative → the other members; classes of one are left out."""


def classes(series: Series) -> Classes:
    """Classes of a series' features.

    >>> x = np.array([1.0, 3, 10, 40, 100, 300])
    >>> found = classes(Series("f", 2 * x, {"docs.items.len": 3 * x, "n": x, "seed": x[[2, 0, 5, 3, 1, 4]]}))
    >>> list(found.series.features), dict(found.others)
    (['n', 'seed'], {'n': ('docs.items.len',)})
    """
    names = list(series.features)
    if len(names) < 2:
        return Classes(series, {})
    x = np.array([series.features[name] for name in names])
    same = alike(x)
    if same.sum() == len(names):
        return Classes(series, {})
    members = _members(names, same)
    firsts = list(members)
    told = {_told(series.y, x, group, [f for f in firsts if f != i]): group for i, group in members.items()}
    others = {names[i]: tuple(names[j] for j in group if j != i) for i, group in told.items() if len(group) > 1}
    kept = {names[i]: series.features[names[i]] for i in sorted(told)}
    return Classes(replace(series, features=kept), others)


def alike(x: Array) -> NDArray[np.bool_]:
    """Which features say the same, (F, n) -> (F, F)."""
    n = x.shape[-1]
    pairs = max(len(x) * (len(x) - 1) // 2, 1)
    quantile = float(stdtrit(max(n - 2, 1), 1.0 - CHANCE / pairs / 2.0))
    least = max(ALIKE, quantile / np.sqrt(max(n - 2, 1) + quantile**2))
    order = _correlation(ranks(x))
    positive = (x > 0).all(axis=-1, keepdims=True)
    logs = _correlation(np.log(np.where(positive, x, 1.0)))
    values = (_correlation(x) >= least) & (order >= ROUGHLY)
    return np.asarray((order >= least) | (logs >= least) | values | np.eye(len(x), dtype=bool))


def _correlation(rows: Array) -> Array:
    """|r| of all pairs, with rounding taken for perfect."""
    columns = unit(rows)
    return np.asarray(np.abs(columns @ columns.T) + 1e-12)


def _members(names: Sequence[str], same: NDArray[np.bool_]) -> dict[int, list[int]]:
    """Representative → places of its class, it first; every feature joins the first representative alike."""
    out: dict[int, list[int]] = {}
    for i in sorted(range(len(names)), key=lambda i: (names[i].count("."), len(names[i]), i)):
        told = next((j for j in out if same[i, j]), None)
        if told is None:
            out[i] = [i]
        else:
            out[told].append(i)
    return out


def _told(y: Array, x: Array, group: list[int], others: list[int]) -> int:
    """Member that stands for a class: the first, unless the responses clearly follow another one.

    ``others`` represent the other classes; their share of the responses is taken out.
    """
    if len(group) == 1 or y.size < 4:
        return group[0]
    beside = x[others[: max(y.size // 4 - 3, 0)]]
    left = np.array([_unexplained(y, x[i], beside) for i in group])
    best = int(left.argmin())
    gain = y.size * np.log(left[0] / left[best])
    return group[best] if gain > CLEARLY and left[0] - left[best] > LOSS else group[0]


def _unexplained(y: Array, x: Array, beside: Array) -> float:
    """Least share of y's variance that a parabola of x and lines of others (K, n) leave, values or logarithms."""
    scales = [(_scaled(x[None])[0], _scaled(y[None])[0], _scaled(beside))]
    if (x > 0).all() and (y > 0).all():
        positive = (beside > 0).all(axis=-1, keepdims=True)
        scales.append((np.log(x), np.log(y), np.log(np.where(positive, beside, 1.0))))
    out = []
    for u, v, rows in scales:
        design = np.column_stack([np.ones_like(u), u - u.mean(), (u - u.mean()) ** 2, *rows])
        rest = v - design @ np.linalg.lstsq(design, v, rcond=None)[0]
        total = float(((v - v.mean()) ** 2).sum())
        out.append(float((rest**2).sum()) / total if total > 0 else 1.0)
    return max(min(out), 1e-12)


def _scaled(x: Array) -> Array:
    return np.asarray(x / np.maximum(np.abs(x).max(axis=-1, keepdims=True, initial=0.0), 1e-300))


def told(law: Law, series: Series, found: Classes) -> Law:
    """A law learnt from representatives, with what it says of all features of the series it was learnt from."""
    if not found.others:
        return law
    mine = {name: others for name, others in found.others.items() if name in law.features}
    ends = {name: (float(x.min()), float(x.max())) for name, x in series.features.items()}
    law = replace(law, collinear=mine, range=ends)
    if law.features:
        return law
    first = {other: name for name, others in found.others.items() for other in others}
    slope, low, high = (
        {name: limits.get(first.get(name, name), 0.0) for name in series.features}
        for limits in (law.slope, law.slope_low, law.slope_high)
    )
    return replace(law, slope=slope, slope_low=low, slope_high=high)


# ---- Suspicion of a missing feature: runs with equal features differ far more than repeats within a run suggest.
#
# Rows with equal features are compared by one-way analysis of variance: between runs against within runs (Fisher
# 1925,
# §38). What no given feature explains and repeats do not show must differ between the runs: a setting, a machine,
# data
# that nobody declared. Where the spread follows a given feature that one may explain it, and nothing is said.

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
