"""The nouns of the annotation language (Freud §2.2): what a ``.law`` file says, as frozen dataclasses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from perflaw.errors import DataError
from perflaw.language.tree import Expression

Family = Literal["Norm", "LogNorm", "Exp", "Binom"]
"""Names of the distributions."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Number(Expression):
    """A finite number; DataError otherwise. The parser makes ``-3`` a minus before the number 3."""

    value: float
    """Its value; what had a unit behind it is in ns or bytes."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise DataError(f"the number {self.value} in a law", "only finite numbers can stand there")
        # super() does not work in a dataclass with slots: the class is made anew
        Expression.__post_init__(self)

    @property
    def label(self) -> tuple[object, ...]:
        """Its value."""
        return (float(self.value),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Name(Expression):
    """A feature, or a name that a binding gives one."""

    text: str
    """Name without the backquotes: ``src.len``."""

    @property
    def label(self) -> tuple[object, ...]:
        """The name."""
        return (self.text,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Text(Expression):
    """A text that a categorical feature is compared with."""

    value: str
    """The text without its quotes."""

    @property
    def label(self) -> tuple[object, ...]:
        """The text."""
        return (self.value,)


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

    @property
    def label(self) -> tuple[object, ...]:
        """The operator."""
        return (self.op,)


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

    @property
    def label(self) -> tuple[object, ...]:
        """The operator."""
        return (self.op,)


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

    @property
    def label(self) -> tuple[object, ...]:
        """The function."""
        return (self.function,)


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
    line: int = field(default=0, compare=False)
    """Line it starts at, 0 where it was not read from a text."""


@dataclass(frozen=True, slots=True)
class LawFile:
    """All blocks of a text, in its order."""

    blocks: tuple[Block, ...]
    """The blocks; no two of the same component and metric."""
