"""Settings in files: ``file``, a configuration file of the target, and ``sysctl``, settings of the kernel.

Both are restored after the study. A configuration file is made from a template with ``{{expressions}}``, or changed in one line
``key = value``, or in one parameter of the paper's XML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflaw.errors import PerflawError, TargetError
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.calls import setting_in
from perflaw.explore.injectors.context import Context
from perflaw.explore.target.process import text_of
from perflaw.types.studies import Value

LARGEST = 2**22
"""Bytes of the largest file that is remembered and restored."""
_HOLE = re.compile(r"\{\{([^{}\n]{1,300})\}\}")
_VALUE = re.compile(r"(\bvalue\s*=\s*)([\"'])(.*?)\2", re.DOTALL)


class ConfigurationFile:
    """A file of the target.

    ``{file: app.conf, template: app.conf.in}`` writes the template with ``{{knob}}`` and ``{{expressions}}`` filled in;
    ``{file: app.conf, key: cache_size}`` sets the line of that key in place; ``{file: app.xml, parameter: cache}`` sets the
    parameter of the paper's XML. ``as: conf`` makes ``{conf}`` the file's path in commands.
    """

    name = "file"
    options = ("template", "key", "parameter", "as", "path", "regex")

    def objection(self, how: Mapping[str, Any]) -> str:
        """Return why an ``apply`` cannot work; empty where it can."""
        ways = [way for way in ("template", "key", "parameter") if way in how]
        return "" if ways else "it needs a template, a key or a parameter"

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Write the file as a whole."""
        path = context.path(str(how["file"]))
        base = context.path(str(how["template"])) if "template" in how else path
        if ("key" in how or "parameter" in how) and str(path) in context.files.values():
            base = path  # another knob of this trial has made it from the template
        text = read(base)
        if "key" in how:
            text = set_line(text, str(how["key"]), text_of(value))
        elif "parameter" in how:
            text = set_parameter(text, str(how["parameter"]), text_of(value))
        else:
            text = fill_template(text, context.variables, str(base), value)
        path.write_text(text)
        context.files[str(how.get("as", path.stem))] = str(path)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return what the file says at ``key``, ``parameter``, ``path`` or by ``regex``; the target may differ from it."""
        text = read(context.path(str(how["file"])))
        if "key" in how:
            return line_value(text, str(how["key"]))
        if "parameter" in how:
            return parameter_value(text, str(how["parameter"]))
        return setting_in(text, how)

    def remember(self, how: Mapping[str, Any], context: Context) -> str | None:
        """Return the text of the file; None where there is no such file."""
        path = context.path(str(how["file"]))
        return read(path) if path.exists() else None

    def put_back(self, how: Mapping[str, Any], remembered: str | None, context: Context) -> None:
        """Write the remembered text; remove a file that did not exist."""
        path = context.path(str(how["file"]))
        if remembered is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(remembered)


def read(path: Path) -> str:
    """Return a text file of limited size; TargetError where it cannot be read."""
    try:
        if path.stat().st_size > LARGEST:
            raise TargetError(f"file {path}", f"it is larger than {LARGEST // 2**20} MiB", "name a smaller file")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"file {path}", why, f"ls -l {path}") from error


def fill_template(text: str, variables: Mapping[str, Value], where: str, value: Value | None = None) -> str:
    """Return a template with each ``{{expression}}`` computed; ``{{value}}`` is the injected value.

    >>> fill_template("cache = {{cache // 1KiB}}kB {x}", {"cache": 4096}, "a")
    'cache = 4kB {x}'
    """
    known = variables if value is None or "value" in variables else {**variables, "value": value}

    def computed(found: re.Match[str]) -> str:
        try:
            return text_of(Expression(found[1].strip()).value(known))
        except PerflawError as error:
            line = text.count("\n", 0, found.start()) + 1
            raise TargetError(f"{where}:{line}: {found[0]}", error.reason, "correct this expression") from error

    return _HOLE.sub(computed, text)


def set_line(text: str, key: str, value: str) -> str:
    r"""Return a text with the value of a key's last line changed; where there is none, with a new line at the end.

    >>> set_line("a = 1\nport 7000\n", "port", "8"), set_line("a: 1\n", "b", "2")
    ('a = 1\nport 8\n', 'a: 1\nb: 2\n')
    """
    last = _last_line(key, text)
    if last is not None:
        return f"{text[: last.start(3)]}{value}{text[last.end(3) :]}"
    style = re.search(r"^[ \t]*[\w.-]+([ \t]*[=:][ \t]*|[ \t]+)\S", text, re.MULTILINE)
    separator = style[1] if style else " = "
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{key}{separator}{value}\n"


def line_value(text: str, key: str) -> str | None:
    """Return the value of a key's last line, without quotes; None where there is none."""
    last = _last_line(key, text)
    return None if last is None else last[3].strip().strip("'\"")


def _last_line(key: str, text: str) -> re.Match[str] | None:
    pattern = rf"^([ \t]*{re.escape(key)})([ \t]*[=:][ \t]*|[ \t]+)(\S.*?|)([ \t]*[;]?)$"
    return next(iter(reversed(list(re.finditer(pattern, text, re.MULTILINE)))), None)


def set_parameter(text: str, name: str, value: str) -> str:
    """Return a configuration in the paper's XML with the ``value`` of one parameter changed, everything else as it was.

    >>> set_parameter('<parameter name="a" value="1"/>', "a", "2")
    '<parameter name="a" value="2"/>'
    """
    found = _parameter(text, name)
    if not found or not _VALUE.search(found[0]):
        raise TargetError(f"parameter {name!r}", "the file has no such parameter with a value", "add it to the file")
    changed = _VALUE.sub(lambda old: f'{old[1]}"{html.escape(value)}"', found[0], count=1)
    return text[: found.start()] + changed + text[found.end() :]


def parameter_value(text: str, name: str) -> str | None:
    """Return the ``value`` of a parameter in the paper's XML; None where there is none."""
    found = _parameter(text, name)
    value = _VALUE.search(found[0]) if found else None
    return html.unescape(value[3]) if value else None


def _parameter(text: str, name: str) -> re.Match[str] | None:
    return re.search(rf"<parameter\b[^<>]*\bname\s*=\s*([\"']){re.escape(html.escape(name))}\1[^<>]*>", text)


class Sysctl:
    """``{sysctl: vm.swappiness}``, or any file of /proc and /sys: ``{sysctl: /sys/kernel/mm/transparent_hugepage/enabled}``."""

    name = "sysctl"
    options: tuple[str, ...] = ()
    verifies_itself = True

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Write the setting; an error of the kernel says that it is not allowed."""
        self.put_back(how, text_of(int(value)) if isinstance(value, bool) else text_of(value), context)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the kernel's setting; of a choice such as ``always [madvise] never``, the one in brackets."""
        return self.remember(how, context)

    def remember(self, how: Mapping[str, Any], context: Context) -> str:
        """Return the setting as it is now."""
        path = kernel_file(str(how["sysctl"]))
        try:
            text = path.read_text().strip()
        except OSError as error:
            raise TargetError(f"{path}", error.strerror or str(error), f"ls -l {path}") from error
        chosen = [word for word in text.split() if word.startswith("[") and word.endswith("]")]
        return chosen[0][1:-1] if chosen else text

    def put_back(self, how: Mapping[str, Any], remembered: str, context: Context) -> None:
        """Write a setting."""
        path = kernel_file(str(how["sysctl"]))
        try:
            path.write_text(remembered)
        except OSError as error:
            raise TargetError(f"{path}", error.strerror or str(error), "run it as root") from error


def kernel_file(name: str) -> Path:
    """Return the file of a kernel setting, which must be one of /proc or /sys.

    >>> kernel_file("vm.swappiness")
    PosixPath('/proc/sys/vm/swappiness')
    """
    path = Path(name) if name.startswith("/") else Path("/proc/sys") / name.replace(".", "/")
    if ".." in path.parts or (not path.is_relative_to("/proc") and not path.is_relative_to("/sys")):
        why = "this is neither a kernel setting nor a file of /proc or /sys"
        raise TargetError(f"sysctl {name!r}", why, "sysctl: vm.swappiness")
    return path
