"""How sure a split is: a test that heavy tails, unequal scatter and effects of runs do not fool.

Residuals of the part's law become normal scores (van der Waerden), so that no outlier counts for more than its rank.
Each side is held against "the law of the whole holds here" with its own scatter, by an F test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtri, stdtr
from scipy.stats import rankdata

from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.field import Part
from perflaw.learn.annotations.scan import Split

Array = NDArray[np.float64]


def p_value(part: Part, split: Split, inside: Mask) -> float:
    """Probability of such a difference of two sides by chance, for one split looked at."""
    n = part.residual.size
    scores = ndtri((rankdata(part.residual) - 0.5) / n)
    if _of_runs(inside, part.run):
        return _between(scores, inside, part.run)
    scores = scores - _run_means(scores, part.run)[part.run]
    found = []
    for side, basis in ((inside, split.bases[0]), (~inside, split.bases[1])):
        here = [_against_zero(scores[side], None)]
        if basis >= 0:
            # One basis of K was chosen: it answers for all.
            here.append(min(1.0, _against_zero(scores[side], part.bases[basis][side]) * max(len(part.bases), 1)))
        found.append(min(here) * len(here))
    return min(1.0, 2.0 * min(found))


def _of_runs(inside: Mask, run: NDArray[np.intp]) -> bool:
    """Whether the condition is the same for all records of a run, of several."""
    share = _run_means(inside.astype(np.float64), run)
    present = np.bincount(run) > 0
    return bool(present.sum() > 1 and np.isin(share[present], (0.0, 1.0)).all())


def _run_means(values: Array, run: NDArray[np.intp]) -> Array:
    size = np.bincount(run)
    return np.asarray(np.bincount(run, values) / np.maximum(size, 1))


def _against_zero(scores: Array, basis: Array | None) -> float:
    """Chance p of "the scores of a side have mean 0 (and no slope)", by an F test."""
    n = scores.size
    rest = scores - scores.mean()
    used = 1
    if basis is not None:
        x = basis - basis.mean()
        among = float(x @ x)
        if among <= 0:
            return 1.0
        rest = rest - x * (float(x @ scores) / among)
        used = 2
    left = float(rest @ rest)
    explained = float(scores @ scores) - left
    if n <= used:
        return 1.0
    return float(fdtrc(used, n - used, (explained / used) / max(left / (n - used), 1e-12)))


def _between(scores: Array, inside: Mask, run: NDArray[np.intp]) -> float:
    """Chance p by Student's t of runs' means; 1 with fewer than two runs on a side."""
    means = _run_means(scores, run)
    present = np.flatnonzero(np.bincount(run) > 0)
    of_run = _run_means(inside.astype(np.float64), run)[present] > 0.5
    a, b = means[present][of_run], means[present][~of_run]
    if min(a.size, b.size) < 2:
        return 1.0
    freedom = a.size + b.size - 2
    pooled = (float(((a - a.mean()) ** 2).sum()) + float(((b - b.mean()) ** 2).sum())) / freedom
    t = abs(a.mean() - b.mean()) / np.sqrt(max(pooled, 1e-12) * (1.0 / a.size + 1.0 / b.size))
    return float(2.0 * stdtr(freedom, -t))
