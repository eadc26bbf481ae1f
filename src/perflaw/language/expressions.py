"""What expressions are made of: numbers, names, texts, operators, functions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perflaw.errors import DataError
from perflaw.language.tree import Expression


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
