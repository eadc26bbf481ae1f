"""``arg``: command-line arguments, which ``{args}`` in the target's commands stands for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.process import commands
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value


class Argument:
    """``{arg: "--threads={}"}``; without ``{}``, the argument is given where the setting is true."""

    name = "arg"
    options: tuple[str, ...] = ()
    verifies_itself = True
    when = "process"

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Append the argument's words."""
        context.arguments += words_of(str(how["arg"]), value)
        context.given[str(how["arg"])] = text_of(value)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """The value, where a process was started with these words."""
        value = context.given.get(str(how["arg"]))
        if value is None or not context.launched:
            return None
        wanted = words_of(str(how["arg"]), value)
        if not wanted:
            return None if any(_holds(words, shlex.split(str(how["arg"]))) for words in commands(context)) else value
        return value if any(_holds(words, wanted) for words in commands(context)) else None


def words_of(template: str, value: Value) -> list[str]:
    """The words of an argument for a value.

    >>> words_of("--threads {}", 4), words_of("--fast", False), words_of("--fast", True)
    (['--threads', '4'], [], ['--fast'])
    """
    words = shlex.split(template)
    if "{}" not in template:
        return words if text_of(value).lower() not in ("false", "0", "") else []
    return [word.replace("{}", text_of(value)) for word in words]


def _holds(words: list[str], wanted: list[str]) -> bool:
    """Whether the words stand there in a row, or within one that is a shell's script."""
    row = any(words[at : at + len(wanted)] == wanted for at in range(len(words)))
    return row or any(len(word.split()) > 1 and shlex.join(wanted) in word for word in words)
