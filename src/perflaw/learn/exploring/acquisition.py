"""Where the next trial tells most: a start that fills the space, then the improvement that is expected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from perflaw.learn.exploring.kernel import Curves, covariance, distances
from perflaw.learn.exploring.sampling import LEVEL

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

REFERENCES = 400
"""Points at most by which a start is judged."""
NOTHING, WIDE = 1e-3, 3.0
"""Improvement, in the responses' spread, that is none; standard deviations a law may be wrong by."""


def filling(
    tried: Array, candidates: Array, ordered: Mask, generator: np.random.Generator, worth: Array | float = 1.0
) -> int:
    """Return the candidate (m, d) that leaves the least doubt over the space beside the ``tried`` (n, d), n ≥ 0.

    The doubt is that of a prior with curves, pairs and cliffs, alike for all knobs (active learning, Cohn 1996); ties are
    drawn. ``worth`` (m,) weighs candidates: the probability that they are data points.
    """
    d = ordered.size
    curves = Curves(np.full(d, 1.0 / d), np.full(d, 1.0), 1.0, 0.01, rough=True)
    some = generator.permutation(candidates.shape[0])[:REFERENCES]
    references = candidates[some]
    cross = covariance(distances(candidates, references, ordered), curves, ordered) + LEVEL
    own = covariance(np.zeros((d, candidates.shape[0], 1)), curves, ordered)[:, 0] + LEVEL
    if tried.shape[0]:
        matrix = covariance(distances(tried, tried, ordered), curves, ordered) + LEVEL
        matrix[np.diag_indices_from(matrix)] += curves.noise
        left = covariance(distances(candidates, tried, ordered), curves, ordered) + LEVEL
        right = covariance(distances(references, tried, ordered), curves, ordered) + LEVEL
        weights = np.linalg.solve(matrix, right.T)
        cross = cross - left @ weights
        own = own - np.einsum("ij,ji->i", left, np.linalg.solve(matrix, left.T))
    gain = (cross * cross).mean(axis=1) / (np.maximum(own, 0.0) + curves.noise)
    return int(np.argmax(gain * worth * (1.0 + 1e-3 * generator.uniform(size=gain.size))))


def improvement(means: Array, sds: Array, best: Array) -> Array:
    """Return the expected improvement (m,) over ``best`` (s, 1) or (s, m), averaged over draws (s, m) (Jones 1998)."""
    z = (means - best) / sds
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray((sds * (z * ndtr(z) + density)).mean(axis=0))


def promise(means: Array, sds: Array, best: Array, usable: Array) -> Array:
    """Return by what to choose the next trial (m,): the expected improvement, while there is any to speak of.

    After that the law says that nothing is left; worth a trial is where it may be wrong: the upper end of a wide interval.
    """
    gain = improvement(means, sds, best) * usable
    if gain.max() > NOTHING:
        return np.asarray(gain)
    upper = (means + WIDE * sds - best).mean(axis=0)
    return np.asarray(np.where(usable > 0.5, upper, upper - 1.0 / usable))


def chance(means: Array, sds: Array, level: Array | float) -> Array:
    """Return the probability (m,) that a candidate is above ``level``, averaged over draws."""
    return np.asarray(ndtr((means - level) / sds).mean(axis=0))
