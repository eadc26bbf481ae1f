"""Terms of several features: products of x, x log x, x², √x, log x and 1/x of one or two features, and a constant.

Every term is written relative to its value at the largest |x| of each feature, so that coefficients are responses
(unit of y) and a change of unit of a feature changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import combination, rounded
from perflaw.laws.catalogue import FAMILIES, Shape
from perflaw.laws.tree import Distribution, Expression, Name
from perflaw.learn.series.band import Band, clipped, cut
from perflaw.learn.series.law import distribution
from perflaw.learn.series.model import NoiseModel
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Array
from perflaw.types import Noise


@dataclass(frozen=True, slots=True)
class Factor(Shape):
    """A shape of one feature as a factor of a term."""

    surprise: float = 0.0
    """Score it costs to be a rarer shape."""

    def available(self, low: float, high: float) -> bool:
        """Whether it is defined on a feature that varies between low and high."""
        return bool(self.defined(np.array([low, high])))


def factor_of(shape: Shape, surprise: float) -> Factor:
    """A shape of the catalogue as a factor of that cost."""
    return Factor(shape.exponent, shape.log_exponent, surprise)


ONE = Factor()
LINEAR = Factor(1.0)
FACTORS = tuple(
    sorted((factor_of(one.shape, one.factor) for one in FAMILIES if one.factor is not None), key=attrgetter("surprise"))
)
"""All factors, the plainest first."""

Term = tuple[Factor, ...]
"""One factor a feature; all ONE: the constant term."""


def is_constant(term: Term) -> bool:
    """The term is the intercept."""
    return all(factor is ONE for factor in term)


def may_be_negative(term: Term) -> bool:
    """Constants and straight lines may fall; that anything steeper does says more about the noise."""
    return is_constant(term) or (LINEAR in term and sum(f is not ONE for f in term) == 1)


def surprise(term: Term) -> float:
    """Score a term costs for being a rarer shape; products cost what their rarest factor does and a little more."""
    parts = [factor.surprise for factor in term if factor is not ONE]
    return max(parts, default=0.0) + 0.5 * (sum(parts) - max(parts, default=0.0))


def dictionary(low: Array, high: Array, two: NDArray[np.bool_]) -> list[Term]:
    """All terms of features between low and high, (F,) each: constant, single, pairs, the product of all.

    Where a feature has but two values, ``two`` (F,), all shapes are the same and it is taken for a straight line.
    """
    count = len(low)
    shapes = [FACTORS[:1] if two[f] else FACTORS for f in range(count)]
    fine = [[g for g in shapes[f] if high[f] > low[f] and g.available(low[f], high[f])] for f in range(count)]
    out: list[Term] = [(ONE,) * count]
    out += [_term(count, {f: g}) for f in range(count) for g in fine[f]]
    whole = [f for f in range(count) if low[f] >= 0]
    for i, j in combinations(whole, 2):
        out += [_term(count, {i: g, j: h}) for g, h in product(fine[i], fine[j]) if g.surprise + h.surprise <= 3.0]
    if count > 2 and len(whole) == count:
        out.append((LINEAR,) * count)
    return out


def _term(count: int, factors: dict[int, Factor]) -> Term:
    return tuple(factors.get(f, ONE) for f in range(count))


def columns(terms: list[Term], x: Array, top: Array) -> Array:
    """Values of terms, (M, n): x (F, n), top (F,)."""
    known: dict[tuple[int, Factor], Array] = {}
    out = np.ones((len(terms), x.shape[1]))
    for m, term in enumerate(terms):
        for f, factor in enumerate(term):
            if factor is ONE:
                continue
            if (f, factor) not in known:
                known[f, factor] = factor.ratio(x[f], top[f])
            out[m] *= known[f, factor]
    return out


def unit_of(term: Term, top: Array) -> float:
    """The term at ``top`` itself, what values are relative to."""
    out = 1.0
    for f, factor in enumerate(term):
        out *= float(top[f] ** factor.exponent)
        out *= float(np.log(top[f])) ** factor.log_exponent if factor.log_exponent else 1.0
    return out


def factors_of(term: Term, names: Sequence[str]) -> list[Expression]:
    """The factors of a term as expressions; none for the constant."""
    return [one for factor, name in zip(term, names, strict=True) for one in factor.factors(Name(name))]


def printed(term: Term) -> Term:
    """A term with its exponents as they are printed, so that its coefficient fits what a person reads."""
    return tuple(f if f is ONE else Factor(rounded(f.exponent), f.log_exponent, f.surprise) for f in term)


# ---- Fits of sums of terms to one series, many sums at once: least squares in y, or in log y by Gauss–Newton.
#
# Under multiplicative noise coefficients are positive (their logarithms are the parameters), so the mean is positive
# on
# the data by construction. Under additive noise only the constant and straight lines may have negative ones.

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


# ---- A law of several features that can be asked: sums of terms, and power products whose exponents may be learnt.
#
# Its parameters are the terms' coefficients (their logarithms under multiplicative noise) and the learnt exponents of
# a
# product. Intervals are those of :mod:`perflaw.learn.series.band`, with the gradient of this mean.

STEEPEST = 50.0
"""Local exponents are cut there."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A mean: coefficients times terms of several features."""

    names: tuple[str, ...]
    """Features, F of them."""
    terms: tuple[Term, ...]
    """K terms."""
    coefficients: Array
    """Responses that the terms give at the largest values of their features, (K,)."""
    free: tuple[int, ...]
    """Features whose exponent is learnt; of a single term only."""
    noise: NoiseModel
    """Noise."""
    top: Array
    """Largest |x| of every feature, (F,)."""

    @property
    def parameters(self) -> int:
        """How many are learnt."""
        return len(self.terms) + len(self.free)

    def mean(self, x: Array) -> tuple[Array, Array]:
        """Median or mean at x (F, k) and its gradient by the parameters on the noise's scale, (k,) and (P, k)."""
        values = columns(list(self.terms), x, self.top)
        parts = self.coefficients[:, None] * values
        mean = parts.sum(axis=0)
        logs = [np.log(np.maximum(x[f] / self.top[f], 1e-300)) for f in self.free]
        if self.noise.log:
            safe = np.where(mean > 0, mean, 1.0)
            return mean, np.stack([*(parts / safe), *logs])
        return mean, np.stack([*values, *(mean * log for log in logs)])

    def expression(self, smear: float) -> Expression:
        """Mean as an expression: products before single terms before the constant."""
        order = sorted(zip(self.terms, self.coefficients, strict=True), key=lambda pair: _place(pair[0]))
        terms = [(printed(term), float(coefficient) * smear) for term, coefficient in order]
        return combination([(size / unit_of(term, self.top), factors_of(term, self.names)) for term, size in terms])

    def leading(self, smear: float) -> float:
        """Coefficient of the term that is largest at the upper end of the data, in the unit of y."""
        k = int(np.argmax(np.abs(self.coefficients)))
        return float(self.coefficients[k]) * smear / unit_of(printed(self.terms[k]), self.top)

    def exponents(self) -> tuple[Array, Array]:
        """Local exponents at the largest values, (F,), and their gradient by the parameters, (F, P)."""
        parts, values = self.coefficients, np.ones(len(self.coefficients))
        mean = max(float(parts.sum()), 1e-3 * float(np.abs(parts).sum()), 1e-290)
        each = np.array(
            [[float(g.local_exponent(np.asarray(t))) for g, t in zip(m, self.top, strict=True)] for m in self.terms]
        )
        local = parts @ each / mean
        by = ((parts if self.noise.log else values) / mean)[:, None] * (each - local)
        exponent = np.zeros((len(self.free), len(self.names)))
        exponent[np.arange(len(self.free)), list(self.free)] = 1.0
        return local, np.concatenate([by, exponent]).T


def _place(term: Term) -> tuple[bool, int, float]:
    """Order in which terms are written."""
    factors = sum(1 for f in term if f.exponent or f.log_exponent)
    return is_constant(term), -factors, -sum(f.exponent for f in term)


@dataclass(frozen=True, slots=True)
class SeveralLaw:
    """A sum with its uncertainty; implements :class:`perflaw.learn.series.learnt.Asked`."""

    sum: Sum
    """The mean."""
    covariance: Array
    """Covariance of the parameters on the noise's scale, (P, P)."""
    variance: float
    """σ² of a row about the law on the noise's scale."""
    variance_error: float
    """Variance of the estimate of σ²."""
    quantile: float
    """Student's t for the confidence and degrees of freedom."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features it depends on."""
        return self.sum.names

    @property
    def smear(self) -> float:
        """Mean over median of the noise."""
        return float(np.exp(min(self.variance / 2.0, 300.0))) if self.sum.noise.log else 1.0

    def mean(self, at: Mapping[str, Array]) -> Array:
        """Expected response, (k,), never negative."""
        return clipped(self.sum.mean(self._x(at))[0] * self.smear)

    def band(self, at: Mapping[str, Array]) -> Band:
        """Mean, its limits, and those of a new row from a new run, (k,) each."""
        middle, gradient = self.sum.mean(self._x(at))
        spread = np.maximum(np.einsum("pk,pq,qk->k", gradient, self.covariance, gradient), 0.0)
        if self.sum.noise.log:
            return self._multiplicative(np.maximum(middle, 0.0), spread)
        half, new = self.quantile * np.sqrt(spread), self.quantile * np.sqrt(spread + self.variance)
        return cut(middle, middle - half, middle + half, middle - new, middle + new)

    def _multiplicative(self, middle: Array, spread: Array) -> Band:
        """Limits as factors; those of a sum grow linearly where they are wide, for it is a difference that is open."""
        half = self.quantile * np.sqrt(spread + self.variance_error / 4.0)
        new = self.quantile * np.sqrt(spread + self.variance)
        mean = middle * self.smear
        return cut(mean, mean * np.exp(-half), mean * self._up(half), middle * np.exp(-new), middle * self._up(new))

    def _up(self, half: Array) -> Array:
        if len(self.sum.terms) == 1:
            return np.exp(np.minimum(half, 600.0))
        return np.where(half < 1.0, np.exp(np.minimum(half, 1.0)), np.e * np.maximum(half, 1.0))

    def slope(self) -> dict[str, tuple[float, float, float]]:
        """Local exponent at the upper end of the data with its limits, by feature."""
        local, gradient = self.sum.exponents()
        half = self.quantile * np.sqrt(np.maximum(np.einsum("fp,pq,fq->f", gradient, self.covariance, gradient), 0.0))
        half = np.where(np.isfinite(half), half, STEEPEST)
        limits = np.clip(np.stack([local, local - half, local + half], axis=1), -STEEPEST, STEEPEST)
        return {feature: (row[0], row[1], row[2]) for feature, row in zip(self.sum.names, limits.tolist(), strict=True)}

    @property
    def noise(self) -> Noise:
        """Scatter of rows about the mean."""
        return Noise("lognormal" if self.sum.noise.log else "normal", float(np.sqrt(self.variance)))

    def distribution(self) -> Distribution:
        """The distribution of responses as an expression."""
        return distribution(self.sum.expression(self.smear), self.noise)

    def _x(self, at: Mapping[str, Array]) -> Array:
        return np.stack([at[feature] for feature in self.sum.names])
