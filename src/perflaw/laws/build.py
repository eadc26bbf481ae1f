"""Expressions as learners make them: numbers of six significant digits, in the form in which the reader gives them.

``parse_expression(show(e)) == e`` holds for whatever is made here: a negative number is a minus before a number, and
sums and products group to the left. ``terms_of`` takes a sum apart again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a sum: a number times a product of features."""

    coefficient: float
    """Its number, 1 where it has none."""
    factors: tuple[tuple[Expression, bool], ...]
    """What the number is multiplied by, or divided by where ``True`` stands beside; none for a constant term."""

    @property
    def basis(self) -> Expression | None:
        """The product of its factors; None for a constant term."""
        whole: Expression | None = None
        for factor, below in self.factors:
            first = Binary("/", Number(1.0), factor) if below else factor
            whole = first if whole is None else Binary("/" if below else "*", whole, factor)
        return whole


def terms_of(expression: Expression) -> list[Term]:
    """The terms of a sum from left to right.

    >>> from perflaw.laws.printing import show
    >>> from perflaw.laws.reading import parse_expression
    >>> found = terms_of(parse_expression("5 - n*(2 + m)/4"))
    >>> [(one.coefficient, *(show(factor) for factor, _ in one.factors)) for one in found]
    [(5.0,), (-0.25, 'n', '2 + m')]
    """
    pending, found = [(expression, 1.0)], list[Term]()
    while pending:
        one, sign = pending.pop()
        if isinstance(one, Binary) and one.op in "+-":
            pending += [(one.right, sign if one.op == "+" else -sign), (one.left, sign)]
        else:
            # A product, its numbers taken out.
            coefficient, factors, parts = sign, list[tuple[Expression, bool]](), [(one, False)]
            while parts:
                factor, below = parts.pop()
                if isinstance(factor, Binary) and factor.op in "*/":
                    parts += [(factor.right, below != (factor.op == "/")), (factor.left, below)]
                elif isinstance(factor, Unary) and factor.op == "-":
                    coefficient = -coefficient
                    parts.append((factor.operand, below))
                elif isinstance(factor, Number):
                    coefficient = coefficient / factor.value if below and factor.value else coefficient * factor.value
                else:
                    factors.append((factor, below))
            found.append(Term(coefficient, tuple(factors)))
    return found
