"""What injectors are given: the trial's folder, arguments and environment to fill, and ways to reach the target."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Protocol

from perflaw.errors import TargetError
from perflaw.explore.injectors.connections import Connection, connection_of
from perflaw.explore.target.commands import command_of
from perflaw.types.studies import Value

# ---- One HTTP request, bounded in time and size, past any proxy.

REQUEST_S: Final = 10.0
"""Longest wait for each part of an answer."""
MOST_BYTES: Final = 2**20
"""Of an answer."""


def request(method: str, address: str, body: str, kind: str) -> str:
    """The answer's text; TargetError where there is none or its status is no success."""
    if not address.startswith(("http://", "https://")):
        raise TargetError(f"request to {address!r}", "an address begins with http:// or https://")
    data = body.encode() if body else None
    headers = {"Content-Type": kind} if body else {}
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        asked = urllib.request.Request(address, data, headers, method=method)
        with direct.open(asked, timeout=REQUEST_S) as answer:
            told: bytes = answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace").strip()
        error.close()
        raise TargetError(f"{method} {address}: status {error.code}", said or str(error.reason)) from error
    except (OSError, HTTPException, ValueError) as error:
        raise TargetError(f"{method} {address}", str(getattr(error, "reason", error)) or "no answer") from error
    return told.decode(errors="replace")


COMMAND_S: Final = 120.0
"""Longest time that a command of an injector may take."""
MOST_OUTPUT: Final = 2**20
"""Characters kept of what one prints."""


@dataclass(frozen=True, slots=True)
class Launched:
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
    """What ``{args}`` holds; append to it."""
    given: dict[str, str] = field(default_factory=dict)
    """Argument as the study writes it → value that it was given with."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of the target's environment; add to it."""
    files: dict[str, str] = field(default_factory=dict)
    """Name → path of files that were written: ``{name}`` in commands is the path."""
    sql: str = ""
    """Where SQL goes: ``Target.sql``."""
    launched: list[Launched] = field(default_factory=list)
    """Processes that were started in this trial."""
    output: str | None = None
    """What the program or workload printed; None while it has not run."""
    document: Any = None
    """The JSON document of the result; None where there is none."""
    verified: dict[str, Value] = field(default_factory=dict)
    """Knob → setting that was read back."""
    trusted: frozenset[str] = frozenset()
    """Knobs that the agent itself applies: colocated load."""
    _connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """Where SQL goes; opened at its first use. TargetError where the study's target has none."""
        if self._connection is None:
            self._connection = connection_of(self.sql, self.folder, self.run)
        return self._connection

    def path(self, name: str) -> Path:
        """A file of the target, relative to its folder."""
        return Path(self.folder) / name

    def run(self, command: str | list[str]) -> str:
        """What a command prints; TargetError where it fails or does not end. A shell is used only where one is written."""
        words = (
            command_of(command, self.arguments, {**self.variables, **self.files})
            if isinstance(command, str)
            else command
        )
        environment = {**os.environ, **self.environment}
        try:
            process = subprocess.Popen(
                words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise TargetError(f"{words[0]} cannot be started", error.strerror or str(error)) from error
        try:
            printed, complaint = process.communicate(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise TargetError(f"{words[0]} does not end", f"not within {COMMAND_S:g} s") from None
        if process.returncode:
            last = complaint.decode(errors="replace").strip().rsplit("\n", 1)[-1][:300]
            raise TargetError(f"{words[0]} failed with status {process.returncode}", last)
        return printed[:MOST_OUTPUT].decode(errors="replace")

    def http(self, method: str, address: str, body: str = "", kind: str = "application/json") -> str:
        """The answer's text to a request; TargetError where there is none or its status is no success."""
        # CUT#  # costs 30 ms to import, few studies need it

        return request(method, address, body, kind)

    def close(self) -> None:
        """Let the connection go; the next use opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Injector(Protocol):
    """What an injector has; ``verify`` alone where it only reads back."""

    name: str
    """The key that names it in a study file: the first key of an ``apply`` or ``verify``."""

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Bring a setting to the target. Any exception makes the trial invalid, with its text as the reason."""

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """What the target says that it has; None where it does not say (yet)."""
