"""One law as a function of its parameters: mean, gradient, local exponent.

A law is ``μ(x) = m0·(1 − t(x)) + m1·t(x)`` with ``t`` rising from 0 at the smallest to 1 at the largest x; without
intercept ``μ(x) = m1·t(x)``. The parameters are thus responses at the two ends of the data (their logarithms under
multiplicative noise, which keeps μ positive on the data by construction) and, where free, the exponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, Family
from perflaw.learn.series.series import Array

# ---- The two noise models and their likelihoods on one scale.
#
# Additive: y = μ + σε. Multiplicative: log y = log μ + σε, with the Jacobian −Σ log y in its likelihood, so that both
# are densities of y itself and all laws compare whatever their noise. Floors of σ keep a perfect fit finite; both are
# strictly equivariant to the unit of y.

RELATIVE_FLOOR = 1e-8
"""σ is at least this part of the response: below it numbers are rounding, not measurement."""


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """How responses scatter: on which scale residuals are additive."""

    name: str
    """``normal`` or ``lognormal``."""

    @property
    def log(self) -> bool:
        """Residuals live on the log scale."""
        return self.name == "lognormal"

    def target(self, mean: Array) -> Array:
        """Responses or means on the scale of the residuals."""
        return np.log(mean) if self.log else mean

    def floor(self, y: Array, w: Array, quantum: Array) -> Array:
        """Smallest credible σ: y, w (B, n), quantum (B,) -> (B,); rounding to a grid has σ = quantum/√12."""
        count = w.sum(axis=-1)
        step = quantum / np.sqrt(12.0)
        if self.log:
            return np.asarray(np.maximum(step * np.sqrt((w / (y * y)).sum(axis=-1) / count), RELATIVE_FLOOR))
        # A response of zeros alone has no scale of its own; any positive floor does, for all laws fit it equally.
        size = RELATIVE_FLOOR * np.sqrt((w * y * y).sum(axis=-1) / count)
        return np.asarray(np.maximum(np.maximum(step, size), 1e-150))

    def deviance(self, rss: Array, floor: Array, count: Array, log_y: Array) -> Array:
        """−2 log likelihood of y at the best σ ≥ floor, up to a constant; all (B,), ``log_y`` is Σ log y."""
        variance = np.maximum(rss / count, floor**2)
        jacobian = 2.0 * log_y if self.log else 0.0
        return count * np.log(variance) + rss / variance + jacobian


NORMAL = NoiseModel("normal")
LOGNORMAL = NoiseModel("lognormal")

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

    family: Family
    """Its family."""
    intercept: bool
    """μ(x) has a constant part."""
    noise: NoiseModel
    """Its noise."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Places of the parameters that are learnt."""
        return (TOP, *((BOTTOM,) if self.intercept else ()), *((EXPONENT,) if self.family.free else ()))

    def mean(self, theta: Theta, ends: Ends, x: Array) -> tuple[Array, list[Array]]:
        """Mean at x and its derivatives by :attr:`columns`; theta and ends (..., 1), x (..., k) -> (..., k)."""
        m1, m0, b = theta
        if self.family is CONSTANT:
            return m1 + 0.0 * x, [np.ones_like(x)]
        t, by_b = self._progress(x, b, ends)
        if not self.intercept:
            return m1 * t, [t, m1 * by_b] if self.family.free else [t]
        mean = m0 + (m1 - m0) * t
        gradient = [t, 1.0 - t]
        return mean, [*gradient, (m1 - m0) * by_b] if self.family.free else gradient

    def _progress(self, x: Array, b: Array, ends: Ends) -> tuple[Array, Array]:
        """``t`` of the module's formula and its derivative by the exponent (0 where that is fixed)."""
        family, top = self.family, ends.top
        value = family.value(x, b, top)
        by_b = family.by_exponent(x, value, top) if family.free else np.zeros(1)
        if not self.intercept:
            return value, by_b
        first = family.value(ends.low, b, top)
        span = family.value(ends.high, b, top) - first
        t = (value - first) / span
        if family.free:
            by_b = (by_b - family.by_exponent(ends.low, first, top) * (1.0 - t)) / span
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
        if self.family is CONSTANT:
            return np.zeros_like(m1), m1
        top = ends.top
        unit = self.family.unit(b, top)
        if not self.intercept:
            return np.zeros_like(m1), m1 / unit
        first = self.family.value(ends.low, b, top)
        slope = (m1 - m0) / (self.family.value(ends.high, b, top) - first)
        return m0 - slope * first, slope / unit

    def local_exponent(self, theta: Theta, ends: Ends, x: Array) -> Array:
        """Slope d log μ / d log x at x; where μ (nearly) vanishes, relative to a thousandth of its ends."""
        m1, m0, b = theta
        if self.family is CONSTANT:
            return np.zeros_like(m1 + x)
        top = ends.top
        elasticity = self.family.elasticity(x, b, top)
        if not self.intercept:
            return elasticity + 0.0 * m1
        value = self.family.value(x, b, top)
        slope = (m1 - m0) / (self.family.value(ends.high, b, top) - self.family.value(ends.low, b, top))
        mean, _ = self.mean(theta, ends, x)
        least = 1e-3 * (np.abs(m0) + np.abs(m1)) + 1e-290
        return slope * value * elasticity / np.maximum(mean, least)


# ---- Symmetric systems of up to three unknowns, solved for a whole batch by formula.
#
# LAPACK costs a microsecond or two a matrix; these cost nanoseconds. Systems are scaled to a unit diagonal first,
# so that parameters of unlike size do no harm.


def gram(columns: Sequence[Array], w: Array | None) -> Array:
    """XᵀWX of p columns (B, n) with weights (B, n) or None for all 1, (p, p, B)."""
    size = len(columns)
    out = np.empty((size, size, len(columns[0])))
    for i in range(size):
        weighted = columns[i] if w is None else columns[i] * w
        for j in range(i, size):
            np.add.reduce(weighted * columns[j], axis=-1, out=out[i, j])
            out[j, i] = out[i, j]
    return out


def project(columns: Sequence[Array], weighted: Array) -> Array:
    """XᵀWy of p columns (B, n) and w·y (B, n), (p, B)."""
    out = np.empty((len(columns), len(weighted)))
    for i, column in enumerate(columns):
        np.add.reduce(column * weighted, axis=-1, out=out[i])
    return out


def inverse(matrix: Array, damping: Array | float = 0.0) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse (p, p, B) of ``A + damping·diag(A)`` and whether it exists numerically, (B,); damping (p, B) or (B,).

    A singular system gives zeros, so that a step along it is no step.
    """
    diagonal = _diagonal(matrix)
    positive = diagonal > 0
    scale = 1.0 / np.sqrt(np.where(positive, diagonal, 1.0))
    a = matrix * scale[:, None] * scale
    _diagonal(a)[...] += damping
    cofactors, determinant = _adjugate(a)
    regular = np.isfinite(determinant) & (determinant > 1e-13) & positive.all(axis=0)
    factor = np.where(regular, 1.0 / np.where(regular, determinant, 1.0), 0.0)
    return cofactors * factor * scale[:, None] * scale, regular


def _diagonal(matrix: Array) -> Array:
    """A view of the diagonals of contiguous matrices, (p, p, B) -> (p, B)."""
    return matrix.reshape(len(matrix) ** 2, -1)[:: len(matrix) + 1]


def _adjugate(a: Array) -> tuple[Array, Array]:
    """Cofactors (p, p, B) and determinant (B,) of symmetric matrices, their upper halves read."""
    if len(a) == 1:
        return np.ones_like(a), a[0, 0]
    out = np.empty_like(a)
    if len(a) == 2:
        out[0, 0], out[1, 1] = a[1, 1], a[0, 0]
        out[0, 1] = out[1, 0] = -a[0, 1]
        return out, a[0, 0] * a[1, 1] - a[0, 1] ** 2
    out[0, 0] = a[1, 1] * a[2, 2] - a[1, 2] ** 2
    out[0, 1] = out[1, 0] = a[0, 2] * a[1, 2] - a[0, 1] * a[2, 2]
    out[0, 2] = out[2, 0] = a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]
    out[1, 1] = a[0, 0] * a[2, 2] - a[0, 2] ** 2
    out[1, 2] = out[2, 1] = a[0, 1] * a[0, 2] - a[0, 0] * a[1, 2]
    out[2, 2] = a[0, 0] * a[1, 1] - a[0, 1] ** 2
    return out, a[0, 0] * out[0, 0] + a[0, 1] * out[0, 1] + a[0, 2] * out[0, 2]


def multiply(matrix: Array, vector: Array) -> Array:
    """Matrix (p, p, B) times vector (p, B), batch element by batch element, (p, B)."""
    products = matrix * vector
    out: Array = products[:, 0]
    for j in range(1, len(vector)):
        out = out + products[:, j]
    return out
