"""The catalogue of families: every shape a law may have, where it may be used, and how it is computed and written.

Whatever lists families reads this table: the laws of one feature, the pieces of piecewise laws, the factors of laws of
several features, the regressions of ``--paper``, the words for growth. A new family of one term is one entry.

A term is written relative to its value at the largest |x| in the data, so that the coefficients of all families are
responses (unit of y), and nothing overflows whatever the unit of x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import number, product, rounded
from perflaw.laws.tree import Binary, Call, Expression

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shape:
    """``x^p · log(x)^l``, with the natural logarithm; 1 where both exponents are 0."""

    exponent: float = 0.0
    """Exponent p of x."""
    log_exponent: float = 0.0
    """Exponent l of log x."""

    def value(self, x: Array) -> Array:
        """Value at x. The logarithm of x < 1 is taken as 0."""
        value: Array = x**self.exponent
        return value * np.log(np.maximum(x, 1.0)) ** self.log_exponent if self.log_exponent else value

    def ratio(self, x: Array, top: Array | float) -> Array:
        """Value at x over the value at ``top``; x and top broadcast. The logarithm of x < 1 is taken as 0."""
        value: Array = (x / top) ** self.exponent
        if self.log_exponent:
            value = value * (np.log(np.maximum(x, 1.0)) / np.log(top)) ** self.log_exponent
        return value

    def size(self, top: Array) -> Array:
        """Value at ``top`` itself, which :meth:`ratio` is relative to."""
        value: Array = np.abs(top) ** self.exponent
        return value * np.log(top) ** self.log_exponent if self.log_exponent else value

    def local_exponent(self, x: Array) -> Array:
        """Local exponent d log value / d log x, at x."""
        log_x = np.log(np.maximum(x, 1.0 + 1e-9))
        return self.exponent + (self.log_exponent / log_x if self.log_exponent else 0.0 * x)

    def defined(self, x: Array) -> NDArray[np.bool_]:
        """Where the shape is defined and varies: x (..., n) -> (...,) of bool.

        All but the straight line need x ≥ 0, negative exponents x > 0, logarithms x ≥ 1 (x log x also takes 0).
        """
        low, high = x.min(axis=-1), x.max(axis=-1)
        varies = high > low
        if self.log_exponent:
            fine = (x >= 1.0) | ((x == 0.0) & (self.exponent > 0))
            varies = varies & fine.all(axis=-1) & (high > 1.0)
        elif self.exponent < 0:
            varies = varies & (low > 0)
        elif self.exponent != 1:
            varies = varies & (low >= 0)
        return np.asarray(varies)

    def factors(self, x: Expression) -> list[Expression]:
        """The factors of the shape as expressions of x; none for 1."""
        return [*_power(x, rounded(self.exponent)), *_power(Call("log", (x,)), self.log_exponent)]


def _power(base: Expression, exponent: float) -> list[Expression]:
    if exponent == 0:
        return []
    return [base if exponent == 1 else Binary("^", base, number(exponent))]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of laws with one leading term, and the places where it may be used.

    A cost is the score that a family costs there for being a rarer shape; None: it is not used there.
    """

    name: str
    """Name in documents and verdicts."""
    growth: str
    """Growth in words, of a feature n; empty where it has an exponent to be told."""
    shape: Shape = Shape()  # frozen
    """Its term, where no exponent is learnt."""
    free: bool = False
    """One parameter of the term is learnt from the data."""
    smooth: float | None = None
    """Cost as a law of one feature: of a series, of a scope, or of a part of a mixture."""
    piece: bool = False
    """A piece of a piecewise law may have it with an intercept; without intercept all smooth families may stand there."""
    factor: float | None = None
    """Cost as a factor of a term of several features."""
    snap: float | None = None
    """Cost as the plain factor that a learnt exponent of a power product is replaced by."""
    blend: bool = False
    """It is a term of the smooth sums of two terms that a breakpoint has to beat."""
    paper: bool = False
    """It is a class of regressions in Freud §3.2."""

    starts: ClassVar[tuple[float, ...]] = ()
    """Values the search for the learnt parameter starts from."""
    bound: ClassVar[float] = 0.0
    """Largest learnt parameter, either sign."""
    width: ClassVar[float] = 0.0
    """Prior width of the learnt parameter (:mod:`perflaw.learn.series.candidates`)."""

    @property
    def surprise(self) -> float:
        """Cost as a law of one feature."""
        return self.smooth or 0.0

    @property
    def exponent(self) -> float:
        """Exponent of x in the term, 0 where it is learnt."""
        return self.shape.exponent

    @property
    def log_exponent(self) -> float:
        """Exponent of log x in the term."""
        return self.shape.log_exponent

    @property
    def zero(self) -> float:
        """Where the term is 0; it is positive above."""
        return 1.0 if self.log_exponent else 0.0

    def exponents(self, b: float) -> tuple[float | None, float | None]:
        """Exponents of x and of log x for the learnt parameter b; None where the term has none."""
        return (b if self.free else self.exponent), self.log_exponent

    def printed(self, b: Array, top: Array) -> Array:
        """The learnt parameter as it is printed, of x itself and not relative to ``top``."""
        return b

    def learnt(self, printed: Array, top: Array) -> Array:
        """The inverse of :meth:`printed`."""
        return printed

    def value(self, x: Array, b: Array, top: Array) -> Array:
        """Term at x over the term at ``top``; x, b and top broadcast, b is the learnt parameter."""
        return self.shape.ratio(x, top)

    def unit(self, b: Array, top: Array) -> Array:
        """Term at ``top`` itself, which values are relative to."""
        return self.shape.size(top) + 0.0 * b

    def by_exponent(self, x: Array, value: Array, top: Array) -> Array:
        """Derivative of :meth:`value` by the learnt parameter."""
        return 0.0 * value

    def logarithm(self, x: Array, top: Array) -> tuple[Array, Array]:
        """Of a learnt parameter: log :meth:`value` at 1, and :meth:`by_exponent` over :meth:`value`."""
        raise NotImplementedError(f"the family {self.name} learns no parameter")

    def elasticity(self, x: Array, b: Array, top: Array) -> Array:
        """Local exponent of the term, d log term / d log x, at x."""
        return self.shape.local_exponent(x)

    def available(self, x: Array) -> NDArray[np.bool_]:
        """Where the term is defined on the data and varies: x (..., n) -> (...,) of bool."""
        return self.shape.defined(x)

    def holds(self, b: Array, low: Array) -> NDArray[np.bool_]:
        """Whether the term is defined with the learnt parameter, where the smallest x is ``low``; both (...,)."""
        return np.ones(np.broadcast(b, low).shape, np.bool_)

    def factors(self, x: Expression, printed: float) -> list[Expression]:
        """The term's factors as expressions of x; ``printed`` is the learnt parameter as it is printed."""
        return self.shape.factors(x)


@dataclass(frozen=True, slots=True)
class Power(Family):
    """The family ``c·x^b``, its exponent learnt."""

    starts: ClassVar[tuple[float, ...]] = (
        -3.0, -2.0, -1.2, -0.6, -0.25, 0.15, 0.3, 0.5, 0.75, 1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0,
    )  # fmt: skip
    bound: ClassVar[float] = 8.0
    width: ClassVar[float] = 0.7

    def value(self, x: Array, b: Array, top: Array) -> Array:
        """Term at x over the term at ``top``."""
        return powered(b, _log(x / top))

    def unit(self, b: Array, top: Array) -> Array:
        """Term at ``top``."""
        value: Array = np.abs(top) ** b
        return value

    def by_exponent(self, x: Array, value: Array, top: Array) -> Array:
        """Derivative of :meth:`value` by the exponent; 0 at x = 0."""
        return np.where(x > 0, value * _log(x / top), 0.0)

    def logarithm(self, x: Array, top: Array) -> tuple[Array, Array]:
        """Logarithm of x over ``top``; and the same with 0 at x = 0."""
        log = _log(x / top)
        return log, np.where(x > 0, log, 0.0)

    def elasticity(self, x: Array, b: Array, top: Array) -> Array:
        """The exponent."""
        return b

    def holds(self, b: Array, low: Array) -> NDArray[np.bool_]:
        """At x = 0 a falling power is infinite, and one that hardly grows tells 0 from all else, which is no growth."""
        return np.asarray((low > 0) | (b >= _LEAST_AT_ZERO))

    def factors(self, x: Expression, printed: float) -> list[Expression]:
        """``x^b``."""
        return _power(x, printed)


@dataclass(frozen=True, slots=True)
class Exponential(Family):
    """The family ``c·exp(r·x)``; its learnt parameter is r times the largest |x|: the logarithm of its growth."""

    starts: ClassVar[tuple[float, ...]] = (-20.0, -6.0, -2.0, 0.5, 1.5, 4.0, 10.0, 25.0, 60.0)
    bound: ClassVar[float] = 150.0
    width: ClassVar[float] = 20.0

    @property
    def zero(self) -> float:
        """It is positive everywhere."""
        return -np.inf

    def exponents(self, b: float) -> tuple[float | None, float | None]:
        """An exponential has no exponents of x and log x."""
        return None, None

    def printed(self, b: Array, top: Array) -> Array:
        """The rate r."""
        return b / top

    def learnt(self, printed: Array, top: Array) -> Array:
        """The parameter of the rate r."""
        return printed * top

    def value(self, x: Array, b: Array, top: Array) -> Array:
        """Term at x over the term at ``top``."""
        return powered(b, x / top - 1.0)

    def unit(self, b: Array, top: Array) -> Array:
        """Term at ``top``."""
        return np.exp(b)

    def by_exponent(self, x: Array, value: Array, top: Array) -> Array:
        """Derivative of :meth:`value` by the learnt parameter."""
        return value * (x / top - 1.0)

    def logarithm(self, x: Array, top: Array) -> tuple[Array, Array]:
        """Logarithm of the growth up to x, twice."""
        away = x / top - 1.0
        return away, away

    def elasticity(self, x: Array, b: Array, top: Array) -> Array:
        """Local exponent r·x."""
        return b * x / top

    def available(self, x: Array) -> NDArray[np.bool_]:
        """Wherever x varies."""
        return np.asarray(x.max(axis=-1) > x.min(axis=-1))

    def factors(self, x: Expression, printed: float) -> list[Expression]:
        """``exp(r·x)``."""
        return [Call("exp", (product([number(printed), x]),))]


_LEAST_AT_ZERO: Final = 0.1
"""Smallest learnt exponent of a feature that is 0 somewhere."""


def powered(b: Array, log: Array) -> Array:
    """Exp(b·log), cut where it would overflow."""
    return np.exp(np.minimum(np.maximum(b * log, -600.0), 600.0))


def _log(ratio: Array) -> Array:
    """Logarithm with a finite stand-in at 0, so that 0^b is 0 for b > 0 without warnings."""
    return np.log(np.maximum(ratio, 1e-300))


CONSTANT = Family("constant", "constant", blend=True)
"""The law of no dependence."""
LINEAR = Family("linear", "n", Shape(1.0), smooth=0.0, piece=True, factor=0.0, snap=0.0, blend=True, paper=True)
"""The straight line."""
POWER = Power("power", "", free=True, smooth=0.0)
"""The power law."""
FAMILIES: tuple[Family, ...] = (
    CONSTANT,
    LINEAR,
    Family("nlogn", "n log n", Shape(1.0, 1.0), smooth=1.5, piece=True, factor=1.5, snap=1.5, blend=True, paper=True),
    Family("quadratic", "n^2", Shape(2.0), smooth=0.0, piece=True, factor=0.5, snap=0.0, blend=True, paper=True),
    Family("sqrt", "√n", Shape(0.5), smooth=0.0, factor=1.0, snap=1.0, blend=True),
    Family("cubic", "n^3", Shape(3.0), smooth=0.0, snap=1.0, blend=True),
    Family("log", "log n", Shape(0.0, 1.0), smooth=1.5, piece=True, factor=1.5, blend=True),
    Family("n2logn", "n^2 log n", Shape(2.0, 1.0), smooth=3.0),
    Family("nlog2n", "n log^2 n", Shape(1.0, 2.0), blend=True),
    POWER,
    Exponential("exponential", "exp n", free=True, smooth=5.0),
    Family("reciprocal", "1/n", Shape(-1.0), factor=2.0, snap=1.0),
    Family("rsqrt", "1/√n", Shape(-0.5), snap=2.0),
)
"""All families in the order in which equally good laws are told.

Costs are calibrated (benchmarks/learner.py) so that, for example, x log x and x^1.2 are told apart evenly.
"""


def smooth_families() -> Iterator[Family]:
    """Families that a law of one feature may have, the constant aside."""
    return (one for one in FAMILIES if one.smooth is not None)


def family_named(name: str) -> Family | None:
    """The family of that name; None for composed laws (sum, product, piecewise)."""
    return next((one for one in FAMILIES if one.name == name), None)


def growth_in_words(name: str) -> str:
    """Growth of a family's leading term in ``n``; empty where the family is unknown or its exponent has to be told.

    >>> growth_in_words("nlogn"), growth_in_words("power")
    ('n log n', '')
    """
    family = family_named(name)
    return family.growth if family else ""
