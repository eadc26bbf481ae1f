"""Expressions as learners make them: numbers of six significant digits, in the form in which the reader gives them.

``parse_expression(show(e)) == e`` holds for whatever is made here: a negative number is a minus before a number, and
sums and products group to the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from perflaw.laws.tree import Binary, Distribution, Expression, Number, Unary

DIGITS = 6
"""Significant digits of the numbers in learnt laws."""
_LARGEST = 1.79769e308


def rounded(value: float) -> float:
    """The number with six significant digits.

    A coefficient that overflows becomes the largest number, and one that is undefined (infinity less infinity) 0: such
    laws are inconclusive anyway, and the language has no other numbers.

    >>> rounded(53350.312), rounded(0.30000000000000004), rounded(float("inf"))
    (53350.3, 0.3, 1.79769e+308)
    """
    if math.isnan(value):
        return 0.0
    return min(max(float(f"{value + 0.0:.{DIGITS}g}"), -_LARGEST), _LARGEST)


def number(value: float, digits: int | None = DIGITS) -> Expression:
    """A number, rounded to six digits or, for ``digits=None``, exact; a minus stands before it where it is negative.

    >>> number(-2.1)
    Unary('-', Number(2.1))
    """
    exact = value + 0.0 if digits is None else rounded(value)
    return Unary("-", Number(-exact)) if exact < 0 else Number(exact)


def product(factors: Iterable[Expression]) -> Expression:
    """The product of at least one factor; factors that are products or quotients themselves become part of the chain.

    >>> from perflaw.laws.printing import show
    >>> from perflaw.laws.tree import Name
    >>> show(product([number(3), Name("n"), Binary("/", Name("m"), number(7))]))
    '3*n*m/7'
    """
    return reduce(_times, factors)


def _times(left: Expression, right: Expression) -> Expression:
    if isinstance(right, Binary) and right.op in "*/":
        return Binary(right.op, _times(left, right.left), right.right)
    return Binary("*", left, right)


def combination(terms: Sequence[tuple[float, Sequence[Expression]]]) -> Expression:
    """The sum of coefficients times factors; a term without factors is a constant.

    >>> from perflaw.laws.printing import show
    >>> from perflaw.laws.tree import Name
    >>> show(combination([(53350.31, []), (-2.1, [Name("s")])]))
    '53350.3 - 2.1*s'
    """
    (first, factors), *others = terms
    out = product([number(first), *factors])
    for coefficient, factors in others:
        out = Binary("-" if coefficient < 0 else "+", out, product([number(abs(coefficient)), *factors]))
    return out


def both(conditions: Iterable[Expression]) -> Expression | None:
    """All of the conditions joined by ``&&``; None where there is none."""
    found = list(conditions)
    return reduce(lambda left, right: Binary("&&", left, right), found) if found else None


def normal(mean: Expression, scale: float) -> Distribution:
    """``Norm(mean, standard deviation)``."""
    return Distribution("Norm", (mean, number(scale)))


def lognormal(mean: Expression, scale: float) -> Distribution:
    """``LogNorm(mean, standard deviation of the logarithm)``."""
    return Distribution("LogNorm", (mean, number(scale)))
