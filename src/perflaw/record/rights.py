"""With whose rights a recorder opens files that a program writes.

A recorder of root that attaches to a process of another user shares a folder with that user, who can replace whatever is in
it, also by links to other places. So every file there is opened with the rights of that user (setfsuid(2)): what the
recorder can be led to is what that user could read or change anyway.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_SETGROUPS: Final = 116
"""The system call of x86-64, which changes one thread; the C library's function changes all of them."""
_NOTHING: Final = 2**32 - 1
"""Given this, setfsuid and setfsgid change nothing and return what is."""


@dataclass(frozen=True, slots=True)
class User:
    """Whose files a process opens."""

    uid: int
    """Id of the user."""
    gid: int
    """Id of its group."""

    def options(self) -> dict[str, Any]:
        """Options of :func:`subprocess.run` for a process of this user, which learns nothing of ours and has no terminal."""
        env = {"PATH": os.defpath}
        return {
            "user": self.uid,
            "group": self.gid,
            "extra_groups": [],
            "cwd": "/",
            "env": env,
            "start_new_session": True,
        }


class Rights(AbstractContextManager["Rights"]):
    """The rights of a user on files, for this thread while entered; ``None``: our own, as they are."""

    def __init__(self, user: User | None = None) -> None:
        self.user, self._depth, self._own, self._groups = user, 0, _present_user(), list[int]()

    def __enter__(self) -> Rights:
        """PermissionError if this process cannot take the rights of a user."""
        self._depth += 1
        if self.user and self._depth == 1:
            self._groups = os.getgroups()
            try:
                _set_groups([])
                _set_user(self.user)
            except PermissionError:
                self.__exit__()
                raise
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self.user and not self._depth:
            _set_user(self._own)
            _set_groups(self._groups)


_libc = ctypes.CDLL(None, use_errno=True)


def _set_groups(groups: list[int]) -> None:
    if groups == os.getgroups():
        return
    given = (ctypes.c_uint32 * len(groups))(*groups)
    if _libc.syscall(_SETGROUPS, len(groups), given):
        raise PermissionError(ctypes.get_errno(), "the groups of a user cannot be taken (CAP_SETGID)")


def _present_user() -> User:
    nothing = ctypes.c_uint32(_NOTHING)
    return User(_libc.setfsuid(nothing) & _NOTHING, _libc.setfsgid(nothing) & _NOTHING)


def _set_user(user: User) -> None:
    _libc.setfsgid(ctypes.c_uint32(user.gid))
    _libc.setfsuid(ctypes.c_uint32(user.uid))
    if _present_user() != user:
        raise PermissionError(0, "the rights of a user cannot be taken (CAP_SETUID, CAP_SETGID)")


OWN: Final = Rights()
"""The rights of the recorder itself."""


# ---- files that can be anything ----

PASSING: Final = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN)
"""What a file could not be opened for may be there a moment later."""


def read_regular(path: Path, position: int = 0) -> bytes:
    """What a regular file has from a position on; OSError if it is anything else, which might have no end or never answer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 (a descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(path))
        file.seek(position)
        return file.read()


def write_new(path: Path, content: bytes) -> None:
    """Write a file that takes the place of what has its name; OSError if that cannot be."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor)
        file.write(content)
