"""Asks a program that has called ``perflaw.listen`` to be recorded: no right to trace it is needed, and nothing is stopped."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError
from perflaw.listening import ADDRESS

PATIENCE_S: Final = 10.0
"""Time in which the program has to answer."""


def connect(pid: int) -> socket.socket | None:
    """A connection to a program; None if it does not listen."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    try:
        connection.connect(ADDRESS.format(pid))
    except OSError:  # it does not listen
        connection.close()
        return None
    return connection


def ask(pid: int, connection: socket.socket, extension: Path, settings: Mapping[str, str]) -> None:
    """Begin a recording that goes on while the connection is open; TargetError with the program's reason if it refuses."""
    given = {f"PERFLAW_TARGET_{name}": value for name, value in settings.items()}
    try:
        connection.sendall(json.dumps({"extension": str(extension), "settings": given}).encode() + b"\n")
        answer = connection.makefile().readline()
    except OSError as error:
        why = f"it listens for perflaw and does not answer: {error}"
        raise TargetError(f"process {pid}", why, f"perflaw attach {pid}") from error
    if answer != "\n":
        raise TargetError(f"process {pid}", answer.strip() or "it closed the connection", "perflaw doctor")
