"""Whether a thread that is sampled runs at this moment, or only waits for a CPU.

The kernel's state R means both. On a busy machine a thread mostly waits where something has just woken it, so that functions
that wait for requests would seem to take the most time. A thread that runs has come to a CPU once more often than it has left
one: ``schedstat`` counts the former, and ``status`` the latter.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC
_STATUS_BYTES: Final = 8192
_ATTEMPTS: Final = 5
"""Looks at a thread that certainly runs; it may leave its CPU during one."""
_MAX_WAIT_S: Final = 1.0
"""Time that a thread waits for a CPU, at most."""


class OnCpu:
    """Looks at one thread; ``close`` it at the end."""

    def __init__(self, pid: int, thread: int) -> None:
        """OSError if it has ended."""
        folder = f"/proc/{pid}/task/{thread}"
        self._status = os.open(f"{folder}/status", _FLAGS)
        self._arrivals = -1
        # How many more arrivals than leaves are counted of it while it does not run. That is not 0 of a few threads, whatever
        # the reason; it is seen when they sleep, or when they have seemed to wait for too long.
        self._at_rest, self._ran = 0, time.monotonic()
        # On the only CPU the thread has just been interrupted by whoever samples it, which is as good as running.
        with suppress(OSError):  # a kernel that does not count
            if len(os.sched_getaffinity(0) | os.sched_getaffinity(thread)) > 1 and _is_counted():
                self._arrivals = os.open(f"{folder}/schedstat", _FLAGS)

    def close(self) -> None:
        """Close its files."""
        os.close(self._status)
        if self._arrivals >= 0:
            os.close(self._arrivals)

    def runs(self) -> bool | None:
        """Whether it runs, or None if it can not; where the kernel does not tell, True if it can. OSError if it has ended."""
        # A thread that comes to a CPU or leaves it between both reads is not taken for running.
        arrivals = _third(os.pread(self._arrivals, 128, 0)) if self._arrivals >= 0 else None
        can_run, leaves = _state(os.pread(self._status, _STATUS_BYTES, 0))
        if arrivals is None:
            return can_run or None
        more, now = arrivals - leaves, time.monotonic()
        if not can_run:
            self._at_rest, self._ran = more, now
            return None
        if abs(more - self._at_rest) > 1 or now > self._ran + _MAX_WAIT_S:
            self._at_rest = more - 1
        if more > self._at_rest:
            self._ran = now
        return more > self._at_rest


@cache
def _is_counted() -> bool:
    """Whether the kernel counts how often threads come to a CPU: a new one certainly has, and runs."""
    with ThreadPoolExecutor(1) as new:
        return new.submit(_counts_this_thread).result()


def _counts_this_thread() -> bool:
    own = Path("/proc/thread-self")
    return any(
        _third((own / "schedstat").read_bytes()) == _state((own / "status").read_bytes())[1] + 1
        for _ in range(_ATTEMPTS)
    )


def _third(text: bytes) -> int:
    return int(text.split()[2])


def _state(status: bytes) -> tuple[bool, int]:
    r"""Whether a thread can run, and how often it has left a CPU.

    >>> _state(b"Name:\tpython\nState:\tR (running)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n")
    (True, 12)
    """
    fields = dict(line.split(b":", 1) for line in status.splitlines())
    leaves = int(fields[b"voluntary_ctxt_switches"]) + int(fields[b"nonvoluntary_ctxt_switches"])
    return fields[b"State"].split()[0] == b"R", leaves
