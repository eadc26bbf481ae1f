"""Fits of sums of terms to one series, many sums at once: least squares in y, or in log y by Gauss–Newton.

Under multiplicative noise coefficients are positive (their logarithms are the parameters), so the mean is positive on
the data by construction. Under additive noise only the constant and straight lines may have negative ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.noise import NoiseModel
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Array

ITERATIONS = 12
"""Gauss–Newton steps; it converges in 4 to 7 where the sum fits at all."""

ENOUGH = 1e-4
"""Sums whose RSS falls by less than this part of it have arrived."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows that sums are fitted to: all of a series, or an even part of them."""

    x: Array
    """Features, (F, n)."""
    y: Array
    """Responses, (n,)."""
    log_y: Array
    """Their logarithms, (n,)."""
    w: Array
    """Weights, (n,), summing to n."""
    quantum: float
    """Resolution of y."""
    worth: float
    """Independent rows they are worth."""
    top: Array
    """Largest |x| of the whole series, (F,)."""
    bottom: Array
    """Smallest x of the whole series, (F,)."""
    two: NDArray[np.bool_]
    """Features that have two values at most, (F,)."""

    def floor(self, noise: NoiseModel) -> float:
        """Smallest credible σ."""
        return float(noise.floor(self.y[None], self.w[None], np.array([self.quantum]))[0])

    def deviance(self, noise: NoiseModel, rss: Array) -> Array:
        """−2 log likelihood, shape of ``rss``."""
        count = np.full(np.shape(rss), float(self.y.size))
        jacobian = np.full(np.shape(rss), float((self.w * self.log_y).sum()))
        return noise.deviance(rss, np.full(np.shape(rss), self.floor(noise)), count, jacobian)


def sample_of(rows: Rows, features: list[int], most: int = 0) -> Sample:
    """Some features of a series; at most ``most`` rows of it, drawn by a generator seeded by n alone."""
    x, n = rows.x[features], rows.y.size
    keep = slice(None) if not 0 < most < n else np.sort(np.random.default_rng([n, most]).permutation(n)[:most])
    w = rows.w[keep]
    size = rows.y[keep].size
    top, bottom = np.abs(x).max(axis=-1), x.min(axis=-1)
    two = ((x == bottom[:, None]) | (x == x.max(axis=-1)[:, None])).all(axis=-1)
    worth = max(rows.information * size / n, 1.0)
    x = np.ascontiguousarray(x[:, keep])
    return Sample(
        x,
        rows.y[keep],
        rows.log_y[keep],
        w * (size / w.sum()),
        rows.series.quantum,
        worth,
        np.maximum(top, 1e-300),
        bottom,
        two,
    )


def spreads(gradient: Array, w: Array) -> Array:
    """Diagonals of (J W Jᵀ)⁻¹ for many gradients: (B, P, n) -> (B, P); huge where it does not exist."""
    gram = (gradient * w) @ gradient.transpose(0, 2, 1)
    diagonal = np.einsum("bii->bi", gram)
    scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))
    scaled = gram * scale[:, :, None] * scale[:, None, :] + 1e-12 * np.eye(gram.shape[-1])
    scaled[~np.isfinite(scaled).all(axis=(1, 2))] = np.eye(gram.shape[-1])
    inverse = np.einsum("bii->bi", np.linalg.inv(scaled)) * scale**2
    return np.where(diagonal > 0, np.clip(inverse, 0.0, 1e300), 1e300)


def solve(gram: Array, right: Array) -> Array:
    """Solutions of many small symmetric systems, (B, k, k) and (B, k) -> (B, k), scaled to a unit diagonal first."""
    diagonal = np.einsum("bii->bi", gram)
    scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))
    scaled = gram * scale[:, :, None] * scale[:, None, :]
    scaled += 1e-13 * np.eye(gram.shape[-1])
    fine = np.isfinite(scaled).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
    scaled[~fine] = np.eye(gram.shape[-1])
    solved = np.linalg.solve(scaled, np.where(fine[:, None], right * scale, 0.0)[..., None])[..., 0]
    return np.asarray(solved * scale)


def fit_sums(
    a: Array, sample: Sample, noise: NoiseModel, signed: NDArray[np.bool_], start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Coefficients (B, k), weighted residual sums of squares (B,) and spreads of sums of columns a (B, k, n).

    Spreads are variances of the coefficients' logarithms over σ², (B, k). ``start`` (B, k) are coefficients to start
    from where known; ``signed`` (B, k) are terms that may have a negative coefficient: sums that would need others
    have infinite RSS.
    """
    if noise.log:
        return _fit_log(a, sample, start)
    weighted = a * sample.w
    beta = solve(weighted @ a.transpose(0, 2, 1), weighted @ sample.y)
    residual = sample.y - (beta[:, None, :] @ a)[:, 0]
    rss = (residual**2 @ sample.w).astype(np.float64)
    fine = ((beta >= 0) | signed).all(axis=1) & np.isfinite(rss)
    return beta, np.where(fine, rss, np.inf), spreads(a, sample.w) / np.maximum(beta**2, 1e-300)


def _fit_log(a: Array, sample: Sample, start: Array | None) -> tuple[Array, Array, Array]:
    """The same under multiplicative noise."""
    scale = sample.y.max()
    if a.shape[1] == 1:
        return _alone(a, sample, scale)
    beta = _first(a, sample, scale) if start is None else np.maximum(start / scale, 1e-250)
    rss, residual, shares = _log_residual(a, beta, sample, scale)
    damping = np.full(len(a), 1e-4)
    running = np.ones(len(a), dtype=bool)
    for _ in range(ITERATIONS):
        part = shares * sample.w
        gram = part @ shares.transpose(0, 2, 1)
        gram += np.einsum("bii->bi", gram)[:, :, None] * np.eye(a.shape[1]) * damping[:, None, None]
        step = np.clip(solve(gram, (part @ residual[..., None])[..., 0]), -2.0, 2.0)
        proposal = np.where(running[:, None], np.clip(beta * np.exp(step), 1e-250, 1e250), beta)
        rss_new, residual_new, shares_new = _log_residual(a, proposal, sample, scale)
        better = running & (rss_new <= rss)
        running = running & ~(better & (rss_new >= rss * (1.0 - ENOUGH))) & (damping < 1e6)
        damping = np.where(better, damping * 0.1, np.maximum(damping, 1e-3) * 10.0)
        beta = np.where(better[:, None], proposal, beta)
        residual = np.where(better[:, None], residual_new, residual)
        shares = np.where(better[:, None, None], shares_new, shares)
        rss = np.where(better, rss_new, rss)
        if not running.any():
            break
    return beta * scale, np.where(np.isfinite(rss), rss, np.inf), spreads(shares, sample.w)


def _first(a: Array, sample: Sample, scale: float) -> Array:
    """Coefficients to start from: least squares in y / mean, made positive."""
    relative = a * (scale / sample.y)
    weighted = relative * sample.w
    solved = solve(weighted @ relative.transpose(0, 2, 1), weighted.sum(axis=-1))
    usual = weighted.sum(axis=-1) / np.maximum((weighted * relative).sum(axis=-1), 1e-300)
    return np.asarray(np.maximum(solved, 0.02 * np.maximum(usual, 1e-30)))


def _alone(a: Array, sample: Sample, scale: float) -> tuple[Array, Array, Array]:
    """Single terms: the mean logarithm of response over term."""
    fine = np.asarray((a[:, 0] > 0).all(axis=-1))
    away = sample.log_y - np.log(np.where(fine[:, None], a[:, 0], 1.0))
    middle = away @ sample.w / sample.w.sum()
    rss = (away - middle[:, None]) ** 2 @ sample.w
    spread = np.full((len(a), 1), 1.0 / sample.w.sum())
    return np.exp(np.clip(middle, -600.0, 600.0))[:, None], np.where(fine, rss, np.inf), spread


def _log_residual(a: Array, beta: Array, sample: Sample, scale: float) -> tuple[Array, Array, Array]:
    """RSS (B,), residuals (B, n) and every term's share of the mean (B, k, n); infinite where a mean is not positive."""
    parts = beta[:, :, None] * a
    mean = parts.sum(axis=1)
    fine = (mean > 0).all(axis=-1)
    safe = np.where(mean > 0, mean, 1.0)
    residual = (sample.log_y - np.log(scale)) - np.log(safe)
    rss = residual**2 @ sample.w
    return np.where(fine, rss, np.inf), residual, parts / safe[:, None, :]
