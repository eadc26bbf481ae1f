"""The distribution of costs that depend on no input: Norm, LogNorm, Exp or Binom, by likelihood (Freud §2.2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.relevant import with_own_mean
from perflaw.learn.annotations.table import Table
from perflaw.learn.laws import Learnt
from perflaw.learn.laws.expression import number
from perflaw.types import Law, Noise

Array = NDArray[np.float64]

CLEARLY = 10.0
"""Exp and Binom replace the normal and lognormal distribution where their criterion is better by so much."""
CONTINUOUS = frozenset({"ns", "bytes"})
"""Units of continuous quantities: nothing to count there."""
FEWEST = 10
"""Records from which a distribution is told from another."""


def of_records(learnt: Learnt, table: Table, mask: Mask, unit: str, quantum: float) -> Law:
    """A law with the distribution of single records about its mean: laws are learnt from means over equal inputs."""
    law, evidence = learnt.law, table.evidence
    y, weight = evidence.cost[mask], evidence.weight[mask]
    if not law.features and y.size >= FEWEST and np.ptp(y) > 0:
        found = _special(law, y, weight * (y.size / weight.sum()), unit, quantum)
        if found is not None:
            return found
        law = with_own_mean(law, y, weight)
    scale = _scatter(learnt, table, mask)
    if scale <= law.noise.scale or law.breakpoints:
        return law
    name = law.expression.partition("(")[0]
    return replace(law, expression=f"{name}({law.mean}, {number(scale)})", noise=replace(law.noise, scale=scale))


def _scatter(learnt: Learnt, table: Table, mask: Mask) -> float:
    """Standard deviation of single records about a law's mean, on the scale of its noise; 0 where it cannot be said."""
    evidence, named = table.evidence, table.named
    y, weight = evidence.cost[mask], evidence.weight[mask]
    at = {name: np.asarray(named[name], dtype=np.float64)[mask] for name in learnt.law.features if name in named}
    log = learnt.law.noise.distribution == "lognormal"
    if len(at) < len(learnt.law.features) or (log and y.min() <= 0):
        return 0.0
    mean = learnt.mean(at or {"": np.zeros(y.size)})
    residual = np.log(y) - np.log(np.maximum(mean, 1e-300)) if log else y - mean
    fine = np.isfinite(residual)
    total = float(weight[fine].sum())
    centre = float(weight[fine] @ residual[fine]) / total if log and total else 0.0
    return float(np.sqrt(weight[fine] @ (residual[fine] - centre) ** 2 / total)) if total else 0.0


def _special(law: Law, y: Array, weight: Array, unit: str, quantum: float) -> Law | None:
    """A constant law under another distribution where that is clearly likelier; y, weight (n,)."""
    if float(y.min()) < 0:
        return None
    normal, lognormal = _normal(y, weight, quantum), _lognormal(y, weight, quantum)
    known = min(normal, lognormal) + 2.0 * np.log(y.size)
    mean = float(weight @ y / y.size)
    if known - (_exponential(mean, y.size) + np.log(y.size)) > CLEARLY:
        return _replaced(law, f"Exp({number(mean)})", mean, Noise("exponential", mean))
    found = _binomial(y, weight, mean) if unit not in CONTINUOUS else None
    if found is not None and known - (found[1] + 2.0 * np.log(y.size)) > CLEARLY:
        p = mean / found[0]
        scale = float(np.sqrt(mean * (1.0 - p)))
        return _replaced(law, f"Binom({found[0]}, {number(p)})", mean, Noise("binomial", scale))
    if law.noise.distribution == "lognormal" and lognormal - normal > CLEARLY:
        scale = float(np.sqrt(weight @ (y - mean) ** 2 / y.size))
        return _replaced(law, f"Norm({number(mean)}, {number(scale)})", mean, Noise("normal", scale))
    if law.noise.distribution == "normal" and normal - lognormal > CLEARLY:
        logs = np.log(y)
        scale = float(np.sqrt(weight @ (logs - weight @ logs / y.size) ** 2 / y.size))
        return _replaced(law, f"LogNorm({number(mean)}, {number(scale)})", mean, Noise("lognormal", scale))
    return None


def _replaced(law: Law, expression: str, mean: float, noise: Noise) -> Law:
    return replace(law, expression=expression, mean=number(mean), coefficient=mean, noise=noise)


def _normal(y: Array, weight: Array, quantum: float) -> float:
    """−2 log likelihood."""
    n = y.size
    variance = float(weight @ (y - weight @ y / n) ** 2) / n + quantum**2 / 12.0
    return float(n * (np.log(2.0 * np.pi * variance) + 1.0))


def _lognormal(y: Array, weight: Array, quantum: float) -> float:
    if float(y.min()) <= 0:
        return np.inf
    logs, n = np.log(y), y.size
    variance = (
        float(weight @ (logs - weight @ logs / n) ** 2) / n + (quantum / float(np.exp(np.median(logs)))) ** 2 / 12
    )
    return float(n * (np.log(2.0 * np.pi * variance) + 1.0) + 2.0 * weight @ logs)


def _exponential(mean: float, n: int) -> float:
    return float(2.0 * n * (np.log(mean) + 1.0)) if mean > 0 else np.inf


def _binomial(y: Array, weight: Array, mean: float) -> tuple[int, float] | None:
    """Trials and −2 log likelihood, trials by moments; None where y are no such counts."""
    variance = float(weight @ (y - mean) ** 2) / y.size
    if not (np.mod(y, 1.0) == 0).all() or mean <= 0 or not 0 < variance < mean:
        return None
    trials = max(round(mean / (1.0 - variance / mean)), int(y.max()))
    p = mean / trials
    if p >= 1:
        return None
    log = gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1) + xlogy(y, p) + xlogy(trials - y, 1 - p)
    return trials, float(-2.0 * weight @ log)
