"""Laws that were learnt, kept for the next verb that asks for the same ones.

They are in the cache folder under a digest of everything they depend on: the manifests of the recordings, which hold the
checksums of all tables, what was asked for, and the code that learns. So they are never those of other recordings or of
another version, and whoever changes a recording learns anew. They are Python's pickles, which could run code when they are
read: that is why they are not beside the recordings, which people give to others, but where nobody else can write.
"""

from __future__ import annotations

import os
import pickle
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import perflaw
from perflaw.bounds import read_file, read_json
from perflaw.errors import StoreError
from perflaw.record.cache import cache_folder, keep, read_kept
from perflaw.store.checksums import SUFFIX, TABLES, verify

if TYPE_CHECKING:
    from perflaw.store.experiment import Recording

MIN_LEARNING_S: float = 0.5
"""Time that learning takes from which on its result is kept."""
MAX_BYTES: Final = 1 << 28
"""Of everything that is kept; what was not used for longest is removed first."""
_DIGEST_BYTES: Final = 16


class Kept:
    """The place in the cache of what is learnt from some recordings with some settings."""

    def __init__(self, recordings: Sequence[Recording], settings: Sequence[object]) -> None:
        """Form the name from everything that the result depends on."""
        self._tables: list[Path] = []
        digest = blake2b(repr((_code(), settings)).encode(), digest_size=_DIGEST_BYTES)
        for recording in recordings:
            tables = self._digest(recording.folder, digest)
            if tables is None:
                self.name = ""
                return
            self._tables += tables
        self.name = f"laws-{digest.hexdigest()}.pickle"
        """Name of the file; empty if the recordings have no checksums or are being changed: nothing is kept of them."""

    @staticmethod
    def _digest(folder: Path, digest: Any) -> list[Path] | None:
        """Add a recording's manifest to the digest; returns its tables, None if it does not say what is in them."""
        try:
            manifest = read_file(folder / "run.json")
            document = read_json(manifest)
        except (OSError, ValueError):
            return None
        tables = document.get(TABLES) if isinstance(document, Mapping) else None
        if not isinstance(tables, Mapping) or any(" " in str(one) for one in tables.values()):
            return None
        digest.update(len(manifest).to_bytes(8, "little") + manifest)
        return [folder / f"{name}{SUFFIX}" for name in tables]

    def read(self) -> Any:
        """What is kept; None if nothing is, if it is damaged, or if a table is: then whoever learns anew says so."""
        content = read_kept(self.name) if self.name else None
        if not content or _digest_of(content[_DIGEST_BYTES:]) != content[:_DIGEST_BYTES]:
            return None
        try:
            for table in self._tables:
                if not table.is_file():
                    return None
                verify(table)
            return pickle.loads(content[_DIGEST_BYTES:])
        except (StoreError, OSError, RecursionError, MemoryError):
            return None

    def keep(self, result: object) -> None:
        """Keep a result, if there is room; without effect where the cache cannot be written."""
        if not self.name:
            return
        try:
            content = pickle.dumps(result, protocol=5)
        except RecursionError:  # the sum of very many terms
            return
        if len(content) <= MAX_BYTES // 4:
            keep(self.name, _digest_of(content) + content)
            _make_room()


def _digest_of(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _make_room() -> None:
    """Remove what was not used for longest, down to the limit."""
    room, files = MAX_BYTES, []
    for path in cache_folder().glob("laws-*.pickle"):
        with suppress(OSError):  # another process removes it at the same moment
            files.append((path, path.stat()))
    for path, about in sorted(files, key=lambda one: -one[1].st_mtime_ns):
        room -= about.st_size
        if room < 0:
            with suppress(OSError):  # another process removed it at the same moment
                path.unlink()


@cache
def _code() -> tuple[object, ...]:
    """What makes the code that learns another: versions, and size and time of each module, as Python's own cache has it."""
    root = os.path.dirname(perflaw.__file__)  # noqa: PTH120 (some hundred files are looked at)
    modules = [
        (entry.path.removeprefix(root), about.st_size, about.st_mtime_ns)
        for folder, _, _ in os.walk(root)
        for entry in os.scandir(folder)
        if entry.name.endswith((".py", ".lark")) and (about := entry.stat())
    ]
    return perflaw.__version__, platform.python_version(), np.__version__, sorted(modules)
