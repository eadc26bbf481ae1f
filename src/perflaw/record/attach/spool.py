"""The folder in which a running program and its recorder meet: the recording's, or one that another user can reach."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.attach.process import Attachable
from perflaw.record.rights import Rights, User, read_regular, write_new

_PLACES: Final = ("tmp", "var/tmp", "dev/shm", "run/user/{}")
"""Where a user may have files: of those that have room for records, the first."""
_ROOM: Final = 256 << 20
"""Bytes that records may need."""
_NAME: Final = "perflaw-"
"""How the names of such folders begin; the recorder's process id and a random number follow."""
_NAMES: Final = rf"{_NAME}[0-9]+-[0-9a-f]{{16}}"
"""Their names."""


@dataclass(frozen=True, slots=True)
class Spool:
    """A folder of records that a program writes and the recorder reads."""

    folder: Path
    """How the recorder reaches it, also when the program is gone."""
    told: Path
    """How the program reaches it."""
    rights: Rights
    """With whose rights the recorder opens what is in it."""

    def put(self, name: str, content: bytes) -> Path:
        """Write a file; how the program reaches it. OSError if that cannot be."""
        with self.rights:
            write_new(self.folder / name, content)
        return self.told / name

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none, or it is no regular one."""
        with suppress(OSError), self.rights:  # it is not there, or not yet
            return read_regular(self.folder / name)
        return None


@contextmanager
def spool_of(program: Attachable, recording: Path) -> Iterator[Spool]:
    """The spool of a process: in the folder of its recording, unless it is of another user.

    That one gets a folder of its own, which is removed at the end. It is reached by the root folder of the process, which may
    be another one than ours, or have another ``/tmp`` (systemd: PrivateTmp=). TargetError if there is no place for it.
    """
    if program.user is None:
        own = recording.resolve() / "spool"  # the program may be in another folder
        yield Spool(own, own, Rights())
        return
    with shared_folder(program.user, Path(f"/proc/{program.pid}/root"), f"process {program.pid}") as spool:
        yield spool


@contextmanager
def shared_folder(user: User, root: Path, what: str) -> Iterator[Spool]:
    """A new folder of this user alone, in which libraries may lie, below a root folder.

    TargetError if there is no place for it.
    """
    rights = Rights(user)
    place = _place(rights, user, root)
    if place is None:
        listed = ", ".join(f"/{place.format(user.uid)}" for place in _PLACES)
        why = f"its user (uid {user.uid}) has no folder for records and libraries: {listed} of its root folder do not exist, "
        raise TargetError(what, f"{why}may not be written, or are mounted noexec", f"sudo findmnt --target {root}/tmp")
    parent, folder, told = place
    try:
        yield Spool(Path(f"/proc/self/fd/{folder}"), told, rights)
    finally:
        with rights:
            shutil.rmtree(told.name, ignore_errors=True, dir_fd=parent)
        os.close(folder)
        os.close(parent)


def _place(rights: Rights, user: User, root: Path) -> tuple[int, int, Path] | None:
    """Descriptors of the folder above and of the new folder, and its path in that root; None if there is no place."""
    for least in (_ROOM, 1):
        for place in (place.format(user.uid) for place in _PLACES):
            with suppress(OSError), rights:  # the next place may do
                parent = os.open(root / place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    about = os.fstatvfs(parent)
                    if about.f_bavail * about.f_frsize >= least and not about.f_flag & os.ST_NOEXEC:
                        _remove_abandoned(parent, user)
                        name, folder = _new_folder(parent)
                        return parent, folder, Path("/", place, name)
                except OSError:
                    os.close(parent)
                    raise
                os.close(parent)
    return None


def _new_folder(parent: int) -> tuple[str, int]:
    """The name of a new folder, and a descriptor of it that holds a lock as long as this process has it.

    The lock tells that the recorder lives to others who share the folder above and may know no process of ours (containers).
    """
    while True:
        name = f"{_NAME}{os.getpid()}-{secrets.token_hex(8)}"
        os.mkdir(name, 0o700, dir_fd=parent)
        folder = _opened(name, parent)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (BlockingIOError, FileNotFoundError):  # before it was locked, another recorder took it for abandoned
            os.close(folder)
        except OSError:
            os.close(folder)
            os.rmdir(name, dir_fd=parent)
            raise
        else:
            return name, folder


def _opened(name: str, parent: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def _remove_abandoned(parent: int, user: User) -> None:
    """Remove the folders of this user whose recorders were killed, so that nobody holds their lock."""
    for name in os.listdir(parent):
        if re.fullmatch(_NAMES, name):
            with suppress(OSError):  # it is removed just now, or its recorder lives
                folder = _opened(name, parent)
                try:
                    if os.fstat(folder).st_uid == user.uid:
                        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(name, ignore_errors=True, dir_fd=parent)
                finally:
                    os.close(folder)
