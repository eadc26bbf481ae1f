"""Values of a TOML file read as what they have to be; a wrong one is told with its file, line, key and what is allowed."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from perflaw.collect.toml_lines import Key, line_of
from perflaw.errors import UsageError
from perflaw.types import FEATURE_NAME

EXACT: Final = 2**53
"""Whole numbers below this are told apart by floating point."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the file and where it stands. Its readers raise UsageError where it is not what they read."""

    file: str
    """Name of the file."""
    lines: Mapping[Key, int]
    """Lines of its keys."""
    key: Key
    """Where the value stands in it."""
    value: Any
    """As ``tomllib`` gives it."""

    def wrong(self, why: str, example: str) -> NoReturn:
        """Refuse it: ``why`` says what is allowed."""
        line = line_of(dict(self.lines), self.key)
        where = f"{self.file}, line {line}" if line else self.file
        shown = "" if isinstance(self.value, dict | list) else f" = {_shown(self.value)}"
        shown = " is missing" if self.value is None else shown
        raise UsageError(f"{where}: {_path(self.key)}{shown}", why, example)

    def at(self, name: str | int) -> Value:
        """The value below, None's where there is none."""
        below = self.value[name] if isinstance(name, int) else self.value.get(name)
        return Value(self.file, self.lines, (*self.key, name), below)

    def table(self, allowed: Collection[str] = ()) -> Value:
        """Itself, a table with no other keys than these (any, where none are given)."""
        if not isinstance(self.value, dict):
            self.wrong("a table is wanted", f"[{_path(self.key)}]")
        for name in self.value if allowed else ():
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, 1)
                meant = f"did you mean {near[0]}? " if near else ""
                self.at(name).wrong(f"no such key; {meant}allowed: {', '.join(allowed)}", (near or list(allowed))[0])
        return self

    def items(self) -> Iterator[tuple[str, Value]]:
        """Names and values of a table of features."""
        for name in self.table().value:
            if not FEATURE_NAME.fullmatch(name):
                self.at(name).wrong("a name begins with a letter and has letters, digits, . - _ [ ] alone", "n = 100")
            yield name, self.at(name)

    def elements(self, what: str, example: str) -> list[Value]:
        """The elements of an array that is not empty."""
        if not isinstance(self.value, list) or not self.value:
            self.wrong(f"{what} is wanted", example)
        return [self.at(place) for place in range(len(self.value))]

    def text(self, example: str) -> str:
        """A text that is not empty."""
        if not isinstance(self.value, str) or not self.value or "\0" in self.value:
            self.wrong("a text is wanted", example)
        return str(self.value)

    def word(self, example: str) -> str:
        """A text or a finite number, as it is put into a command: ``1e6`` as ``1000000``, for programs read whole numbers."""
        if isinstance(self.value, str) and "\0" not in self.value:
            return self.value
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            self.wrong("texts and numbers are allowed here", example)
        return str(int(self.value) if self.value == int(self.value) and abs(self.value) < EXACT else self.value)

    def words(self, example: str) -> tuple[str, ...]:
        """A command: a text as a shell splits it, or an array of words."""
        if not isinstance(self.value, str):
            return tuple(
                one.word(example) for one in self.elements("a command line, or an array of its words,", example)
            )
        try:
            return tuple(shlex.split(self.value))
        except ValueError as error:
            self.wrong(f"it cannot be split into words ({error})", example)

    def number(self, example: str) -> float:
        """A finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            self.wrong("a finite number is wanted", example)
        return float(self.value)

    def seconds(self) -> float:
        """A positive number of seconds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not 0 < self.value < math.inf:
            self.wrong("a number of seconds above 0 is wanted", "timeout = 60")
        return float(self.value)

    def count(self) -> int:
        """A whole number from 1 on."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 1:
            self.wrong("a whole number from 1 on is wanted", "repeat = 3")
        return int(self.value)

    def pattern(self) -> str:
        """A regular expression."""
        text = self.text(example := r"pattern = 'compares: (\d+)'")
        try:
            re.compile(text)
        except re.error as error:
            self.wrong(f"no regular expression: {error}", example)
        return text


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _path(key: Key) -> str:
    """The key as a person writes it; elements of arrays are counted from 1.

    >>> _path(("workload", 1, "repeat"))
    'workload 2, repeat'
    """
    parts: list[str] = []
    for part in key:
        if isinstance(part, int):
            parts[-1:] = [f"{parts[-1]} {part + 1}"]
        else:
            parts.append(part)
    return ", ".join(parts)
