"""The families of laws, one instance each in a registry; a new family of one term is one line here.

A term is written relative to its value at the largest |x| in the data, so that coefficients of all families
are responses (unit of y) and nothing overflows whatever the unit of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.series import Array

POWER_STARTS = (-3.0, -2.0, -1.2, -0.6, -0.25, 0.15, 0.3, 0.5, 0.75, 1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0)
"""Exponents the search for the best power starts from."""


@dataclass(frozen=True, slots=True)
class Term:
    """A family of one feature with one leading term ``x^p · log(x)^l``, the exponent fixed or free."""

    name: str
    """Name in documents and verdicts."""
    exponent: float = 0.0
    """Exponent p of x, where it is fixed."""
    log_exponent: float = 0.0
    """Exponent l of log x (natural logarithm)."""
    free: bool = False
    """The exponent is learnt from the data (the family ``power``)."""
    surprise: float = 0.0
    """Score it costs to be a rarer shape; calibrated so that x log x and x^1.2 are told apart evenly."""

    starts: ClassVar[tuple[float, ...]] = POWER_STARTS
    """Where the search for a free exponent starts."""
    bound: ClassVar[float] = 8.0
    """Largest free exponent, either sign."""
    width: ClassVar[float] = 0.7
    """Prior width of a free exponent, see :mod:`perflaw.learn.series.candidates`."""

    @property
    def zero(self) -> float:
        """Where the term is 0; it is positive above."""
        return 1.0 if self.log_exponent else 0.0

    def printed(self, b: Array, top: Array) -> Array:
        """Exponent as it is printed, for x itself and not relative to ``top``."""
        return b

    def learnt(self, printed: Array, top: Array) -> Array:
        """The exponent that is printed so: the inverse of :meth:`printed`."""
        return printed

    def value(self, x: Array, b: Array, top: Array) -> Array:
        """Term at x over the term at ``top``; x, b and top broadcast, b is read only where the exponent is free.

        x log x is taken as 0 below x = 1, where the logarithm would turn negative.
        """
        ratio = x / top
        if self.free:
            return powered(b, _log(ratio))
        value: Array = ratio**self.exponent
        if self.log_exponent:
            value = value * (np.log(np.maximum(x, 1.0)) / np.log(top)) ** self.log_exponent
        return value

    def unit(self, b: Array, top: Array) -> Array:
        """Term at ``top`` itself, what values are relative to."""
        value: Array = np.abs(top) ** (b if self.free else self.exponent + 0.0 * b)
        return value * np.log(top) ** self.log_exponent if self.log_exponent else value

    def by_exponent(self, x: Array, value: Array, top: Array) -> Array:
        """Derivative of :meth:`value` by the free exponent; 0 at x = 0."""
        return np.where(x > 0, value * _log(x / top), 0.0)

    def logarithm(self, x: Array, top: Array) -> tuple[Array, Array]:
        """Of a free exponent: log :meth:`value` at exponent 1, and :meth:`by_exponent` over :meth:`value`."""
        log = _log(x / top)
        return log, np.where(x > 0, log, 0.0)

    def elasticity(self, x: Array, b: Array, top: Array) -> Array:
        """Local exponent of the term, d log term / d log x, at x."""
        if self.free:
            return b
        log_x = np.log(np.maximum(x, 1.0 + 1e-9))
        return self.exponent + (self.log_exponent / log_x if self.log_exponent else 0.0 * x)

    def available(self, x: Array) -> NDArray[np.bool_]:
        """Where the term is defined on the data: x (B, n) -> (B,) of bool.

        All but the line need x ≥ 0, logarithms x ≥ 1 (0 is allowed as the limit of x log x).
        """
        low, high = x.min(axis=-1), x.max(axis=-1)
        varies = high > low
        if self.log_exponent:
            fine = (x >= 1.0) | ((x == 0.0) & (self.exponent > 0))
            varies = varies & fine.all(axis=-1) & (high > 1.0)
        elif self.exponent != 1:
            varies = varies & (low >= 0)
        return np.asarray(varies)

    def text(self, x: str, exponent: str) -> str:
        """Term in the annotation language."""
        power = {"0": "", "1": x}.get(exponent, f"{x}^{exponent}")
        log = {0.0: "", 1.0: f"log({x})"}.get(self.log_exponent, f"log({x})^{self.log_exponent:g}")
        return "*".join(part for part in (power, log) if part)


def powered(b: Array, log: Array) -> Array:
    """Exp(b·log), cut where it would overflow."""
    return np.exp(np.minimum(np.maximum(b * log, -600.0), 600.0))


def _log(ratio: Array) -> Array:
    """Logarithm with a finite stand-in at 0, so that 0^b is 0 for b > 0 without warnings."""
    return np.log(np.maximum(ratio, 1e-300))


@dataclass(frozen=True, slots=True)
class Exponential(Term):
    """The family ``c·exp(r·x)``; its free parameter is r times the largest |x|: logarithms of growth over the data."""

    starts: ClassVar[tuple[float, ...]] = (-20.0, -6.0, -2.0, 0.5, 1.5, 4.0, 10.0, 25.0, 60.0)
    bound: ClassVar[float] = 150.0
    width: ClassVar[float] = 20.0

    @property
    def zero(self) -> float:
        """It is positive everywhere."""
        return -np.inf

    def value(self, x: Array, b: Array, top: Array) -> Array:
        """Term at x over the term at ``top``."""
        return powered(b, x / top - 1.0)

    def unit(self, b: Array, top: Array) -> Array:
        """Term at ``top``."""
        return np.exp(b)

    def by_exponent(self, x: Array, value: Array, top: Array) -> Array:
        """Derivative of :meth:`value` by the free parameter."""
        return value * (x / top - 1.0)

    def logarithm(self, x: Array, top: Array) -> tuple[Array, Array]:
        """Logarithm of the growth up to x, twice."""
        away = x / top - 1.0
        return away, away

    def elasticity(self, x: Array, b: Array, top: Array) -> Array:
        """Local exponent r·x."""
        return b * x / top

    def printed(self, b: Array, top: Array) -> Array:
        """The rate r."""
        return b / top

    def learnt(self, printed: Array, top: Array) -> Array:
        """From the rate r."""
        return printed * top

    def available(self, x: Array) -> NDArray[np.bool_]:
        """Wherever x varies."""
        return np.asarray(x.max(axis=-1) > x.min(axis=-1))

    def text(self, x: str, exponent: str) -> str:
        """Term in the annotation language."""
        return f"exp({exponent}*{x})"


CONSTANT = Term("constant")
"""The law of no dependence."""

TERMS: tuple[Term, ...] = (
    Term("linear", 1.0),
    Term("nlogn", 1.0, 1.0, surprise=1.5),
    Term("quadratic", 2.0),
    Term("sqrt", 0.5),
    Term("cubic", 3.0),
    Term("log", 0.0, 1.0, surprise=1.5),
    Term("n2logn", 2.0, 1.0, surprise=3.0),
    Term("power", free=True),
    Exponential("exponential", free=True, surprise=5.0),
)
"""All families of one feature, simplest first: ties between equals go to the first."""
