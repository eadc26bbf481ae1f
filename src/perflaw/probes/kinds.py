"""The types of probes that enclose code (SPEX, Table 1): what each measures, and when it makes a record.

Hardware counters of a thread are perf events of the kernel, which are opened when a probe first needs one.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
import threading
from time import monotonic_ns
from types import TracebackType
from typing import Any

from perflaw.probes.writer import CNT, CTXSW, FLT, LAT, LLC, PERFCNTR, TPT, this_process

_NUMBERS = {"x86_64": 298, "aarch64": 241}
REFERENCES, MISSES = -1, -2
"""Numbers of the two counters of LLC probes; the others are those of SET_PERFCNTR."""
_HARDWARE, _RAW, _NEITHER_KERNEL_NOR_HYPERVISOR, _CLOSE_ON_EXEC = 0, 4, 0x60, 8


class Refused(Exception):
    """Why a counter cannot be read."""


class _Open(threading.local):
    def __init__(self) -> None:
        self.files: dict[tuple[int, int], int | Refused] = {}


_open = _Open()
os.register_at_fork(after_in_child=lambda: _open.files.clear())


def count(number: int, config: int | None) -> int:
    """The value of counter ``number`` of this thread, which counts ``config`` (event | mask << 8); Refused if unreadable."""
    if config is None and number >= 0:
        raise Refused("SET_PERFCNTR was not called for this counter")
    key = (number, config or 0)
    if key not in _open.files:
        kind, event = (_HARDWARE, 1 - number) if number < 0 else (_RAW, key[1])
        try:
            _open.files[key] = perf_event_open(kind, event)
        except OSError as error:
            _open.files[key] = Refused(f"perf_event_open: {reason(error)} (errno {error.errno})")
    file = _open.files[key]
    if isinstance(file, Refused):
        raise file
    try:
        value: int = struct.unpack("=Q", os.read(file, 8))[0]
    except (OSError, struct.error) as error:
        raise Refused("a counter's descriptor was closed by the program") from error
    return value


def perf_event_open(kind: int, config: int) -> int:
    """The descriptor of a counter; OSError if it is refused."""
    import ctypes  # only probes of counters need it

    if not (number := _NUMBERS.get(platform.machine())):
        raise OSError(errno.ENOSYS, "no counters on this machine")
    attributes = struct.pack("=IIQQQQQ16x", kind, 64, config, 0, 0, 0, _NEITHER_KERNEL_NOR_HYPERVISOR)
    library = ctypes.CDLL(None, use_errno=True)
    file: int = library.syscall(number, attributes, 0, -1, -1, _CLOSE_ON_EXEC)
    if file < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return file


def reason(error: OSError) -> str:
    """Why the kernel refused a counter, in words."""
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this machine has no such counter"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not allowed, see kernel.perf_event_paranoid"
    return "this kernel has no counters" if error.errno == errno.ENOSYS else "failed"


_writer = this_process()


class Probe:
    """One execution of the enclosed code, from begin to end."""

    __slots__ = ("began", "counter", "every", "id", "sc")
    kind = 0

    def __init__(self, probe: int, sc: int = 1, pcid: int = 0) -> None:
        """``probe``: id; ``sc``: executions for one record; ``pcid``: number of the counter."""
        self.id, self.sc, self.counter, self.every = probe, sc, pcid, 0
        self.began: tuple[int, ...] = ()

    def begin(self) -> bool:
        """Begin an execution; whether it is measured."""
        self.every = _writer.every(self.id, self.kind, self.sc)
        return self.every > 0

    def end(self) -> None:
        """End a measured execution, and record it if it is due."""

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.every:
            self.end()


class CNT_PROBE(Probe):
    """Counts the executions of the enclosed code since the last record."""

    __slots__ = ()
    kind = CNT

    def end(self) -> None:
        """Count an execution."""
        counted = _writer.tally(self.id)
        if counted[0] >= self.every:
            _writer.write(self.id, CNT, monotonic_ns(), (counted[0],))
            counted[0] = 0


class TPT_PROBE(Probe):
    """Counts the executions of the enclosed code since the last record, and their time in ns."""

    __slots__ = ()
    kind = TPT

    def begin(self) -> bool:
        """Read the clock."""
        self.began = (monotonic_ns(),) if super().begin() else ()
        return self.every > 0

    def end(self) -> None:
        """Read the clock again."""
        now = monotonic_ns()
        counted = _writer.tally(self.id, 1, now - self.began[0])
        if counted[0] >= self.every:
            _writer.write(self.id, TPT, now, tuple(counted))
            counted[:] = 0, 0


class _Sampled(Probe):
    """A probe that measures only those executions that make a record."""

    __slots__ = ()

    def read(self) -> tuple[int, ...]:
        """The present values of what is measured; Refused if they cannot be read."""
        return ()

    def begin(self) -> bool:
        """Read the values, if this execution makes a record."""
        if super().begin():
            try:
                self.began = self.read() if in_turn(self.id, self.every) else ()
            except Refused as why:
                self.began = ()
                _writer.refuse(self.id, str(why))
            self.every *= bool(self.began)
        return self.every > 0

    def end(self) -> None:
        """Read the values again, and record the differences."""
        try:
            fields = tuple(after - before for after, before in zip(self.read(), self.began, strict=True))
        except Refused as why:
            return _writer.refuse(self.id, str(why))
        return _writer.write(self.id, self.kind, monotonic_ns(), fields)


class LAT_PROBE(Probe):
    """Measures the time of the enclosed code in ns."""

    __slots__ = ()
    kind = LAT

    def begin(self) -> bool:
        """Read the clock, if this execution makes a record."""
        every = self.every = _writer.every(self.id, LAT, self.sc)
        if every == 1 or (every and in_turn(self.id, every)):
            self.began = (monotonic_ns(),)
            return True
        self.every = 0
        return False

    def end(self) -> None:
        """Read the clock again."""
        now = monotonic_ns()
        _writer.write(self.id, LAT, now, (now - self.began[0],))


class FLT_PROBE(_Sampled):
    """Measures the minor and major page faults of this thread."""

    __slots__ = ()
    kind = FLT

    def read(self) -> tuple[int, ...]:
        """The counts of the kernel."""
        use = _usage()
        return (use.ru_minflt, use.ru_majflt)


class CTXSW_PROBE(_Sampled):
    """Measures the voluntary and involuntary context switches of this thread."""

    __slots__ = ()
    kind = CTXSW

    def read(self) -> tuple[int, ...]:
        """The counts of the kernel."""
        use = _usage()
        return (use.ru_nvcsw, use.ru_nivcsw)


class LLC_PROBE(_Sampled):
    """Measures the references to the last-level cache, and its misses."""

    __slots__ = ()
    kind = LLC

    def read(self) -> tuple[int, ...]:
        """The counts of the processor."""
        return (count(REFERENCES, None), count(MISSES, None))


class PERFCNTR_PROBE(_Sampled):
    """Measures the counter that SET_PERFCNTR set up."""

    __slots__ = ()
    kind = PERFCNTR

    def read(self) -> tuple[int, ...]:
        """The counts of the processor."""
        return (count(self.counter, _writer.counters.get(self.counter)),)


def in_turn(probe: int, every: int) -> bool:
    """Whether this execution makes a record of a probe that makes one for ``every`` executions of a thread."""
    if every == 1:
        return True
    counted = _writer.tally(probe)
    if counted[0] < every:
        return False
    counted[0] = 0
    return True


def _usage() -> Any:
    import resource  # only two types of probes need it

    return resource.getrusage(resource.RUSAGE_THREAD)
