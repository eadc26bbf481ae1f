"""Samples of threads by the kernel, one in each few milliseconds of CPU time, without stopping them (perf_event_open(2)).

A look from outside meets a thread where it waits for a CPU more often than where it computes: one that has just woken its
client is put aside in that very system call. The kernel's clock runs only while the thread does.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PERIOD_NS: Final = 4_000_000
"""CPU time of a thread between its samples."""
STACK_BYTES: Final = 4096
"""Part of the stack that is copied."""
_RING_BYTES: Final = 32 * mmap.PAGESIZE
"""Room for the samples of a thread until they are read: some 30, which are 0.1 s of CPU time."""
_SYSCALL: Final = 298
_ATTRIBUTE_BYTES: Final = 128
_SOFTWARE, _TASK_CLOCK = 1, 1
_TID, _USER_REGISTERS, _USER_STACK = 1 << 1, 1 << 12, 1 << 13
_EXCLUDE_KERNEL: Final = 1 << 5
_REGISTERS: Final = 1 << 7 | 1 << 8
"""Stack pointer and place, in this order (asm/perf_regs.h)."""
_CLOSE_ON_EXEC: Final = 8
_HEAD, _TAIL = 1024, 1032
"""Where the first page says how far the kernel has written, and we have read."""
_SAMPLE: Final = 9
_RECORD: Final = struct.Struct("<IHH")
_BODY: Final = struct.Struct("<IIQQQQ")
"""Process, thread, kind of registers (0: none), stack pointer, place, bytes of the stack."""


@dataclass(frozen=True, slots=True)
class CpuSample:
    """Where a thread was."""

    place: int
    """Address of its next instruction."""
    stack: bytes
    """The top of its stack."""


class ThreadSamples:
    """The samples of one thread; ``close`` it at the end."""

    def __init__(self, thread: int) -> None:
        """OSError if the thread has ended, or the kernel gives no samples of it to this user."""
        try:
            self._file = _opened(thread, 0)
        except PermissionError:
            self._file = _opened(thread, _EXCLUDE_KERNEL)  # whoever may not see the kernel may see the rest
        try:
            self._ring = mmap.mmap(self._file, mmap.PAGESIZE + _RING_BYTES)
        except OSError:
            os.close(self._file)
            raise

    def close(self) -> None:
        """End sampling."""
        self._ring.close()
        os.close(self._file)

    def read(self) -> Iterator[CpuSample]:
        """The samples since the last time; those for which there was no room are missing."""
        (head,), (tail,) = struct.unpack_from("<Q", self._ring, _HEAD), struct.unpack_from("<Q", self._ring, _TAIL)
        data = self._copied(tail, head)
        struct.pack_into("<Q", self._ring, _TAIL, head)
        at = 0
        while at + _RECORD.size <= len(data):
            kind, _, size = _RECORD.unpack_from(data, at)
            if kind == _SAMPLE and size >= _RECORD.size + _BODY.size:
                *_, registers, _stack, place, length = _BODY.unpack_from(data, at + _RECORD.size)
                begin = at + _RECORD.size + _BODY.size
                if registers and begin + length + 8 <= at + size:
                    (known,) = struct.unpack_from("<Q", data, begin + length)  # the rest of the room is not filled
                    yield CpuSample(place, data[begin : begin + known])
            at += max(size, _RECORD.size)

    def _copied(self, tail: int, head: int) -> bytes:
        first, last = tail % _RING_BYTES, head % _RING_BYTES
        ring = memoryview(self._ring)[mmap.PAGESIZE :]
        try:
            if head == tail:
                return b""
            return bytes(ring[first:last]) if first < last else bytes(ring[first:]) + bytes(ring[:last])
        finally:
            ring.release()


class ProcessSamples:
    """The samples of all threads of a process; ``close`` it at the end."""

    def __init__(self, pid: int) -> None:
        """OSError if the kernel gives none."""
        self.pid = pid
        self._threads = {pid: ThreadSamples(pid)}

    def close(self) -> None:
        """End sampling."""
        for one in self._threads.values():
            one.close()
        self._threads = {}

    def read(self) -> Iterator[CpuSample]:
        """The samples since the last time; also sees to threads that have begun or ended since."""
        for one in self._threads.values():
            yield from one.read()
        threads = {int(task.name) for task in Path(f"/proc/{self.pid}/task").iterdir()}
        for thread in self._threads.keys() - threads:
            self._threads.pop(thread).close()
        for thread in threads - self._threads.keys():
            with suppress(OSError):  # it has ended, or this user has no more room for samples
                self._threads[thread] = ThreadSamples(thread)


def _opened(thread: int, flags: int) -> int:
    attribute = bytearray(_ATTRIBUTE_BYTES)
    wanted = _TID | _USER_REGISTERS | _USER_STACK
    struct.pack_into("<IIQQQQQ", attribute, 0, _SOFTWARE, len(attribute), _TASK_CLOCK, PERIOD_NS, wanted, 0, flags)
    struct.pack_into("<QI", attribute, 80, _REGISTERS, STACK_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    given = (ctypes.c_char * len(attribute)).from_buffer(attribute)
    file = library.syscall(_SYSCALL, given, thread, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if file < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(file)
