"""The growth of a law in words: that of the term which makes up most of what depends on features, within reach.

The fastest term of a sum need not be the one that a person meets: ``20 µs · n + 1 ps · n^2`` grows as n up to millions.
Tables, pages and the cost model all take the leading term from here, so what a column says is what its law says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from perflaw.laws.build import terms_of
from perflaw.laws.catalogue import FAMILIES, Shape
from perflaw.laws.evaluation import evaluate, names, truth
from perflaw.laws.tree import Binary, Call, Expression, Name, Number, Unary

REACH: Final = 10.0
"""Without a point asked for, growth is that up to so many times the largest value of each feature."""
NEGLIGIBLE: Final = 0.02
"""Share of the cost within reach up to which what depends on features is no growth."""
_LARGEST: Final = 1e300
"""Largest size of a term: exponentials overflow."""
_COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, slots=True)
class LeadingTerm:
    """The term that governs how a mean grows; equal terms are one."""

    coefficient: float
    """Its coefficient."""
    factors: tuple[tuple[Expression, bool], ...]
    """Its factors without conditions, ``True`` beside those that it is divided by; none for a constant."""

    @property
    def shape(self) -> Shape | None:
        """The term as powers of one feature and of its logarithm; None where it is something else."""
        powers = {False: 0.0, True: 0.0}
        features = set()
        for factor, below in self.factors:
            base, power = _power(factor)
            is_log = isinstance(base, Call) and base.function == "log"
            [inner] = base.arguments if isinstance(base, Call) and is_log else [base]
            if not isinstance(inner, Name):
                return None
            features.add(inner.text)
            powers[is_log] += -power if below else power
        return Shape(powers[False], powers[True]) if len(features) <= 1 else None

    @property
    def is_exponential(self) -> bool:
        """Whether a feature is in an exponent."""
        return any(isinstance(factor, Call) and factor.function == "exp" for factor, _ in self.factors)

    @property
    def words(self) -> str:
        """Its growth in ``n``, such as ``n log n`` or ``n^1.70``; empty where the catalogue has no word for it.

        >>> from perflaw.laws.reading import parse_expression
        >>> leading_term(parse_expression("900 + 20*n + 1e-9*n^2"), {"n": 1e6}).words
        'n'
        >>> leading_term(parse_expression("900 + 20*n + 1e-9*n^2"), {"n": 1e12}).words
        'n^2'
        """
        if self.is_exponential:
            nodes = (node for factor, _ in self.factors for node in factor.walk())
            linear = all(not isinstance(node, Call) or node.function == "exp" for node in nodes)
            return "exp n" if linear else "exp (n log n)"
        shape = self.shape
        if shape is None:
            return ""
        if word := next((one.growth for one in FAMILIES if one.growth and not one.free and one.shape == shape), ""):
            return word
        power = f"n^{shape.exponent:.2f}"
        return power if not shape.log_exponent else f"{power} log n" if shape.log_exponent == 1 else ""


def leading_term(mean: Expression, at: Mapping[str, float]) -> LeadingTerm:
    """The term with most of what depends on features at a point; the constant where all that is negligible.

    Terms that differ by their conditions only (``3*n*(n <= 64) + 2*n*(n > 64)``) are one, with the coefficient that
    holds at the point.
    """
    coefficients: dict[tuple[tuple[Expression, bool], ...], float] = {}
    for term in terms_of(mean):
        conditions = [factor for factor, _ in term.factors if is_condition(factor)]
        factors = tuple(one for one in term.factors if not is_condition(one[0]))
        holds = all(bool(truth(evaluate(one, at))) for one in conditions)
        coefficients[factors] = coefficients.get(factors, 0.0) + (term.coefficient if holds else 0.0)
    sizes = {factors: min(abs(c * _value(factors, at)), _LARGEST) for factors, c in coefficients.items()}
    growing = {factors: size for factors, size in sizes.items() if any(names(factor) for factor, _ in factors)}
    if not growing or sum(growing.values()) <= NEGLIGIBLE * sum(sizes.values()):
        return LeadingTerm(coefficients.get((), 0.0), ())
    most = max(growing, key=lambda factors: growing[factors])
    return LeadingTerm(coefficients[most], most)


def _value(factors: Sequence[tuple[Expression, bool]], at: Mapping[str, float]) -> float:
    value = 1.0
    for factor, below in factors:
        of_factor = float(evaluate(factor, at))
        value = value / (of_factor or 1.0 / _LARGEST) if below else value * of_factor
    return 0.0 if isnan(value) else value


def _power(factor: Expression) -> tuple[Expression, float]:
    """Base and exponent of a factor."""
    match factor:
        case Binary("^", base, Number(exponent)):
            return base, exponent
        case Binary("^", base, Unary("-", Number(value))):
            return base, -value
        case Call("sqrt", (base,)):
            return base, 0.5
    return factor, 1.0


def is_condition(factor: Expression) -> bool:
    """Whether a factor is a comparison, whose value is 1 or 0."""
    return isinstance(factor, Binary) and factor.op in _COMPARISONS
