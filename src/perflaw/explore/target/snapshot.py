"""Files of a target as they were before a study, and put back: whole or not at all, whatever is killed in between.

    <state>/snapshot/files.json   what was there, written last: without it there is no snapshot
    <state>/snapshot/0, 1, …      copies (reflinks where the file system has them)
    <state>/changed               the target may differ from the snapshot: whoever finds this restores

Restoring is repeatable: it is done from the beginning where it did not reach its end.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_FICLONE: Final = 0x40049409
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database: it belongs to its state, so an old one must not meet a restored file."""
_NEW, _OLD = ".perflaw-new", ".perflaw-old"


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    """Absolute path."""
    kept: str
    """Name of its copy; empty: there was nothing."""


class Snapshot:
    """The files of one study. ``state`` is a folder of perflaw's own, ``base`` where relative paths begin."""

    def __init__(self, state: Path, base: Path) -> None:
        self._folder, self._changed, self._base = state / "snapshot", state / "changed", base

    @property
    def taken(self) -> bool:
        """Whether there is one."""
        return (self._folder / "files.json").is_file()

    @property
    def changed(self) -> bool:
        """Whether the target may differ from it."""
        return self._changed.exists()

    def take(self, patterns: Iterable[str]) -> None:
        """Copy the files and folders of these patterns, unless that was done already. OSError where the disk refuses."""
        if self.taken:
            return
        part = self._folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True, mode=0o700)
        listed = list(patterns)
        entries = [_kept(path, part, str(number)) for number, path in enumerate(self._paths(listed))]
        document = {"patterns": listed, "entries": [asdict(entry) for entry in entries]}
        write_whole(part / "files.json", json.dumps(document))
        part.rename(self._folder)
        _sync(self._folder.parent)

    def change(self) -> None:
        """The target is about to be changed."""
        if not self.changed:
            write_whole(self._changed, "")
            _sync(self._changed.parent)

    def restore(self) -> int:
        """Put everything back; how many files and folders. OSError where the disk refuses: it can be repeated."""
        if not self.taken:
            self._changed.unlink(missing_ok=True)
            return 0
        document = json.loads((self._folder / "files.json").read_text())
        entries = [_Entry(**entry) for entry in document["entries"]]
        for entry in entries:
            _put_back(Path(entry.path), self._folder / entry.kept if entry.kept else None)
        known = {entry.path for entry in entries}
        for path in self._paths(document["patterns"]):
            if str(path) not in known:
                _remove(path)
        self._changed.unlink(missing_ok=True)
        return len(entries)

    def keep(self) -> int:
        """Leave the target as it is now: the study asks for no restoring."""
        self._changed.unlink(missing_ok=True)
        return 0

    def drop(self) -> None:
        """The study is over and the target restored: forget the copies."""
        with suppress(FileNotFoundError):
            self._folder.rename(self._folder.with_suffix(".part"))
        shutil.rmtree(self._folder.with_suffix(".part"), ignore_errors=True)

    def _paths(self, patterns: Iterable[str]) -> Iterator[Path]:
        """What the patterns mean now; a name without wildcards stands for itself, there or not."""
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


def _kept(path: Path, folder: Path, name: str) -> _Entry:
    if not os.path.lexists(path):
        return _Entry(str(path), "")
    copy(path, folder / name)
    return _Entry(str(path), name)


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
    with suppress(OSError):  # not ours to give away
        told = Path(source).stat()
        os.chown(target, told.st_uid, told.st_gid)
    return target


def _put_back(path: Path, kept: Path | None) -> None:
    """One file or folder. It is beside its place, whole, before it takes that place."""
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


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file of our own through to the disk; it is there whole or not at all."""
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    part.replace(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
