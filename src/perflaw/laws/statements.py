"""What the grammar cannot say of statements and blocks: probabilities, mixtures, units, the order of things."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from perflaw.laws import tree as ast
from perflaw.laws.errors import DEEPEST, refused, suggestion, too_deep
from perflaw.laws.evaluation import evaluate, names
from perflaw.laws.tree import CONSTANTS, NOT_FINITE, Expression
from perflaw.laws.units import dimension, size_of, units_of

if TYPE_CHECKING:
    from lark import Token


# ---- Comments within a block: which statement each is about, while statements are put in order.

Anchor = tuple[int, int, int]
"""Kind (0 a binding, 1 a law, 2 the end), number among its kind, number among the parts of a mixture."""
_END: Anchor = (2, 0, 0)


@dataclass(frozen=True, slots=True)
class Read:
    """A comment as it was read."""

    text: str
    """It, without ``#``."""
    beside: bool
    """Behind a statement, in its line."""


class Remarks:
    """Comments in the order they are read, and the statements they belong to."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._found: list[tuple[Anchor, str, bool]] = []
        self._last: Anchor | None = None

    def read(self, one: Read) -> None:
        """A comment: about the statement before it where it stands beside that, else about the next."""
        if one.beside and self._last is not None:
            self._found.append((self._last, one.text, True))
        else:
            self._waiting.append(one.text)

    def binding(self, number: int) -> None:
        """A binding follows."""
        self._at((0, number, 0))

    def law(self, number: int, part: int) -> None:
        """A law follows, or a part of a mixture."""
        self._at((1, number, part))

    def _at(self, anchor: Anchor) -> None:
        self._found += [(anchor, text, False) for text in self._waiting]
        self._waiting, self._last = [], anchor

    def placed(self, bindings: int, clauses: Sequence[ast.Clause]) -> tuple[ast.Remark, ...]:
        """The comments by number of the statement, as a block is printed: bindings first, a lone mixture part by part."""
        self._at(_END)
        lone = len(clauses) == 1 and clauses[0].condition is None
        parts = len(clauses[0].parts) if lone else len(clauses)

        def number(anchor: Anchor) -> int:
            kind, count, part = anchor
            return count if kind == 0 else bindings + (parts if kind == 2 else part if lone else count)

        found = [ast.Remark(number(anchor), text, beside) for anchor, text, beside in self._found]
        return tuple(sorted(found, key=lambda one: one.statement))


# ---- What the grammar cannot say of expressions: which functions and distributions exist, what is no number.

FUNCTIONS = {"log": 1, "exp": 1, "sqrt": 1, "floor": 1, "ceil": 1, "abs": 1, "min": None, "max": None}
"""Functions and how many arguments they take; None: one or more."""
ARGUMENTS = {
    "Norm": ("mean", "standard deviation"),
    "LogNorm": ("mean", "standard deviation of the logarithm"),
    "Exp": ("mean",),
    "Binom": ("number of trials", "probability"),
}
"""Distributions and what their arguments are."""
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
        # Refuse constants that no such distribution has: they would be NaN wherever the law is asked.
        if not names(argument):
            value = float(evaluate(argument, {}))
            low = -math.inf if family == "Norm" and what == "mean" else 0.0
            high = 1.0 if what == "probability" else math.inf
            if not (math.isfinite(value) and low <= value <= high):
                raise refused(family, f"the {what} of {family} cannot be {value:.6g}")
    found: ast.Family = next(one for one in known if one == family)
    return ast.Distribution(found, arguments)


OFF = 1e-3
"""How far the probabilities of a mixture may sum to anything but 1: people round."""
_BINDING = re.compile(r"(.*?)([^\W\d]\w*)\s*=\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Weighted:
    """A part of a mixture and where it stands."""

    token: Token
    """Its probability as it is written."""
    probability: float
    """The same as a number."""
    distribution: ast.Distribution
    """Its law."""


def probability(token: Token) -> float:
    """Above 0 and at most 1, without a unit."""
    digits, unit = split(token)
    value = float(digits)
    if unit or not 0 < value <= 1:
        raise refused(token, f"a probability above 0 and at most 1 is expected, found {token[:40]}")
    return value


def mixture(parts: Sequence[Weighted]) -> tuple[ast.Part, ...]:
    """The parts, whose probabilities must sum to 1."""
    total = math.fsum(one.probability for one in parts)
    if abs(total - 1) > OFF:
        raise refused(parts[0].token, f"the probabilities of a mixture must sum to 1, these sum to {total:.6g}")
    return tuple(ast.Part(one.probability, one.distribution) for one in parts)


def binding(text: str) -> ast.Binding:
    """``uint s = *(this->size)`` in its three parts."""
    found = _BINDING.fullmatch(text)
    assert found  # the grammar's terminal is narrower
    return ast.Binding(found[1].strip(), found[2], found[3])


def arrange(
    statements: Sequence[ast.Binding | ast.Clause | Weighted | Read], unit: Token | None, metric: Token
) -> tuple[tuple[ast.Binding, ...], tuple[ast.Clause, ...], tuple[ast.Remark, ...]]:
    """Bindings, clauses and comments; weighted laws one after another are one mixture."""
    bindings, clauses, remarks = list[ast.Binding](), list[ast.Clause](), Remarks()
    run: list[Weighted] = []
    for statement in (*statements, None):
        if isinstance(statement, Read):
            remarks.read(statement)
            continue
        if isinstance(statement, Weighted):
            remarks.law(len(clauses), len(run))
            run.append(statement)
            continue
        if run:
            clauses.append(ast.Clause(None, mixture(run)))
            run = []
        if isinstance(statement, ast.Binding):
            remarks.binding(len(bindings))
            bindings.append(statement)
        elif statement is not None:
            remarks.law(len(clauses), 0)
            clauses.append(statement)
    if not clauses:
        raise refused(metric, "the block has no law; a distribution such as Norm(mean, deviation) is expected in it")
    if unit is not None and size_of(unit) != 1:
        # Which of the two units is meant by [ms] { Norm(50us, …) } cannot be told.
        laws = (part.distribution for clause in clauses for part in clause.parts)
        nodes = (node for law in laws for argument in law.arguments for node in argument.walk())
        for value in (node.value for node in nodes if isinstance(node, ast.Number)):
            if isinstance(value, Measured) and dimension(split(value.token)[1]) == dimension(unit):
                raise refused(value.token, f"a number with a unit in a block in [{unit}]; write one of the two")
    return tuple(bindings), tuple(clauses), remarks.placed(len(bindings), clauses)


def check_unit(metric: Token, unit: Token | None) -> None:
    """Refuse units of size for times; what a plug-in's metric is measured in is known to the recordings."""
    units = units_of(metric)
    if unit is not None and units and unit not in units:
        raise refused(unit, f"{metric} cannot be in {unit[:40]}{suggestion(unit, units)}")


def with_comments(items: Sequence[str | ast.Block]) -> Iterator[ast.Block]:
    """The blocks, each with the comments before it."""
    comments: list[str] = []
    for item in items:
        if isinstance(item, str):
            comments.append(item)
        else:
            yield replace(item, comments=tuple(comments))
            comments = []
