"""Comments within a block: which statement each is about, while statements are put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflaw.language import ast

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
