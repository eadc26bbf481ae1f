"""Which law, and which others the data leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from perflaw.learn.laws.candidates import CONSTANTS, Candidates
from perflaw.learn.laws.gate import unit
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Options
from perflaw.learn.laws.verdict import FEWEST_UNITS

ALIKE = 0.9
"""Features correlated so strongly (logs or ranks) tell the same story: the first given one tells it."""

GUESS = 6.0
"""Where too few points can reject "no dependence", a law must beat the constant by so much to be the best guess."""

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
    score = found.scores[b].copy()
    # Constants are the same whatever the feature.
    score[1:, :CONSTANTS] = np.inf
    few = units(found.rows[b]) < FEWEST_UNITS
    if few:
        established = np.full(len(score), score[:, CONSTANTS:].min() < score[0, :CONSTANTS].min() - GUESS)
    some = bool(established.any() and np.isfinite(score[established, CONSTANTS:]).any())
    if some:
        score[:, :CONSTANTS] = np.inf
        score[~established] = np.inf
    else:
        score[:, CONSTANTS:] = np.inf
    f, m = _best(found.rows[b], score, options.delta)
    open_ = np.where(np.isfinite(score), found.open_scores[b], np.inf)
    difference = np.minimum(score - score[f, m], open_ - open_[f, m])
    difference -= min(SLACK + SLACK_FEW / found.rows[b].y.size ** 2, MOST_SLACK)
    difference[f, m] = 0.0
    near = [(int(i), int(j), max(float(difference[i, j]), 0.0)) for i, j in np.argwhere(difference < options.delta)]
    near.sort(key=lambda law: (law[:2] != (f, m), law[2]))
    return Choice(f, m, some and not few, tuple(near))


def units(row: Rows) -> int:
    """What could be permuted: runs, or rows where the feature varies within runs."""
    return int(row.y.size)


def _best(row: Rows, score: NDArray[np.float64], delta: float) -> tuple[int, int]:
    """Feature and model of the smallest score; among features that tell the same story the first one near it."""
    f, m = divmod(int(score.argmin()), score.shape[1])
    if f > 0:
        same = alike(row)[f] & (score.min(axis=-1) < score[f, m] + delta)
        f = int(np.flatnonzero(same)[0])
        m = int(score[f].argmin())
    return f, m


def alike(row: Rows) -> NDArray[np.bool_]:
    """Which features tell the same story, (F, F): ranks or logs correlated by at least 0.9."""
    ranks = unit(rankdata(row.x, axis=-1))
    positive = (row.x > 0).all(axis=-1, keepdims=True)
    logs = unit(np.log(np.where(positive, row.x, 1.0)))
    correlated = (np.abs(ranks @ ranks.T) >= ALIKE) | (np.abs(logs @ logs.T) >= ALIKE)
    return np.asarray(correlated | np.eye(len(row.x), dtype=bool))
