"""Files of a target: a snapshot before the study that is restored, and a watch on what a trial writes.

    <state>/snapshot/files.json   the list of files, written last: without it there is no snapshot
    <state>/snapshot/0, 1, …      copies (reflinks where the file system supports them)
    <state>/changed               the target may differ from the snapshot, and has to be restored

A file is restored as a whole or not at all, whatever is killed in between. Restoring can be repeated: it starts again from the
beginning where it did not come to its end.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from perflaw.store.files import write_whole

_FICLONE: Final = 0x40049409
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database; old ones must not meet a restored database."""
_NEW, _OLD = ".perflaw-new", ".perflaw-old"
_FREE_SHARE: Final = 0.5
"""Part of the free disk that a trial may fill where the study names no limit."""
_LOOK_SHARE: Final = 20
"""Looking at the folder takes at most one part in so many of the time."""
_MOST_FILES: Final = 50_000
"""Number of files of a folder that are looked at."""
_STORE: Final = ".perflaw"


@dataclass(frozen=True, slots=True)
class _SnapshotEntry:
    path: str
    """Absolute path."""
    kept: str
    """Name of its copy; empty where there was nothing."""


class Snapshot:
    """The files of one study, as they were before it."""

    def __init__(self, state: Path, base: Path) -> None:
        """``state`` is a folder of perflaw's own, ``base`` the folder to which the study's paths are relative."""
        self._folder, self._changed, self._base = state / "snapshot", state / "changed", base

    @property
    def taken(self) -> bool:
        """Whether there is a snapshot."""
        return (self._folder / "files.json").is_file()

    @property
    def changed(self) -> bool:
        """Whether the target may differ from the snapshot."""
        return self._changed.exists()

    def take(self, patterns: Iterable[str]) -> None:
        """Copy the files and folders of these patterns, unless that was done before. OSError where the disk refuses."""
        if self.taken:
            return
        part = self._folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True, mode=0o700)
        listed = list(patterns)
        entries = []
        for number, path in enumerate(self._paths(listed)):
            kept = str(number) if os.path.lexists(path) else ""
            if kept:
                copy(path, part / kept)
            entries.append(_SnapshotEntry(str(path), kept))
        document = {"patterns": listed, "entries": [asdict(entry) for entry in entries]}
        write_whole(part / "files.json", json.dumps(document))
        part.rename(self._folder)
        _sync(self._folder.parent)

    def change(self) -> None:
        """Note that the target is about to be changed."""
        if not self.changed:
            write_whole(self._changed, "")
            _sync(self._changed.parent)

    def restore(self) -> int:
        """Restore everything, and return the number of files and folders. Can be repeated after an OSError of the disk."""
        if not self.taken:
            self._changed.unlink(missing_ok=True)
            return 0
        document = json.loads((self._folder / "files.json").read_text())
        entries = [_SnapshotEntry(**entry) for entry in document["entries"]]
        for entry in entries:
            # Its copy is complete beside its place before it takes that place.
            path = Path(entry.path)
            kept = self._folder / entry.kept if entry.kept else None
            new, old = path.with_name(path.name + _NEW), path.with_name(path.name + _OLD)
            _remove(new)
            if kept is None:
                _remove(path)
            else:
                copy(kept, new)
                if path.is_dir() and not path.is_symlink():
                    _remove(old)
                    path.rename(old)
                new.replace(path)
            _remove(old)
            if path.parent.is_dir():
                _sync(path.parent)
        known = {entry.path for entry in entries}
        for path in self._paths(document["patterns"]):
            if str(path) not in known:
                _remove(path)
        self._changed.unlink(missing_ok=True)
        return len(entries)

    def keep(self) -> None:
        """Leave the target as it is now: the study wants no restoring."""
        self._changed.unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove the copies, when the study is over and the target is restored."""
        with suppress(FileNotFoundError):  # dropped before
            self._folder.rename(self._folder.with_suffix(".part"))
        shutil.rmtree(self._folder.with_suffix(".part"), ignore_errors=True)

    def _paths(self, patterns: Iterable[str]) -> Iterator[Path]:
        """Give what the patterns match now; a name without wildcards stands for itself, whether it exists or not."""
        seen: set[Path] = set()
        for pattern in patterns:
            plain = self._base / pattern
            beside = [plain.with_name(plain.name + ending) for ending in _BESIDE]
            globbed = sorted(self._base.glob(pattern)) if not Path(pattern).is_absolute() else []
            wild = any(letter in pattern for letter in "*?[")
            for path in globbed if wild else [plain, *beside]:
                if path not in seen and not path.name.endswith((_NEW, _OLD)):
                    seen.add(path)
                    yield path


def copy(source: Path, target: Path) -> None:
    """Copy a file, link or folder with times and modes, by reflink where that works; written through to the disk."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, copy_function=_copy_file)
        shutil.copystat(source, target)
    else:
        _copy_file(str(source), str(target))


def _copy_file(source: str, target: str, *, follow_symlinks: bool = False) -> str:
    if Path(source).is_symlink():
        Path(target).symlink_to(Path(source).readlink())
        return target
    with Path(source).open("rb") as old, Path(target).open("wb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError:
            shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())
    shutil.copystat(source, target)
    with suppress(OSError):  # only the owner may
        owner = Path(source).stat()
        os.chown(target, owner.st_uid, owner.st_gid)
    return target


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- What a trial writes.


class DiskWatch:
    """Watches how much a folder grows from now on."""

    def __init__(self, folder: str, limit: int) -> None:
        """``limit``: bytes by which the folder may grow; 0: half of what is free on its disk."""
        self.folder, self.limit = Path(folder), limit
        self._free = _free_bytes(folder)
        self._files_before = dict(_files(self.folder))
        self._next = 0.0

    def exceeded(self) -> str:
        """Return in words how far the folder grew beyond the limit; empty where it did not, or it is too early to look."""
        now = time.monotonic()
        if now < self._next:
            return ""
        why = ""
        if not self.limit:
            used = self._free - _free_bytes(str(self.folder))
            if used > _FREE_SHARE * self._free:
                why = f"it filled the disk: {used:,} bytes"
        else:
            grown = sum(dict(_files(self.folder)).values()) - sum(self._files_before.values())
            if grown > self.limit:
                why = f"it wrote {grown:,} bytes, {self.limit:,} are allowed (disk_bytes)"
        self._next = time.monotonic() + max(0.2, _LOOK_SHARE * (time.monotonic() - now))
        return why

    def remove_new(self, opened: Iterable[str]) -> None:
        """Remove new files that are large or that the target had ``opened``."""
        if len(self._files_before) >= _MOST_FILES:
            return  # not all files were seen before, so it is not known which ones are new
        ours, large = set(opened), max(self.limit // 10, 1 << 20)
        for path, size in _files(self.folder):
            if path not in self._files_before and (path in ours or size >= large):
                with suppress(OSError):  # removed by the target meanwhile
                    Path(path).unlink()


def opened_by(pids: Iterable[int]) -> set[str]:
    """Return the files that these processes have open."""
    found: set[str] = set()
    for pid in pids:
        with suppress(OSError):  # the process has ended
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):  # the file was closed meanwhile
                    found.add(str(link.readlink()))
    return found


def _free_bytes(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Give the files below a folder with the bytes they take on the disk, without perflaw's own; of very many the first."""
    count = 0
    for here, folders, names in os.walk(folder.resolve()):
        if _STORE in folders:
            folders.remove(_STORE)
        for name in names:
            path = f"{here}/{name}"
            with suppress(OSError):  # the file was removed meanwhile
                yield path, os.lstat(path).st_blocks * 512
            count += 1
        if count >= _MOST_FILES:
            return
