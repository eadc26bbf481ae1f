"""What expressions may do with values: Python's own operations on numbers that stay small, and comparisons."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from perflaw.types.studies import Value

MOST_BITS = 256
"""Of a whole number: more is refused, so that no product takes long."""


class Cannot(Exception):  # noqa: N818 -- read as a word: the expression cannot be computed
    """Values that an operation is not defined for; becomes a UsageError with the expression's text."""


def _number(value: Value) -> int | float:
    if not isinstance(value, bool | int | float):
        raise Cannot(f"{value!r} is a text, a number is needed")
    return value


def _bounded(value: Any) -> Value:
    if isinstance(value, complex):
        raise Cannot("a root of a negative number has no value")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise Cannot("a number became too large")
    if isinstance(value, float) and not math.isfinite(value):
        raise Cannot("a number became too large")
    number: int | float = value
    return number


def _guarded(operate: Callable[..., Any], *values: Value) -> Value:
    try:
        return _bounded(operate(*map(_number, values)))
    except ZeroDivisionError:
        raise Cannot("division by zero") from None
    except (OverflowError, ValueError):
        raise Cannot(f"{', '.join(map(repr, values))}: no value there") from None


def _power(base: int | float, exponent: int | float) -> Any:
    if abs(exponent) > MOST_BITS and abs(base) > 1:
        raise Cannot(f"an exponent above {MOST_BITS}")
    if (
        isinstance(base, int)
        and isinstance(exponent, int)
        and exponent > 0
        and base.bit_length() * exponent > 4 * MOST_BITS
    ):
        raise Cannot("a number became too large")
    return base**exponent


def _binary(operate: Callable[..., Any]) -> Callable[[Value, Value], Value]:
    return lambda left, right: _guarded(operate, left, right)


def _ordered(operate: Callable[..., bool]) -> Callable[[Value, Value], bool]:
    return lambda left, right: bool(operate(_number(left), _number(right)))


def _function(operate: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *values: _guarded(operate, *values)


def _rounded(value: int | float, digits: int | float = 0) -> int | float:
    if not isinstance(digits, int) or abs(digits) > 30:
        raise Cannot("round takes a whole number of digits up to 30")
    return round(value, digits)


def _round(*values: Value) -> Value:
    return _guarded(round, *values) if len(values) == 1 else _guarded(_rounded, *values)


OPERATORS: Final[Mapping[type[ast.operator], Callable[[Value, Value], Value]]] = {
    ast.Add: _binary(operator.add),
    ast.Sub: _binary(operator.sub),
    ast.Mult: _binary(operator.mul),
    ast.Div: _binary(operator.truediv),
    ast.FloorDiv: _binary(operator.floordiv),
    ast.Mod: _binary(operator.mod),
    ast.Pow: _binary(_power),
}
UNARY: Final[Mapping[type[ast.unaryop], Callable[[Value], Value]]] = {
    ast.USub: _function(operator.neg),
    ast.UAdd: _function(operator.pos),
    ast.Not: operator.not_,
}
COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Value, Value], bool]]] = {
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Value], int, int]]] = {
    "min": (_function(min), 2, 50),
    "max": (_function(max), 2, 50),
    "abs": (_function(abs), 1, 1),
    "log2": (_function(math.log2), 1, 1),
    "ceil": (_function(math.ceil), 1, 1),
    "floor": (_function(math.floor), 1, 1),
    "round": (_round, 1, 2),
}
"""Name → function, fewest and most arguments."""
