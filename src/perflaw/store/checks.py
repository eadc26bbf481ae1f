"""The history of checks of an experiment: JSON lines, one for each ``perflaw check``, with the commit that was checked."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from perflaw.errors import StoreError

FILE: Final = "checks.jsonl"
"""Name of the history in an experiment's folder."""
_FIELDS: Final = {"when": str, "commit": str, "laws": str, "counts": dict, "violated": list}


def keep_check(folder: Path, laws: str, document: dict[str, Any]) -> None:
    """Append what a check said of ``laws`` to the history; StoreError where it cannot be written."""
    verdicts = document["verdicts"]
    entry = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit_here(),
        "laws": laws,
        "runs": document["runs"],
        "counts": Counter(one["verdict"] for one in verdicts),
        "violated": list(dict.fromkeys(one["component"] for one in verdicts if one["verdict"] == "violated")),
    }
    try:
        with (folder / FILE).open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":  # a check was killed while it wrote
                    file.write(b"\n")
            file.write(json.dumps(entry).encode() + b"\n")
    except OSError as error:
        raise StoreError(f"{folder / FILE}: cannot be written", error.strerror or "", "perflaw doctor") from error


def read_checks(folder: Path) -> list[dict[str, Any]]:
    """The history, the oldest check first; a line that is damaged or was cut off is left out."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
    return [entry for entry in map(_entry, lines) if entry]


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(entry, dict) and all(isinstance(entry.get(name), kind) for name, kind in _FIELDS.items())
    if not sound or not all(isinstance(n, int) for n in entry["counts"].values()):
        return None
    return {**entry, "violated": [str(name) for name in entry["violated"]]}


def commit_here() -> str:
    """Short id of the commit that is checked out here, with ``+`` where files differ from it; empty without one."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
