"""What can be wrong with a law, told with the place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from perflaw.errors import DataError, PerflawError, did_you_mean

if TYPE_CHECKING:
    from lark import Token

EXAMPLE = "perflaw annotate --text"
"""The command that shows how laws are written."""
DEEPEST = 200
"""How deeply brackets and operators may nest; people write three or four levels."""


class LawSyntaxError(PerflawError):
    """A text is no law; ``file`` (empty where it is none), ``line`` and ``column`` (from 1) say where.

    ``expected`` says what should stand there.
    """

    def __init__(
        self, expected: str, line: int = 1, column: int = 1, file: str = "", next_command: str = EXAMPLE
    ) -> None:
        place = f"{file}:{line}:{column}" if file else f"law, line {line}, column {column}"
        super().__init__(place, expected, next_command)
        self.expected, self.line, self.column, self.file = expected, line, column, file


def refused(token: Token, reason: str) -> LawSyntaxError:
    """The error at that token of the parser; who reads a file adds its name."""
    return LawSyntaxError(reason, token.line or 1, token.column or 1)


def too_deep(token: Token) -> LawSyntaxError:
    """The error for what nests too deeply at that token."""
    return refused(token, f"brackets and operators nest more than {DEEPEST} deep here; write the law with fewer")


class UnknownFeatureError(DataError):
    """A law names a feature that the values at hand do not have; ``name`` is that feature."""

    def __init__(self, name: str, there: Iterable[str]) -> None:
        some = ", ".join(sorted(there)[:8]) or "none"
        super().__init__(f"the law needs the feature {name}", f"there are: {some}", f"give {name} a value too")
        self.name = name


def suggestion(word: str, known: Iterable[str]) -> str:
    """``; did you mean `Norm`?`` for a word close to one that is known, else the whole list.

    >>> suggestion("norm", ["Norm", "Exp"]), suggestion("zzz", ["Norm", "Exp"])
    ('; did you mean `Norm`?', '; there are Norm, Exp')
    """
    return did_you_mean(word, list(known), 0.5, "there are")
