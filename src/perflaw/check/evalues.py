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
from functools import cache

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, LOW
from perflaw.special import ndtr

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
REACH, BISECTIONS = 6.0, 20
"""Standard deviations in which the quantiles are searched, and number of bisections."""
UNLIKELY = 1e-6
"""Probability up to which a τ is left out of the quantiles."""
AT_ONCE = 200
"""Number of comparisons that are made at once."""
SPREADS_AT_ONCE = 4096
"""Number of pairs of a component and a prior of τ that are computed at once."""


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
    return e_values([(base, new, spread, up, up if down is None else down)])[0]


Comparison = tuple[Effects, Effects, RunSpread, float, float]
"""What :func:`e_value` compares."""


def e_values(comparisons: Sequence[Comparison]) -> list[ChangeEvidence]:
    """:func:`e_value` of many comparisons, some hundreds at once."""
    found = []
    for start in range(0, len(comparisons), AT_ONCE):
        found += _e_values(comparisons[start : start + AT_ONCE])
    return found


def _e_values(comparisons: Sequence[Comparison]) -> list[ChangeEvidence]:
    base, new = (RunStatistics.of(side) for side in ([one[0] for one in comparisons], [one[1] for one in comparisons]))
    weights = {spread: spread.log_weights() for spread in {spread for _, _, spread, _, _ in comparisons}}
    log_tau = np.array([weights[spread] for _, _, spread, _, _ in comparisons])
    log_tau = log_tau + base.likelihood + new.likelihood
    shift, sd = new.mean - base.mean, np.sqrt(new.variance + base.variance)
    up, down = np.array([one[3:] for one in comparisons]).T[:, :, None]
    null = np.where(NULL_GRID < 0, np.minimum(down, MAX_EFFECT), up) * NULL_GRID
    # The most likely point of a wide null lies between those of the grid.
    null = np.concatenate([null, np.minimum(np.maximum(shift[:, ::8], -down), up)], axis=1)[:, :, None]
    density_of_shift = log_tau - np.log(sd) - 0.5 * np.log(2 * np.pi)
    distance = (shift[:, None] - null) / sd[:, None]
    under_null = logsumexp(density_of_shift[:, None] - 0.5 * distance**2, axis=2).max(axis=1)
    # Density of the shift if the true effect is above up or below −down, (K, 48).
    density = np.zeros_like(shift)
    for sign, start in ((1.0, up), (-1.0, down)):
        possible = np.isfinite(start)
        beyond = np.where(possible, start, 0.0) - sign * shift
        mass = _between((beyond[:, None] + BIN_EDGES[:, None]) / sd[:, None])
        density += np.where(possible, 0.5 * (mass / np.diff(BIN_EDGES)[:, None]).mean(axis=1), 0.0)
    under_alternative = logsumexp(log_tau + np.log(np.maximum(density, 1e-300)), axis=1)
    e = np.exp(np.clip(under_alternative - under_null, -600.0, 600.0))
    quantiles = _quantiles(shift, sd, log_tau)
    return [ChangeEvidence(*numbers) for numbers in np.column_stack([e, quantiles]).tolist()]


def _between(edges: Array) -> Array:
    """Probability that a standard normal value lies between neighbours of increasing edges: (K, B + 1, 48) -> (K, B, 48).

    A difference of the smaller tails keeps its digits. Only the tails that are needed are computed.
    """
    is_upper = edges > 0
    tail = ndtr(np.where(is_upper, -edges, edges))
    below_next, is_around = tail[:, 1:].copy(), is_upper[:, 1:] & ~is_upper[:, :-1]
    below_next[is_around] = ndtr(edges[:, 1:][is_around])
    return np.asarray(np.where(is_upper[:, :-1], tail[:, :-1] - tail[:, 1:], below_next - tail[:, :-1]))


@dataclass(frozen=True, slots=True, eq=False)
class RunStatistics:
    """The runs of K components under each τ of the grid; arrays are (K, 48)."""

    mean: Array
    """Mean effect of the runs; 0 without runs."""
    variance: Array
    """Its variance; 0 without runs."""
    likelihood: Array
    """Log likelihood of the τ from the scatter of the runs about their mean (integrated out); 0 for a single run."""

    @classmethod
    def of(cls, components: Sequence[Effects]) -> RunStatistics:
        """The statistics of components with any numbers of runs."""
        count = np.array([one.value.size for one in components])
        there = np.arange(max(int(count.max(initial=0)), 1)) < count[:, None]
        value, variance = np.zeros(there.shape), np.ones(there.shape)
        if count.any():
            value[there] = np.concatenate([one.value for one in components])
            variance[there] = np.concatenate([one.variance for one in components])
        spread = TAU[:, None] ** 2 + variance[:, None]
        precision = there[:, None] / spread
        any_run = count[:, None] > 0
        total = np.where(any_run, precision.sum(axis=2), 1.0)
        mean = (precision * value[:, None]).sum(axis=2) / total
        squares = (precision * (value[:, None] - mean[..., None]) ** 2).sum(axis=2)
        logs = -np.where(there[:, None], np.log(spread), 0.0).sum(axis=2)
        likelihood = 0.5 * (logs - np.log(total) - squares)
        return cls(mean, np.where(any_run, 1.0 / total, 0.0), np.where(count[:, None] < 2, 0.0, likelihood))


def _quantiles(shift: Array, sd: Array, log_tau: Array) -> Array:
    """Median and confidence interval of δ under a flat prior, (K, 3): quantiles of mixtures over τ, (K, 48) each."""
    weight = np.exp(log_tau - logsumexp(log_tau, axis=1)[:, None])
    # Only what is likely matters: it comes first.
    order = np.argsort(-weight, axis=1, kind="stable")[:, : int((weight > UNLIKELY).sum(axis=1).max())]
    shift, sd, weight = (np.take_along_axis(one, order, axis=1) for one in (shift, sd, weight))
    likely = weight > UNLIKELY
    weight = np.where(likely, weight, 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    low = np.repeat(np.where(likely, shift - REACH * sd, np.inf).min(axis=1, keepdims=True), QUANTILES.size, axis=1)
    high = np.repeat(np.where(likely, shift + REACH * sd, -np.inf).max(axis=1, keepdims=True), QUANTILES.size, axis=1)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        below = (ndtr((middle[..., None] - shift[:, None]) / sd[:, None]) * weight[:, None]).sum(axis=2)
        enough = below >= QUANTILES
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def learn_spread(components: Sequence[Effects]) -> RunSpread:
    """The prior of τ that makes the runs of all components most likely; the default one if they say little."""
    default = RunSpread(DEFAULT_SCALE, DEFAULT_FREEDOM)
    informative = [effects for effects in components if effects.value.size > 1]
    if not informative:
        return default
    likelihood = RunStatistics.of(informative).likelihood
    spreads, weights, penalties = _spread_candidates()
    at_once = max(SPREADS_AT_ONCE // len(likelihood), 1)
    scores = np.concatenate(
        [
            logsumexp(likelihood + weights[start : start + at_once, None], axis=2).sum(axis=1)
            for start in range(0, len(spreads), at_once)
        ]
    )
    scores = np.where(np.isnan(scores), -np.inf, scores) - penalties
    best = int(np.argmax(scores))
    return spreads[best] if scores[best] > -np.inf else default


@cache
def _spread_candidates() -> tuple[list[RunSpread], Array, Array]:
    """The priors of τ that are tried (C), their log weights (C, 48), and what speaks against each beforehand (C,)."""
    pairs = [(scale, freedom) for freedom in (2.0, 4.0, 8.0, MAX_FREEDOM) for scale in np.geomspace(MIN_SCALE, 1.0, 24)]
    spreads = [RunSpread(float(scale), freedom) for scale, freedom in pairs]
    penalties = [
        0.5 * np.log(scale / DEFAULT_SCALE) ** 2 + 0.5 * np.log(freedom / DEFAULT_FREEDOM) ** 2
        for scale, freedom in pairs
    ]
    return spreads, np.array([one.log_weights() for one in spreads]), np.array(penalties)


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
