"""Which covariances fit the trials: draws from the posterior by elliptical slice sampling (Murray, Adams, MacKay 2010).

With ten to sixty trials the likelihood alone says little about a dozen parameters, and its maximum is often sure of something
wrong; so predictions are averaged over draws. The priors are on logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from perflaw.learn.exploring.kernel import Curves, covariance, distances

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHARE, LENGTH, TOGETHER = (np.log(0.12), 1.5), (np.log(0.7), 0.7), (np.log(1.5), 1.0)
"""Median and spread of the priors, on the logarithm; responses have variance 1."""
NOISE_SPREAD = 1.0
"""Of the prior of the noise, on the logarithm of its standard deviation."""
BURN, EVERY = 40, 4
"""Steps before the first draw, and from one to the next."""
LEVEL = 4.0
"""Prior variance of the mean."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One draw: a covariance with the trials solved for."""

    curves: Curves
    """Its parameters."""
    factor: Array
    """Cholesky factor of the trials' covariance, (n, n), lower."""
    solved: Array
    """Covariance⁻¹ · responses, (n,)."""


@dataclass(frozen=True, slots=True)
class Data:
    """Trials as the sampler wants them."""

    gaps: Array
    """Distances by knob, (d, n, n)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    y: Array
    """Standardized responses, (n,)."""
    extra: Array
    """Known variance of each response on top of the common noise, (n,)."""
    noise: float
    """Standard deviation of the noise that is expected before any trial."""


def data_of(x: Array, ordered: Mask, y: Array, extra: Array, noise: float) -> Data:
    """Return points x (n, d) and standardized responses y (n,) as data."""
    return Data(distances(x, x, ordered), ordered, y, extra, noise)


def solve(data: Data, curves: Curves) -> tuple[Fitted | None, float]:
    """Return the draw and its log likelihood; None where the covariance is numerically singular."""
    matrix = covariance(data.gaps, curves, data.ordered) + LEVEL
    matrix[np.diag_indices_from(matrix)] += curves.noise + data.extra + 1e-8
    factor, bad = lapack.dpotrf(matrix, lower=1, clean=1)
    if bad:
        return None, -np.inf
    solved = cho_solve((factor, True), data.y, check_finite=False)
    return Fitted(curves, factor, solved), float(-0.5 * data.y @ solved - np.log(np.diag(factor)).sum())


def draw(data: Data, number: int, generator: np.random.Generator) -> list[Fitted]:
    """Return ``number`` draws from the posterior of covariances."""
    size = 2 * data.ordered.size + 2
    z, rough = np.zeros(size), False
    level = _likelihood(data, rough, z)
    found: list[Fitted] = []
    for step in range(BURN + EVERY * number):
        z, level = _slice(partial(_likelihood, data, rough), z, level, generator)
        other = _likelihood(data, not rough, z)
        if np.log(generator.uniform()) < other - level:
            rough, level = not rough, other
        if step >= BURN and (step - BURN) % EVERY == EVERY - 1:
            fitted, _ = solve(data, curves_of(data, z, rough))
            found += [fitted] if fitted else []
    return found


def curves_of(data: Data, z: Array, rough: bool) -> Curves:
    """Return the parameters that the standard normal vector z (2d + 2,) stands for under the priors."""
    d = data.ordered.size
    return Curves(
        shares=np.exp(SHARE[0] + SHARE[1] * z[:d]),
        lengths=np.exp(LENGTH[0] + LENGTH[1] * z[d : 2 * d]) * (3.0 if rough else 1.0),
        together=float(np.exp(TOGETHER[0] + TOGETHER[1] * z[2 * d])),
        noise=float((data.noise * np.exp(NOISE_SPREAD * z[2 * d + 1])) ** 2),
        rough=rough,
    )


def _likelihood(data: Data, rough: bool, z: Array) -> float:
    return solve(data, curves_of(data, z, rough))[1]


def _slice(
    likelihood: Callable[[Array], float], z: Array, level: float, generator: np.random.Generator
) -> tuple[Array, float]:
    """One step on the ellipse through z and a draw from the prior; never refuses."""
    other, threshold = generator.standard_normal(z.size), level + np.log(generator.uniform())
    angle = generator.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    for _ in range(40):
        point = z * np.cos(angle) + other * np.sin(angle)
        found = likelihood(point)
        if found > threshold:
            return point, found
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = generator.uniform(low, high)
    return z, level
