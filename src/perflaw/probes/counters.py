"""Hardware counters of a thread, by the kernel's perf events; opened when a probe first asks for one."""

from __future__ import annotations

import errno
import os
import platform
import struct
import threading

_NUMBERS = {"x86_64": 298, "aarch64": 241}
REFERENCES, MISSES = -1, -2
"""The two of the LLC probes; others are those of SET_PERFCNTR."""
_HARDWARE, _RAW, _NEITHER_KERNEL_NOR_HYPERVISOR, _CLOSE_ON_EXEC = 0, 4, 0x60, 8


class Refused(Exception):
    """Why a counter cannot be read."""


class _Open(threading.local):
    def __init__(self) -> None:
        self.files: dict[tuple[int, int], int | Refused] = {}


_open = _Open()
os.register_at_fork(after_in_child=lambda: _open.files.clear())


def count(number: int, config: int | None) -> int:
    """Counter ``number`` of this thread, which counts ``config`` (event | mask << 8); Refused says why it does not."""
    if config is None and number >= 0:
        raise Refused("SET_PERFCNTR was not called for this counter")
    key = (number, config or 0)
    if key not in _open.files:
        _open.files[key] = _opened(*((_HARDWARE, 1 - number) if number < 0 else (_RAW, key[1])))
    file = _open.files[key]
    if isinstance(file, Refused):
        raise file
    try:
        value: int = struct.unpack("=Q", os.read(file, 8))[0]
    except (OSError, struct.error) as error:
        raise Refused("a counter's descriptor was closed by the program") from error
    return value


def _opened(kind: int, config: int) -> int | Refused:
    try:
        return perf_event_open(kind, config)
    except OSError as error:
        return Refused(f"perf_event_open: {reason(error)} (errno {error.errno})")


def perf_event_open(kind: int, config: int) -> int:
    """A descriptor; OSError where it is refused."""
    import ctypes  # only who asks for counters pays for it

    if not (number := _NUMBERS.get(platform.machine())):
        raise OSError(errno.ENOSYS, "no counters on this machine")
    attributes = struct.pack("=IIQQQQQ16x", kind, 64, config, 0, 0, 0, _NEITHER_KERNEL_NOR_HYPERVISOR)
    library = ctypes.CDLL(None, use_errno=True)
    file: int = library.syscall(number, attributes, 0, -1, -1, _CLOSE_ON_EXEC)
    if file < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return file


def reason(error: OSError) -> str:
    """In words."""
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this machine has no such counter"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not allowed, see kernel.perf_event_paranoid"
    return "this kernel has no counters" if error.errno == errno.ENOSYS else "failed"
