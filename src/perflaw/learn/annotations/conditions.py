"""Conditions of scopes: tests of one feature each, joined by "and", as text and as a mask over records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import both, number
from perflaw.laws.tree import Binary, Expression, Name, Text


def between(low: float, high: float) -> float:
    """The number of fewest digits from ``low`` to ``high`` (low < high), the middle one of them.

    >>> between(9, 10), between(10, 11), between(0.1234, 0.21), between(1023, 1025), between(-3, 5)
    (10.0, 10.0, 0.2, 1024.0, 0.0)
    """
    if low <= 0 <= high:
        return 0.0
    for exponent in range(math.floor(math.log10(max(abs(low), abs(high)))), -330, -1):
        found = _multiple(low, high, exponent)
        if found is not None:
            return found
    return low


def _multiple(low: float, high: float, exponent: int) -> float | None:
    """A multiple of 10^exponent between the two, the one nearest to the middle; None where there is none."""
    step = 10.0**exponent
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if first > last:
        return None
    place = min(max(round((low + high) / 2 / step), first), last)
    value = float(f"{place}e{exponent}")
    return value if low <= value <= high else None


Mask = NDArray[np.bool_]
Columns = Mapping[str, NDArray[np.float64] | NDArray[np.str_]]
"""Features by name, numbers (n,) with NaN where not read, or texts (n,)."""
Operator = Literal["<", "<=", ">", ">=", "==", "!="]
OPPOSITE: dict[Operator, Operator] = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison of a feature with a number or a text."""

    feature: str
    """The feature."""
    operator: Operator
    """How it is compared."""
    value: float | str
    """With what."""
    counts: bool = False
    """Whether the feature counts something and is compared with nothing: the opposite of "more than 0" is 0."""

    @property
    def expression(self) -> Expression:
        """The comparison as an expression."""
        value = Text(self.value) if isinstance(self.value, str) else number(self.value, None)
        return Binary(self.operator, Name(self.feature), value)

    def opposite(self) -> Test:
        """Its negation; where the feature was not read neither is true."""
        if self.counts:
            return Test(self.feature, "==" if self.operator == ">" else ">", 0.0, counts=True)
        return Test(self.feature, OPPOSITE[self.operator], self.value)

    def holds(self, columns: Columns) -> Mask:
        """Where it is true, (n,); nowhere where the feature was not read."""
        values = columns[self.feature]
        if isinstance(self.value, str):
            read = values != ""
            return np.asarray(((values == self.value) if self.operator == "==" else (values != self.value)) & read)
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
        if self.operator == "!=":
            return np.asarray((values != self.value) & ~np.isnan(values))
        return np.asarray(compare[self.operator](values, self.value))


Condition = tuple[Test, ...]
"""Tests that all hold; empty: everywhere."""


def holds(condition: Condition, columns: Columns, count: int) -> Mask:
    """Where all tests of a condition are true, (count,)."""
    out = np.ones(count, dtype=bool)
    for test in condition:
        out &= test.holds(columns)
    return out


def expression_of(condition: Condition) -> Expression | None:
    """The condition as an expression; None for everywhere.

    >>> from perflaw.laws.printing import show
    >>> tests = Test("n", ">", 3.0), Test("x.type", "==", "int"), Test("n", ">", 10.0), Test("n", "<=", 20.0)
    >>> show(expression_of(tests))
    'n > 10 && n <= 20 && x.type == "int"'
    """
    return both(test.expression for test in simplified(condition))


def simplified(condition: Condition) -> Condition:
    """Without tests that others imply; features in the order of their first test."""
    by_feature: dict[str, list[Test]] = {}
    for test in condition:
        by_feature.setdefault(test.feature, []).append(test)
    return tuple(test for tests in by_feature.values() for test in _needed(tests))


def _needed(tests: Sequence[Test]) -> list[Test]:
    """Of tests of one feature those that are not implied: an equality, else the closest limits and the exclusions."""
    equal = [test for test in tests if test.operator == "=="]
    if equal:
        return equal[:1]
    # At the same number "above" is closer than "from".
    below = [test for test in tests if test.operator in (">", ">=")]
    above = [test for test in tests if test.operator in ("<", "<=")]
    out = []
    if below:
        out.append(max(below, key=lambda test: (test.value, test.operator == ">")))
    if above:
        out.append(min(above, key=lambda test: (test.value, test.operator == "<=")))
    return [*out, *dict.fromkeys(test for test in tests if test.operator == "!=")]
