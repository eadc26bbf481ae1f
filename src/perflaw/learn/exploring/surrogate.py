"""What trials say about configurations not tried: a law over knobs with all its doubt, as draws of Gaussian processes.

Responses are taken on the logarithm where all are positive (what knobs do multiplies), standardized with the worst ones pulled
in: how bad the bad ones are says little about the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from perflaw.learn.exploring.kernel import covariance, distances, prior_variance
from perflaw.learn.exploring.sampling import LEVEL, Data, Fitted, data_of, draw
from perflaw.learn.exploring.scaling import Scale, scale_of

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DRAWS, MOST = 16, 160
"""Draws of the covariance, and trials that are fitted; of more the best and the latest."""
NOISE = 0.05
"""Noise that is expected before any repetition, as a share of the responses' spread; the trials correct it."""
FAR = 4.0
"""Standard deviations off its prediction from which a trial is taken as disturbed."""


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A fitted law with its doubt."""

    x: Array
    """Trials in the unit cube, (n, d)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    draws: list[Fitted]
    """Draws of the covariance, solved."""
    scale: Scale
    """Between responses and standardized ones."""

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Return means and standard deviations at points (m, d) by draw, (s, m) each, standardized, without noise."""
        gaps = distances(at, self.x, self.ordered)
        parts = [self._one(gaps, fitted) for fitted in self.draws]
        return np.array([mean for mean, _ in parts]), np.array([sd for _, sd in parts])

    def misfit(self) -> float:
        """Return by how much trials lie farther off what the others say of them than the law admits; at least 1."""
        off = np.median([_left_out(fitted) for fitted in self.draws], axis=0)
        return float(max(1.0, np.sqrt(np.mean(np.minimum(off * off, FAR**2)))))

    def gains(self, means: Array, sds: Array) -> tuple[float, float, float]:
        """Return by which share a response is better, middle, low, high (80 %), of standardized differences (s,)."""
        ends = np.concatenate([means + z * sds for z in (-1.645, -0.84, -0.25, 0.25, 0.84, 1.645)])
        low, middle, high = np.quantile(ends, [0.1, 0.5, 0.9]) * self.scale.spread
        if self.scale.logarithm:  # where less is better, 20 % better is 0.8 of it
            low, middle, high = self.scale.sign * np.expm1(self.scale.sign * np.array([low, middle, high]))
            return float(middle), float(low), float(high)
        unit = max(abs(self.scale.centre), self.scale.spread)
        return float(middle / unit), float(low / unit), float(high / unit)

    def _one(self, gaps: Array, fitted: Fitted) -> tuple[Array, Array]:
        cross = covariance(gaps, fitted.curves, self.ordered) + LEVEL
        half = solve_triangular(fitted.factor, cross.T, lower=True, check_finite=False)
        left = prior_variance(fitted.curves) + LEVEL - np.einsum("ij,ij->j", half, half)
        return cross @ fitted.solved, np.sqrt(np.maximum(left, 1e-10))

    def joint(self, at: Array, number: int, generator: np.random.Generator) -> Array:
        """Return ``number`` draws of the whole law at points (m, d) for each draw of the covariance, (s·number, m)."""
        cross, inner = distances(at, self.x, self.ordered), distances(at, at, self.ordered)
        return np.concatenate([self._whole(cross, inner, fitted, number, generator) for fitted in self.draws])

    def _whole(self, cross: Array, inner: Array, fitted: Fitted, number: int, generator: np.random.Generator) -> Array:
        between = covariance(cross, fitted.curves, self.ordered) + LEVEL
        half = solve_triangular(fitted.factor, between.T, lower=True, check_finite=False)
        left = covariance(inner, fitted.curves, self.ordered) + LEVEL - half.T @ half
        root = _root(left)
        noise: Array = generator.standard_normal((number, between.shape[0]))
        return np.asarray(between @ fitted.solved + noise @ root.T)


def fit_surrogate(
    x: Array, ordered: Mask, values: Array, sign: float, seed: int, errors: Array | None = None, draws: int = DRAWS
) -> Surrogate:
    """Fit the law to trials.

    Args:
        x: configurations in the unit cube, (n, d), n ≥ 1.
        ordered: which knobs have an order, (d,).
        values: responses, (n,), finite.
        sign: 1 where more is better, −1 where less is.
        seed: of the draws.
        errors: standard errors of the responses in their unit, (n,), nan where unknown.
        draws: draws of the covariance.
    """
    scale = scale_of(values, sign)
    keep = _kept(sign * values)
    x, y = x[keep], _pulled(scale.to(values[keep]))
    extra = _known(values[keep], None if errors is None else errors[keep], scale)
    generator = np.random.default_rng([seed, y.size])
    data = data_of(x, ordered, y, extra, NOISE)
    found = draw(data, draws, generator)
    disturbed = _disturbed(data, found)
    if np.any(disturbed > 0):
        data = Data(data.gaps, ordered, y, extra + disturbed, NOISE)
        found = draw(data, draws, generator)
    return Surrogate(x, ordered, found, scale)


def _kept(score: Array) -> NDArray[np.intp]:
    if score.size <= MOST:
        return np.arange(score.size)
    best = np.argsort(-score, kind="stable")[: MOST // 2]
    latest = np.setdiff1d(np.arange(score.size), best)[-(MOST - best.size) :]
    return np.sort(np.concatenate([best, latest]))


def _pulled(y: Array) -> Array:
    """Beyond two spreads on the bad side the logarithm of the distance counts."""
    below = np.maximum(-2.0 - y, 0.0)
    return np.where(below > 0, -2.0 - np.log1p(below), y)


def _known(values: Array, errors: Array | None, scale: Scale) -> Array:
    if errors is None:
        return np.zeros(values.size)
    relative = errors / np.maximum(np.abs(values), scale.floor) if scale.logarithm else errors
    return np.where(np.isfinite(relative), (relative / scale.spread) ** 2, 0.0)


def _disturbed(data: Data, found: list[Fitted]) -> Array:
    """Variance to add to trials that no draw can explain (leave-one-out residuals, Rasmussen & Williams, eq. 5.12)."""
    if data.y.size < 8 or not found:
        return np.zeros(data.y.size)
    off = np.median([_left_out(fitted) for fitted in found], axis=0)
    return np.where(off < -FAR, 1.0, 0.0)


def _left_out(fitted: Fitted) -> Array:
    inverse = solve_triangular(fitted.factor, np.eye(fitted.solved.size), lower=True, check_finite=False)
    return np.asarray(fitted.solved / np.sqrt(np.einsum("ij,ij->j", inverse, inverse)))


def _root(matrix: Array) -> Array:
    """A square root of a covariance (m, m) that rounding may have left slightly indefinite."""
    matrix[np.diag_indices_from(matrix)] += 1e-7
    factor, bad = lapack.dpotrf(matrix, lower=1, clean=1)
    if not bad:
        return np.asarray(factor)
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
