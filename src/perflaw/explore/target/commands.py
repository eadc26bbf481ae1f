"""Commands of a study as programs and arguments, settings put in; a shell only where one is asked for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

_SHELL: Final = re.compile(r"[|&;<>`\n]|\$\(|\$\{|\$\w")
_NAMED: Final = re.compile(r"\{([A-Za-z_][\w.-]*)\}")


def command_of(template: str, arguments: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """The words of a command. ValueError where its quotes do not match.

    >>> command_of("./prog {args} --size={size} {other}", ["-v", "a b"], {"size": 4})
    ['./prog', '-v', 'a b', '--size=4', '{other}']
    >>> command_of("./prog {args} | tail -1", ["a b"], {})
    ['/bin/sh', '-c', "./prog 'a b' | tail -1"]
    """
    if _SHELL.search(template):
        text = template.replace("{args}", shlex.join(arguments))
        return ["/bin/sh", "-c", _filled(text, values, quoted=True)]
    words: list[str] = []
    for word in shlex.split(template):
        words += arguments if word == "{args}" else [_filled(word.replace("{args}", " ".join(arguments)), values)]
    return words


def _filled(text: str, values: Mapping[str, object], quoted: bool = False) -> str:
    """The text with what is known put in; braces around other names stay as they are."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        return shlex.quote(text_of(values[found[1]])) if quoted else text_of(values[found[1]])

    return _NAMED.sub(value, text)


def text_of(value: object) -> str:
    """A setting as an argument: whole numbers without a point, truth as true and false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
