"""Conditions of scopes: comparisons of one feature each, joined by "and", as expressions and as masks over records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import both, number
from perflaw.laws.tree import Binary, Expression, Name, Text

Mask = NDArray[np.bool_]
Columns = Mapping[str, NDArray[np.float64] | NDArray[np.str_]]
"""Features by name, numbers (n,) with NaN where not read, or texts (n,)."""
Operator = Literal["<", "<=", ">", ">=", "==", "!="]
OPPOSITE: dict[Operator, Operator] = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a feature with a number or a text."""

    feature: str
    """The feature."""
    operator: Operator
    """The operator."""
    value: float | str
    """The number or text."""
    counts: bool = False
    """The feature is a count and the number is 0: the opposite of ``> 0`` is ``== 0``."""

    @property
    def expression(self) -> Expression:
        """The comparison as an expression."""
        value = Text(self.value) if isinstance(self.value, str) else number(self.value, None)
        return Binary(self.operator, Name(self.feature), value)

    def opposite(self) -> Comparison:
        """The negation; where the feature was not read neither of the two is true."""
        if self.counts:
            return Comparison(self.feature, "==" if self.operator == ">" else ">", 0.0, counts=True)
        return Comparison(self.feature, OPPOSITE[self.operator], self.value)

    def holds(self, columns: Columns) -> Mask:
        """Where the comparison is true, (n,); it is false where the feature was not read."""
        values = columns[self.feature]
        if isinstance(self.value, str):
            read = values != ""
            return np.asarray(((values == self.value) if self.operator == "==" else (values != self.value)) & read)
        if self.operator == "!=":
            return np.asarray((values != self.value) & ~np.isnan(values))
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
        return np.asarray(compare[self.operator](values, self.value))


Condition = tuple[Comparison, ...]
"""Comparisons that all hold; the empty one holds everywhere."""


def condition_expression(condition: Condition) -> Expression | None:
    """The condition as an expression, without redundant comparisons; None for everywhere.

    >>> from perflaw.laws.printing import show
    >>> limits = Comparison("n", ">", 3.0), Comparison("n", ">", 10.0), Comparison("n", "<=", 20.0)
    >>> show(condition_expression((*limits, Comparison("x.type", "==", "int"))))
    'n > 10 && n <= 20 && x.type == "int"'
    """
    by_feature: dict[str, list[Comparison]] = {}
    for comparison in condition:
        by_feature.setdefault(comparison.feature, []).append(comparison)
    return both(one.expression for comparisons in by_feature.values() for one in _without_implied(comparisons))


def _without_implied(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Of comparisons of one feature those that no other implies: an equality, else the closest limits and exclusions."""
    equalities = [one for one in comparisons if one.operator == "=="]
    if equalities:
        return equalities[:1]
    # At the same number > is closer than >=.
    lower = [one for one in comparisons if one.operator in (">", ">=")]
    upper = [one for one in comparisons if one.operator in ("<", "<=")]
    kept = []
    if lower:
        kept.append(max(lower, key=lambda one: (one.value, one.operator == ">")))
    if upper:
        kept.append(min(upper, key=lambda one: (one.value, one.operator == "<=")))
    return [*kept, *dict.fromkeys(one for one in comparisons if one.operator == "!=")]


def threshold(name: str, low: float, high: float) -> Comparison:
    """The comparison with a round number that is true up to ``low`` and false from ``high`` on."""
    value = between(low, high)
    return Comparison(name, "<", value) if value == high else Comparison(name, "<=", value)


def between(low: float, high: float) -> float:
    """The number of fewest digits from ``low`` to ``high`` (low < high); of several the one nearest to the middle.

    >>> between(9, 10), between(10, 11), between(0.1234, 0.21), between(1023, 1025), between(-3, 5)
    (10.0, 10.0, 0.2, 1024.0, 0.0)
    """
    if low <= 0 <= high:
        return 0.0
    for exponent in range(math.floor(math.log10(max(abs(low), abs(high)))), -330, -1):
        step = 10.0**exponent
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        multiple = min(max(round((low + high) / 2 / step), first), last)
        value = float(f"{multiple}e{exponent}")
        if first <= last and low <= value <= high:
            return value
    return low
