"""Null control inside runs, for features that vary within runs.

Responses are permuted within their runs only and both sides are taken relative to their run, so run effects cannot
pass for a dependence (restricted permutation: Good 2005, §7.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.gate import CLEAR, transforms, unit
from perflaw.learn.laws.ranks import normal_tail, ranks
from perflaw.learn.laws.series import Array

ROWS = 600
"""Rows the permutations look at, spread evenly; Spearman's test before them sees all."""


def within_p(x: Array, y: Array, log_y: Array | None, run: NDArray[np.intp], count: int) -> float:
    """Chance p of so much under "no response depends on a feature inside its run": x (F, n), y, run (n,)."""
    rho = unit(_relative(ranks(x), run)) @ unit(_relative(ranks(y), run))
    clear = float(2.0 * normal_tail(float(np.abs(rho).max() * np.sqrt(run.size))) * len(x))
    if run.size >= 50 and clear < CLEAR:
        return clear
    if run.size > ROWS:
        some = np.linspace(0, run.size - 1, ROWS).astype(np.intp)
        x, y, run = x[:, some], y[some], run[some]
        log_y = None if log_y is None else log_y[some]
    columns = unit(_relative(transforms(x[None])[0], run))
    responses = [y] if log_y is None else [y, log_y]
    order = _orders(run, count)
    observed, permuted = 0.0, np.zeros(count)
    for response in responses:
        right = unit(_relative(response, run))
        observed = max(observed, float(np.abs(columns @ right).max()))
        permuted = np.maximum(permuted, np.abs(right[order] @ columns.T).max(axis=-1))
    if observed == 0.0:
        return 1.0
    return float((1.0 + (permuted >= observed * (1.0 - 1e-9)).sum()) / (1.0 + count))


def _relative(values: Array, run: NDArray[np.intp]) -> Array:
    """Values less their run's mean along the last axis."""
    size = np.bincount(run)
    rows = np.atleast_2d(values)
    means = np.stack([np.bincount(run, row) / size.clip(1) for row in rows])
    return np.asarray((rows - means[:, run]).reshape(values.shape))


def _orders(run: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Permutations within runs, (count, n), seeded by the shape of the data alone."""
    rng = np.random.default_rng([run.size, count, int(run.max())])
    place = np.argsort(run, kind="stable")
    keys = rng.random((count, run.size)) + run[place]
    out = np.empty((count, run.size), dtype=np.intp)
    out[:, place] = place[np.argsort(keys, axis=-1)]
    return out
