"""The cache folder: native libraries and what was read of programs' debug information, kept between recordings.

It is ``$PERFLAW_CACHE``, else ``$XDG_CACHE_HOME/perflaw``, else ``~/.cache/perflaw``. Its libraries are loaded and its
patches are written into programs, so nothing is read from a folder or file that another user could have changed.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from perflaw.errors import StoreError

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """The folder, without symbolic links; it may not exist yet."""
    if chosen := os.environ.get("PERFLAW_CACHE"):
        return Path(chosen).resolve()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return ((base if base.is_absolute() else Path("~/.cache").expanduser()) / "perflaw").resolve()


def make_cache_folder() -> Path:
    """The folder, made if need be; OSError if it cannot be made, or if another user could change what is in it."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if why := distrust(folder):
        raise PermissionError(0, why, str(folder))
    return folder


def mirrors_folder() -> Path:
    """Folder of the copies of what was read from object storage; StoreError if it cannot be had."""
    try:
        return make_cache_folder() / "stores"
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError("the cache folder cannot be used", why, "PERFLAW_CACHE=FOLDER") from error


def distrust(path: Path) -> str:
    """Why a file or folder, given without symbolic links, cannot be trusted, in words; empty if it can be.

    It and every folder above must belong to this user or to root, and nobody else may write to them. In a folder like
    ``/tmp``, whose sticky bit keeps others from renaming what is not theirs, it is enough that the entry is ours.
    OSError if it does not exist.
    """
    for place in (path, *path.parents):
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode):
            return f"{place} is a symbolic link"
        if about.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to user {about.st_uid}"
        sticky = place != path and about.st_mode & stat.S_ISVTX
        if about.st_mode & _OTHERS and not sticky and not _is_own_group(about):
            return f"others may write to {place} (mode {stat.S_IMODE(about.st_mode):o})"
    return ""


def _is_own_group(about: os.stat_result) -> bool:
    """Whether only the group may write besides the owner, and this user is its only member, as with umask 002."""
    try:
        group, user = grp.getgrgid(about.st_gid), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return not about.st_mode & stat.S_IWOTH and group.gr_name == user and set(group.gr_mem) <= {user}


def read_kept(name: str) -> bytes | None:
    """The content of a file of the cache; None if it is not kept yet, or cannot be trusted or read."""
    place = cache_folder() / name
    with suppress(OSError):
        if not distrust(place):
            content = place.read_bytes()
            with suppress(OSError):  # a read-only cache
                os.utime(place)  # files that nobody has used for long are removed
            return content
    return None


def keep(name: str, content: bytes) -> None:
    """Keep a file in the cache; where the cache cannot be written, the next recording makes the content again."""
    with suppress(OSError):
        folder = make_cache_folder()
        descriptor, path = tempfile.mkstemp(dir=folder, suffix=".part")
        part = Path(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            part.replace(folder / name)
        finally:
            part.unlink(missing_ok=True)
