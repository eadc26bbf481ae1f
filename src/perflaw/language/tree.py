"""What all expressions share: they are trees that are walked, compared and written without recursion.

A sum of a hundred thousand terms is a tree of that depth, for ``+`` groups to the left; Python's own recursion ends at
a thousand. So nothing here calls itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression:
    """A node of an expression: a label of its own and operands."""

    depth: int = field(init=False)
    """How deeply operands nest in it; what stands to the left in a chain of operators does not count."""

    def __post_init__(self) -> None:
        below = [one.depth + 1 for one in self.operands]
        if below and self.chains:
            below[0] -= 1
        object.__setattr__(self, "depth", max(below, default=1))

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
        """What tells it from other nodes with the same operands."""
        return ()

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
        return all(one == two for one, two in zip_longest(_labels(self), _labels(other)))

    def __hash__(self) -> int:
        return hash(tuple(_labels(self)))

    def __repr__(self) -> str:
        return "".join(_representation(self))


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


def _labels(root: Expression) -> Iterator[tuple[object, ...]]:
    """Labels and numbers of operands in the order of a walk: they determine the tree."""
    for node in root.walk():
        yield (type(node).__name__, len(node.operands), *node.label)


def _representation(root: Expression) -> Iterator[str]:
    waiting: list[Expression | str] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        yield f"{type(item).__name__}({', '.join(map(repr, item.label))}"
        waiting.append(")")
        for one in reversed(item.operands):
            waiting += [one, ", "]
