"""The distribution of single records about a law's mean: laws are learnt from means over equal inputs.

Costs that depend on no input are Norm, LogNorm, Exp or Binom, by likelihood (Freud §2.2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perflaw.laws.build import number
from perflaw.laws.tree import Distribution
from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.records import RecordTable
from perflaw.learn.cells import Array
from perflaw.learn.series import Learnt
from perflaw.learn.series.law import distribution
from perflaw.special import chdtrc, gammaln, xlogy
from perflaw.types import Law, Noise, Prediction

MIN_GAIN = 10.0
"""Another distribution replaces the normal or lognormal one if its criterion is better by so much."""
CONTINUOUS = frozenset({"ns", "bytes"})
"""Units of continuous quantities, which have no binomial distribution."""
MIN_RECORDS = 10
"""Number of records from which on distributions are compared."""
MIN_BINOMIAL_P = 1e-3
"""Least p of the likelihood ratio test that costs are binomial."""
MAX_MEAN_RATIO = 1.5
"""The mean of a lognormal distribution that differs from the records' mean by more rests on a tail that nobody saw."""


def with_record_noise(learnt: Learnt, table: RecordTable, mask: Mask, options: AnnotationOptions) -> Law:
    """The law with the distribution of the records of a mask (n,) about its mean."""
    law, evidence = learnt.law, table.evidence
    y, weight = evidence.cost[mask], evidence.weight[mask]
    if not law.features and y.size >= MIN_RECORDS and np.ptp(y) > 0:
        likelier = _likelier(law, y, weight * (y.size / weight.sum()), options)
        if likelier is not None:
            return likelier
        law = _with_own_mean(law, y, weight)
    scale = _scatter(learnt, table, mask)
    if scale <= law.noise.scale or law.breakpoints:
        return law
    noise = replace(law.noise, scale=scale)
    return replace(law, expression=distribution(law.mean, noise), noise=noise)


def _scatter(learnt: Learnt, table: RecordTable, mask: Mask) -> float:
    """Standard deviation of single records about a law's mean, on the scale of its noise; 0 if it is unknown."""
    evidence = table.evidence
    y, weight = evidence.cost[mask], evidence.weight[mask]
    at = {name: table.numbers(name)[mask] for name in learnt.law.features}
    logarithmic = learnt.law.noise.distribution == "lognormal"
    if logarithmic and y.min() <= 0:
        return 0.0
    mean = learnt.mean(at or {"": np.zeros(y.size)})
    residual = np.log(y) - np.log(np.maximum(mean, 1e-300)) if logarithmic else y - mean
    finite = np.isfinite(residual)
    total = float(weight[finite].sum())
    if not total:
        return 0.0
    centre = float(weight[finite] @ residual[finite]) / total if logarithmic else 0.0
    return float(np.sqrt(weight[finite] @ (residual[finite] - centre) ** 2 / total))


def _with_own_mean(law: Law, y: Array, weight: Array) -> Law:
    """A lognormal constant with the mean of its records (n,), if the distribution's own is out of proportion."""
    mean = float(weight @ y / weight.sum())
    if law.noise.distribution != "lognormal" or mean <= 0:
        return law
    if 1 / MAX_MEAN_RATIO < law.coefficient / mean < MAX_MEAN_RATIO:
        return law
    ratio = mean / law.coefficient

    def scaled(one: Prediction) -> Prediction:
        limits = (one.mean, one.mean_low, one.mean_high, one.new_low, one.new_high)
        return Prediction(one.features, *(limit * ratio for limit in limits))

    return replace(_constant(law, mean, law.noise), predictions=tuple(scaled(one) for one in law.predictions))


def _constant(law: Law, mean: float, noise: Noise, expression: Distribution | None = None) -> Law:
    """The constant law with another mean and noise; by default its expression is that of normal or lognormal noise."""
    constant = number(mean)
    expression = expression or distribution(constant, noise)
    return replace(law, expression=expression, mean=constant, coefficient=mean, noise=noise)


def _likelier(law: Law, y: Array, weight: Array, options: AnnotationOptions) -> Law | None:
    """A constant law under another distribution if that is clearly likelier; y, weight (n,).

    Distributions are compared by −2 log likelihood plus log n for each parameter.
    """
    if float(y.min()) < 0:
        return None
    n, mean = y.size, float(weight @ y / y.size)
    normal, normal_scale = _normal(y, weight, options.quantum)
    lognormal, lognormal_scale = np.inf, 0.0
    if float(y.min()) > 0:
        logs = np.log(y)
        lognormal, lognormal_scale = _normal(logs, weight, options.quantum / float(np.exp(np.median(logs))))
        lognormal += float(2.0 * weight @ logs)
    best = min(normal, lognormal) + 2.0 * np.log(n)
    exponential = float(2.0 * n * (np.log(mean) + 1.0)) if mean > 0 else np.inf
    if best - (exponential + np.log(n)) > MIN_GAIN:
        return _constant(law, mean, Noise("exponential", mean), Distribution("Exp", (number(mean),)))
    binomial = _binomial(y, weight, mean) if options.metric.unit not in CONTINUOUS else None
    if binomial is not None and best - (binomial[1] + 2.0 * np.log(n)) > MIN_GAIN:
        trials = binomial[0]
        p = mean / trials
        noise = Noise("binomial", float(np.sqrt(mean * (1.0 - p))))
        return _constant(law, mean, noise, Distribution("Binom", (number(trials, None), number(p))))
    if law.noise.distribution == "lognormal" and lognormal - normal > MIN_GAIN:
        return _constant(law, mean, Noise("normal", normal_scale))
    if law.noise.distribution == "normal" and normal - lognormal > MIN_GAIN:
        return _constant(law, mean, Noise("lognormal", lognormal_scale))
    return None


def _normal(y: Array, weight: Array, quantum: float) -> tuple[float, float]:
    """−2 log likelihood under the normal distribution, and the standard deviation."""
    n = y.size
    variance = float(weight @ (y - weight @ y / n) ** 2) / n
    return float(n * (np.log(2.0 * np.pi * (variance + quantum**2 / 12.0)) + 1.0)), float(np.sqrt(variance))


def _binomial(y: Array, weight: Array, mean: float) -> tuple[int, float] | None:
    """Number of trials, by moments, and −2 log likelihood; None if y is not binomial."""
    variance = float(weight @ (y - mean) ** 2) / y.size
    if not (np.mod(y, 1.0) == 0).all() or mean <= 0 or not 0 < variance < mean:
        return None
    trials = max(round(mean / (1.0 - variance / mean)), int(y.max()))
    p = mean / trials
    if p >= 1:
        return None
    log = gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1) + xlogy(y, p) + xlogy(trials - y, 1 - p)
    # −2 log likelihood of each value's own share: a distribution that expects values that never occur is none of y.
    _, value, count = np.unique(y, return_inverse=True, return_counts=True)
    own = np.log(count / y.size)[value.reshape(-1)]
    if float(chdtrc(max(trials - 1, 1), max(2.0 * float((own - log).sum()), 0.0))) < MIN_BINOMIAL_P:
        return None
    return trials, float(-2.0 * weight @ log)
