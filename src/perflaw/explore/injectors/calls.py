"""Settings that are applied and read back by a call: ``command``, ``http``, ``python``, and SQL: ``pragma``, ``sql``.

``path`` and ``regex`` only read back: the program or the workload reports the setting in what it prints.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from perflaw.errors import TargetError
from perflaw.explore.injectors.context import Context
from perflaw.explore.plugins import load_file
from perflaw.explore.target.outputs import last_match, value_at
from perflaw.explore.target.process import text_of
from perflaw.types.studies import Value


def setting_in(text: str, how: Mapping[str, Any]) -> Value | None:
    """Return the setting in a text: by the injection's ``path`` or ``regex``, else the last line that is not empty."""
    if "path" in how:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise TargetError(
                "the answer is not JSON", str(error), "read the setting with regex: in place of path:"
            ) from error
        return setting_at(document, str(how["path"]))
    if "regex" in how:
        return last_match(str(how["regex"]), text)
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def setting_at(document: Any, path: str) -> Value | None:
    """Return the setting at ``a.b.0`` of a JSON document; None where there is none.

    >>> setting_at({"a": [{"b": 4}]}, "a.0.b"), setting_at({}, "a")
    (4, None)
    """
    try:
        value = value_at(document, path)
    except ValueError:
        return None
    return value if isinstance(value, bool | int | float | str) else None


class Command:
    """``{command: "redis-cli config set maxmemory {}"}``; verify: ``{command: "redis-cli config get maxmemory"}``."""

    name = "command"
    options = ("path", "regex")

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Run the command with the value in the place of ``{}``; a status other than 0 makes the trial invalid."""
        context.run(str(how["command"]).replace("{}", text_of(value)))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return what the command prints: at ``path``, by ``regex``, or its last line."""
        return setting_in(context.run(str(how["command"])), how)


class HttpRequest:
    """``{http: "PUT http://127.0.0.1:9200/_settings", body: '{"refresh": "{}"}'}``; verify: ``{http: "GET …", path: a.b}``."""

    name = "http"
    options = ("body", "type", "path", "regex")

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Send the request with the value in the place of ``{}`` in address and body."""
        method, address = self._request(how, "PUT")
        text = text_of(value)
        body = str(how.get("body", "")).replace("{}", text)
        context.http(method, address.replace("{}", text), body, str(how.get("type", "application/json")))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return what the answer says, at ``path`` of its JSON, by ``regex``, or in its last line."""
        method, address = self._request(how, "GET")
        return setting_in(context.http(method, address), how)

    def _request(self, how: Mapping[str, Any], default: str) -> tuple[str, str]:
        words = str(how["http"]).split()
        if len(words) == 1:
            return default, words[0]
        if len(words) != 2 or not words[0].isupper():
            raise TargetError(f"http {how['http']!r}", "a method and an address were expected", 'http: "PUT http://…"')
        return words[0], words[1]


class PythonCall:
    """``{python: settings:set_pool}`` calls ``set_pool(value, context)``; verify: it calls ``get_pool(context)``.

    The module or file (``settings.py:set_pool``) is looked for in the target's folder first.
    """

    name = "python"
    options: tuple[str, ...] = ()

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Call the function with the value."""
        self._function(str(how["python"]), context)(value, context)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return what the function returns."""
        setting: Value | None = self._function(str(how["python"]), context)(context)
        return setting

    def _function(self, name: str, context: Context) -> Any:
        module, _, wanted = name.rpartition(":")
        if not module:
            raise TargetError(
                f"python {name!r}", "module:function or file.py:function was expected", "python: knobs.py:apply"
            )
        if module.endswith(".py"):
            found = load_file(context.path(module), f"python {name!r}")
        else:
            if context.folder not in sys.path:
                sys.path.insert(0, context.folder)
            found = importlib.import_module(module)
        if not callable(getattr(found, wanted, None)):
            raise TargetError(
                f"python {name!r}", f"{module} has no function {wanted}", f"def {wanted}(value, context): …"
            )
        return getattr(found, wanted)


class ResultPath:
    """``verify: {path: settings.cache}``: the setting at a path of the JSON that the program or workload prints."""

    name = "path"
    options: tuple[str, ...] = ()
    when = "result"

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the value there."""
        return setting_at(context.document, str(how["path"]))


class ResultPattern:
    r"""``verify: {regex: "cache=(\\d+)"}``: the setting in the last match of what the program or workload prints."""

    name = "regex"
    options: tuple[str, ...] = ()
    when = "result"

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the group of the last match."""
        return None if context.output is None else last_match(str(how["regex"]), context.output)


_OF_CONNECTIONS: Final = (
    "busy_timeout", "cache_size", "cache_spill", "foreign_keys", "locking_mode", "mmap_size", "query_only",
    "synchronous", "temp_store", "threads", "wal_autocheckpoint",
)  # fmt: skip
"""Pragmas that SQLite keeps for a connection, not in the file."""


class Pragma:
    """``{pragma: page_size}``: ``PRAGMA page_size = value`` on the target's SQLite file (``target: {sql: data.db}``)."""

    name = "pragma"
    options: tuple[str, ...] = ()
    verifies_itself = True

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Run the pragma; SQLite says nothing where it ignores a value, so only ``verify`` shows that."""
        text = text_of(int(value)) if isinstance(value, bool) else text_of(value)
        if not re.fullmatch(r"[\w.+-]+", text):
            what = f"PRAGMA {_pragma(how)} = {text!r}"
            raise TargetError(what, "the value is not a plain word or number", "correct the values of the knob")
        context.connection.query(f"PRAGMA {_pragma(how)} = {text}")

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return what another connection reads, which is what the file itself has."""
        context.close()
        return context.connection.query(f"PRAGMA {_pragma(how)}") or None

    def hint(self, how: Mapping[str, Any]) -> str:
        """Return why SQLite probably ignored the value."""
        if _pragma(how) in _OF_CONNECTIONS:
            return (
                f" (SQLite keeps {_pragma(how)} for each connection: let the target set it and print it, "
                "verify: {path: …})"
            )
        if _pragma(how) != "page_size":
            return ""
        return " (SQLite ignores page sizes above 64 KiB, and any change of an existing file until VACUUM)"


class Statement:
    """``{sql: "ALTER SYSTEM SET work_mem = {}"}`` with the value for ``{}``; verify: ``{sql: "SHOW work_mem"}``."""

    name = "sql"
    options: tuple[str, ...] = ()

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Run the statement."""
        context.connection.query(str(how["sql"]).replace("{}", text_of(value)))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the first column of the first row, read by a new connection."""
        context.close()
        return context.connection.query(str(how["sql"])) or None


def _pragma(how: Mapping[str, Any]) -> str:
    name = str(how["pragma"])
    if not re.fullmatch(r"\w+(\.\w+)?", name):
        raise TargetError(f"pragma {name!r}", "this is not the name of a pragma", "pragma: page_size")
    return name
