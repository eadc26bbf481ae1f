"""The area of a Python program with probes: the file that it shares with the collector of its records.

The layout is that of ``native/include/perflaw/layout.h``; a test compares them. The clock is CLOCK_MONOTONIC, in ns, so that
a program that also has probes in C has two areas. It uses only the standard library. No failure is raised: the program then
has no probes.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import time
from contextlib import suppress

MAGIC, VERSION, PROBES = int.from_bytes(b"perflawP", "little"), 1, 1024
HEAD_BYTES, ENTRY_BYTES, RING_HEAD_BYTES, RECORD_BYTES = 4096, 128, 128, 64
FRONT_BYTES = HEAD_BYTES + PROBES * ENTRY_BYTES
RINGS, RECORDS = 256, 4096
NANOSECONDS = 2
LOST_NO_RING, CONFLICTS, ENABLE_ALL, USED, REFUSAL = 48, 56, 60, 96, 100
"""Offsets in the head."""
REGISTERED, TYPE, CONFLICT, SUBSAMPLE, NAME, UNIT, FIELDS, EVERY, REFUSED = 1, 2, 3, 4, 8, 56, 72, 120, 124
"""Offsets in an entry; its byte 0 says whether the probe is enabled."""
STATE, THREAD, LOST_NESTED, HEAD = 0, 4, 8, 64
"""Offsets in a ring."""
IN_USE, ENDED = 1, 2
_HEAD = struct.Struct("<IIIIIIQqQII16sQIII")
_NO_FOLLOW = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class Area:
    """An area of this process, mapped."""

    def __init__(self, file: int, path: str, rings: int, records: int) -> None:
        """Fill an empty file; OSError if there is no space."""
        self.path, self.rings, self.records = path, rings, records
        self.ring_bytes = RING_HEAD_BYTES + RECORD_BYTES * records
        size = FRONT_BYTES + rings * self.ring_bytes
        os.fchmod(file, 0o600)
        os.ftruncate(file, size)
        os.posix_fallocate(file, 0, FRONT_BYTES)  # a full disk is an error here; in the map it would be a signal
        self.map = mmap.mmap(file, size)
        self.words = memoryview(self.map).cast("Q")  # whole words are stored at once, for another process reads them
        self._identity = os.fstat(file)[1:3]
        now = time.monotonic_ns()
        language = b"python"
        head = (VERSION, os.getpid(), rings, records, PROBES, NANOSECONDS, now, now, 0, 0, 0, language, 0, 1, 1, 0)
        _HEAD.pack_into(self.map, 8, *head)
        self.words[0] = MAGIC

    def add(self, place: int, count: int = 1) -> int:
        """Increase a number of 32 bits; gives the new value."""
        value: int = struct.unpack_from("<I", self.map, place)[0] + count
        struct.pack_into("<I", self.map, place, value & 0xFFFFFFFF)
        return value

    def text(self, place: int, most: int, text: str) -> bool:
        """Write a text into an entry that has none; whether the entry has a different text."""
        said = text.encode()[: most - 1]
        kept = self.map[place : place + most].split(b"\0")[0]
        if said and not kept:
            self.map[place : place + len(said)] = said
        return bool(said and kept and said != kept)

    def ring(self, number: int) -> int:
        """Allocate a ring; gives its offset. OSError if the disk is full or the file is gone."""
        begin = FRONT_BYTES + number * self.ring_bytes
        file = os.open(self.path, os.O_RDWR | _NO_FOLLOW)
        try:
            if os.fstat(file)[1:3] != self._identity:
                raise FileNotFoundError(self.path)
            os.posix_fallocate(file, begin, self.ring_bytes)
        finally:
            os.close(file)
        return begin

    def leave(self) -> None:
        """The program ends: remove an area without records, unless ``$PERFLAW_PROBES`` asked for it."""
        self.add(88, -1)
        if not struct.unpack_from("<I", self.map, USED)[0] and not os.environ.get("PERFLAW_PROBES"):
            with suppress(OSError):  # another process removed it first
                os.unlink(self.path)


def make_area() -> Area | None:
    """A new area ``<pid>.<start time>`` in ``$PERFLAW_PROBES``, or in ``/dev/shm/perflaw-<uid>``; None if that fails."""
    try:
        # The default folder lies where every user may write: it must be ours.
        told = os.environ.get("PERFLAW_PROBES")
        folder = os.path.abspath(told) if told else f"/dev/shm/perflaw-{os.geteuid()}"
        with suppress(FileExistsError):  # made before, by this program or another
            os.mkdir(folder, 0o700)
        about = os.lstat(folder)
        if not told and (not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077):
            raise PermissionError(folder)
        made = f"{folder}/.new-{os.getpid()}-{time.monotonic_ns()}"
        file = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
        try:
            rings, records = _number("RINGS", RINGS, RINGS), _number("RECORDS", RECORDS, 1 << 20)
            area = Area(file, made, rings, records if records >= 16 and not records & (records - 1) else RECORDS)
            name = f"{folder}/{_identity()}"
            for more in range(100):
                path = f"{name}.{more}" if more else name
                with suppress(FileExistsError):  # the name is taken: the next one is tried
                    os.link(area.path, path)
                    area.path = path
                    return area
            raise FileExistsError(name)
        finally:
            os.close(file)
            os.unlink(made)
    except OSError:
        return None


def _identity() -> str:
    with open("/proc/self/stat", "rb") as file:
        return f"{os.getpid()}.{int(file.read().rpartition(b')')[2].split()[19])}"


def _number(what: str, otherwise: int, most: int) -> int:
    said = os.environ.get(f"PERFLAW_PROBES_{what}", "")
    return int(said) if said.isdecimal() and 0 < int(said) <= most else otherwise
