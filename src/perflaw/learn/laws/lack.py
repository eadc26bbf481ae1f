"""Lack of fit: whether the chosen law has the right shape.

Where sizes repeat, rows of one size say what noise is, and an F test compares the law with the sizes' own means
(Draper & Smith 1998, §2.1). Otherwise the residuals in the order of the feature should not go in runs: the rank form of
von Neumann's ratio (Bartels 1982), which asks nothing of the noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from perflaw.learn.laws.candidates import CONSTANTS, Candidates, residual_of
from perflaw.learn.laws.choose import Choice
from perflaw.learn.laws.ranks import normal_tail
from perflaw.learn.laws.series import Array

FEWEST = 8
"""Fewest rows the normal approximation of the rank ratio is good for."""

MISFIT = 0.01
"""From this p on a law has the wrong shape."""


def lack_of_fit(found: Candidates, b: int, choice: Choice) -> tuple[float, float] | None:
    """Chance p that a series' law has the right shape, and how far it is off (relative root mean square).

    None where the data cannot say: perfect fits, few rows, rows that share runs.
    """
    row, f, m = found.rows[b], choice.feature, choice.model
    if m < CONSTANTS or row.clusters is not None or row.y.size < FEWEST or found.perfect(b, f, m):
        return None
    cell, model = b * found.features + f, found.fits[m].model
    residual, _ = residual_of(model, (row.x[f], row.y, row.log_y), found.fits[m].theta[cell], found.ends[cell])
    relative = residual if model.noise.log else residual / np.maximum(np.abs(row.y - residual), np.abs(residual))
    sizes, places = np.unique(row.x[f], return_inverse=True)
    repeated = row.y.size - sizes.size
    if repeated >= 3 and sizes.size > len(model.columns):
        p = replicated(residual, row.w, places.reshape(-1), len(model.columns))
    else:
        p = bartels(residual[np.argsort(row.x[f], kind="stable")])
    return p, float(np.sqrt(np.mean(relative**2)))


def replicated(residual: Array, w: Array, size: NDArray[np.intp], parameters: int) -> float:
    """Value p of the F test against the means of rows of one size; residual, w, size (n,)."""
    weight = np.bincount(size, w)
    means = np.bincount(size, w * residual) / weight
    inside = float((w * (residual - means[size]) ** 2).sum())
    across = float((weight * means**2).sum())
    freedom = weight.size - parameters, residual.size - weight.size
    if inside <= 0:
        return 0.0 if across > 0 else 1.0
    return float(fdtrc(*freedom, (across / freedom[0]) / (inside / freedom[1])))


def bartels(residual: Array) -> float:
    """Value p of the rank von Neumann ratio against runs in ordered residuals, (n,).

    >>> bartels(np.arange(20.0)) < 1e-4, bartels(np.resize([1.0, -1.0], 20)) > 0.99
    (True, True)
    """
    n = residual.size
    ranks = np.argsort(np.argsort(residual, kind="stable"), kind="stable") + 1.0
    ratio = float((np.diff(ranks) ** 2).sum() / (n * (n * n - 1.0) / 12.0))
    spread = np.sqrt(4.0 * (n - 2) * (5 * n * n - 2 * n - 9) / (5.0 * n * (n + 1) * (n - 1) ** 2))
    return normal_tail((2.0 - ratio) / spread)
