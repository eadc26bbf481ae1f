"""Which law, and which others the data leave open."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.learn.series.candidates import CONSTANTS, MODELS, Candidates
from perflaw.learn.series.learnt import Learnt
from perflaw.learn.series.prepare import Rows, Units, unit
from perflaw.learn.series.ranks import ranks
from perflaw.learn.series.ranks import ranks as ranks_of
from perflaw.learn.series.series import Array, Options
from perflaw.learn.series.verdict import FEWEST_UNITS

ALIKE = 0.9
"""Features correlated so strongly (logs or ranks) tell the same story: the first given one tells it."""

GUESS, GUESS_RUNS = 6.0, 30.0
"""Where nothing could reject "no dependence", a law must beat the constant by so much to be the best guess.

The second one holds where rows share few runs: what a handful of runs are worth is known badly itself.
"""

SLACK, SLACK_FEW, MOST_SLACK = 0.4, 140.0, 2.0
"""Benefit of the doubt, ``SLACK + SLACK_FEW / n²`` (at most ``MOST_SLACK``), of a law beside the chosen one.

Calibrated for coverage in benchmarks/learner.py: choosing among laws costs most where points are few.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen law of a series and the others, as places in its candidates."""

    feature: int
    """Feature of the chosen law."""
    model: int
    """Model of the chosen law."""
    established: bool
    """The null control rejected "no dependence"."""
    plausible: tuple[tuple[int, int, float], ...]
    """(feature, model, score difference) of every law the intervals cover, the chosen one first."""


def choose(found: Candidates, b: int, established: NDArray[np.bool_], options: Options) -> Choice:
    """Choose a law for series b of the candidates; established (F,) says for which features the gate opened."""
    row, few = found.rows[b], _few(found.rows[b], established)
    allowed = _allowed(found.scores[b], _guessed(row, found.scores[b]) if few else established)
    f = _feature(row, np.where(allowed, found.plain_scores[b], np.inf), options.delta)
    if row.clusters is not None:
        # What rows are worth differs from feature to feature there, scores do not compare across them.
        allowed &= np.arange(len(allowed))[:, None] == f
    score = np.where(allowed, found.scores[b], np.inf)
    m = int(score[f].argmin())
    if m < CONSTANTS:
        # Nothing refutes a dependence by not establishing it: what fits as well is kept for the verdict to judge.
        some = np.isfinite(found.scores[b]) & (np.arange(score.shape[1]) >= CONSTANTS)
        score = np.where(allowed | some, found.scores[b], np.inf)
    near = _near(found, b, score, (f, m), options.delta)
    return Choice(f, m, m >= CONSTANTS and not few, near)


def units(row: Rows, feature: int | None) -> int:
    """What could be permuted: runs, or rows where the feature varies within runs (None: any feature)."""
    of_rows = row.clusters is None or feature is None or row.varying[feature]
    return int(row.y.size) if of_rows else row.runs


def _few(row: Rows, established: NDArray[np.bool_]) -> bool:
    """No permutation could have rejected."""
    if row.clusters is not None:
        return not established.any() and row.runs < FEWEST_UNITS
    return row.y.size < FEWEST_UNITS


def _guessed(row: Rows, score: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Features with a law so much better than the constant that it is the best guess, (F,)."""
    margin = GUESS if row.clusters is None else GUESS_RUNS
    return np.asarray(score[:, CONSTANTS:].min(axis=-1) < score[:, :CONSTANTS].min(axis=-1) - margin)


def _allowed(score: NDArray[np.float64], features: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Laws to choose from, (F, M): those of the features given, else constants (alike for all features)."""
    allowed = np.zeros(score.shape, dtype=bool)
    allowed[features, CONSTANTS:] = np.isfinite(score[features, CONSTANTS:])
    if not allowed.any():
        allowed[0, :CONSTANTS] = np.isfinite(score[0, :CONSTANTS])
    return allowed


def _feature(row: Rows, score: NDArray[np.float64], delta: float) -> int:
    """Feature of the smallest score; among features that tell the same story the first one near it."""
    best = score.min(axis=-1)
    f = int(best.argmin())
    if f == 0:
        return f
    return int(np.flatnonzero(alike(row)[f] & (best < best[f] + delta))[0])


def _near(
    found: Candidates, b: int, score: NDArray[np.float64], chosen: tuple[int, int], delta: float
) -> tuple[tuple[int, int, float], ...]:
    """Laws that the data cannot tell from the chosen one, that one first."""
    if np.ptp(found.rows[b].y) == 0:
        return (
            (*chosen, 0.0),
        )  # responses that do not vary leave nothing open: what a law could hide is below the tick
    open_ = np.where(np.isfinite(score), found.open_scores[b], np.inf)
    difference = np.minimum(score - score[chosen], open_ - open_[chosen])
    difference -= slack(found.rows[b].y.size)
    difference[chosen] = 0.0
    if found.perfect(b, *chosen):
        # Laws with more parameters fit as perfectly: that is no doubt.
        least = len(MODELS[chosen[1]].columns)
        difference[:, [len(model.columns) > least for model in MODELS]] = np.inf
    near = [(int(i), int(j), max(float(difference[i, j]), 0.0)) for i, j in np.argwhere(difference < delta)]
    return tuple(sorted(near, key=lambda law: (law[:2] != chosen, law[2])))


def slack(n: int) -> float:
    """Benefit of the doubt of a law beside the one chosen from n points."""
    return min(SLACK + SLACK_FEW / n**2, MOST_SLACK)


def alike(row: Rows) -> NDArray[np.bool_]:
    """Which features tell the same story, (F, F): ranks or logs correlated by at least 0.9."""
    ranks = unit(ranks_of(row.x))
    positive = (row.x > 0).all(axis=-1, keepdims=True)
    logs = unit(np.log(np.where(positive, row.x, 1.0)))
    correlated = (np.abs(ranks @ ranks.T) >= ALIKE) | (np.abs(logs @ logs.T) >= ALIKE)
    return np.asarray(correlated | np.eye(len(row.x), dtype=bool))


# ---- Of many features the laws of one feature look at few: those that responses follow most.
#
# Every other feature still takes part in the null control before, and in the search for laws of several features
# after.

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
