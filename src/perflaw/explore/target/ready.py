"""Whether a server is ready: a port that answers, a page, a file, a line that it printed."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_ASK_S: Final = 0.5


def is_ready(ready: Mapping[str, Any], folder: str, printed: str) -> bool:
    """Whether everything that ``ready`` names is there; nothing named: at once."""
    if "tcp" in ready and not answers(ready["tcp"]):
        return False
    if "http" in ready and not _serves(str(ready["http"])):
        return False
    if "file" in ready and not (Path(folder) / str(ready["file"])).exists():
        return False
    return "output" not in ready or re.search(str(ready["output"]), printed, re.MULTILINE) is not None


def taken(ready: Mapping[str, Any]) -> str:
    """What is there before the server was started, in words: its being ready could not be told from it."""
    if "tcp" in ready and answers(ready["tcp"]):
        return f"something else listens on port {ready['tcp']}"
    if "http" in ready:
        parts = urlsplit(str(ready["http"]))
        if parts.hostname and answers(f"{parts.hostname}:{parts.port or 80}"):
            return f"something else answers at {ready['http']}"
    return ""


def clear(ready: Mapping[str, Any], folder: str) -> None:
    """Remove the file that says that a server is ready; an earlier trial's would be taken for this one's."""
    if "file" in ready:
        (Path(folder) / str(ready["file"])).unlink(missing_ok=True)


def words(ready: Mapping[str, Any]) -> str:
    """What was waited for."""
    return ", ".join(f"{what} {which}" for what, which in ready.items() if what in ("tcp", "http", "file", "output"))


def answers(port: Any) -> bool:
    """Whether somebody accepts connections at ``7000`` or ``host:7000``."""
    host, _, number = str(port).rpartition(":")
    try:
        with socket.create_connection((host or "127.0.0.1", int(number)), timeout=_ASK_S):
            return True
    except OSError:
        return False


def _serves(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=_ASK_S):  # the study's author chose the address
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False
