"""Which sums of terms explain the responses: forward selection and removal with a beam, under both noises.

From the best single terms on, every sum of the beam is extended by the terms that the score test (gain of a term in
one Gauss–Newton step) finds best, and all sums with one term less are tried as well, so that an early mistake is
repaired. Scores are those of :mod:`perflaw.learn.series.candidates` with BIC's price for a coefficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.learn.series.band import cluster_covariance, moulton
from perflaw.learn.series.candidates import BARTLETT, INTERCEPT_WIDTH, LEAST
from perflaw.learn.series.feature_terms import (
    ONE,
    Factor,
    Sample,
    SeveralLaw,
    Sum,
    Term,
    columns,
    dictionary,
    fit_sums,
    may_be_negative,
    solve,
    spreads,
    surprise,
)
from perflaw.learn.series.model import LOGNORMAL, NORMAL, NoiseModel
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Array

BEAM = 6
"""Sums that are extended at each length."""

BRANCH = 6
"""Terms each of them is extended by."""

LONGEST = 4
"""Most terms of a sum."""

SELECTION = 3.0
"""Score that every further term costs for being the best of many (the extended BIC: Chen & Chen 2008, §2)."""

ROWS_A_TERM = 3.0
"""Independent rows a term needs."""

Support = tuple[int, ...]
"""Places of a sum's terms in the dictionary, increasing."""


@dataclass(frozen=True, slots=True)
class Found:
    """A sum of terms with its noise and score."""

    terms: tuple[Term, ...]
    """Its terms."""
    noise: NoiseModel
    """Its noise."""
    score: float
    """Smaller is better."""
    coefficients: Array
    """Its coefficients on the sample searched, one a term."""


@dataclass(slots=True)
class _Pool:
    """All sums fitted so far under one noise."""

    sample: Sample
    noise: NoiseModel
    a: Array
    signed: NDArray[np.bool_]
    surprise: Array
    known: dict[Support, tuple[float, Array]] = field(default_factory=dict)
    """Support → score, coefficients."""

    def add(self, supports: Iterable[Support]) -> None:
        """Fit sums of one length that are not known yet."""
        fresh = sorted(set(supports) - self.known.keys())
        if not fresh:
            return
        places = np.array(fresh)
        beta, rss, spread = fit_sums(self.a[places], self.sample, self.noise, self.signed[places])
        deviance = self.sample.deviance(self.noise, np.where(np.isfinite(rss), rss, 1.0))
        floor = self.sample.floor(self.noise)
        cost = price(self.sample, spread, np.maximum(rss / max(self.sample.y.size - places.shape[1], 1), floor**2))
        score = worth(self.sample) * deviance + cost + self.surprise[places].sum(axis=1)
        score = np.where(np.isfinite(rss) & np.isfinite(score), score, np.inf)
        for i, support in enumerate(fresh):
            self.known[support] = float(score[i]), beta[i]

    def best(self, length: int, count: int) -> list[Support]:
        """Best sums of a length."""
        some = [(known[0], s) for s, known in self.known.items() if len(s) == length and np.isfinite(known[0])]
        return [s for _, s in sorted(some)[:count]]


def worth(sample: Sample) -> float:
    """What a row's deviance counts: Bartlett's correction for few rows, rows that share runs discounted."""
    return max(sample.worth - BARTLETT, 0.5 * min(sample.worth, 1.0)) / sample.y.size


def price(sample: Sample, spread: Array, variance: Array) -> Array:
    """Score of the coefficients beyond the first, (B,): Laplace's, as of an intercept of one feature.

    spread (B, k) over σ², variance (B,). What few large responses alone pin down under additive noise costs most.
    """
    relative = np.clip(spread * (variance * sample.y.size / sample.worth)[:, None], 1e-30, 1e30)
    least = np.log(max(sample.worth, 1.0)) + LEAST
    each = SELECTION + np.maximum(2.0 * np.log(INTERCEPT_WIDTH) - np.log(2.0 * np.pi * relative), least)
    return np.asarray(each.sum(axis=1) - each.max(axis=1))


def search(sample: Sample, positive: bool, keep: int) -> list[Found]:
    """Best sums over all features of a sample, under both noises, best first."""
    terms = dictionary(sample.bottom, sample.top, sample.two)
    a = columns(terms, sample.x, sample.top)
    signed = np.array([may_be_negative(t) for t in terms])
    cost = np.array([surprise(t) for t in terms])
    out: list[Found] = []
    for noise in (LOGNORMAL, NORMAL) if positive else (NORMAL,):
        pool = _Pool(sample, noise, a, signed, cost)
        _grow(pool)
        _plainer(pool, terms)
        for support, (score, beta) in sorted(pool.known.items(), key=lambda item: (item[1][0], item[0]))[:keep]:
            if np.isfinite(score):
                out.append(Found(tuple(terms[i] for i in support), noise, score, beta))
    return sorted(out, key=lambda one: one.score)[:keep]


def _grow(pool: _Pool) -> None:
    """Sums of growing length until none of a length is as good as the best shorter one nearly is."""
    pool.add((m,) for m in range(len(pool.a)))
    best = np.inf
    for length in range(1, LONGEST):
        beam = pool.best(length, BEAM)
        if not beam or (length + 1) * ROWS_A_TERM > pool.sample.worth:
            return
        here = pool.known[beam[0]][0]
        if length > 1 and here > best:
            return
        best = min(best, here)
        longer = {extended for support in beam for extended in _extended(pool, support)}
        pool.add(longer)
        if length >= 2:
            some = pool.best(length + 1, BEAM)
            pool.add({support[:i] + support[i + 1 :] for support in some for i in range(len(support))})


def _plainer(pool: _Pool, terms: Sequence[Term]) -> None:
    """Sums with one or two terms replaced by plainer ones of the same features: x log x by x, √x·z by x·z."""
    used = [tuple(factor is not ONE for factor in term) for term in terms]
    for _ in range(2):
        for length in range(2, LONGEST + 1):
            some = [(*s[:i], m, *s[i + 1 :]) for s in pool.best(length, 2) for i, m in _swaps(pool, s, used)]
            pool.add({tuple(sorted(s)) for s in some if len(set(s)) == length})


def _swaps(pool: _Pool, support: Support, used: Sequence[tuple[bool, ...]]) -> list[tuple[int, int]]:
    """Place in a sum and the plainer term to put there."""
    return [
        (i, m)
        for i, old in enumerate(support)
        for m in range(len(used))
        if used[m] == used[old] and pool.surprise[m] < pool.surprise[old]
    ]


def _extended(pool: _Pool, support: Support) -> Sequence[Support]:
    """A sum with one term more: the terms of the largest gain in one step."""
    places = np.array(support)
    beta, root = pool.known[support][1], np.sqrt(pool.sample.w)
    mean = beta @ pool.a[places]
    if pool.noise.log:
        over = pool.a * (root / mean)
        residual = (pool.sample.log_y - np.log(mean)) * root
    else:
        over = pool.a * root
        residual = (pool.sample.y - mean) * root
    basis = np.linalg.qr(over[places].T)[0]
    residual = residual - basis @ (basis.T @ residual)
    along = over @ residual
    length = (over**2).sum(axis=1) - ((over @ basis) ** 2).sum(axis=1)
    usable = length > 1e-9 * (over**2).sum(axis=1)
    usable &= (along > 0) | (pool.signed & (not pool.noise.log))
    gain = np.where(usable, along**2 / np.where(usable, length, 1.0), 0.0)
    left = np.maximum(residual @ residual - gain, 1e-12 * (residual @ residual) + 1e-300)
    merit = -pool.sample.worth * np.log(left) - pool.surprise
    merit[~usable] = -np.inf
    merit[places] = -np.inf
    order = np.argsort(-merit, kind="stable")[:BRANCH]
    return [tuple(sorted((*support, int(m)))) for m in order if np.isfinite(merit[m])]


# ---- Last word on few candidates: fitted to all rows, scored, with covariances.

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
