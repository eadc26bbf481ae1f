"""Which sums and products of terms explain the responses: a search on few rows, and exact fits to all of them.

Sums are found by forward selection and removal with a beam, under both noises. From the best single terms on, every sum
of the beam is extended by the terms that the score test (gain of a term in one Gauss–Newton step) finds best, and all
sums with one term less are tried as well, so that an early mistake is repaired. Scores are those of
:mod:`perflaw.learn.series.candidates` with BIC's price for a coefficient.

Power products ``c·x^a·z^b`` have learnt exponents, or plain ones where the data allow these. Under multiplicative noise
a product is a straight line in logarithms, so one Gram matrix serves all variants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import FAMILIES
from perflaw.learn.series.candidates import EXTRA_COST, INTERCEPT_WIDTH
from perflaw.learn.series.model import LOGNORMAL, NORMAL, NoiseModel, cluster_covariance
from perflaw.learn.series.series import Array, Rows
from perflaw.learn.series.terms import (
    ONE,
    Factor,
    Responses,
    Sample,
    SeveralFeaturesLaw,
    SumOfTerms,
    Term,
    coefficient_variances,
    dictionary,
    factor_of,
    fit_sums,
    may_be_negative,
    solve,
    surprise,
    term_values,
)
from perflaw.special import stdtrit

BEAM = 6
"""Number of sums that are extended at each length."""
BRANCH = 6
"""Number of terms that each of them is extended by."""
LONGEST = 4
"""Most terms of a sum."""
SELECTION = 3.0
"""Score that every further term costs for being the best of many (the extended BIC: Chen & Chen 2008, §2)."""
ROWS_A_TERM = 3.0
"""Independent rows that a term needs."""
SNAPS = tuple(factor_of(one.shape, one.snap) for one in FAMILIES if one.snap is not None)
"""Plain factors that may replace a learnt exponent."""
NEAR, NEAR_ERRORS, ALWAYS_NEAR = 0.35, 3.5, 0.05
"""Distance of a plain factor from the learnt exponent: most, most in its standard errors, and allowed in any case."""
LEAST_ERROR = 0.02
"""Least standard error of an exponent: the noise may not be that of the straight line in logarithms."""
STEEPEST_FACTOR = 8.0
"""Largest magnitude of a learnt exponent of a product."""
MOST_FACTORS = 6
"""Most features of a product."""
EXPONENT_WIDTH = 0.7
"""Prior width of a learnt exponent, as in the power law of a single feature."""
STEPS = 20
"""Most Gauss–Newton steps for products under additive noise."""
Support = tuple[int, ...]
"""Places of a sum's terms in the dictionary, increasing."""


def coefficient_cost(count: int, effective: Array | float, variances: Array, variance: Array) -> Array:
    """Score of the coefficients beyond the first, (B,): Laplace's, as for an intercept of one feature.

    ``count`` is the number of rows, ``effective`` that of independent ones, (B,) or the same for all; variances (B, k)
    are those of the coefficients' logarithms over σ², variance (B,) is σ². A coefficient that only few large responses
    determine under additive noise costs most.
    """
    relative = np.minimum(np.maximum(variances * (variance * count / effective)[:, None], 1e-30), 1e30)
    least = np.reshape(np.log(np.maximum(effective, 1.0)) + EXTRA_COST, (-1, 1))
    each = SELECTION + np.maximum(2.0 * np.log(INTERCEPT_WIDTH) - np.log(2.0 * np.pi * relative), least)
    return np.asarray(each.sum(axis=1) - each.max(axis=1))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sum or a product that a search passes on to be fitted to all rows."""

    terms: tuple[Term, ...]
    """Its terms; factors with a learnt exponent stand at their estimate."""
    noise: NoiseModel
    """Its noise."""
    score: float
    """Score on the sample searched, smaller is better; scores of sums and of products do not compare."""
    coefficients: Array | None = None
    """Its coefficients on the sample searched, (K,), if they are known."""
    free: tuple[int, ...] = ()
    """Features whose exponent is learnt."""


def search_sums(sample: Sample, positive: bool, keep: int) -> list[Candidate]:
    """Best sums over all features of a sample, under both noises, best first."""
    terms = dictionary(sample.bottom, sample.top, sample.binary)
    values = term_values(terms, sample.x, sample.top)
    signed = np.array([may_be_negative(term) for term in terms])
    cost = np.array([surprise(term) for term in terms])
    used = [tuple(factor is not ONE for factor in term) for term in terms]
    plainer = [[m for m, other in enumerate(used) if other == own and cost[m] < cost[i]] for i, own in enumerate(used)]
    out: list[Candidate] = []
    for noise in (LOGNORMAL, NORMAL) if positive else (NORMAL,):
        pool = _Pool(sample, noise, values, signed, cost)
        pool.grow()
        pool.try_plainer(plainer)
        for support, (score, beta) in sorted(pool.known.items(), key=lambda item: (item[1][0], item[0]))[:keep]:
            if np.isfinite(score):
                out.append(Candidate(tuple(terms[i] for i in support), noise, score, beta))
    return sorted(out, key=lambda one: one.score)[:keep]


@dataclass(slots=True)
class _Pool:
    """All sums fitted so far under one noise."""

    sample: Sample
    noise: NoiseModel
    values: Array
    """Values of all terms, (M, n)."""
    signed: NDArray[np.bool_]
    """Terms that may have a negative coefficient, (M,)."""
    surprise: Array
    """Cost of every term for being a rarer shape, (M,)."""
    known: dict[Support, tuple[float, Array]] = field(default_factory=dict)
    """Support → score, coefficients."""

    def add(self, supports: Iterable[Support]) -> None:
        """Fit sums of one length that are not known yet."""
        fresh = sorted(set(supports) - self.known.keys())
        if not fresh:
            return
        places, sample = np.array(fresh), self.sample
        beta, rss, variances = fit_sums(self.values[places], sample, self.noise, self.signed[places])
        deviance = sample.deviance(self.noise, np.where(np.isfinite(rss), rss, 1.0))
        variance = np.maximum(rss / max(sample.y.size - places.shape[1], 1), sample.floor(self.noise) ** 2)
        cost = coefficient_cost(sample.y.size, sample.effective, variances, variance)
        score = sample.deviance_weight * deviance + cost + self.surprise[places].sum(axis=1)
        score = np.where(np.isfinite(rss) & np.isfinite(score), score, np.inf)
        for i, support in enumerate(fresh):
            self.known[support] = float(score[i]), beta[i]

    def best(self, length: int, count: int) -> list[Support]:
        """Best sums of a length."""
        some = [(known[0], s) for s, known in self.known.items() if len(s) == length and np.isfinite(known[0])]
        return [s for _, s in sorted(some)[:count]]

    def grow(self) -> None:
        """Add sums of growing length until those of a length are no better than the best shorter one."""
        self.add((m,) for m in range(len(self.values)))
        best = np.inf
        for length in range(1, LONGEST):
            beam = self.best(length, BEAM)
            if not beam or (length + 1) * ROWS_A_TERM > self.sample.effective:
                return
            score = self.known[beam[0]][0]
            if length > 1 and score > best:
                return
            best = min(best, score)
            self.add({longer for support in beam for longer in self.extended(support)})
            if length >= 2:
                some = self.best(length + 1, BEAM)
                self.add({support[:i] + support[i + 1 :] for support in some for i in range(len(support))})

    def extended(self, support: Support) -> list[Support]:
        """A sum with one term more: the terms with the largest gain in one step."""
        places, sample = np.array(support), self.sample
        beta, root = self.known[support][1], np.sqrt(sample.w)
        mean = beta @ self.values[places]
        if self.noise.log:
            columns = self.values * (root / mean)
            residual = (sample.log_y - np.log(mean)) * root
        else:
            columns = self.values * root
            residual = (sample.y - mean) * root
        basis = np.linalg.qr(columns[places].T)[0]
        residual = residual - basis @ (basis.T @ residual)
        along = columns @ residual
        length = (columns**2).sum(axis=1) - ((columns @ basis) ** 2).sum(axis=1)
        usable = length > 1e-9 * (columns**2).sum(axis=1)
        usable &= (along > 0) | (self.signed & (not self.noise.log))
        gain = np.where(usable, along**2 / np.where(usable, length, 1.0), 0.0)
        left = np.maximum(residual @ residual - gain, 1e-12 * (residual @ residual) + 1e-300)
        merit = -sample.effective * np.log(left) - self.surprise
        merit[~usable] = -np.inf
        merit[places] = -np.inf
        order = np.argsort(-merit, kind="stable")[:BRANCH]
        return [tuple(sorted((*support, int(m)))) for m in order if np.isfinite(merit[m])]

    def try_plainer(self, plainer: Sequence[Sequence[int]]) -> None:
        """Add sums with one or two terms replaced by plainer ones of the same features: x log x by x, √x·z by x·z."""
        for _ in range(2):
            for length in range(2, LONGEST + 1):
                sums = self.best(length, 2)
                some = [(*s[:i], m, *s[i + 1 :]) for s in sums for i, old in enumerate(s) for m in plainer[old]]
                self.add({tuple(sorted(s)) for s in some if len(set(s)) == length})


def products(sample: Sample, most: int) -> list[Candidate]:
    """The best few of the product with all exponents learnt and its variants with plain factors, all multiplicative.

    There are none if a feature is not positive, or with many features.
    """
    count, w = len(sample.x), sample.w
    if (sample.x <= 0).any() or count > MOST_FACTORS:
        return []
    z = np.stack([np.ones(sample.y.size), *np.log(sample.x / sample.top[:, None])])
    gram = (z * w) @ z.T
    estimate = solve(gram[None], ((z * w) @ sample.log_y)[None])[0]
    residual = sample.log_y - estimate @ z
    freedom = max(sample.y.size - len(z), 1)
    variance = sample.y.size / sample.effective * float(w @ residual**2) / freedom
    error = np.sqrt(np.maximum(np.diag(np.linalg.pinv(gram)) * variance, LEAST_ERROR**2))
    exponents = np.clip(estimate[1:], -STEEPEST_FACTOR, STEEPEST_FACTOR)
    options = [_factor_options(sample, f, float(exponents[f]), float(error[1 + f])) for f in range(count)]
    out = []
    for choice in product(*options):
        free = tuple(f for f, factor in enumerate(choice) if factor is None)
        kept = [0, *(1 + f for f in free)]
        fixed = np.zeros(sample.y.size)
        for f, factor in enumerate(choice):
            if factor is not None:
                fixed = fixed + np.log(np.maximum(factor.ratio(sample.x[f], sample.top[f]), 1e-300))
        target = sample.log_y - fixed
        part = solve(gram[np.ix_(kept, kept)][None], ((z[kept] * w) @ target)[None])[0]
        rss = max(float(w @ (target - part @ z[kept]) ** 2), 1e-16)
        learnt = dict(zip(free, np.clip(part[1:], -STEEPEST_FACTOR, STEEPEST_FACTOR).tolist(), strict=True))
        term = tuple(factor or Factor(learnt[f]) for f, factor in enumerate(choice))
        cost = len(free) * (np.log(max(sample.effective, 1.0)) + EXTRA_COST) + surprise(term)
        out.append(Candidate((term,), LOGNORMAL, float(sample.effective * np.log(rss) + cost), free=free))
    return sorted(out, key=lambda one: one.score)[:most]


def _factor_options(sample: Sample, f: int, exponent: float, error: float) -> list[Factor | None]:
    """A learnt exponent (None), and the two nearest plain factors."""
    near: list[tuple[float, Factor]] = []
    x = sample.x[f]
    for factor in SNAPS:
        if factor.log_exponent:
            if sample.bottom[f] < 1.0 or sample.top[f] <= 1.0:
                continue
            # The slope of log factor over log x.
            u = np.log(x)
            v = factor.exponent * u + factor.log_exponent * np.log(np.log(np.maximum(x, 1.0 + 1e-3)))
            u = u - u.mean()
            slope = float(u @ v / max(float(u @ u), 1e-300))
        else:
            slope = float(np.mean(factor.local_exponent(x)))
        away = abs(exponent - slope)
        if away <= max(min(NEAR, NEAR_ERRORS * error), ALWAYS_NEAR):
            near.append((away, factor))
    return [None, *(factor for _, factor in sorted(near, key=lambda pair: pair[0])[:2])]


@dataclass(frozen=True, slots=True)
class FittedSum:
    """A sum of terms fitted to all rows."""

    sum: SumOfTerms
    """The law."""
    score: float
    """Score to choose by."""
    plausible_score: float
    """Score by which it stays plausible beside the chosen law."""
    deviance: float
    """−2 log likelihood."""
    rss: float
    """Weighted residual sum of squares on the noise's scale."""
    variance: float
    """σ² on the noise's scale."""
    floor: float
    """Smallest credible σ."""
    residual: Array
    """Residuals on the noise's scale, (n,)."""
    gradient: Array
    """Gradient of the mean by the parameters on the noise's scale, (P, n)."""


def fit_candidates(sample: Sample, names: tuple[str, ...], candidates: Sequence[Candidate]) -> list[FittedSum]:
    """Candidates fitted to all rows, in their order; those that cannot be fitted are left out."""
    fitted: dict[int, FittedSum | None] = {}
    alike: dict[tuple[NoiseModel, int, bool], list[int]] = defaultdict(list)
    for i, one in enumerate(candidates):
        if one.free:
            fitted[i] = _fit_free(sample, names, one)
        else:
            alike[one.noise, len(one.terms), one.coefficients is None].append(i)
    for (noise, _, unknown), places in alike.items():
        terms = [candidates[i].terms for i in places]
        values = np.array([term_values(some, sample.x, sample.top) for some in terms])
        start = None if unknown else np.array([candidates[i].coefficients for i in places])
        count = len(places)
        fitted.update(
            zip(places, fit_alike([sample] * count, [names] * count, terms, noise, values, start), strict=True)
        )
    return [law for i in range(len(candidates)) if (law := fitted[i]) is not None]


def _fit_free(sample: Sample, names: tuple[str, ...], candidate: Candidate) -> FittedSum | None:
    """Fit a product some of whose exponents are learnt; None if it cannot be fitted."""
    terms, noise, free = candidate.terms, candidate.noise, candidate.free
    signed = np.array([[may_be_negative(term) for term in terms]])
    beta, sums, _ = fit_sums(term_values(terms, sample.x, sample.top)[None], sample, noise, signed)
    if not np.isfinite(sums[0]):
        return None
    law = SumOfTerms(names, terms, beta[0], free, noise, sample.top)
    if not noise.log:
        law = _refine_exponents(law, sample)
    mean, gradient = law.mean(sample.x)
    if noise.log and not (mean > 0).all():
        return None
    residual = sample.log_y - np.log(mean) if noise.log else sample.y - mean
    rss, floor = float(sample.w @ residual**2), sample.floor(noise)
    deviance = float(sample.deviance(noise, np.array(rss)))
    if not np.isfinite(deviance):
        return None
    size, effective, count = sample.y.size, max(sample.effective, 1.0), len(terms)
    variance = max(rss / max(size - law.parameters, 1), floor**2)
    variances = coefficient_variances(gradient[None], sample.w)
    of_terms = variances[:, :count]
    relative = of_terms if noise.log else of_terms / np.maximum(law.coefficients**2, 1e-300)
    cost = float(coefficient_cost(size, effective, relative, np.array([variance]))[0])
    for i in range(len(free)):
        wide = max(2.0 * np.pi * float(variances[0, count + i]) * variance * size / effective, 1e-30)
        cost += max(2.0 * np.log(EXPONENT_WIDTH) - np.log(wide), np.log(effective) + EXTRA_COST)
    base = sample.deviance_weight * deviance + sum(surprise(term) for term in law.terms)
    bic = (law.parameters - 1) * np.log(effective)
    return FittedSum(law, base + cost, base + bic, deviance, rss, variance, floor, residual, gradient)


def fit_alike(
    samples: Sequence[Sample],
    names: Sequence[tuple[str, ...]],
    terms: Sequence[tuple[Term, ...]],
    noise: NoiseModel,
    values: Array,
    start: Array | None = None,
) -> list[FittedSum | None]:
    """Fit B sums of k terms, each to a sample of n rows of its own, under one noise; None where one cannot be fitted.

    ``values`` (B, k, n) are those of the terms, ``start`` (B, k) coefficients to start from.
    """
    responses = Responses(*(np.array([getattr(one, name) for one in samples]) for name in ("y", "log_y", "w")))
    effective = np.array([max(one.effective, 1.0) for one in samples])
    signed = np.array([[may_be_negative(term) for term in some] for some in terms])
    beta, rss, relative = fit_sums(values, responses, noise, signed, start)
    y, log_y, w = responses.y, responses.log_y, responses.w
    count, k = y.shape[1], values.shape[1]
    floor = noise.floor(y, w, np.array([one.quantum for one in samples]))
    fine = np.isfinite(rss)
    rss = np.where(fine, rss, 1.0)
    deviance = noise.deviance(rss, floor, count, (w * log_y).sum(axis=-1))
    parts = beta[:, :, None] * values
    mean = parts.sum(axis=1)
    fine &= np.isfinite(deviance) & ((mean > 0).all(axis=-1) | (not noise.log))
    gradient = parts / mean[:, None] if noise.log else values
    residual = log_y - np.log(mean) if noise.log else y - mean
    variance = np.maximum(rss / max(count - k, 1), floor**2)
    cost = coefficient_cost(count, effective, relative, variance)
    weight = np.array([one.deviance_weight for one in samples])
    base = weight * deviance + np.array([sum(surprise(term) for term in some) for some in terms])
    scores, plausible = (base + cost).tolist(), (base + (k - 1) * np.log(effective)).tolist()
    return [
        FittedSum(
            SumOfTerms(names[i], terms[i], beta[i], (), noise, samples[i].top),
            scores[i],
            plausible[i],
            float(deviance[i]),
            float(rss[i]),
            float(variance[i]),
            float(floor[i]),
            residual[i],
            gradient[i],
        )
        if fine[i]
        else None
        for i in range(len(samples))
    ]


def _refine_exponents(law: SumOfTerms, sample: Sample) -> SumOfTerms:
    """Learn the exponents of a product under additive noise, by damped Gauss–Newton steps."""
    damping, best, count = 1e-3, np.inf, len(law.terms)
    for _ in range(STEPS):
        mean, gradient = law.mean(sample.x)
        residual = sample.y - mean
        rss = float(sample.w @ residual**2)
        if rss >= best * (1.0 - 1e-9):
            break
        best = rss
        weighted = gradient * sample.w
        gram = weighted @ gradient.T
        for _ in range(8):
            damped = gram + np.diag(np.diag(gram)) * damping
            step = solve(damped[None], (weighted @ residual)[None])[0]
            factors = list(law.terms[0])
            for i, f in enumerate(law.free):
                exponent = factors[f].exponent + np.clip(step[count + i], -1, 1)
                factors[f] = Factor(float(np.clip(exponent, -STEEPEST_FACTOR, STEEPEST_FACTOR)))
            trial = replace(law, coefficients=law.coefficients + step[:count], terms=(tuple(factors),))
            if float(sample.w @ (sample.y - trial.mean(sample.x)[0]) ** 2) < rss:
                law, damping = trial, damping * 0.1
                break
            damping *= 10.0
    return law


def with_uncertainty(fitted: FittedSum, rows: Rows, sample: Sample, confidence: float) -> SeveralFeaturesLaw:
    """The law with its covariance: from the rows, or from the spread between runs if rows share them."""
    law, gradient, size = fitted.sum, fitted.gradient, sample.y.size
    freedom = max(size - law.parameters, 1)
    gram = (gradient * sample.w) @ gradient.T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    scales = scale[:, None], scale[None, :]
    inverse = np.linalg.pinv(gram * scales[0] * scales[1], rcond=1e-14) * scales[0] * scales[1]
    if rows.clusters is None:
        covariance, degrees = inverse * (fitted.variance * size / rows.effective), float(freedom)
    else:
        covariance = cluster_covariance(gradient, sample.w, fitted.residual, rows.clusters)
        covariance = covariance + np.diag(np.diag(inverse)) * fitted.floor**2
        degrees = float(rows.runs - 1)
    quantile = float(stdtrit(degrees, 0.5 + confidence / 2.0))
    hidden, variance_error = rows.within[law.noise.log], 2.0 * fitted.variance**2 / freedom
    return SeveralFeaturesLaw(law, covariance, fitted.variance + hidden, variance_error, quantile)
