"""What all expressions share: they are trees that are walked, compared and written without recursion.

A sum of a hundred thousand terms is a tree of that depth, for ``+`` groups to the left; Python's own recursion ends at
a thousand. So nothing here calls itself.

The page of a report gets expressions and distributions as JSON trees. A number stands for itself, a text for the feature
of that name, and a list for everything else: an operator or function with its operands (``["*", 3, ["log", "n"]]``), or
``["text", "int"]`` for a text that a feature is compared with. A distribution is a list of its name and its arguments.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeVar

from perflaw.errors import DataError

Result = TypeVar("Result")


class _Hashed:
    """A place for a hash that was asked for. It is no field, and so is not sent to other processes, where it is another."""

    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression(_Hashed):
    """A node of an expression: a label of its own and operands."""

    depth: int = field(init=False)
    """How deeply operands nest in it; what stands to the left in a chain of operators does not count."""

    def __post_init__(self) -> None:
        depth = 1
        for place, one in enumerate(self.operands):
            depth = max(depth, one.depth + (place > 0 or not self.chains))
        object.__setattr__(self, "depth", depth)

    @property
    def operands(self) -> tuple[Expression, ...]:
        """What stands below it, from left to right."""
        return ()

    @property
    def chains(self) -> bool:
        """Whether its first operand is the rest of a chain such as ``a + b + c``."""
        return False

    @property
    def label(self) -> tuple[object, ...]:
        """What tells it from other nodes with the same operands: its first field."""
        names: tuple[str, ...] = self.__match_args__
        return (getattr(self, names[0]),)

    def walk(self) -> Iterator[Expression]:
        """Every node, parents before operands, left before right."""
        waiting: list[Expression] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.operands))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        waiting: list[tuple[Expression, Expression]] = [(self, other)]
        while waiting:
            one, two = waiting.pop()
            if one is two:
                continue
            mine, theirs = one.operands, two.operands
            if type(one) is not type(two) or len(mine) != len(theirs) or one.label != two.label:
                return False
            waiting.extend(zip(mine, theirs, strict=True))
        return True

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            # What stands below the operands hardly ever tells two expressions apart that someone looks up.
            found = hash((type(self), self.depth, self.label, *(one.label for one in self.operands)))
            object.__setattr__(self, "_hash", found)
            return found

    def __repr__(self) -> str:
        words = []
        waiting: list[Expression | str] = [self]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                words.append(item)
                continue
            words.append(f"{type(item).__name__}({', '.join(map(repr, item.label))}")
            waiting.append(")")
            for one in reversed(item.operands):
                waiting += [one, ", "]
        return "".join(words)


def fold(root: Expression, combine: Callable[[Expression, list[Result]], Result]) -> Result:
    """The result of ``combine(node, results of its operands)`` at the root; operands come first."""
    waiting: list[tuple[Expression, bool]] = [(root, False)]
    results: list[Result] = []
    while waiting:
        node, ready = waiting.pop()
        operands = node.operands
        if operands and not ready:
            waiting.append((node, True))
            waiting.extend((one, False) for one in reversed(operands))
            continue
        first = len(results) - len(operands)
        results[first:] = [combine(node, results[first:])]
    return results[0]


# ---- What expressions are made of: numbers, names, texts, operators, functions.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Number(Expression):
    """A finite number; DataError otherwise. The parser makes ``-3`` a minus before the number 3."""

    value: float
    """Its value; what had a unit behind it is in ns or bytes."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise DataError(f"the number {self.value} in a law", "only finite numbers can stand there", "correct it")
        object.__setattr__(self, "depth", 1)

    @property
    def label(self) -> tuple[object, ...]:
        """Its value."""
        return (float(self.value),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Name(Expression):
    """A feature, or a name that a binding gives one."""

    text: str
    """Name without the backquotes: ``src.len``."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Text(Expression):
    """A text that a categorical feature is compared with."""

    value: str
    """The text without its quotes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Expression):
    """An operator before its operand."""

    op: str
    """``-`` or ``!``."""
    operand: Expression
    """What it is applied to."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Expression):
    """An operator between two operands."""

    op: str
    """``+ - * / ^``, ``< <= > >= == !=``, ``&&`` or ``||``."""
    left: Expression
    """Operand before it."""
    right: Expression
    """Operand behind it."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """Left and right."""
        return (self.left, self.right)

    @property
    def chains(self) -> bool:
        """Whether the left operand is a binary one as well."""
        return isinstance(self.left, Binary)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Expression):
    """A function of the language applied to arguments."""

    function: str
    """``log`` (the natural one), ``exp``, ``sqrt``, ``min``, ``max``, ``floor``, ``ceil`` or ``abs``."""
    arguments: tuple[Expression, ...]
    """Its arguments."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments


# ---- The nouns of the annotation language (Freud §2.2): what a ``.law`` file says, as frozen dataclasses.

CONSTANTS = {"true": 1.0, "false": 0.0}
"""Names that are numbers."""
NOT_FINITE = {"inf", "infinity", "nan"}
"""Names that people take for numbers."""
Family = Literal["Norm", "LogNorm", "Exp", "Binom"]
"""Names of the distributions."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of a cost, its arguments expressions of the features."""

    name: Family
    """Which one: ``Norm``, ``LogNorm``, ``Exp``, ``Binom``."""
    arguments: tuple[Expression, ...]
    """``Norm(mean, sd)``, ``LogNorm(mean, sd of the logarithm)``, ``Exp(mean)``, ``Binom(n, p)``."""


@dataclass(frozen=True, slots=True)
class Part:
    """A distribution and how probable it is within its clause."""

    probability: float
    """Above 0, at most 1."""
    distribution: Distribution
    """What the cost follows then."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A scope: where it holds, and the law there."""

    condition: Expression | None
    """Where it holds; None for everywhere."""
    parts: tuple[Part, ...]
    """One part of probability 1, or the parts of a mixture, whose probabilities sum to 1."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A short name for a feature, as ``uint s = *(this->_M_impl);`` gives it."""

    type: str
    """Type in the program's language, empty where there is none."""
    name: str
    """The short name."""
    expression: str
    """What stands behind ``=``, verbatim: a feature's name, or text of the program's language."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment within a block."""

    statement: int
    """Number of the statement it is about, in the order they are printed; behind the last: the end of the block."""
    text: str
    """It, without ``#`` and the space behind it."""
    beside: bool = False
    """It stands behind the statement, in its line; else before it."""


@dataclass(frozen=True, slots=True)
class Block:
    """The law of one metric of one component."""

    component: str
    """Name of the component."""
    metric: str
    """Name of the metric."""
    parameters: tuple[str, ...]
    """The component's parameters as the block names them."""
    bindings: tuple[Binding, ...]
    """Short names."""
    clauses: tuple[Clause, ...]
    """The scopes; where several hold, the first counts."""
    unit: str = ""
    """Unit of all costs in it; empty for the metric's own."""
    comments: tuple[str, ...] = ()
    """Lines of comment before it, without ``#`` and the space behind it."""
    remarks: tuple[Remark, ...] = field(default=(), compare=False)
    """Comments within it, in their order."""
    line: int = field(default=0, compare=False)
    """Line it starts at, 0 where it was not read from a text."""


@dataclass(frozen=True, slots=True)
class LawFile:
    """All blocks of a text, in its order."""

    blocks: tuple[Block, ...]
    """The blocks; no two of the same component and metric."""
    closing: tuple[str, ...] = field(default=(), compare=False)
    """Lines of comment behind the last block."""


MOST_NODES = 500
"""Larger expressions have no tree: the page evaluates a law at thousands of points, and JSON's writer is recursive."""
Tree = Any
"""A number, a text, or a list that starts with a text and goes on with trees."""


def expression_tree(expression: Expression | None) -> Tree:
    """The expression as a tree; None for no expression and for one of more than 500 nodes.

    >>> expression_tree(Binary("*", Number(3.0), Call("log", (Name("n"),))))
    ['*', 3, ['log', 'n']]
    """
    if expression is None or any(islice(expression.walk(), MOST_NODES, None)):
        return None

    def tree(node: Expression, operands: list[Tree]) -> Tree:
        match node:
            case Number():
                return int(node.value) if node.value.is_integer() and node.value < 1e15 else node.value
            case Name():
                return node.text
            case Text():
                return ["text", node.value]
            case Unary() | Binary():
                return [node.op, *operands]
            case Call():
                return [node.function, *operands]
        raise TypeError(f"{type(node).__name__} is no part of an expression")

    return fold(expression, tree)


def distribution_tree(distribution: Distribution) -> Tree:
    """The distribution as a tree; None where an argument is too large."""
    arguments = [expression_tree(one) for one in distribution.arguments]
    return None if None in arguments else [distribution.name, *arguments]


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {'"': '"', "'": "'", "`": "`", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff]")


def quote(text: str, mark: str) -> str:
    r"""A name in backquotes or a text in quotes: JSON's escapes, so that any text can stand there.

    >>> quote('calls.app.<lambda>', "`"), unquote('`a\\`b`')
    ('`calls.app.<lambda>`', 'a`b')
    """
    body = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace(mark, "\\" + mark)
    return mark + _RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", body) + mark


def unquote(token: str) -> str:
    """The text between the marks, escapes undone; an unknown escape stands for its character."""

    def character(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _PLAIN.get(code, code)

    return _ESCAPE.sub(character, token[1:-1])
