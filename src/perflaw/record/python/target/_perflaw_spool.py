"""The files that a recording is appended to, and the layout of their records.

A record has 32 bytes, little endian (``record/tree/records.py`` has the same layout, a test compares the two)::

    0       8        16      20      24      28     32
    | value | frame  | code  | site  | key   | kind |

    value  FEATURE: float64; CHANGE: increase; TURN: ns taken out; other kinds: clock in ns without the tracer's own time
    frame  identity of the frame (its address), common to the events of one invocation; TURN: number of the turn
    code   number of the function; FEATURE: of the feature; CHANGE: of the metric
    site   bytecode offset of the call in the caller; -1 if unknown
    key    sampling priority if the reservoir may keep the invocation, else -1
    kind   written last; 0: not written yet
"""

from __future__ import annotations

import os
import sys
from _thread import get_native_id
from mmap import mmap
from os import close, dup, listdir, posix_fallocate, rename, write
from os import open as open_file
from struct import Struct
from time import monotonic, sleep

ENTER, EXIT, YIELD, RESUME, FEATURE, DEAD, CHANGE = 1, 2, 3, 4, 5, 6, 7
TURN, LIBRARY, OBSERVE = 11, 14, 15
RECORD = 32
SEGMENT = 32768 * RECORD
PENDING_SEGMENTS, PATIENCE_S = 64, 10.0
HIGH_DESCRIPTOR = 200
pack_event, pack_feature = Struct("<qqiiii").pack_into, Struct("<dqiiii").pack_into


class Spool:
    """The files that a recording is appended to. A failure to write stops the recording, never the program.

    No descriptor of ours stays among the low numbers: the program's first file still has number 3, and a program that
    closes or duplicates all descriptors meets only its own.
    """

    def __init__(self, folder: str) -> None:
        self.folder, self.segments = folder, 0

    def define(self, *fields: object) -> None:
        """Append one line to the definitions: the kind, then its fields."""
        file = open_file(self.folder + "/definitions", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            write(file, f"{fields!r}\n".encode("utf-8", "backslashreplace"))
        finally:
            close(file)

    def segment(self, thread: int) -> mmap:
        """A new zeroed segment. Its disk space is allocated before it is mapped, so that a full disk raises no SIGBUS."""
        # Disk space is bounded: wait a while for a reader that is far behind, then give the recording up.
        deadline = monotonic() + PATIENCE_S
        while self._full() > PENDING_SEGMENTS:
            if monotonic() > deadline:
                raise OSError(0, "the recorder does not keep up or has gone")
            sleep(0.002)
        self.segments += 1
        path = f"{self.folder}/{self.segments:06d}-{thread}-{get_native_id()}"
        file = open_file(path + ".part", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            posix_fallocate(file, 0, SEGMENT)
            mapped = _mapped(file)
        finally:
            close(file)
        rename(path + ".part", path + ".events")
        return mapped

    def _full(self) -> int:
        """Number of segments that the reader has yet to remove: all but the newest of each thread."""
        names = [name for name in listdir(self.folder) if name.endswith(".events")]
        return len(names) - len({name.partition("-")[2] for name in names})


def _mapped(file: int) -> mmap:
    """Map a segment. Up to Python 3.12 the mapping keeps a descriptor; the low numbers are occupied to give it a high one."""
    if sys.version_info >= (3, 13):
        return mmap(file, SEGMENT, trackfd=False)
    low: list[int] = []
    try:
        while not low or low[-1] < HIGH_DESCRIPTOR:
            low.append(dup(file))
        return mmap(file, SEGMENT)
    finally:
        for each in low:
            close(each)
