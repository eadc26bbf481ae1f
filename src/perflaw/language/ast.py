"""The nouns of the annotation language (Freud §2.2): what a ``.law`` file says, as frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from perflaw.language.expressions import Binary, Call, Name, Number, Text, Unary
from perflaw.language.tree import Expression

__all__ = [
    "Binary",
    "Binding",
    "Block",
    "Call",
    "Clause",
    "Distribution",
    "Expression",
    "Family",
    "LawFile",
    "Name",
    "Number",
    "Part",
    "Remark",
    "Text",
    "Unary",
]

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
