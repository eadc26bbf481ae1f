"""Settings that are SQL statements: ``pragma`` of SQLite, and ``sql`` of any server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from perflaw.errors import TargetError
from perflaw.explore.injectors.context import Context
from perflaw.explore.target.process import text_of
from perflaw.types.studies import Value

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
            raise TargetError(f"PRAGMA {_pragma(how)} = {text!r}", "the value is not a plain word or number")
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
        raise TargetError(f"pragma {name!r}", "this is not the name of a pragma")
    return name
