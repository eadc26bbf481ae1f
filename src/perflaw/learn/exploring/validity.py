"""Where configurations are data points: learnt from those that were not (a value refused, a target that does not start)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.acquisition import chance
from perflaw.learn.exploring.surrogate import fit_surrogate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DRAWS = 6
"""Draws of the covariance: less is at stake than with the responses."""
LEAST = 0.02
"""Probability that is left to everything: failures may have other causes."""


def validity(good: Array, failed: Array, at: Array, ordered: Mask, seed: int) -> Array:
    """Return the probability (m,) that points (m, d) are data points, after ``good`` (n, d) and ``failed`` (k, d) trials.

    A Gaussian process on labels ±1 (least-squares classification; Rasmussen & Williams, §6.5); 1 without failures.
    """
    if not failed.shape[0]:
        return np.ones(at.shape[0])
    if not good.shape[0]:
        return np.full(at.shape[0], 0.5)
    labels = np.concatenate([np.ones(good.shape[0]), -np.ones(failed.shape[0])])
    law = fit_surrogate(np.concatenate([good, failed]), ordered, labels, 1.0, seed, draws=DRAWS)
    means, sds = law.predict(at)
    return np.asarray(np.clip(chance(means, np.hypot(sds, 0.2), law.scale.to(np.zeros(1))[0]), LEAST, 1.0))
