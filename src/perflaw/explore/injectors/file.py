"""``file``: configuration files, made from a template or edited line by line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflaw.errors import TargetError
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.templates import filled, line_set, line_told
from perflaw.explore.injectors.told import told_in
from perflaw.explore.spex_xml import parameter_set, parameter_told
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value

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
