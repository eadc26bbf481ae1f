"""How much of a response a monotone curve can explain at most: every law of one feature is such a curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def most_explained(x: Array, y: Array) -> float:
    """Largest R² that a law of x (n,) can reach for y (n,), of values or of logarithms: x all different, n ≥ 2.

    Rising and falling curves by isotonic regression (Robertson, Wright & Dykstra 1988, §1.4).

    >>> steps = np.arange(20.0)
    >>> most_explained(steps, steps**2), round(most_explained(steps, np.cos(3.0 * steps)), 2)
    (1.0, 0.11)
    """
    ordered = y[np.argsort(x, kind="stable")]
    scales = [ordered, np.log(ordered)] if (y > 0).all() else [ordered]
    return max(_explained(side) for scale in scales for side in (scale, -scale))


def _explained(y: Array) -> float:
    """R² of the best curve that never falls over responses in order, (n,)."""
    centred = y - y.mean()
    total = float(centred @ centred)
    return 1.0 - float(((centred - rising(centred)) ** 2).sum()) / total if total > 0 else 1.0


def rising(y: Array) -> Array:
    """The curve nearest to y (n,) that never falls: the largest of the least means from a place on (max-min formula).

    >>> rising(np.array([1.0, 3.0, 2.0, 5.0])).tolist()
    [1.0, 2.5, 2.5, 5.0]
    """
    n = y.size
    sums = np.concatenate([np.zeros(1), np.cumsum(y)])
    width = np.arange(1, n + 1) - np.arange(n)[:, None]
    means = np.where(width > 0, (sums[1:] - sums[:-1, None]) / np.maximum(width, 1), np.inf)
    least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    within = np.where(width > 0, least, -np.inf)
    return np.maximum.accumulate(within, axis=0)[np.arange(n), np.arange(n)]
