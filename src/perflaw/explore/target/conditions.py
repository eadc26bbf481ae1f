"""What else went on while a trial ran: CPU that others used, waiting for a CPU, switches, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from resource import struct_rusage
from typing import Final

from perflaw.explore.target.proc import Stat, Thread, busy_s, stat_of, threads_of
from perflaw.types.studies import Conditions

_SHARE: Final = 50
"""Looking takes at most one part in so many of the time."""


class Watch:
    """Looks at the target's processes from ``begin`` to ``end``; in between it is told to ``look`` again and again."""

    def __init__(self, family: Callable[[], Iterable[int]], ours: Callable[[], float]) -> None:
        """``family`` gives the target's processes, ``ours`` the CPU time that perflaw itself has used."""
        self._family, self._ours = family, ours
        self._first: dict[int, Thread] = {}
        self._last: dict[int, Thread] = {}
        self._before: dict[int, float] = {}
        self._cpu: dict[int, float] = {}
        self._switches = [0, 0]
        self._memory = 0
        self._next = 0.0
        self._began = self._busy = self._own = 0.0

    def begin(self) -> None:
        """What is measured begins now; what the processes used before does not count."""
        self._began = time.monotonic()
        self._see()
        self._first, self._before = dict(self._last), dict(self._cpu)
        self._busy, self._own = busy_s(), self._ours()

    def look(self) -> None:
        """Look again, if it is time."""
        now = time.monotonic()
        if now >= self._next:
            self._see()
            self._next = now + max(0.01, _SHARE * (time.monotonic() - now))

    def _see(self) -> None:
        memory = 0
        for pid in self._family():
            stat = stat_of(pid)
            if stat is None or stat.state == "Z":
                continue
            memory += stat.rss
            self._cpu[pid] = stat.cpu_s
            self._last.update(threads_of(pid))
        self._memory = max(self._memory, memory)

    def reaped(self, pid: int, usage: struct_rusage) -> None:
        """A process has ended: what it used is known exactly, children that it waited for in it."""
        self._cpu[pid] = usage.ru_utime + usage.ru_stime
        self._memory = max(self._memory, usage.ru_maxrss * 1024)
        before = self._first.get(pid, Thread(0, 0, 0, 0))
        self._last.pop(pid, None)
        self._switches[0] += usage.ru_nvcsw - before.voluntary
        self._switches[1] += usage.ru_nivcsw - before.involuntary

    def end(self) -> Conditions:
        """What there was since ``begin``."""
        self._see()
        seconds = max(time.monotonic() - self._began, 1e-9)
        cpu = sum(max(spent - self._before.get(pid, 0.0), 0.0) for pid, spent in self._cpu.items())
        spent = [_since(self._first.get(thread), now) for thread, now in self._last.items()]
        on_cpu, delay = sum(one.cpu_s for one in spent), sum(one.delay_s for one in spent)
        others = busy_s() - self._busy - cpu - (self._ours() - self._own)
        return Conditions(
            other_cpu=max(others, 0.0) / seconds,
            run_delay=delay / on_cpu if on_cpu > 0 else 0.0,
            voluntary=(self._switches[0] + sum(one.voluntary for one in spent)) / seconds,
            involuntary=(self._switches[1] + sum(one.involuntary for one in spent)) / seconds,
            cpu_s=cpu,
            memory_bytes=self._memory,
        )


def _since(before: Thread | None, now: Thread) -> Thread:
    if before is None:
        return now
    return Thread(
        now.cpu_s - before.cpu_s,
        now.delay_s - before.delay_s,
        now.voluntary - before.voluntary,
        now.involuntary - before.involuntary,
    )


def own_cpu(helpers: Iterable[int]) -> float:
    """CPU time of this process and of its helpers."""
    used = os.times()
    stats: list[Stat] = [stat for pid in helpers if (stat := stat_of(pid))]
    return used.user + used.system + sum(stat.cpu_s for stat in stats)
