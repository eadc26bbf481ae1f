"""Intervals of one law at any points: for the mean, and wider for a new row from a new run.

Additive noise: μ ± t·√(gᵀCg), new ± t·√(σ² + gᵀCg). Multiplicative noise: the mean is exp(η + σ²/2), its interval
Cox's (Zhou & Gao 1997, §2.3), t·√(gᵀCg + σ⁴/2ν) on the log scale; η is the log median.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.model import EXPONENT, Ends, Model, Theta
from perflaw.learn.series.series import Array

LARGEST = 1e300
"""Answers are cut there; a law that says more says nothing."""

Band = tuple[Array, Array, Array, Array, Array]
"""Mean, its lower and upper limit, those of a new row; of one shape."""

STEEPEST = 50.0
"""Local exponents are cut there."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One law fitted to one series (shapes below without the dots) or to several (… = B)."""

    model: Model
    """The law."""
    theta: Array
    """Response at the largest x, at the smallest x, exponent; (..., 3)."""
    covariance: Array
    """Covariance of the parameters on the noise's scale; (..., 3, 3)."""
    ends: Array
    """Smallest and largest x; (..., 2)."""
    variance: Array
    """σ² of a row about the law on the noise's scale; (...,)."""
    variance_error: Array
    """Variance of the estimate of σ²; (...,)."""
    quantile: Array
    """Student's t for the confidence and degrees of freedom; (...,)."""

    def row(self, i: int) -> Fitted:
        """The i-th of several."""
        return Fitted(
            self.model,
            self.theta[i],
            self.covariance[i],
            self.ends[i],
            self.variance[i],
            self.variance_error[i],
            self.quantile[i],
        )

    @property
    def parameters(self) -> Theta:
        """Parameters ready to broadcast against points, (..., 1) each."""
        return self.theta[..., 0, None], self.theta[..., 1, None], self.theta[..., 2, None]

    @property
    def range(self) -> Ends:
        """Ends of the data, (..., 1) each."""
        return Ends(self.ends[..., 0, None], self.ends[..., 1, None])

    def mean(self, x: Array) -> Array:
        """Expected response at x (..., k), never negative."""
        mean, _ = self.model.mean(self.parameters, self.range, x)
        return clipped(mean * self.smear)

    @property
    def smear(self) -> Array:
        """Mean over median of the noise, (..., 1)."""
        return np.exp(np.minimum(self.variance[..., None] / 2.0, 300.0)) if self.model.noise.log else np.ones(1)

    def band(self, x: Array) -> Band:
        """Mean, its lower and upper limit, and those of a new row, at x (..., k); each (..., k)."""
        middle, gradient = self.model.mean(self.parameters, self.range, x)
        if self.model.noise.log:
            return self._multiplicative(middle, gradient)
        spread, t = self._spread(gradient), self.quantile[..., None]
        mean_half, new_half = t * np.sqrt(spread), t * np.sqrt(spread + self.variance[..., None])
        limits = (middle, middle - mean_half, middle + mean_half, middle - new_half, middle + new_half)
        return cut(*limits)

    def _multiplicative(self, middle: Array, gradient: list[Array]) -> Band:
        """Limits as factors; where the law has crossed 0 outside its data it is 0, up to its uncertainty."""
        above = middle > 0
        safe = np.where(above, middle, 1.0)
        spread = self._spread(self.model.scaled(self.parameters, safe, gradient))
        t, smear = self.quantile[..., None], self.smear
        mean_half = t * np.sqrt(spread + self.variance_error[..., None] / 4.0)
        new_half = t * np.sqrt(spread + self.variance[..., None])
        short = t * np.sqrt(spread) * smear
        limits = (
            np.where(above, safe * smear, 0.0),
            np.where(above, safe * smear * np.exp(-mean_half), 0.0),
            np.where(above, safe * smear * self._factor(mean_half), short),
            np.where(above, safe * np.exp(-new_half), 0.0),
            np.where(above, safe * self._factor(new_half), short),
        )
        return cut(*limits)

    def _factor(self, half: Array) -> Array:
        """Upper limit over the middle; with an intercept wide ones grow linearly, for a difference is uncertain."""
        if self.model.intercept:
            return np.where(half < 1.0, np.exp(np.minimum(half, 1.0)), np.e * np.maximum(half, 1.0))
        return np.exp(np.minimum(half, 600.0))

    def _spread(self, gradient: list[Array]) -> Array:
        """gᵀCg, (..., k)."""
        places = self.model.columns
        total = sum(
            gradient[i] * gradient[j] * self.covariance[..., p, q, None]
            for i, p in enumerate(places)
            for j, q in enumerate(places)
        )
        return np.maximum(total, 0.0)

    def slope(self) -> tuple[Array, Array, Array]:
        """Local exponent at the largest x with its limits, (...,) each, by the delta method."""
        at = self.range.high
        middle = self.model.local_exponent(self.parameters, self.range, at)[..., 0]
        columns = []
        for place in self.model.columns:
            step = np.maximum(np.sqrt(self.covariance[..., place, place]) * 0.01, 1e-7 * self._size(place))
            sides = [
                self.model.local_exponent(self._moved(place, sign * step), self.range, at)[..., 0] for sign in (1, -1)
            ]
            columns.append(((sides[0] - sides[1]) / (2.0 * step))[..., None])
        half = self.quantile * np.sqrt(self._spread(columns)[..., 0])
        half = np.where(np.isfinite(half), half, STEEPEST)
        middle, low, high = (np.clip(limit, -STEEPEST, STEEPEST) for limit in (middle, middle - half, middle + half))
        return middle, low, high

    def _size(self, place: int) -> Array:
        """What is large for a parameter on the noise's scale: 1, but for responses of additive noise their size."""
        if self.model.noise.log or place == EXPONENT:
            return np.ones(1)
        return np.asarray(np.maximum(np.abs(self.theta[..., :EXPONENT]).max(axis=-1), 1e-150))

    def _moved(self, place: int, step: Array) -> Theta:
        """Parameters with one of them moved on the noise's scale."""
        theta = self.theta.copy()
        if self.model.noise.log and place != EXPONENT:
            theta[..., place] = theta[..., place] * np.exp(np.clip(step, -50.0, 50.0))
        else:
            theta[..., place] = theta[..., place] + step
        return theta[..., 0, None], theta[..., 1, None], theta[..., 2, None]


def clipped(values: Array, unknown: float = 0.0) -> Array:
    """Answers between 0 and the largest; ``unknown`` where an overflow left none."""
    return np.clip(np.where(np.isnan(values), unknown, values), 0.0, LARGEST)


def cut(mean: Array, low: Array, high: Array, new_low: Array, new_high: Array) -> Band:
    """Mean and limits as finite numbers that are not negative; where overflow left nothing, limits say so."""
    low, high = clipped(low), clipped(high, LARGEST)
    # Under very wide noise the limit of the mean passes that of a row; a new row's interval stays the wider one.
    return clipped(mean), low, high, np.minimum(clipped(new_low), low), np.maximum(clipped(new_high, LARGEST), high)


# ---- Covariance of a law's parameters from the spread between runs, where rows of one run share a run effect.
#
# Leave one run out, the law linearised at its fit (the jackknife, "CR3": Bell & McCaffrey 2002, §3), with R − 1
# degrees of freedom. With equal designs in every run this is the exact t interval of the runs' own estimates.


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
