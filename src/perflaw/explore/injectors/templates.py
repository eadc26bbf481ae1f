"""Text files: templates with ``{{expressions}}``, and lines ``key = value``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perflaw.errors import PerflawError, TargetError
from perflaw.explore.expressions import Expression
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value

_HOLE = re.compile(r"\{\{([^{}\n]{1,300})\}\}")


def filled(text: str, variables: Mapping[str, Value], where: str, value: Value | None = None) -> str:
    """The template with each ``{{expression}}`` computed; ``{{}}``-free braces stay. ``{{value}}`` is the injected value.

    >>> filled("cache = {{cache // 1KiB}}kB {x}", {"cache": 4096}, "a")
    'cache = 4kB {x}'
    """
    known = variables if value is None or "value" in variables else {**variables, "value": value}

    def hole(found: re.Match[str]) -> str:
        try:
            return text_of(Expression(found[1].strip()).value(known))
        except PerflawError as error:
            line = text.count("\n", 0, found.start()) + 1
            raise TargetError(f"{where}:{line}: {found[0]}", str(error)) from error

    return _HOLE.sub(hole, text)


def _line(key: str) -> re.Pattern[str]:
    return re.compile(rf"^([ \t]*{re.escape(key)})([ \t]*[=:][ \t]*|[ \t]+)(\S.*?|)([ \t]*[;]?)$", re.MULTILINE)


def _last(key: str, text: str) -> re.Match[str] | None:
    return next(iter(reversed(list(_line(key).finditer(text)))), None)


def line_set(text: str, key: str, value: str) -> str:
    r"""The text with the value of a key's last line changed, all else kept; with a new line at the end where none is.

    >>> line_set("a = 1\nport 7000\n", "port", "8"), line_set("a: 1\n", "b", "2")
    ('a = 1\nport 8\n', 'a: 1\nb: 2\n')
    """
    last = _last(key, text)
    if last is not None:
        return f"{text[: last.start(3)]}{value}{text[last.end(3) :]}"
    style = re.search(r"^[ \t]*[\w.-]+([ \t]*[=:][ \t]*|[ \t]+)\S", text, re.MULTILINE)
    joint = style[1] if style else " = "
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{key}{joint}{value}\n"


def line_told(text: str, key: str) -> str | None:
    """The value of a key's last line, without quotes; None where there is none."""
    last = _last(key, text)
    return None if last is None else last[3].strip().strip("'\"")
