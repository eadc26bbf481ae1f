"""Covariance of a law's parameters from the spread between runs, where rows of one run share a run effect.

Leave one run out, the law linearised at its fit (the jackknife, "CR3": Bell & McCaffrey 2002, §3), with R − 1
degrees of freedom. With equal designs in every run this is the exact t interval of the runs' own estimates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.series import Array


def cluster_covariance(columns: Array, w: Array, residual: Array, run: NDArray[np.intp]) -> Array:
    """Covariance (p, p) of the parameters: columns (p, n) of the gradient, w, residual and run (n,)."""
    runs, size = int(run.max()) + 1, len(columns)
    weighted = columns * w
    grams = np.zeros((runs, size, size))
    np.add.at(grams, run, weighted.T[:, :, None] * columns.T[:, None, :])
    sums = np.zeros((runs, size))
    np.add.at(sums, run, (weighted * residual).T)
    rest = grams.sum(axis=0) - grams
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("ii->i", grams.sum(axis=0)), 1e-300))
    # A run that alone pins a parameter down leaves a singular rest: the pseudo-inverse then leaves that direction
    # out of the move, and the factor R² below stands for what nobody else can confirm.
    scaled = rest * scale[:, None] * scale[None, :]
    lonely = np.linalg.cond(scaled) > 1e10
    scaled[lonely] = grams.sum(axis=0) * scale[:, None] * scale[None, :]
    inverse = np.linalg.pinv(scaled)
    moves = np.empty((runs, size))
    for r in range(runs):
        moves[r] = scale * (inverse[r] @ (sums[r] * scale)) * (runs if lonely[r] else 1.0)
    return np.asarray(moves.T @ moves * ((runs - 1.0) / runs))


def moulton(residual: Array, x: Array, run: NDArray[np.intp]) -> float:
    """Moulton's factor: by how much rows of one run are worth less than independent ones, at least 1.

    1 + (m − 1)·ρ_x·ρ_e with the intra-run correlations of the feature and the residual and the mean run size m
    (Moulton 1986, eq. 3); a feature spread alike over all runs costs nothing.
    """
    size = np.bincount(run)
    rows = float(size.mean() + size.var() / size.mean())
    return 1.0 + (rows - 1.0) * max(_intra(x, run, size), 0.0) * max(_intra(residual, run, size), 0.0)


def _intra(values: Array, run: NDArray[np.intp], size: NDArray[np.intp]) -> float:
    """Intra-class correlation by one-way analysis of variance (Fisher 1925, §38)."""
    runs, n = size.size, run.size
    if n == runs or np.ptp(values) == 0:
        return 0.0
    means = np.bincount(run, values) / size
    inside = float(((values - means[run]) ** 2).sum() / (n - runs))
    across = float((size * (means - values.mean()) ** 2).sum() / (runs - 1))
    m = float((n - (size**2).sum() / n) / (runs - 1))
    total = across + (m - 1.0) * inside
    return (across - inside) / total if total > 0 else 0.0
