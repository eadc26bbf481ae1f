"""What the grammar cannot say of expressions: which functions and distributions exist, what is no number."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, get_args

from perflaw.language import ast
from perflaw.language.errors import DEEPEST, refused, suggestion, too_deep
from perflaw.language.evaluation import evaluate, names
from perflaw.language.tree import Expression
from perflaw.language.units import size_of

if TYPE_CHECKING:
    from lark import Token

FUNCTIONS = {"log": 1, "exp": 1, "sqrt": 1, "floor": 1, "ceil": 1, "abs": 1, "min": None, "max": None}
"""Functions and how many arguments they take; None: one or more."""
ARGUMENTS = {
    "Norm": ("mean", "standard deviation"),
    "LogNorm": ("mean", "standard deviation of the logarithm"),
    "Exp": ("mean",),
    "Binom": ("number of trials", "probability"),
}
"""Distributions and what their arguments are."""
CONSTANTS = {"true": 1.0, "false": 0.0}
"""Names that are numbers."""
NOT_FINITE = {"inf", "infinity", "nan"}
"""Names that people take for numbers."""
_NUMBER = re.compile(r"([\d_.]+(?:[eE][+-]?\d+)?)(.*)", re.DOTALL)


class Measured(float):
    """A number that had a unit behind it, in ns or bytes."""

    token: Token


def bounded(node: Expression, token: Token) -> Expression:
    """The node, unless it nests too deeply."""
    if node.depth > DEEPEST:
        raise too_deep(token)
    return node


def number(token: Token) -> ast.Number:
    """``50us`` is 50,000."""
    digits, unit = split(token)
    value = float(digits) * size_of(unit)
    if not math.isfinite(value):
        raise refused(token, f"{token[:40]} is too large for a number")
    if not unit:
        return ast.Number(value)
    measured = Measured(value)
    measured.token = token
    return ast.Number(measured)


def split(token: Token) -> tuple[str, str]:
    """Digits and unit of a number."""
    found = _NUMBER.fullmatch(token)
    assert found  # the grammar's terminal is narrower
    return found[1], found[2]


def name(token: Token) -> Expression:
    """A feature, or one of the names that are numbers."""
    if token.lower() in NOT_FINITE:
        raise refused(token, f"{token} is no finite number; a feature of that name stands in backquotes")
    return ast.Number(CONSTANTS[token]) if token in CONSTANTS else ast.Name(str(token))


def categorical(node: Expression, op: Token) -> Expression:
    """The feature that is compared with a text."""
    if not isinstance(node, ast.Name):
        raise refused(op, 'only a feature can be compared with a text, as in x.type == "int"')
    return node


def call(function: Token, arguments: tuple[Expression, ...]) -> Expression:
    """A call of a function that exists, with as many arguments as it takes."""
    if function not in FUNCTIONS:
        raise refused(function, f"there is no function {function[:40]}{suggestion(function, FUNCTIONS)}")
    count = FUNCTIONS[function]
    if count is not None and len(arguments) != count:
        raise refused(function, f"{function} takes {count} argument, found {len(arguments)}")
    return bounded(ast.Call(str(function), arguments), function)


def distribution(family: Token, arguments: tuple[Expression, ...]) -> ast.Distribution:
    """A distribution that exists, with as many arguments as it takes."""
    known = get_args(ast.Family)
    if family not in known:
        raise refused(family, f"there is no distribution {family[:40]}{suggestion(family, known)}")
    meaning = ARGUMENTS[family]
    if len(arguments) != len(meaning):
        needed = f"{family}({', '.join(meaning)}) takes {len(meaning)}"
        raise refused(family, f"{needed} argument{'s' * (len(meaning) > 1)}, found {len(arguments)}")
    for what, argument in zip(meaning, arguments, strict=True):
        _check_constant(family, what, argument)
    found: ast.Family = next(one for one in known if one == family)
    return ast.Distribution(found, arguments)


def _check_constant(family: Token, what: str, argument: Expression) -> None:
    """Refuse constants that no such distribution has: they would be NaN wherever the law is asked."""
    if names(argument):
        return
    value = float(evaluate(argument, {}))
    low = -math.inf if family == "Norm" and what == "mean" else 0.0
    high = 1.0 if what == "probability" else math.inf
    if not (math.isfinite(value) and low <= value <= high):
        raise refused(family, f"the {what} of {family} cannot be {value:.6g}")
