"""Which law, and which others the data leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.candidates import CONSTANTS, MODELS, Candidates
from perflaw.learn.laws.gate import unit
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.ranks import ranks as ranks_of
from perflaw.learn.laws.series import Options
from perflaw.learn.laws.verdict import FEWEST_UNITS

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
