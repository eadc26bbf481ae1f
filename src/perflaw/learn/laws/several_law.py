"""A law of several features that can be asked: sums of terms, and power products whose exponents may be learnt.

Its parameters are the terms' coefficients (their logarithms under multiplicative noise) and the learnt exponents of a
product. Intervals are those of :mod:`perflaw.learn.laws.band`, with the gradient of this mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.band import Band, clipped, cut
from perflaw.learn.laws.expression import number
from perflaw.learn.laws.noise import NoiseModel
from perflaw.learn.laws.series import Array
from perflaw.learn.laws.several_terms import Term, columns, is_constant, printed, text, unit_of

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

    def text(self, smear: float) -> str:
        """Mean in the annotation language, products before single terms before the constant."""
        pieces: list[str] = []
        for term, coefficient in sorted(zip(self.terms, self.coefficients, strict=True), key=lambda p: _place(p[0])):
            term = printed(term)
            size = coefficient * smear / unit_of(term, self.top)
            words = text(term, self.names)
            sign = ("-" if size < 0 else "") if not pieces else (" - " if size < 0 else " + ")
            pieces.append(sign + number(abs(size)) + (f"*{words}" if words else ""))
        return "".join(pieces)

    def leading(self, smear: float) -> float:
        """Coefficient of the term that is largest at the upper end of the data, in the unit of y."""
        k = int(np.argmax(np.abs(self.coefficients)))
        return float(self.coefficients[k]) * smear / unit_of(printed(self.terms[k]), self.top)

    def exponents(self) -> tuple[Array, Array]:
        """Local exponents at the largest values, (F,), and their gradient by the parameters, (F, P)."""
        parts, values = self.coefficients, np.ones(len(self.coefficients))
        mean = max(float(parts.sum()), 1e-3 * float(np.abs(parts).sum()), 1e-290)
        each = np.array(
            [[float(g.elasticity(np.asarray(t))) for g, t in zip(m, self.top, strict=True)] for m in self.terms]
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
    """A sum with its uncertainty; implements :class:`perflaw.learn.laws.asked.Asked`."""

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

    def expression(self) -> str:
        """Whole distribution in the annotation language."""
        family = "LogNorm" if self.sum.noise.log else "Norm"
        return f"{family}({self.sum.text(self.smear)}, {number(float(np.sqrt(self.variance)))})"

    def _x(self, at: Mapping[str, Array]) -> Array:
        return np.stack([at[feature] for feature in self.sum.names])
