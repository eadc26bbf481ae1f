"""Sums taken apart: the terms of an expression, each a number times factors. Nothing here calls itself (``tree``)."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.laws.tree import Binary, Expression, Number, Unary


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
