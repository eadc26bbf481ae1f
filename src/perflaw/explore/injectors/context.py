"""What injectors are given: the trial's folder, arguments and environment to fill, and ways to reach the target."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from perflaw.errors import TargetError
from perflaw.explore.target.process import command_of
from perflaw.types.studies import Value

COMMAND_S: Final = 120.0
"""Longest time that a command of an injector may take."""
MOST_CHARACTERS: Final = 2**20
"""Number of characters that are kept of what a command prints, and of an HTTP answer."""
REQUEST_S: Final = 10.0
"""Longest wait for each part of an HTTP answer."""


@dataclass(frozen=True, slots=True)
class LaunchedProcess:
    """A process of the target as it was started."""

    pid: int
    """Its number."""
    command: tuple[str, ...]
    """Program and arguments."""
    environment: Mapping[str, str]
    """Its environment."""


@dataclass(slots=True)
class Context:
    """One trial, as injectors see it."""

    folder: str
    """Working directory of the target, absolute."""
    variables: dict[str, Value] = field(default_factory=dict)
    """The whole configuration, ``host.mem`` and ``host.cpus``: what expressions and templates may name."""
    arguments: list[str] = field(default_factory=list)
    """Arguments that ``{args}`` stands for; injectors append to it."""
    given: list[tuple[Mapping[str, Any], str]] = field(default_factory=list)
    """Each argument as the study writes it, and the value that it was given with."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of the target's environment; injectors add to it."""
    files: dict[str, str] = field(default_factory=dict)
    """Paths of files that were written, by name: ``{name}`` in commands is the path."""
    sql: str = ""
    """Where SQL goes: ``Target.sql``."""
    launched: list[LaunchedProcess] = field(default_factory=list)
    """Processes that were started in this trial."""
    output: str | None = None
    """What the program or workload printed; None while it has not run."""
    document: Any = None
    """JSON document of the result; None where there is none."""
    verified: dict[str, Value] = field(default_factory=dict)
    """Settings that were read back, by knob."""
    unverified: dict[str, Value] = field(default_factory=dict)
    """Settings that processes were started with, by knob; whether they took effect is not known."""
    trusted: frozenset[str] = frozenset()
    """Knobs that the agent itself applies: colocated load."""
    _connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """Connection for SQL, opened at its first use. TargetError where the study's target has none."""
        if self._connection is None:
            if not self.sql:
                missing = "its key sql is missing"
                raise TargetError("the study's target takes no SQL", missing, "sql: data.db, or sql: psql -At -c {}")
            if "{}" in self.sql:
                self._connection = ClientConnection(self.sql, self.run)
            else:
                self._connection = SqliteConnection(Path(self.folder) / self.sql)
        return self._connection

    def path(self, name: str) -> Path:
        """Return a file of the target, relative to its folder."""
        return Path(self.folder) / name

    def run(self, command: str | list[str]) -> str:
        """Return what a command prints, by a shell only where it is written for one; TargetError if it fails or hangs."""
        words = command
        if isinstance(words, str):
            words = command_of(words, self.arguments, {**self.variables, **self.files})
        environment = {**os.environ, **self.environment}
        try:
            process = subprocess.Popen(
                words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise TargetError(
                f"{words[0]} cannot be started", error.strerror or str(error), f"which {words[0]}"
            ) from error
        try:
            printed, complaint = process.communicate(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            why, remedy = f"not within {COMMAND_S:g} s", "end it sooner; a server belongs to target:"
            raise TargetError(f"{words[0]} does not end", why, remedy) from None
        if process.returncode:
            last = complaint.decode(errors="replace").strip().rsplit("\n", 1)[-1][:300]
            what = f"{words[0]} failed with status {process.returncode}"
            raise TargetError(what, last or "it printed no error", "run the command by hand")
        return printed[:MOST_CHARACTERS].decode(errors="replace")

    def http(self, method: str, address: str, body: str = "", kind: str = "application/json") -> str:
        """Return the text of the answer to an HTTP request, past any proxy; TargetError without an answer of success."""
        import urllib.error  # 30 ms to import, which few studies need
        import urllib.request
        from http.client import HTTPException

        if not address.startswith(("http://", "https://")):
            raise TargetError(
                f"request to {address!r}", "an address begins with http:// or https://", f"http://{address}"
            )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        headers = {"Content-Type": kind} if body else {}
        try:
            request = urllib.request.Request(address, body.encode() if body else None, headers, method=method)
            with direct.open(request, timeout=REQUEST_S) as answer:
                text: bytes = answer.read(MOST_CHARACTERS)
        except urllib.error.HTTPError as error:
            reason = error.read(300).decode(errors="replace").strip()
            error.close()
            what = f"{method} {address}: status {error.code}"
            raise TargetError(what, reason or str(error.reason), f"curl -X {method} {address}") from error
        except (OSError, HTTPException, ValueError) as error:
            why = str(getattr(error, "reason", error)) or "no answer"
            raise TargetError(f"{method} {address}", why, f"curl -X {method} {address}") from error
        return text.decode(errors="replace")

    def close(self) -> None:
        """Close the connection for SQL; the next use opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Injector(Protocol):
    """An injector; it has ``verify`` alone where it only reads back."""

    name: str
    """The key that names it in a study file: the first key of an ``apply`` or ``verify``."""

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Apply a setting. Any exception makes the trial invalid, with the exception's text as the reason."""

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the setting that the target reports; None where it does not report it (yet).

        A class with ``verifies_itself`` needs no ``verify`` of its own in a study: it reads its own setting back from the
        target. One with ``shows_launch`` needs none either, but reads what a process was started with, which is no proof.
        """


class RestoringInjector(Injector, Protocol):
    """An injector that can restore what it overwrites."""

    def remember(self, how: Mapping[str, Any], context: Context) -> Any:
        """Return what the injection will overwrite, as JSON."""

    def put_back(self, how: Mapping[str, Any], remembered: Any, context: Context) -> None:
        """Restore what ``remember`` returned. The text of any exception says what could not be restored."""


# ---- Connections for SQL.


class Connection(Protocol):
    """Takes SQL statements, one at a time."""

    def query(self, statement: str) -> str:
        """Return the first column of the first row as text; empty where there is none."""

    def close(self) -> None:
        """Close the connection."""


class SqliteConnection:
    """A file of SQLite, through Python's own library. TargetError where the file or a statement is refused."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():  # SQLite would make an empty file, and a study would tune that
            raise TargetError(f"SQLite file {path}", "there is no such file", "target: {prepare: …} makes it")
        self._path = path
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)

    def query(self, statement: str) -> str:
        """Run a statement outside of transactions, and return the first column of its first row."""
        try:
            row = self._connection.execute(statement).fetchone()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise TargetError(
                f"{self._path.name}: {statement}", str(error), "correct the statement in the study"
            ) from error
        return "" if row is None or row[0] is None else str(row[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class ClientConnection:
    """A command that takes a statement: ``psql -At -c {}``, ``mariadb -N -e {}``; each statement is its own session."""

    def __init__(self, command: str, run: Callable[[str | list[str]], str]) -> None:
        self._words, self._run = shlex.split(command), run

    def query(self, statement: str) -> str:
        """Run the command with the statement in the place of ``{}``, and return the first line that it prints."""
        printed = self._run([word.replace("{}", statement) for word in self._words])
        return next((line.strip() for line in printed.splitlines() if line.strip()), "")

    def close(self) -> None:
        """Do nothing: nothing is kept open."""
