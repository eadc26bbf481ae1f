"""Terms of several features: products of x, x log x, x², √x, log x and 1/x of one or two features, and a constant.

Every term is written relative to its value at the largest |x| of each feature, so that coefficients are responses
(unit of y) and a change of unit of a feature changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.expression import number
from perflaw.learn.laws.naming import name
from perflaw.learn.laws.series import Array


@dataclass(frozen=True, slots=True)
class Factor:
    """``x^p · log(x)^l``."""

    exponent: float = 0.0
    """Exponent p."""
    log_exponent: float = 0.0
    """Exponent l of the natural logarithm."""
    surprise: float = 0.0
    """Score it costs to be a rarer shape."""

    def available(self, low: float, high: float) -> bool:
        """Whether it is defined on a feature between low and high."""
        if self.log_exponent and not (low >= 1.0 or (low == 0.0 and self.exponent > 0)):
            return False
        if self.exponent < 0:
            return low > 0
        return low >= 0 or (self.exponent == 1.0 and not self.log_exponent)

    def value(self, x: Array, top: Array | float) -> Array:
        """At x over its value at ``top``; x log x is 0 below 1."""
        out = (x / top) ** self.exponent
        return out * (np.log(np.maximum(x, 1.0)) / np.log(top)) ** self.log_exponent if self.log_exponent else out

    def elasticity(self, x: Array) -> Array:
        """D log / d log x."""
        log_x = np.log(np.maximum(x, 1.0 + 1e-9))
        return self.exponent + (self.log_exponent / log_x if self.log_exponent else 0.0 * x)

    def text(self, x: str) -> str:
        """In the annotation language; empty for 1."""
        power = {0.0: "", 1.0: x}.get(self.exponent, f"{x}^{number(self.exponent)}")
        log = f"log({x})" if self.log_exponent else ""
        return "*".join(part for part in (power, log) if part)


ONE = Factor()
LINEAR = Factor(1.0)
FACTORS = (
    LINEAR,
    Factor(2.0, surprise=0.5),
    Factor(1.0, 1.0, 1.5),
    Factor(0.5, surprise=1.0),
    Factor(0.0, 1.0, 1.5),
    Factor(-1.0, surprise=2.0),
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
                known[f, factor] = factor.value(x[f], top[f])
            out[m] *= known[f, factor]
    return out


def unit_of(term: Term, top: Array) -> float:
    """The term at ``top`` itself, what values are relative to."""
    out = 1.0
    for f, factor in enumerate(term):
        out *= float(top[f] ** factor.exponent)
        out *= float(np.log(top[f])) ** factor.log_exponent if factor.log_exponent else 1.0
    return out


def text(term: Term, names: tuple[str, ...]) -> str:
    """A term in the annotation language; empty for the constant."""
    return "*".join(part for part in (f.text(name(n)) for f, n in zip(term, names, strict=True)) if part)


def printed(term: Term) -> Term:
    """A term with its exponents as they are printed, so that its coefficient fits what a person reads."""
    return tuple(f if f is ONE else Factor(float(number(f.exponent)), f.log_exponent, f.surprise) for f in term)
