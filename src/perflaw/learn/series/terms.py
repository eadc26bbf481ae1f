"""Laws of several features as sums of terms: the terms, their fits to one series, and means and intervals of the law.

A term is a product of x, x log x, x², √x, log x and 1/x of one or more features, or a constant. It is written relative to
its value at the largest |x| of each feature, so that coefficients are responses (unit of y) and a change of unit of a
feature changes nothing.

Many sums are fitted to one series at once, by least squares in y, or in log y by Gauss–Newton. Under multiplicative
noise coefficients are positive (their logarithms are the parameters), so the mean is positive on the data. Under
additive noise only the constant and straight lines may have negative ones.
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
from perflaw.learn.series.candidates import BARTLETT
from perflaw.learn.series.law import distribution
from perflaw.learn.series.model import (
    STEEP_COST,
    STEEPEST,
    USUAL_EXPONENTS,
    Band,
    NoiseModel,
    clipped,
    finite_band,
    upper_factor,
)
from perflaw.learn.series.series import Array, Rows, drawn_rows
from perflaw.types import Noise

ITERATIONS = 12
"""Most Gauss–Newton steps; it converges in 4 to 7 if the sum fits at all."""
LIVELY = 0.7
"""The search continues with the unfinished sums alone once they are fewer than this share."""
ENOUGH = 1e-4
"""Sums whose residual sum of squares falls by less than this part have converged."""


@dataclass(frozen=True, slots=True)
class Factor(Shape):
    """A shape of one feature as a factor of a term."""

    surprise: float = 0.0
    """Score it costs to be a rarer shape."""


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
"""One factor for each feature; the constant term has ONE for all."""


def is_constant(term: Term) -> bool:
    """Whether the term is the intercept."""
    return all(factor is ONE for factor in term)


def may_be_negative(term: Term) -> bool:
    """Constants and straight lines may fall; a steeper term that does says more about the noise."""
    return is_constant(term) or (LINEAR in term and sum(f is not ONE for f in term) == 1)


def steepness_cost(exponent: float) -> float:
    """Score that an exponent costs beyond those of programs: it needs overwhelming evidence."""
    low, high = USUAL_EXPONENTS
    return 0.0 if low <= exponent <= high else STEEP_COST


def surprise(term: Term) -> float:
    """Score a term costs for being a rarer shape; a product costs what its rarest factor does and a little more."""
    parts = [factor.surprise + steepness_cost(factor.exponent) for factor in term if factor is not ONE]
    return max(parts, default=0.0) + 0.5 * (sum(parts) - max(parts, default=0.0))


def dictionary(low: Array, high: Array, binary: NDArray[np.bool_]) -> list[Term]:
    """All terms of features between low and high, (F,) each: constant, single, pairs, the product of all.

    All shapes of a feature with only two values are the same, and a straight line stands for them: ``binary`` (F,).
    """
    count = len(low)

    def term(factors: Mapping[int, Factor]) -> Term:
        return tuple(factors.get(f, ONE) for f in range(count))

    factors: list[list[Factor]] = []
    for f in range(count):
        ends = np.array([low[f], high[f]])
        shapes = FACTORS[:1] if binary[f] else FACTORS
        factors.append([shape for shape in shapes if high[f] > low[f] and shape.defined(ends)])
    out: list[Term] = [(ONE,) * count]
    out += [term({f: g}) for f in range(count) for g in factors[f]]
    not_negative = [f for f in range(count) if low[f] >= 0]
    for i, j in combinations(not_negative, 2):
        pairs = product(factors[i], factors[j])
        out += [term({i: g, j: h}) for g, h in pairs if g.surprise + h.surprise <= 3.0]
    if count > 2 and len(not_negative) == count:
        out.append((LINEAR,) * count)
    return out


def term_values(terms: Sequence[Term], x: Array, top: Array) -> Array:
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


def simple_shapes(x: Array) -> Array:
    """Numbers x (n,) over the largest magnitude, their squares, and their logarithms: (3, n).

    Of numbers that are not all positive, the third is a curve that rises like a logarithm on either side of 0.
    """
    scaled = x / max(float(np.abs(x).max()), 1e-300)
    return np.stack([scaled, scaled * scaled, np.log(scaled) if (scaled > 0).all() else np.arcsinh(30.0 * scaled)])


@dataclass(frozen=True, slots=True)
class Responses:
    """What sums are fitted to: one series of n rows, or a series for each of B sums."""

    y: Array
    """Responses, (n,) or (B, n)."""
    log_y: Array
    """Their logarithms, of the same shape."""
    w: Array
    """Weights, of the same shape; their sum over the rows of a series is n."""


@dataclass(frozen=True, slots=True)
class Sample(Responses):
    """Rows that sums are fitted to: all of a series, (n,), or an even part of them."""

    x: Array
    """Features, (F, n)."""
    quantum: float
    """Resolution of y."""
    effective: float
    """Effective number of independent rows."""
    top: Array
    """Largest |x| of the whole series, (F,)."""
    bottom: Array
    """Smallest x of the whole series, (F,)."""
    binary: NDArray[np.bool_]
    """Features that have two values at most, (F,)."""

    @classmethod
    def of(cls, rows: Rows, features: Sequence[int], most: int = 0) -> Sample:
        """Some features of a series; at most ``most`` rows of it, drawn by a generator seeded by n alone."""
        x, n = rows.x[list(features)], rows.y.size
        keep = drawn_rows(n, most or n)
        w, size = rows.w[keep], rows.y[keep].size
        bottom = x.min(axis=-1)
        return cls(
            x=np.ascontiguousarray(x[:, keep]),
            y=rows.y[keep],
            log_y=rows.log_y[keep],
            w=w * (size / w.sum()),
            quantum=rows.series.quantum,
            effective=max(rows.effective * size / n, 1.0),
            top=np.maximum(np.abs(x).max(axis=-1), 1e-300),
            bottom=bottom,
            binary=((x == bottom[:, None]) | (x == x.max(axis=-1)[:, None])).all(axis=-1),
        )

    @property
    def deviance_weight(self) -> float:
        """Weight of a row's deviance: Bartlett's correction for few rows, rows that share runs discounted."""
        return max(self.effective - BARTLETT, 0.5 * min(self.effective, 1.0)) / self.y.size

    def floor(self, noise: NoiseModel) -> float:
        """Smallest credible σ."""
        return float(noise.floor(self.y[None], self.w[None], np.array([self.quantum]))[0])

    def deviance(self, noise: NoiseModel, rss: Array) -> Array:
        """−2 log likelihood, shape of ``rss``."""
        return noise.deviance(rss, self.floor(noise), self.y.size, (self.w * self.log_y).sum())


def coefficient_variances(gradient: Array, w: Array) -> Array:
    """Diagonals of (J W Jᵀ)⁻¹ for many gradients: (B, P, n), weights (n,) or (B, n) -> (B, P); huge if it does not exist."""
    return _inverse_diagonals((gradient * w[..., None, :]) @ gradient.transpose(0, 2, 1))


def _inverse_diagonals(gram: Array) -> Array:
    """Diagonals of the inverses of symmetric matrices, (B, P, P) -> (B, P); huge if an inverse does not exist."""
    size = gram.shape[1]
    diagonal = gram.reshape(-1, size**2)[:, :: size + 1]
    scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))
    scaled = np.ascontiguousarray(gram * scale[:, :, None] * scale[:, None, :])
    scaled.reshape(-1, size**2)[:, :: size + 1] += 1e-12
    scaled[~np.isfinite(scaled).all(axis=(1, 2))] = np.eye(size)
    inverse = np.linalg.inv(scaled).reshape(-1, size**2)[:, :: size + 1] * scale**2
    return np.where(diagonal > 0, np.minimum(np.maximum(inverse, 0.0), 1e300), 1e300)


def solve(gram: Array, right: Array) -> Array:
    """Solutions of many small symmetric systems, (B, k, k) and (B, k) -> (B, k), scaled to a unit diagonal first."""
    size = gram.shape[-1]
    scale = 1.0 / np.sqrt(np.maximum(gram.reshape(-1, size**2)[:, :: size + 1], 1e-300))
    scaled = np.ascontiguousarray(gram * scale[:, :, None] * scale[:, None, :])
    scaled.reshape(-1, size**2)[:, :: size + 1] += 1e-13
    target = right * scale
    fine = np.isfinite(scaled).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
    if not fine.all():
        scaled[~fine], target[~fine] = np.eye(size), 0.0
    return np.asarray(np.linalg.solve(scaled, target[..., None])[..., 0] * scale)


def fit_sums(
    a: Array, responses: Responses, noise: NoiseModel, signed: NDArray[np.bool_], start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Fit sums of columns a (B, k, n): coefficients (B, k), weighted residual sums of squares (B,), variances (B, k).

    The variances are those of the coefficients' logarithms over σ². ``start`` (B, k) are coefficients to start from if
    they are known; ``signed`` (B, k) are terms that may have a negative coefficient: a sum that would need others has
    an infinite residual sum of squares.
    """
    if noise.log:
        return _fit_log_sums(a, responses, start)
    y, w = responses.y, responses.w
    weighted = a * w[..., None, :]
    beta = solve(weighted @ a.transpose(0, 2, 1), (weighted @ y[..., None])[..., 0])
    residual = y - (beta[:, None, :] @ a)[:, 0]
    rss = weighted_squares(residual, w)
    fine = ((beta >= 0) | signed).all(axis=1) & np.isfinite(rss)
    return beta, np.where(fine, rss, np.inf), coefficient_variances(a, w) / np.maximum(beta**2, 1e-300)


def weighted_squares(residual: Array, w: Array) -> Array:
    """Sums of squares (B,) of residuals (B, n) with weights (n,) or (B, n)."""
    return np.asarray(residual**2 @ w if w.ndim == 1 else (residual**2 * w).sum(axis=-1))


def _fit_log_sums(a: Array, responses: Responses, start: Array | None) -> tuple[Array, Array, Array]:
    """:func:`fit_sums` under multiplicative noise; it starts from least squares in y / mean, made positive."""
    y, w = responses.y, responses.w
    scale = y.max(axis=-1, keepdims=True)
    if a.shape[1] == 1:  # the mean logarithm of response over term
        positive = np.asarray((a[:, 0] > 0).all(axis=-1))
        away = responses.log_y - np.log(np.where(positive[:, None], a[:, 0], 1.0))
        total = w.sum(axis=-1)
        middle = (away * w).sum(axis=-1) / total
        rss = weighted_squares(away - middle[:, None], w)
        variances = np.zeros((len(a), 1)) + np.reshape(1.0 / total, (-1, 1))
        return np.exp(np.clip(middle, -600.0, 600.0))[:, None], np.where(positive, rss, np.inf), variances
    if start is None:
        relative = a * (scale / y)[..., None, :]
        weighted = relative * w[..., None, :]
        solved = solve(weighted @ relative.transpose(0, 2, 1), weighted.sum(axis=-1))
        alone = weighted.sum(axis=-1) / np.maximum((weighted * relative).sum(axis=-1), 1e-300)
        beta = np.asarray(np.maximum(solved, 0.02 * np.maximum(alone, 1e-30)))
    else:
        beta = np.maximum(start / scale, 1e-250)
    search = _LogSearch.at(a, beta, responses.log_y - np.log(scale), w)
    rss, members = search.rss.copy(), np.arange(len(a))
    for _ in range(ITERATIONS):
        search.step()
        left = np.flatnonzero(search.running)
        if left.size < LIVELY * members.size:
            beta[members], rss[members] = search.beta, search.rss
            members, search = members[left], search.take(left)
            if not left.size:
                break
    beta[members], rss[members] = search.beta, search.rss
    gram = _LogSearch.at(a, beta, responses.log_y - np.log(scale), w).normal_matrix()[0]
    return beta * scale, np.where(np.isfinite(rss), rss, np.inf), _inverse_diagonals(gram)


@dataclass(slots=True)
class _LogSearch:
    """State of the search for the coefficients of B sums under multiplicative noise."""

    a: Array
    """Columns, (B, k, n)."""
    target: Array
    """Logarithms of the responses, (n,) or (B, n)."""
    w: Array
    """Weights, of the same shape."""
    beta: Array
    """Coefficients, (B, k)."""
    mean: Array
    """Means, (B, n); 1 where a mean is not positive."""
    residual: Array
    """Logarithms of responses over means, (B, n)."""
    rss: Array
    """Weighted residual sums of squares, (B,); infinite if a mean is not positive."""
    damping: Array
    """Damping of the next step, (B,)."""
    running: NDArray[np.bool_]
    """Sums that may still improve, (B,)."""

    @classmethod
    def at(cls, a: Array, beta: Array, target: Array, w: Array) -> _LogSearch:
        """State at some coefficients."""
        damping, running = np.full(len(a), 1e-4), np.ones(len(a), dtype=bool)
        return cls(a, target, w, beta, *_log_residual(a, beta, target, w), damping, running)

    def take(self, members: NDArray[np.intp]) -> _LogSearch:
        """State of some of the sums."""
        target, w = (one if one.ndim == 1 else one[members] for one in (self.target, self.w))
        beta, mean, residual = self.beta[members], self.mean[members], self.residual[members]
        numbers = self.rss[members], self.damping[members], self.running[members]
        return _LogSearch(self.a[members], target, w, beta, mean, residual, *numbers)

    def normal_matrix(self) -> tuple[Array, Array]:
        """JᵀWJ (B, k, k) and JᵀWr (B, k) of the coefficients' logarithms."""
        root = np.sqrt(self.w)
        columns = self.a * (root / self.mean)[:, None]
        gram = (columns @ columns.transpose(0, 2, 1)) * self.beta[:, :, None] * self.beta[:, None]
        return gram, (columns @ (self.residual * root)[..., None])[..., 0] * self.beta

    def step(self) -> None:
        """Propose a damped Gauss–Newton step and take it where it lowers the residuals."""
        gram, right = self.normal_matrix()
        size, running = gram.shape[1], self.running
        gram.reshape(-1, size**2)[:, :: size + 1] *= 1.0 + self.damping[:, None]
        step = np.minimum(np.maximum(solve(gram, right), -2.0), 2.0)
        moved = np.minimum(np.maximum(self.beta * np.exp(step), 1e-250), 1e250)
        proposal = np.where(running[:, None], moved, self.beta)
        mean, residual, rss = _log_residual(self.a, proposal, self.target, self.w)
        better = running & (rss <= self.rss)
        self.running = running & ~(better & (rss >= self.rss * (1.0 - ENOUGH))) & (self.damping < 1e6)
        self.damping = np.where(better, self.damping * 0.1, np.maximum(self.damping, 1e-3) * 10.0)
        if better.all():
            self.beta, self.mean, self.residual, self.rss = proposal, mean, residual, rss
            return
        take = better[:, None]
        self.beta, self.rss = np.where(take, proposal, self.beta), np.where(better, rss, self.rss)
        self.mean, self.residual = np.where(take, mean, self.mean), np.where(take, residual, self.residual)


def _log_residual(a: Array, beta: Array, target: Array, w: Array) -> tuple[Array, Array, Array]:
    """Means (B, n), residuals (B, n) and RSS (B,) on the log scale; RSS is infinite if a mean is not positive.

    ``target`` are logarithms of responses, (n,) or (B, n), with weights ``w`` of the same shape.
    """
    mean = (beta[:, None] @ a)[:, 0]
    above = mean > 0
    positive = above.all(axis=-1)
    if not positive.all():
        mean = np.where(above, mean, 1.0)
    residual = target - np.log(mean)
    return mean, residual, np.where(positive, weighted_squares(residual, w), np.inf)


@dataclass(frozen=True, slots=True)
class SumOfTerms:
    """A mean: coefficients times terms of several features; exponents of a single product may be learnt.

    Its parameters are the coefficients (their logarithms under multiplicative noise) and the learnt exponents.
    """

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
        """Number of parameters."""
        return len(self.terms) + len(self.free)

    def mean(self, x: Array) -> tuple[Array, Array]:
        """Median or mean at x (F, k) and its gradient by the parameters on the noise's scale, (k,) and (P, k)."""
        values = term_values(self.terms, x, self.top)
        parts = self.coefficients[:, None] * values
        mean = parts.sum(axis=0)
        logs = [np.log(np.maximum(x[f] / self.top[f], 1e-300)) for f in self.free]
        if self.noise.log:
            safe = np.where(mean > 0, mean, 1.0)
            return mean, np.stack([*(parts / safe), *logs])
        return mean, np.stack([*values, *(mean * log for log in logs)])

    def expression(self, smearing: float) -> Expression:
        """Mean as an expression: products before single terms before the constant."""

        def order(pair: tuple[Term, float]) -> tuple[bool, int, float]:
            factors = sum(1 for f in pair[0] if f.exponent or f.log_exponent)
            return is_constant(pair[0]), -factors, -sum(f.exponent for f in pair[0])

        written = []
        for term, coefficient in sorted(zip(self.terms, self.coefficients, strict=True), key=order):
            size, printed = self._printed(term, float(coefficient) * smearing)
            factors = (
                one for factor, name in zip(printed, self.names, strict=True) for one in factor.factors(Name(name))
            )
            written.append((size, list(factors)))
        return combination(written)

    def leading_coefficient(self, smearing: float) -> float:
        """Coefficient of the term that is largest at the upper end of the data, in the unit of y."""
        k = int(np.argmax(np.abs(self.coefficients)))
        return self._printed(self.terms[k], float(self.coefficients[k]) * smearing)[0]

    def _printed(self, term: Term, response: float) -> tuple[float, Term]:
        """Coefficient of a term that gives a response at the largest values, for its exponents as they are printed."""
        printed = tuple(f if f is ONE else Factor(rounded(f.exponent), f.log_exponent, f.surprise) for f in term)
        unit = 1.0
        for f, factor in enumerate(printed):
            unit *= float(self.top[f] ** factor.exponent)
            unit *= float(np.log(self.top[f])) ** factor.log_exponent if factor.log_exponent else 1.0
        return response / unit, printed

    def local_exponents(self) -> tuple[Array, Array]:
        """Local exponents at the largest values, (F,), and their gradient by the parameters, (F, P)."""
        parts, values = self.coefficients, np.ones(len(self.coefficients))
        mean = max(float(parts.sum()), 1e-3 * float(np.abs(parts).sum()), 1e-290)
        each = np.array(
            [[float(g.local_exponent(np.asarray(t))) for g, t in zip(m, self.top, strict=True)] for m in self.terms]
        )
        local = parts @ each / mean
        by_coefficient = ((parts if self.noise.log else values) / mean)[:, None] * (each - local)
        by_exponent = np.zeros((len(self.free), len(self.names)))
        by_exponent[np.arange(len(self.free)), list(self.free)] = 1.0
        return local, np.concatenate([by_coefficient, by_exponent]).T


@dataclass(frozen=True, slots=True)
class SeveralFeaturesLaw:
    """A sum of terms with its uncertainty; as :class:`~perflaw.learn.series.learnt.Predictor`.

    Intervals are those of :mod:`perflaw.learn.series.model`, with the gradient of this mean.
    """

    sum: SumOfTerms
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
    def family(self) -> str:
        """Name of its family."""
        return "sum" if len(self.sum.terms) > 1 else "product"

    @property
    def features(self) -> tuple[str, ...]:
        """Features it depends on."""
        return self.sum.names

    @property
    def smearing(self) -> float:
        """Smearing factor, the mean of the noise over its median."""
        return float(np.exp(min(self.variance / 2.0, 300.0))) if self.sum.noise.log else 1.0

    @property
    def noise(self) -> Noise:
        """Scatter of rows about the mean."""
        return Noise("lognormal" if self.sum.noise.log else "normal", float(np.sqrt(self.variance)))

    def mean(self, at: Mapping[str, Array]) -> Array:
        """Expected response, (k,), never negative."""
        middle, _ = self.sum.mean(np.stack([at[feature] for feature in self.features]))
        return clipped(middle * self.smearing)

    def band(self, at: Mapping[str, Array]) -> Band:
        """Mean, its limits, and those of a new row from a new run, (k,) each."""
        middle, gradient = self.sum.mean(np.stack([at[feature] for feature in self.features]))
        spread = np.maximum(np.einsum("pk,pq,qk->k", gradient, self.covariance, gradient), 0.0)
        new = self.quantile * np.sqrt(spread + self.variance)
        if not self.sum.noise.log:
            half = self.quantile * np.sqrt(spread)
            return finite_band(middle, middle - half, middle + half, middle - new, middle + new)
        half = self.quantile * np.sqrt(spread + self.variance_error / 4.0)
        middle = np.maximum(middle, 0.0)
        mean, difference = middle * self.smearing, len(self.sum.terms) > 1
        return finite_band(
            mean,
            mean * np.exp(-half),
            mean * upper_factor(half, difference=difference),
            middle * np.exp(-new),
            middle * upper_factor(new, difference=difference),
        )

    def slope(self) -> dict[str, tuple[float, float, float]]:
        """Local exponent at the upper end of the data with its limits, by feature."""
        local, gradient = self.sum.local_exponents()
        half = self.quantile * np.sqrt(np.maximum(np.einsum("fp,pq,fq->f", gradient, self.covariance, gradient), 0.0))
        half = np.where(np.isfinite(half), half, STEEPEST)
        limits = np.clip(np.stack([local, local - half, local + half], axis=1), -STEEPEST, STEEPEST)
        return {feature: (row[0], row[1], row[2]) for feature, row in zip(self.features, limits.tolist(), strict=True)}

    def expression(self) -> Expression:
        """Mean as an expression."""
        return self.sum.expression(self.smearing)

    def distribution(self) -> Distribution:
        """The distribution of responses as an expression."""
        return distribution(self.expression(), self.noise)
