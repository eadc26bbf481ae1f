"""``file``: configuration files, made from a template or edited line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflaw.errors import PerflawError, TargetError
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.told import told_in
from perflaw.explore.spex_xml import parameter_set, parameter_told
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value

# ---- Text files: templates with ``{{expressions}}``, and lines ``key = value``.

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


LARGEST = 2**22
"""Bytes of a file that is remembered and put back."""


class File:
    """A file of the target; put back after the study.

    ``{file: app.conf, template: app.conf.in}`` writes the template with ``{{knob}}`` and ``{{expressions}}`` filled in;
    ``{file: app.conf, key: cache_size}`` sets the line of that key in place; ``{file: app.xml, parameter: cache}`` the
    parameter of the paper's XML. ``as: conf`` makes ``{conf}`` its path in commands.
    """

    name = "file"
    options = ("template", "key", "parameter", "as", "path", "regex")

    def objection(self, how: Mapping[str, Any]) -> str:
        """Why an ``apply`` cannot work; empty where it can."""
        ways = [way for way in ("template", "key", "parameter") if way in how]
        return "" if ways else "it needs a template, a key or a parameter"

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Write it whole."""
        path = context.path(str(how["file"]))
        base = context.path(str(how["template"])) if "template" in how else path
        if ("key" in how or "parameter" in how) and _ours(path, context):
            base = path  # another knob of this trial made it from the template
        text = read(base)
        if "key" in how:
            text = line_set(text, str(how["key"]), text_of(value))
        elif "parameter" in how:
            text = parameter_set(text, str(how["parameter"]), text_of(value))
        else:
            text = filled(text, context.variables, str(base), value)
        path.write_text(text)
        context.files[str(how.get("as", path.stem))] = str(path)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """What the file says at ``key``, ``parameter``, ``path`` or by ``regex``: not what the target made of it."""
        text = read(context.path(str(how["file"])))
        if "key" in how:
            return line_told(text, str(how["key"]))
        if "parameter" in how:
            return parameter_told(text, str(how["parameter"]))
        return told_in(text, how)

    def remember(self, how: Mapping[str, Any], context: Context) -> str | None:
        """Its text; None where there is no such file."""
        path = context.path(str(how["file"]))
        return read(path) if path.exists() else None

    def put_back(self, how: Mapping[str, Any], remembered: str | None, context: Context) -> None:
        """The text again; a file that was not there goes."""
        path = context.path(str(how["file"]))
        if remembered is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(remembered)


def _ours(path: Path, context: Context) -> bool:
    """Whether another knob of this trial wrote it already."""
    return str(path) in context.files.values()


def read(path: Path) -> str:
    """A text file of bounded size; TargetError where it is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise TargetError(f"file {path}", f"it is larger than {LARGEST // 2**20} MiB")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"file {path}", getattr(error, "strerror", None) or str(error)) from error
