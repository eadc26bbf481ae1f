"""Evidence for changed costs as e-values over runs, with false alarms controlled over all components.

The data are effects of runs: logarithms of observed over expected cost. New runs scatter about ``base + δ``, the runs
the law was learnt from about ``base``, each with variance τ² (between runs) plus its own sampling variance. The null
is |δ| ≤ the minimum relevant effect. The e-value is the ratio of marginal likelihoods

    ∫∫ p(data | δ, τ) dπ(δ) dG(τ)  /  max over the null of ∫ p(data | δ, τ) dG(τ)

whose expectation is at most 1 under every δ of the null, whatever rule said when to stop adding runs (Ville 1939;
Grünwald, de Heide & Koolen 2024, "Safe testing"; maximum in the denominator: Wasserman, Ramdas & Balakrishnan 2020).
G is shared by all components and estimated from them (empirical Bayes, as in Smyth 2004): e-values are then valid on
average over the components, which is what e-BH needs (Wang & Ramdas 2022; Ignatiadis, Wang & Ramdas 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from perflaw.confidence import HIGH, LOW

Array = NDArray[np.float64]

TAU = np.geomspace(0.002, 3.0, 48)
"""Grid of between-run standard deviations of log cost."""
DEFAULT_SCALE, DEFAULT_FREEDOM = 0.05, 4.0
"""Between-run deviation without other knowledge: 5 %, worth four degrees of freedom."""
MIN_SCALE, MAX_FREEDOM = 0.02, 16.0
"""Limits of the estimates: a few runs of one evening may resemble each other by chance."""
BIN_EDGES = np.concatenate([[0.0], np.geomspace(0.03, 6.0, 15)])
"""Bins of the effect beyond the minimum effect; each is equally likely under the alternative, and uniform inside."""
NULL_GRID = np.linspace(-1.0, 1.0, 9)
"""Effects within the null, relative to the minimum effect."""
QUANTILES = np.array([0.5, LOW, HIGH])
"""Median and ends of the interval."""
MAX_EFFECT = 20.0
"""Larger log effects are equal."""
REACH, GRID_SIZE, GRIDS = 6.0, 33, 4
"""Standard deviations in which the quantiles are searched, points of a grid, and number of nested grids."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of the runs of one component, by one statistic."""

    value: Array
    """(R,) log of observed over expected cost."""
    variance: Array
    """(R,) sampling variance of each, which comes from the finite number of records."""


NO_RUNS = Effects(np.zeros(0), np.zeros(0))
"""The effects of no runs: the law is taken as exact."""


@dataclass(frozen=True, slots=True)
class RunSpread:
    """Prior of the between-run deviation τ: τ² is scaled inverse χ²."""

    scale: float
    """Typical τ."""
    freedom: float
    """Degrees of freedom: the more, the more components resemble each other in τ."""

    def log_weights(self) -> Array:
        """Log probability of each τ of the grid, (48,)."""
        half = self.freedom / 2.0
        log = -self.freedom * np.log(TAU) - half * self.scale**2 / TAU**2
        return np.asarray(log - logsumexp(log))


@dataclass(frozen=True, slots=True)
class ChangeEvidence:
    """Evidence for a change of one component."""

    e: float
    """E-value against "no relevant change"."""
    shift: float
    """Estimated δ."""
    low: float
    """Lower end of its confidence interval."""
    high: float
    """Upper end of it."""


def logsumexp(values: Array, axis: int | None = None) -> Array:
    """Log of the sum of exponentials (SciPy's function takes a millisecond to check its arguments)."""
    top = values.max(axis=axis, keepdims=True)
    total = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(total.squeeze() if axis is None else total.squeeze(axis))


def e_value(base: Effects, new: Effects, spread: RunSpread, up: float, down: float | None = None) -> ChangeEvidence:
    """E-value of new runs against the runs of the law; ``up`` is the log of the minimum relevant effect.

    ``down`` is the minimum effect of a lower cost if it differs from ``up``; infinite if no cost is too low.

    >>> new = Effects(np.log([1.48, 1.52, 1.5]), np.full(3, 1e-6))
    >>> old = Effects(np.log([0.98, 1.02, 1.0]), np.full(3, 1e-6))
    >>> spread, up = RunSpread(0.03, 8.0), np.log(1.1)
    >>> e_value(old, new, spread, up).e > 1000, e_value(old, old, spread, up).e < 1
    (True, True)
    """
    log_tau = spread.log_weights() + residual_likelihood(base) + residual_likelihood(new)
    base_mean, base_variance = _centre(base)
    mean, variance = _centre(new)
    shift, sd = mean - base_mean, np.sqrt(variance + base_variance)
    down = up if down is None else down
    null = np.where(NULL_GRID < 0, min(down, MAX_EFFECT), up) * NULL_GRID
    # The most likely point of a wide null lies between those of the grid.
    null = np.r_[null, np.clip(shift[::8], -down, up)][:, None]
    under_null = logsumexp(log_tau - np.log(sd) - 0.5 * ((shift - null) / sd) ** 2 - 0.5 * np.log(2 * np.pi), axis=1)
    # Density of the shift if the true effect is above up or below −down, (48,).
    density = np.zeros_like(shift)
    for sign, start in ((1.0, up), (-1.0, down)):
        if not np.isfinite(start):
            continue
        edges = (start + BIN_EDGES[:, None] - sign * shift) / sd
        # A difference of the smaller tails keeps its digits.
        below, above = ndtr(edges), ndtr(-edges)
        mass = np.where(edges[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
        density += 0.5 * (mass / np.diff(BIN_EDGES)[:, None]).mean(axis=0)
    under_alternative = logsumexp(log_tau + np.log(np.maximum(density, 1e-300)))
    log_e = float(np.clip(under_alternative - under_null.max(), -600.0, 600.0))
    return ChangeEvidence(float(np.exp(log_e)), *_interval(shift, sd, log_tau))


def residual_likelihood(effects: Effects) -> Array:
    """Log likelihood of each τ of the grid, (48,), from the scatter of the runs about their mean (integrated out)."""
    if effects.value.size < 2:
        return np.zeros(TAU.size)
    precision = 1.0 / (TAU[:, None] ** 2 + effects.variance)
    total = precision.sum(axis=1)
    mean = (precision * effects.value).sum(axis=1) / total
    squares = (precision * (effects.value - mean[:, None]) ** 2).sum(axis=1)
    return np.asarray(0.5 * (np.log(precision).sum(axis=1) - np.log(total) - squares))


def _centre(effects: Effects) -> tuple[Array, Array]:
    """Mean of the runs and its variance at each τ, (48,) each; zeros without runs."""
    if not effects.value.size:
        return np.zeros(TAU.size), np.zeros(TAU.size)
    precision = 1.0 / (TAU[:, None] ** 2 + effects.variance)
    total = precision.sum(axis=1)
    return (precision * effects.value).sum(axis=1) / total, 1.0 / total


def _interval(shift: Array, sd: Array, log_tau: Array) -> tuple[float, float, float]:
    """Median and confidence interval of δ under a flat prior: quantiles of a mixture over τ of normal distributions."""
    weight = np.exp(log_tau - logsumexp(log_tau))
    likely = weight > 1e-6
    shift, sd, weight = shift[likely], sd[likely], weight[likely]
    low, high = np.full(3, (shift - REACH * sd).min()), np.full(3, (shift + REACH * sd).max())
    rows = np.arange(3)
    for _ in range(GRIDS):
        grid = np.linspace(low, high, GRID_SIZE, axis=1)
        below = ndtr((grid[..., None] - shift) / sd) @ weight / weight.sum()
        place = np.clip((below < QUANTILES[:, None]).sum(axis=1), 1, GRID_SIZE - 1)
        low, high = grid[rows, place - 1], grid[rows, place]
    return float(high[0]), float(high[1]), float(high[2])


def learn_spread(components: Sequence[Effects]) -> RunSpread:
    """The prior of τ that makes the runs of all components most likely; the default one if they say little."""
    default = RunSpread(DEFAULT_SCALE, DEFAULT_FREEDOM)
    informative = [effects for effects in components if effects.value.size > 1]
    if not informative:
        return default
    likelihood = np.array([residual_likelihood(effects) for effects in informative])
    best_score, best = -np.inf, default
    for freedom in (2.0, 4.0, 8.0, MAX_FREEDOM):
        for scale in np.geomspace(MIN_SCALE, 1.0, 24):
            spread = RunSpread(float(scale), freedom)
            score = float(logsumexp(likelihood + spread.log_weights(), axis=1).sum())
            score -= 0.5 * np.log(scale / DEFAULT_SCALE) ** 2 + 0.5 * np.log(freedom / DEFAULT_FREEDOM) ** 2
            if score > best_score:
                best_score, best = score, spread
    return best


def e_bh(e: Array, alpha: float) -> NDArray[np.bool_]:
    """Which hypotheses the e-Benjamini–Hochberg procedure rejects: (K,) -> (K,) (Wang & Ramdas 2022, §4).

    The false discovery rate is at most ``alpha`` whatever the dependence between components.

    >>> e_bh(np.array([500.0, 1.0, 0.2, 250.0]), 0.01).tolist()
    [True, False, False, True]
    """
    order = np.argsort(-e, kind="stable")
    rank = np.arange(1, e.size + 1)
    passed = np.flatnonzero(e[order] * rank >= e.size / alpha)
    rejected = np.zeros(e.size, dtype=bool)
    if passed.size:
        rejected[order[: passed[-1] + 1]] = True
    return rejected
