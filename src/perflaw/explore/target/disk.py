"""How much a target writes: watched while it runs, and what a trial filled the disk with removed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SHARE: Final = 0.5
"""Part of the free disk that a trial may take where the study names no bound."""
_COST: Final = 20
_MANY: Final = 50_000
_STORE: Final = ".perflaw"


@dataclass(frozen=True, slots=True)
class _Seen:
    used: int
    files: frozenset[str]


class DiskWatch:
    """Watches a folder from now on."""

    def __init__(self, folder: str, bound: int) -> None:
        """``bound``: bytes that the folder may grow by; 0: half of what is free on its disk."""
        self.folder, self.bound = Path(folder), bound
        self._free = _free(folder)
        self._before = _seen(self.folder)
        self._next = 0.0
        self._pause = 0.2

    def over(self) -> str:
        """How far it grew beyond the bound, in words; empty where it did not, or it is too early to look again."""
        now = time.monotonic()
        if now < self._next:
            return ""
        text = self._look()
        self._next = time.monotonic() + max(self._pause, _COST * (time.monotonic() - now))
        return text

    def _look(self) -> str:
        if not self.bound:
            taken = self._free - _free(str(self.folder))
            return f"it filled the disk: {taken:,} bytes" if taken > _SHARE * self._free else ""
        grown = _seen(self.folder).used - self._before.used
        return f"it wrote {grown:,} bytes, {self.bound:,} are allowed (disk_bytes)" if grown > self.bound else ""

    def remove_new(self, opened: Iterable[str]) -> int:
        """Remove files that were not there before and that the target had open, or that are large; how many."""
        ours, removed = set(opened), 0
        large = max(self.bound // 10, 1 << 20)
        if len(self._before.files) >= _MANY:
            return 0  # not all were seen before: which are new cannot be told
        for path, size in _files(self.folder):
            if path not in self._before.files and (path in ours or size >= large):
                with suppress(OSError):
                    Path(path).unlink()
                    removed += 1
        return removed


def opened_by(pids: Iterable[int]) -> set[str]:
    """Files that these processes have open."""
    found: set[str] = set()
    for pid in pids:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    found.add(str(link.readlink()))
    return found


def _free(folder: str) -> int:
    told = os.statvfs(folder)
    return told.f_bavail * told.f_frsize


def _seen(folder: Path) -> _Seen:
    found = list(_files(folder))
    return _Seen(sum(size for _, size in found), frozenset(path for path, _ in found))


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Files below a folder and the disk they take, but for perflaw's own; of very many the first."""
    count = 0
    for here, folders, names in os.walk(folder.resolve()):
        if _STORE in folders:
            folders.remove(_STORE)
        for name in names:
            path = f"{here}/{name}"
            with suppress(OSError):
                yield path, os.lstat(path).st_blocks * 512
            count += 1
        if count >= _MANY:
            return
