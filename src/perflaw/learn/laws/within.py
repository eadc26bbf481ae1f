"""Null control inside runs, for features that vary within runs.

Responses are permuted within their runs only and both sides are taken relative to their run, so run effects cannot
pass for a dependence (restricted permutation: Good 2005, §7.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.gate import CLEAR, transforms, unit
from perflaw.learn.laws.ranks import normal_tail, ranks
from perflaw.learn.laws.series import Array

ROWS = 600
"""Rows the permutations look at, spread evenly; Spearman's test before them sees all."""


AT_ONCE = 50
"""Permutations between two looks at whether p is small enough still."""


def within_p(x: Array, y: Array, log_y: Array | None, run: NDArray[np.intp], count: int, enough: float = 1.0) -> float:
    """Chance p of so much under "no response depends on a feature inside its run": x (F, n), y, run (n,).

    Where it is above ``enough`` some value above that may be returned, as soon as it is known.
    """
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
    sides = [unit(_relative(response, run)) for response in responses]
    observed = max(float(np.abs(columns @ side).max()) for side in sides)
    if observed == 0.0:
        return 1.0
    reached = 0
    for order in _orders(run, count):
        permuted = np.max([np.abs(side[order] @ columns.T).max(axis=-1) for side in sides], axis=0)
        reached += int((permuted >= observed * (1.0 - 1e-9)).sum())
        if (1.0 + reached) / (1.0 + count) > enough:
            break
    return (1.0 + reached) / (1.0 + count)


def _relative(values: Array, run: NDArray[np.intp]) -> Array:
    """Values less their run's mean along the last axis."""
    size = np.bincount(run)
    rows = np.atleast_2d(values)
    means = np.stack([np.bincount(run, row) / size.clip(1) for row in rows])
    return np.asarray((rows - means[:, run]).reshape(values.shape))


def _orders(run: NDArray[np.intp], count: int) -> Iterator[NDArray[np.intp]]:
    """Permutations within runs, ``count`` of them by and by, (k, n) each, seeded by the shape of the data alone."""
    rng = np.random.default_rng([run.size, count, int(run.max())])
    place = np.argsort(run, kind="stable")
    sorted_ = bool((place[1:] > place[:-1]).all())
    ends = np.cumsum(np.bincount(run)).tolist()
    for start in range(0, count, AT_ONCE):
        keys = rng.random((min(AT_ONCE, count - start), run.size))
        moved = np.empty(keys.shape, dtype=np.intp)
        for first, last in pairwise([0, *ends]):
            moved[:, first:last] = place[first:last][np.argsort(keys[:, first:last], axis=-1)]
        out = moved if sorted_ else np.empty_like(moved)
        if not sorted_:
            out[:, place] = moved
        yield out
