"""Where SQL goes: a file of SQLite, or a client of another server."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from perflaw.errors import TargetError

Run = Callable[[str | list[str]], str]


class Connection(Protocol):
    """Takes statements, one at a time."""

    def query(self, statement: str) -> str:
        """The first column of the first row of the answer as text; empty where there is none."""

    def close(self) -> None:
        """End it."""


class Sqlite:
    """A file of SQLite through Python's own library. TargetError where the file or a statement is refused."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():  # SQLite would make an empty one, and a study would tune that
            raise TargetError(f"SQLite file {path}", "there is none", "target: {prepare: …} makes it")
        self._path = path
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)

    def query(self, statement: str) -> str:
        """Run a statement, outside of transactions."""
        try:
            row = self._connection.execute(statement).fetchone()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise TargetError(f"{self._path.name}: {statement}", str(error)) from error
        return "" if row is None or row[0] is None else str(row[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class Client:
    """A command that takes a statement: ``psql -At -c {}``, ``mariadb -N -e {}``; each statement is a session of its own."""

    def __init__(self, command: str, run: Run) -> None:
        self._words, self._run = shlex.split(command), run

    def query(self, statement: str) -> str:
        """Run the command with the statement in the place of ``{}``; the first line that it prints."""
        printed = self._run([word.replace("{}", statement) for word in self._words])
        return next((line.strip() for line in printed.splitlines() if line.strip()), "")

    def close(self) -> None:
        """Nothing is kept open."""


def connection_of(sql: str, folder: str, run: Run) -> Connection:
    """A connection as ``Target.sql`` says: a file, or a command with ``{}``."""
    if not sql:
        raise TargetError(
            "the study's target takes no SQL", "its key sql is missing", "sql: data.db, or sql: psql -At -c {}"
        )
    return Client(sql, run) if "{}" in sql else Sqlite(Path(folder) / sql)
