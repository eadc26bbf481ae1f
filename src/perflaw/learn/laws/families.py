"""The families of laws, one instance each in a registry; a new family of one term is one line here.

A term is written relative to its value at the largest |x| in the data, so that coefficients of all families
are responses (unit of y) and nothing overflows whatever the unit of x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.series import Array


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

    def value(self, x: Array, b: Array, top: Array) -> Array:
        """Term at x over the term at ``top``; x, b and top broadcast, b is read only where the exponent is free.

        x log x is taken as 0 below x = 1, where the logarithm would turn negative.
        """
        ratio = x / top
        if self.free:
            return np.asarray(np.exp(np.clip(b * _log(ratio), -600.0, 600.0)))
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

    def elasticity(self, x: Array, b: Array) -> Array:
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


def _log(ratio: Array) -> Array:
    """Logarithm with a finite stand-in at 0, so that 0^b is 0 for b > 0 without warnings."""
    return np.log(np.maximum(ratio, 1e-300))


CONSTANT = Term("constant")
"""The law of no dependence."""

TERMS: tuple[Term, ...] = (
    Term("linear", 1.0),
    Term("nlogn", 1.0, 1.0, surprise=1.5),
    Term("quadratic", 2.0),
    Term("power", free=True),
)
"""All families of one feature, simplest first: ties between equals go to the first."""
