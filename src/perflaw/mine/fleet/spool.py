"""What a stub keeps on its disk: its id, its instructions, and measurements until the controller has acknowledged them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, StoreError, UsageError
from perflaw.mine.messages import Measurement, Request
from perflaw.store.files import write_whole
from perflaw.wire.channel import SAME_VERSION

MOST_TEXT: Final = 8 << 20
"""Characters of a measurement."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """What a stub is to measure, again and again until the next version."""

    version: int = 0
    """Grows by one with each change; 0 before the first."""
    requests: tuple[Request, ...] = ()
    """Measurements that are wanted, by turns."""
    budget: float = 0.02
    """Part of the process's CPU time that measuring may take."""


class Spool:
    """A folder of one stub's own. The measuring thread adds, the sending one removes."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Open or make the folder; UsageError where another stub uses it or it cannot be written."""
        self.folder = folder
        """The folder."""
        self._pending, self._most_bytes = folder / "pending", most_bytes
        self._instructions, self._changed = folder / "instructions.json", threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._pending.mkdir(exist_ok=True, mode=0o700)
            self._lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._lock)
                raise UsageError(
                    f"{folder}: another stub uses it", "each stub needs a folder of its own", "--spool OTHER_FOLDER"
                ) from error
            for part in self._pending.glob("*.part"):
                part.unlink()
            self._sizes = {path.name: path.stat().st_size for path in sorted(self._pending.iterdir())}
            self.id = self._own_id(folder / "id")
            """Id of the stub."""
        except OSError as error:
            raise UsageError(f"{folder}: cannot be used", error.strerror or str(error), "--spool FOLDER") from error

    def close(self) -> None:
        """Let another stub use the folder."""
        os.close(self._lock)

    @staticmethod
    def _own_id(path: Path) -> str:
        with suppress(FileNotFoundError):  # a new spool
            return path.read_text().strip()
        write_whole(path, secrets.token_hex(8))
        return path.read_text()

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def full(self) -> bool:
        """Whether no more measurements are to be made until some are delivered."""
        with self._changed:
            return sum(self._sizes.values()) >= self._most_bytes

    def add(self, measurement: Measurement) -> None:
        """Keep a measurement, through to the disk; DataError if it is larger than a controller accepts."""
        text = content(measurement)
        if len(text) > MOST_TEXT:
            why = f"at most {MOST_TEXT >> 20} MB are accepted"
            raise DataError(
                f"a measurement of {len(text) >> 20} MB", why, "perflaw stub … --allow GLOB  (fewer functions)"
            )
        name = f"{measurement.end_ns:020d}-{content_id(text)}"
        write_whole(self._pending / name, text)
        with self._changed:
            self._sizes[name] = len(text.encode())

    def oldest(self, most_bytes: int) -> list[tuple[str, str]]:
        """(Id, text) of the oldest measurements, in all at most so many bytes, and at least one if there is any."""
        with self._changed:
            names = sorted(self._sizes.items())
        batch: list[tuple[str, str]] = []
        for name, size in names:
            if batch and size > most_bytes:
                break
            most_bytes -= size
            batch.append((name.rpartition("-")[2], (self._pending / name).read_text()))
        return batch

    def remove(self, ids: Iterable[str]) -> None:
        """Forget measurements that the controller has."""
        gone = set(ids)
        with self._changed:
            names = [name for name in self._sizes if name.rpartition("-")[2] in gone]
            for name in names:
                (self._pending / name).unlink(missing_ok=True)
                del self._sizes[name]

    def keep(self, instructions: Instructions) -> None:
        """Keep the last instructions for a time without the controller."""
        requests = [one.to_json() for one in instructions.requests]
        text = json.dumps({"version": instructions.version, "budget": instructions.budget, "requests": requests})
        write_whole(self._instructions, text)

    def instructions(self) -> Instructions:
        """The last instructions; none where there were none, or they are of another version of perflaw."""
        try:
            document = json.loads(self._instructions.read_text())
            return read_instructions(document, str(self._instructions))
        except (OSError, ValueError, KeyError, TypeError, DataError, StoreError):
            return Instructions()


def read_instructions(document: object, source: str) -> Instructions:
    """Instructions of a JSON document; DataError, ValueError, KeyError or TypeError if it holds none."""
    if not isinstance(document, dict):
        raise DataError(f"{source}: no instructions", "its answer is no JSON object", SAME_VERSION)
    requests = tuple(Request.from_json(text, source) for text in document["requests"])
    return Instructions(int(document["version"]), requests, float(document["budget"]))


def content(measurement: Measurement) -> str:
    """The JSON form of a measurement without the number of its request: the same content is the same measurement."""
    return replace(measurement, request=0).to_json()


def content_id(text: str) -> str:
    """Id of a measurement: the digest of its content."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
