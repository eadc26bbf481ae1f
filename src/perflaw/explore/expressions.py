"""Expressions of a study: a small language with Python's meaning, checked before anything is computed.

Numbers with units, knobs, ``host.mem``, ``host.cpus``, arithmetic, comparisons, ``and or not``, ``x if c else y``, and
a handful of functions; texts may be compared alone. Nothing else can be written: no attribute, call, index or comprehension.
So an expression opens nothing, and what it takes is bounded by its length and by the size of its numbers.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from perflaw.errors import UsageError
from perflaw.explore.values import NUMBER, UNITS
from perflaw.types.studies import Value

# ---- What expressions may do with values: Python's own operations on numbers that stay small, and comparisons.

MOST_BITS = 256
"""Of a whole number: more is refused, so that no product takes long."""


class Cannot(Exception):
    """Values that an operation is not defined for; becomes a UsageError with the expression's text."""


def _number(value: Value) -> int | float:
    if not isinstance(value, bool | int | float):
        raise Cannot(f"{value!r} is a text, a number is needed")
    return value


def _function(operate: Callable[..., Any]) -> Callable[..., Value]:
    """An operation of Python on numbers, for values that may be texts and results that must stay small."""

    def guarded(*values: Value) -> Value:
        try:
            value = operate(*map(_number, values))
            if isinstance(value, complex):
                raise Cannot("a root of a negative number has no value")
            if isinstance(value, int) and value.bit_length() > MOST_BITS:
                raise Cannot("a number became too large")
            if isinstance(value, float) and not math.isfinite(value):
                raise Cannot("a number became too large")
            number: int | float = value
            return number
        except ZeroDivisionError:
            raise Cannot("division by zero") from None
        except (OverflowError, ValueError):
            raise Cannot(f"{', '.join(map(repr, values))}: no value there") from None

    return guarded


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


def _ordered(operate: Callable[..., bool]) -> Callable[[Value, Value], bool]:
    return lambda left, right: bool(operate(_number(left), _number(right)))


def _rounded(value: int | float, digits: int | float | None = None) -> int | float:
    if digits is None:
        return round(value)
    if not isinstance(digits, int) or abs(digits) > 30:
        raise Cannot("round takes a whole number of digits up to 30")
    return round(value, digits)


OPERATORS: Final[Mapping[type[ast.operator], Callable[[Value, Value], Value]]] = {
    ast.Add: _function(operator.add),
    ast.Sub: _function(operator.sub),
    ast.Mult: _function(operator.mul),
    ast.Div: _function(operator.truediv),
    ast.FloorDiv: _function(operator.floordiv),
    ast.Mod: _function(operator.mod),
    ast.Pow: _function(_power),
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
    "round": (_function(_rounded), 1, 2),
}
"""Name → function, fewest and most arguments."""


# ---- How far a constraint is from holding: a number for a search to go down, where true and false alone show no way.

Variables = Mapping[str, Value]
Step = Callable[[Variables], Value]
Far = Callable[[Variables], float]
LEAST = 1e-9
"""Of what does not hold, however near its two sides are."""


def distance_of(node: ast.expr, step: Callable[[ast.expr, int], Step]) -> Far:
    """A function of the variables: 0 where the expression holds, else up to 1 for each comparison that does not.

    ``step`` compiles a node. Sides of a comparison are compared relative to their sizes; ``and`` adds, ``or`` takes the least.
    """
    if isinstance(node, ast.BoolOp):
        parts = [distance_of(one, step) for one in node.values]
        gather = sum if isinstance(node.op, ast.And) else min
        return lambda variables: float(gather(part(variables) for part in parts))
    if isinstance(node, ast.Compare):
        sides = [step(one, 0) for one in (node.left, *node.comparators)]
        operators = [COMPARISONS[type(one)] for one in node.ops]

        def far(variables: Variables) -> float:
            values = [side(variables) for side in sides]
            gaps = 0.0
            for operate, left, right in zip(operators, values, values[1:], strict=False):
                if operate(left, right):
                    continue
                if isinstance(left, str) or isinstance(right, str):
                    gaps += 1.0  # texts are apart or not
                else:
                    size = abs(left) + abs(right)
                    gaps += max(LEAST, min(1.0, abs(left - right) / size)) if size else LEAST
            return gaps

        return far
    run = step(node, 0)
    return lambda variables: 0.0 if run(variables) else 1.0


MOST_CHARACTERS = 1000
"""Of an expression."""
MOST_NODES = 300
"""Of its tree."""
_SORTED = sorted((unit for unit in UNITS if unit != "%"), key=len, reverse=True)
_LITERAL = re.compile(rf"(?<![\w.])({NUMBER})[ ]?({'|'.join(map(re.escape, _SORTED))})(?![\w])")
_TEXT = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"")
_HOST = ("mem", "cpus")


class Expression:
    """A checked expression; ``value`` computes it. UsageError, with the place, for what cannot be written or computed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        """Knobs and ``host.…`` that it needs."""
        self.units: set[str] = set()
        """Base units of its literals."""
        self._literals: dict[str, int | float] = {}
        if not self.text.strip():
            self._wrong(0, "it is empty")
        if len(self.text) > MOST_CHARACTERS:
            self._wrong(MOST_CHARACTERS, f"it is longer than {MOST_CHARACTERS} characters")
        try:
            # A tab or line break in an expression is a blank: what follows is no new statement.
            tree = ast.parse(re.sub(r"\s", " ", self._with_placeholders()).rstrip().replace("\0", "\1"), mode="eval")
        except SyntaxError as error:
            self._wrong((error.offset or 1) - 1, "it cannot be read")
        except (ValueError, MemoryError, RecursionError):
            self._wrong(0, "it is nested too deeply or not text")
        if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
            self._wrong(0, f"it has more than {MOST_NODES} parts")
        self._run = self._step(tree.body, 0)
        self._far = distance_of(tree.body, self._step)

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (self.text,)

    def value(self, variables: Variables) -> Value:
        """What it is where knobs have these settings."""
        try:
            return self._run(variables)
        except Cannot as error:
            raise UsageError(f"expression {self.text!r}", str(error), "make it computable with every setting") from None
        except KeyError as error:
            name = error.args[0]
            raise UsageError(f"expression {self.text!r}", f"{name} has no value", "name a knob") from None

    def distance(self, variables: Variables) -> float:
        """How far it is from holding: 0 where it holds; 1 where it cannot be computed."""
        try:
            # Whether it holds is said by its value: ``or`` and ``and`` do not look at what need not be computed.
            return 0.0 if self._run(variables) else self._far(variables)
        except (Cannot, KeyError):
            return 1.0

    def _with_placeholders(self) -> str:
        """``4KiB`` becomes a name of the same length, so that places in complaints stay right."""
        bare = _TEXT.sub(lambda found: "'" * len(found[0]), self.text)
        odd = next((at for at, one in enumerate(bare) if ord(one) > 126 and one != "µ"), None)
        if odd is not None:
            self._wrong(odd, f"{self.text[odd]!r} means nothing here")

        def placeholder(found: re.Match[str]) -> str:
            name = chr(0x4E00 + len(self._literals)).ljust(len(found[0]), "_")
            factor, base = UNITS[found[2]]
            number = found[1].replace("_", "")
            self._literals[name] = (int(number) if number.isdigit() else float(number)) * factor
            self.units.add(base)
            return name

        parts = re.split(f"({_TEXT.pattern})", self.text)  # every second one is quoted
        return "".join(part if place % 2 else _LITERAL.sub(placeholder, part) for place, part in enumerate(parts))

    def _wrong(self, at: int, why: str) -> NoReturn:
        pointed = self.text[max(0, at - 20) : at] + "»" + self.text[at : at + 20]
        what, place = f"expression {self.text[:80]!r}, character {at + 1}", pointed.strip()
        raise UsageError(what, f"{why} ({place})", "docs/study-files.md says what an expression may hold")

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        line = " " + re.sub(r"\s", " ", self.text)
        at = len(line.encode()[: getattr(node, "col_offset", 0) + 1].decode(errors="ignore")) - 1
        self._wrong(at, why)

    def _step(self, node: ast.expr, depth: int) -> Step:
        """A function of the variables that computes a node: what has none is refused here, once."""
        if depth > 40:
            self._refuse(node, "it is nested too deeply")
        make = getattr(self, f"_{type(node).__name__.lower()}", None)
        if make is None:
            words = {"Subscript": "an index", "JoinedStr": "a text with braces", "NamedExpr": ":=", "Lambda": "lambda"}
            kind = type(node).__name__
            self._refuse(node, f"{words.get(kind, kind)} is not allowed")
        step: Step = make(node, depth + 1)
        return step

    def _constant(self, node: ast.Constant, depth: int) -> Step:
        value = node.value
        if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not math.isfinite(value)):
            self._refuse(node, f"{value!r} is not allowed")
        if isinstance(value, int) and value.bit_length() > 256:
            self._refuse(node, "the number is too large")
        return lambda _: value

    def _name(self, node: ast.Name, depth: int) -> Step:
        name = node.id
        if name in self._literals:
            literal = self._literals[name]
            return lambda _: literal
        if name in FUNCTIONS:
            self._refuse(node, f"{name} is a function: write {name}(…)")
        self.names.add(name)
        return lambda variables: variables[name]

    def _attribute(self, node: ast.Attribute, depth: int) -> Step:
        if not (isinstance(node.value, ast.Name) and node.value.id == "host" and node.attr in _HOST):
            self._refuse(node, "only host.mem and host.cpus may be written with a dot")
        name = f"host.{node.attr}"
        self.names.add(name)
        return lambda variables: variables[name]

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> Step:
        operate = UNARY.get(type(node.op))
        if operate is None:
            self._refuse(node, "this operator is not allowed")
        inner = self._step(node.operand, depth)
        return lambda variables: operate(inner(variables))

    def _binop(self, node: ast.BinOp, depth: int) -> Step:
        operate = OPERATORS.get(type(node.op))
        if operate is None:
            self._refuse(node, "this operator is not allowed")
        left, right = self._step(node.left, depth), self._step(node.right, depth)
        return lambda variables: operate(left(variables), right(variables))

    def _boolop(self, node: ast.BoolOp, depth: int) -> Step:
        steps = [self._step(one, depth) for one in node.values]
        ends = isinstance(node.op, ast.Or)

        def run(variables: Variables) -> Value:
            value: Value = not ends
            for step in steps:
                value = step(variables)
                if bool(value) is ends:
                    break
            return value

        return run

    def _ifexp(self, node: ast.IfExp, depth: int) -> Step:
        condition, yes, no = (self._step(one, depth) for one in (node.test, node.body, node.orelse))
        return lambda variables: yes(variables) if condition(variables) else no(variables)

    def _compare(self, node: ast.Compare, depth: int) -> Step:
        steps = [self._step(one, depth) for one in (node.left, *node.comparators)]
        operators = [COMPARISONS.get(type(one)) for one in node.ops]
        if None in operators:
            self._refuse(node, "this comparison is not allowed")

        def run(variables: Variables) -> Value:
            left = steps[0](variables)
            for operate, step in zip(operators, steps[1:], strict=True):
                right = step(variables)
                if operate is None or not operate(left, right):
                    return False
                left = right
            return True

        return run

    def _call(self, node: ast.Call, depth: int) -> Step:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            self._refuse(node, f"only {', '.join(FUNCTIONS)} can be called")
        function, least, most = FUNCTIONS[node.func.id]
        if not least <= len(node.args) <= most:
            self._refuse(node, f"{node.func.id} takes {least}{f' to {most}' if most > least else ''} values")
        steps = [self._step(one, depth) for one in node.args]
        return lambda variables: function(*(step(variables) for step in steps))
