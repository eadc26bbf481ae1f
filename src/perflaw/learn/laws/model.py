"""One law as a function of its parameters: mean, gradient, local exponent.

A law is ``μ(x) = m0·(1 − t(x)) + m1·t(x)`` with ``t`` rising from 0 at the smallest to 1 at the largest x; without
intercept ``μ(x) = m1·t(x)``. The parameters are thus responses at the two ends of the data (their logarithms under
multiplicative noise, which keeps μ positive on the data by construction) and, where free, the exponent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.families import CONSTANT, Term
from perflaw.learn.laws.noise import NoiseModel
from perflaw.learn.laws.series import Array

TOP, BOTTOM, EXPONENT = 0, 1, 2
"""Places of the parameters: response at the largest x, at the smallest x, exponent."""

Theta = tuple[Array, Array, Array]
"""Parameters m1, m0 (responses) and b; each (...,) ."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Smallest and largest x of the data a law was fitted to; each (...,)."""

    low: Array
    """Smallest x."""
    high: Array
    """Largest x."""

    @property
    def top(self) -> Array:
        """Largest |x|, what terms are relative to."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


@dataclass(frozen=True, slots=True)
class Model:
    """A law to fit: which family, with or without intercept, which noise."""

    term: Term
    """Its family."""
    intercept: bool
    """μ(x) has a constant part."""
    noise: NoiseModel
    """Its noise."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Places of the parameters that are learnt."""
        return (TOP, *((BOTTOM,) if self.intercept else ()), *((EXPONENT,) if self.term.free else ()))

    def mean(self, theta: Theta, ends: Ends, x: Array) -> tuple[Array, list[Array]]:
        """Mean at x and its derivatives by :attr:`columns`; theta and ends (..., 1), x (..., k) -> (..., k)."""
        m1, m0, b = theta
        if self.term is CONSTANT:
            return m1 + 0.0 * x, [np.ones_like(x)]
        t, by_b = self._progress(x, b, ends)
        if not self.intercept:
            return m1 * t, [t, m1 * by_b] if self.term.free else [t]
        mean = m0 + (m1 - m0) * t
        gradient = [t, 1.0 - t]
        return mean, [*gradient, (m1 - m0) * by_b] if self.term.free else gradient

    def _progress(self, x: Array, b: Array, ends: Ends) -> tuple[Array, Array]:
        """``t`` of the module's formula and its derivative by the exponent (0 where that is fixed)."""
        term, top = self.term, ends.top
        value = term.value(x, b, top)
        by_b = term.by_exponent(x, value, top) if term.free else np.zeros(1)
        if not self.intercept:
            return value, by_b
        first = term.value(ends.low, b, top)
        span = term.value(ends.high, b, top) - first
        t = (value - first) / span
        if term.free:
            by_b = (by_b - term.by_exponent(ends.low, first, top) * (1.0 - t)) / span
        return t, by_b

    def scaled(self, theta: Theta, mean: Array, gradient: list[Array]) -> list[Array]:
        """Gradient on the noise's own scale: d log μ / d log m under multiplicative noise; shapes of ``gradient``."""
        if not self.noise.log:
            return gradient
        inner: dict[int, Array | float] = {TOP: theta[TOP], BOTTOM: theta[BOTTOM], EXPONENT: 1.0}
        return [inner[place] * column / mean for place, column in zip(self.columns, gradient, strict=True)]

    def coefficients(self, theta: Theta, ends: Ends) -> tuple[Array, Array]:
        """Intercept a and coefficient c of ``a + c·x^p·log(x)^l``, units of y; 0 intercept where there is none."""
        m1, m0, b = theta
        if self.term is CONSTANT:
            return np.zeros_like(m1), m1
        top = ends.top
        unit = self.term.unit(b, top)
        if not self.intercept:
            return np.zeros_like(m1), m1 / unit
        first = self.term.value(ends.low, b, top)
        slope = (m1 - m0) / (self.term.value(ends.high, b, top) - first)
        return m0 - slope * first, slope / unit

    def local_exponent(self, theta: Theta, ends: Ends, x: Array) -> Array:
        """Slope d log μ / d log x at x; where μ (nearly) vanishes, relative to a thousandth of its ends."""
        m1, m0, b = theta
        if self.term is CONSTANT:
            return np.zeros_like(m1 + x)
        top = ends.top
        elasticity = self.term.elasticity(x, b, top)
        if not self.intercept:
            return elasticity + 0.0 * m1
        value = self.term.value(x, b, top)
        slope = (m1 - m0) / (self.term.value(ends.high, b, top) - self.term.value(ends.low, b, top))
        mean, _ = self.mean(theta, ends, x)
        least = 1e-3 * (np.abs(m0) + np.abs(m1)) + 1e-290
        return slope * value * elasticity / np.maximum(mean, least)
