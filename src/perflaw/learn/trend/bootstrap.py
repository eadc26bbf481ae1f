"""The paper's intervals (trend-prof §4.2): percentiles of the fits of runs drawn with replacement.

A resample of runs is a weight for each run, so that all resamples of all clusters are a few matrix products.
"""

from __future__ import annotations

import numpy as np

from perflaw.learn.trend.given import Array
from perflaw.learn.trend.lines import Limits, Lines
from perflaw.learn.trend.options import CONFIDENCE, TrendOptions

TOGETHER = 128
"""Clusters that are resampled at a time."""

SIDES = (50.0 * (1.0 - CONFIDENCE), 50.0 * (1.0 + CONFIDENCE))
"""Percentiles that are the limits."""


def resampled(lines: Lines, asked: Array, known: Limits, options: TrendOptions) -> Limits:
    """Limits from resamples, at log feature values ``asked`` (P,); those of a new run stay ``known``."""
    runs = lines.u.size
    weights = np.random.default_rng(options.seed).multinomial(runs, np.full(runs, 1.0 / runs), options.bootstraps)
    parts = [
        _percentiles(lines, asked, weights.astype(np.float64), slice(start, start + TOGETHER))
        for start in range(0, len(lines.v), TOGETHER)
    ]
    if not parts:
        return known
    exponent, line = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
    coefficient, mean = line[..., 0], line[..., 1:]
    new = np.stack([np.fmin(known.new[0], mean[0]), np.fmax(known.new[1], mean[1])])
    return Limits(exponent, coefficient, mean, new)


def _percentiles(lines: Lines, asked: Array, weights: Array, part: slice) -> tuple[Array, Array]:
    """Limits of exponents (2, k), and of lines at 0 and the points (2, k, 1 + P), of some clusters."""
    used = lines.used[part].astype(np.float64)
    u = lines.u - lines.u.mean()
    v = np.where(lines.used[part], lines.v[part] - lines.centre_v[part, None], 0.0)
    n = np.maximum(weights @ used.T, 1.0)
    mean_u, mean_v = weights @ (used * u).T / n, weights @ v.T / n
    squares = weights @ (used * u**2).T - n * mean_u**2
    products = weights @ (v * u).T - n * mean_u * mean_v
    # A resample of a single size has no slope.
    varies = squares > 1e-9 * n * np.maximum(mean_u**2, 1.0)
    b = np.where(varies, products / np.where(varies, squares, 1.0), np.nan)
    at = np.concatenate([[0.0], asked]) - lines.u.mean()
    line = lines.centre_v[part, None] + mean_v[..., None] + b[..., None] * (at - mean_u[..., None])
    return _limits(b), _limits(line)


def _limits(values: Array) -> Array:
    """Both percentiles over the resamples, (B, …) -> (2, …), those without a value left out."""
    known = ~np.isnan(values)
    if known.all():
        return np.asarray(np.percentile(values, SIDES, axis=0))
    some = known.any(axis=0)
    return np.where(some, np.nanpercentile(np.where(some, values, 0.0), SIDES, axis=0), np.nan)
