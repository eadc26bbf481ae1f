"""Features that say the same in these data: classes of collinear features, each told by one of them.

Correlated features (|r| ≥ 0.9 of logarithms, ranks or values) form a class whose representative is the shallowest
(fewest dots), then the shortest name (Freud §3.2). Where the responses themselves clearly single out another member
that one stands for the class: a name is no reason to predict worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.learn.laws.gate import unit
from perflaw.learn.laws.ranks import ranks
from perflaw.learn.laws.series import Array, Series
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
