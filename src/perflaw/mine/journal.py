"""The journal of the loop: what was decided and why, what it cost, and what was learnt; JSON lines in the experiment."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perflaw.errors import StoreError

FILE: Final = "mining.jsonl"
"""Name of the journal in an experiment's folder."""


class Journal:
    """Appends entries, each at once: what was written survives whatever happens to the recorder.

    While it is open it holds a lock on its file, which others share: by that one sees from outside that mining goes on.
    """

    def __init__(self, folder: Path) -> None:
        """StoreError if it cannot be written."""
        self.path = folder / FILE
        try:
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written", error.strerror or "", "perflaw doctor") from error
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def write(self, event: str, about: Mapping[str, Any]) -> None:
        """Append an entry."""
        self._file.write(json.dumps({"at_ns": time.time_ns(), "event": event, **about}, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """All entries of an experiment, the oldest first; none if it has no journal. A line that was cut off is left out."""
    entries = []
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except OSError:
        return []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and "event" in entry:
            entries.append(entry)
    return entries


def sampled_shares(folder: Path) -> dict[str, float]:
    """Function → part of the program's time that samples found in the function itself, when it was measured last.

    A recording of few functions does not know it: in it, a function's own time contains that of all callees that are not
    recorded.
    """
    shares: dict[str, float] = {}
    for entry in read_journal(folder):
        if entry["event"] == "measurement":
            shares.update(entry.get("shares", {}))
    return shares
