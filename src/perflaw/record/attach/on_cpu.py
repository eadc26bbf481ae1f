"""Whether a thread that is sampled runs at this moment, or only waits for a CPU.

The kernel's state R means both. On a busy machine a thread mostly waits where something has just woken it, so that functions
that wait for requests would seem to take the most time.
"""

from __future__ import annotations

import os
import time
from typing import Final

_PROCESS_CLOCK: Final = 2
"""Kernel's number of the clock that counts all CPU time of a process (CPUCLOCK_SCHED), to the nanosecond."""


class OnCpu:
    """Looks at the threads of one process."""

    def __init__(self, pid: int) -> None:
        """OSError if it has ended."""
        self._clock = ~pid << 3 | _PROCESS_CLOCK
        # On the only CPU the thread has just been interrupted by whoever samples it, which is as good as running.
        self._can_tell = len(os.sched_getaffinity(0) | os.sched_getaffinity(pid)) > 1

    def runs(self, status: int) -> bool:
        """Whether the thread whose file ``stat`` is open as ``status`` runs, or another one of the process does meanwhile.

        OSError if it has ended.
        """
        began, used = time.monotonic_ns(), time.clock_gettime_ns(self._clock)
        if os.pread(status, 512, 0).rpartition(b")")[2].split(None, 1)[0] != b"R":
            return False
        used = time.clock_gettime_ns(self._clock) - used
        return not self._can_tell or 2 * used >= time.monotonic_ns() - began
