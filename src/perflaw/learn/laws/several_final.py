"""Last word on few candidates: fitted to all rows, scored, with covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from perflaw.learn.laws.clusters import cluster_covariance, moulton
from perflaw.learn.laws.noise import NoiseModel
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.score import LEAST
from perflaw.learn.laws.series import Array
from perflaw.learn.laws.several_fit import Sample, fit_sums, solve, spreads
from perflaw.learn.laws.several_law import SeveralLaw, Sum
from perflaw.learn.laws.several_search import price, worth
from perflaw.learn.laws.several_terms import Factor, Term, columns, may_be_negative, surprise

EXPONENT_WIDTH = 0.7
"""Prior width of a learnt exponent, as of the single-feature power law."""

STEPS = 20
"""Gauss–Newton steps for products under additive noise."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A law fitted to all rows."""

    sum: Sum
    """The law."""
    score: float
    """Score to choose by."""
    open_score: float
    """Score by which it stays beside the chosen law."""
    deviance: float
    """−2 log likelihood."""
    rss: float
    """Weighted residual sum of squares on the noise's scale."""
    floor: float
    """Smallest credible σ."""
    residual: Array
    """Residuals on the noise's scale, (n,)."""
    gradient: Array
    """Of the mean by the parameters on the noise's scale, (P, n)."""


def fitted(
    sample: Sample,
    names: tuple[str, ...],
    terms: tuple[Term, ...],
    noise: NoiseModel,
    free: tuple[int, ...] = (),
    coefficients: Array | None = None,
) -> Candidate | None:
    """Fit one law, from coefficients (K,) where they are known nearly; None where it cannot be."""
    law = Sum(names, terms, np.ones(len(terms)), (), noise, sample.top)
    a = columns(list(terms), sample.x, sample.top)
    signed = np.array([[may_be_negative(term) for term in terms]])
    beta, rss, _ = fit_sums(a[None], sample, noise, signed, None if coefficients is None else coefficients[None])
    if not np.isfinite(rss[0]):
        return None
    law = replace(law, coefficients=beta[0], free=free)
    if free and not noise.log:
        law = _descend(law, sample)
    return _candidate(law, sample)


def _candidate(law: Sum, sample: Sample) -> Candidate | None:
    mean, gradient = law.mean(sample.x)
    if law.noise.log and not (mean > 0).all():
        return None
    residual = sample.log_y - np.log(mean) if law.noise.log else sample.y - mean
    rss = float(sample.w @ residual**2)
    floor = sample.floor(law.noise)
    deviance = float(sample.deviance(law.noise, np.array(rss)))
    if not np.isfinite(deviance):
        return None
    rows = max(sample.worth, 1.0)
    rare = sum(surprise(term) for term in law.terms)
    count, variance = len(law.terms), _variance(rss, floor, sample, law.parameters)
    spread = spreads(gradient[None], sample.w)
    relative = spread[:, :count] if law.noise.log else spread[:, :count] / np.maximum(law.coefficients**2, 1e-300)
    cost = float(price(sample, relative, np.array([variance]))[0])
    for i in range(len(law.free)):
        wide = max(2.0 * np.pi * float(spread[0, count + i]) * variance * sample.y.size / rows, 1e-30)
        cost += max(2.0 * np.log(EXPONENT_WIDTH) - np.log(wide), np.log(rows) + LEAST)
    base = worth(sample) * deviance + rare
    plain = (law.parameters - 1) * np.log(rows)
    return Candidate(law, base + cost, base + plain, deviance, rss, floor, residual, gradient)


def _descend(law: Sum, sample: Sample) -> Sum:
    """Gauss–Newton with damping for exponents under additive noise."""
    damping, best = 1e-3, np.inf
    for _ in range(STEPS):
        mean, gradient = law.mean(sample.x)
        residual = sample.y - mean
        rss = float(sample.w @ residual**2)
        if rss >= best * (1.0 - 1e-9):
            break
        best = rss
        for _ in range(8):
            trial = _moved(law, gradient, residual, sample, damping)
            if float(sample.w @ (sample.y - trial.mean(sample.x)[0]) ** 2) < rss:
                law, damping = trial, damping * 0.1
                break
            damping *= 10.0
    return law


def _moved(law: Sum, gradient: Array, residual: Array, sample: Sample, damping: float) -> Sum:
    weighted = gradient * sample.w
    gram = weighted @ gradient.T
    gram = gram + np.diag(np.diag(gram)) * damping
    step = solve(gram[None], (weighted @ residual)[None])[0]
    count = len(law.terms)
    factors = list(law.terms[0])
    for i, f in enumerate(law.free):
        factors[f] = Factor(float(np.clip(factors[f].exponent + np.clip(step[count + i], -1, 1), -8.0, 8.0)))
    return replace(law, coefficients=law.coefficients + step[:count], terms=(tuple(factors),))


def uncertain(candidate: Candidate, rows: Rows, sample: Sample, confidence: float) -> SeveralLaw:
    """The law with covariance and quantile: from the rows, or from the spread between runs where rows share them."""
    law, size = candidate.sum, sample.y.size
    variance = _variance(candidate.rss, candidate.floor, sample, law.parameters)
    freedom = max(size - law.parameters, 1)
    hidden = rows.within[law.noise.log]
    inverse = _inverse(candidate.gradient, sample.w)
    if rows.clusters is None:
        covariance = inverse * (variance * size / rows.information)
        degrees = float(freedom)
    else:
        covariance = cluster_covariance(candidate.gradient, sample.w, candidate.residual, rows.clusters)
        covariance = covariance + np.diag(np.diag(inverse)) * candidate.floor**2
        degrees = float(rows.runs - 1)
    quantile = float(stdtrit(degrees, 0.5 + confidence / 2.0))
    return SeveralLaw(law, covariance, variance + hidden, 2.0 * variance**2 / freedom, quantile)


def _variance(rss: float, floor: float, sample: Sample, parameters: int) -> float:
    return max(rss / max(sample.y.size - parameters, 1), floor**2)


def _inverse(gradient: Array, w: Array) -> Array:
    """(J W Jᵀ)⁻¹, scaled to a unit diagonal first."""
    gram = (gradient * w) @ gradient.T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return np.asarray(
        np.linalg.pinv(gram * scale[:, None] * scale[None, :], rcond=1e-14) * scale[:, None] * scale[None, :]
    )


def independent(sample: Sample, rows: Rows, residual: Array, feature: int) -> float:
    """Independent rows that speak of a feature: discounted where rows share runs (Moulton 1986)."""
    if rows.clusters is None:
        return sample.worth
    return max(sample.worth / moulton(residual, rows.x[feature], rows.clusters), 1.0)


def best(candidates: Sequence[Candidate | None]) -> list[Candidate]:
    """Those that could be fitted, best first, equal ones once."""
    fine = sorted((one for one in candidates if one is not None), key=lambda one: one.score)
    out: list[Candidate] = []
    for one in fine:
        if not any(one.sum.terms == other.sum.terms and one.sum.noise is other.sum.noise for other in out):
            out.append(one)
    return out
