"""Of many features the laws of one feature look at few: those that responses follow most.

Every other feature still takes part in the null control before, and in the search for laws of several features after.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.learn.laws.gate import Units, unit
from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.ranks import ranks
from perflaw.learn.laws.series import Array

FEW, FEWER = 2, 1
"""Features that are looked at, and where there are many rows."""

MANY_ROWS = 300
"""From so many rows on the strongest of them cannot be mistaken."""

WIDEST = 50.0
"""Limits of exponents are cut there."""


def focus(rows: Rows, established: NDArray[np.bool_]) -> list[int]:
    """Places of the features to look at, in their order; established ones, (F,), go before others."""
    count = len(rows.x)
    few = FEWER if rows.y.size >= MANY_ROWS else FEW
    if count <= few:
        return list(range(count))
    sides = [(ranks(rows.x), ranks(rows.y)), (rows.x, rows.y)]
    if rows.positive:
        positive = (rows.x > 0).all(axis=-1, keepdims=True)
        sides.append((np.log(np.where(positive, rows.x, 1.0)), rows.log_y))
    strength = np.max([np.abs(unit(x) @ unit(y)) for x, y in sides], axis=0) + established
    return sorted(int(f) for f in np.argsort(-strength, kind="stable")[:few])


def of_features(rows: Rows, places: list[int]) -> Rows:
    """Rows with some of their features."""
    if len(places) == len(rows.x):
        return rows
    names = [rows.names[f] for f in places]
    series = replace(rows.series, features={name: rows.series.features[name] for name in names})
    between = Units(rows.between.x[places], rows.between.y, rows.between.log_y)
    return replace(rows, series=series, x=rows.x[places], between=between, varying=rows.varying[places])


def widened(learnt: Learnt, rows: Rows, confidence: float) -> Learnt:
    """A law learnt from few features as one of all of them: their ranges, and what a constant leaves open of them."""
    if learnt.rows is rows:
        return learnt
    law = learnt.law
    law = replace(law, range={name: (float(x.min()), float(x.max())) for name, x in rows.series.features.items()})
    if not law.features:
        limits = {name: _growth(rows, f, confidence) for f, name in enumerate(rows.names) if name not in law.slope}
        law = replace(
            law,
            slope=dict.fromkeys(rows.names, 0.0),
            slope_low={name: law.slope_low.get(name, limits.get(name, (0.0, 0.0))[0]) for name in rows.names},
            slope_high={name: law.slope_high.get(name, limits.get(name, (0.0, 0.0))[1]) for name in rows.names},
        )
    return Learnt(law, learnt.plausible, rows)


def _growth(rows: Rows, f: int, confidence: float) -> tuple[float, float]:
    """Exponents that responses allow a feature, by a straight line in logarithms; 0 is always among them."""
    x: Array = rows.x[f]
    if not rows.positive or (x <= 0).any() or np.ptp(x) == 0 or x.size < 3:
        return 0.0, 0.0
    u, v = np.log(x) - np.log(x).mean(), rows.log_y - rows.log_y.mean()
    slope = float(u @ v / (u @ u))
    freedom = max((rows.runs if rows.clusters is not None else x.size) - 2, 1)
    error = float(np.sqrt(((v - slope * u) ** 2).sum() / freedom / (u @ u)))
    half = float(stdtrit(freedom, 0.5 + confidence / 2.0)) * error
    return float(np.clip(slope - half, -WIDEST, 0.0)), float(np.clip(slope + half, 0.0, WIDEST))
