"""The controller's database: an SQLite file, or a PostgreSQL server that several controllers share.

Both understand the same statements; parameters are question marks here.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from perflaw.errors import PerflawError, UsageError

Execute = Callable[..., Any]
"""Executes a statement with its parameters; gives a cursor."""
_PATIENCE_S: Final = 20
"""Time for which a transaction waits for another process's, and for a server that does not answer."""
_CACHE_KB: Final = 500
"""Pages of a file that a connection keeps in memory, of which SQLite's own choice is four times as much."""


class DatabaseLost(PerflawError):
    """The database cannot be reached or used now; what was to be written is not acknowledged."""


class Database:
    """A connection that is opened when it is needed, and anew after it was lost. Several threads may use it in turn."""

    def __init__(self, place: str) -> None:
        """``place`` is a path of an SQLite file, or a URL ``postgresql://…``."""
        self._place, self._lock = place, threading.Lock()
        self._connection: Any = None
        self._server = place.startswith(("postgresql:", "postgres:"))
        self._errors: tuple[type[Exception], ...] = (sqlite3.Error,)
        if self._server:
            try:
                import psycopg
            except ImportError as error:
                why = "the driver of PostgreSQL is not installed"
                raise UsageError("the controller's database", why, "pip install 'perflaw[postgres]'") from error
            self._errors = (psycopg.Error,)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """All that is executed within is written as a whole at its end, through to the disk, or not at all."""
        with self._lock:
            try:
                connection = self._connection = self._connection or self._open()
                connection.execute("BEGIN" if self._server else "BEGIN IMMEDIATE")
                yield self._execute
                connection.execute("COMMIT")
            except self._errors as error:
                self._drop()
                name = self._place.rpartition("@")[2]  # without a password
                what = "is the server running?" if self._server else "df -h"
                raise DatabaseLost(f"{name}: the database failed", " ".join(str(error).split()), what) from error
            except BaseException:
                self._drop()  # an unfinished transaction ends with its connection
                raise

    def close(self) -> None:
        """Close the connection; a later transaction opens it again."""
        with self._lock:
            self._drop()

    def _execute(self, statement: str, *parameters: object) -> Any:
        return self._connection.execute(statement.replace("?", "%s") if self._server else statement, parameters)

    def _open(self) -> Any:
        if not self._server:
            connection = sqlite3.connect(
                self._place, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
            return connection
        import psycopg

        limits = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}
        settings = f"-c statement_timeout={_PATIENCE_S * 1000}"
        return psycopg.connect(self._place, autocommit=True, options=settings, **limits)  # type: ignore[arg-type]  # limits are keywords of libpq

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*self._errors):  # it is lost already
                connection.close()


def tables(statements: Sequence[str], database: Database) -> None:
    """Make the tables that are not there yet; several processes may do so at once."""
    for statement in statements:
        with suppress_existing(database), database.transaction() as execute:
            execute(statement)


@contextmanager
def suppress_existing(database: Database) -> Iterator[None]:
    """PostgreSQL may refuse IF NOT EXISTS where two sessions make one table at once: the other one has made it."""
    try:
        yield
    except DatabaseLost as error:
        if "pg_type_typname_nsp_index" not in error.why and "already exists" not in error.why:
            raise
