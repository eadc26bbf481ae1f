"""What /proc says of a target's processes: families, CPU time, waiting for processors, context switches, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from resource import struct_rusage
from typing import Final

from perflaw.record.machine import stat_of as fields_of
from perflaw.types.studies import Conditions

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
"""Step of the CPU times in /proc."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SAMPLING_SHARE: Final = 50
"""Sampling takes at most one part in so many of the time."""


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A process as /proc/PID/stat has it."""

    pid: int
    """Its number."""
    parent: int
    """Number of its parent."""
    state: str
    """``R``, ``S``, …; ``Z``: it has ended and its parent has not waited for it."""
    cpu_s: float
    """CPU time of the process and of the children that it has waited for."""
    rss: int
    """Resident memory, bytes."""


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """What a thread has used so far."""

    cpu_s: float
    """Time on a processor."""
    delay_s: float
    """Time for which it was runnable but waited for a processor."""
    voluntary: int
    """Number of switches because it waited for something."""
    involuntary: int
    """Number of switches because its time slice was over."""


def stat_of(pid: int) -> ProcessStat | None:
    """Return the process; None where there is none."""
    fields = fields_of(pid)
    ticks = sum(int(number) for number in fields[11:15])
    return ProcessStat(pid, int(fields[1]), fields[0], ticks * TICK_S, int(fields[21]) * _PAGE) if fields else None


def children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process, with those that have ended and were not waited for."""
    return [
        int(child)
        for thread in _names(f"/proc/{pid}/task")
        for child in _read(f"/proc/{pid}/task/{thread}/children").split()
    ]


def family(pid: int, without: Iterable[int] = ()) -> list[int]:
    """Return all descendants of a process, parents first, without those of ``without`` and their descendants."""
    spared, found = set(without), []
    waiting = children_of(pid)
    while waiting:
        child = waiting.pop(0)
        if child not in spared:
            found.append(child)
            waiting += children_of(child)
    return found


def threads_of(pid: int) -> dict[int, ThreadUsage]:
    """Return what each thread has used, by its number; of a process that has ended at most its first thread."""
    found: dict[int, ThreadUsage] = {}
    for name in _names(f"/proc/{pid}/task"):
        times = _read(f"/proc/{pid}/task/{name}/schedstat").split()
        if len(times) != 3:
            continue
        lines = _read(f"/proc/{pid}/task/{name}/status").splitlines()
        switches = dict(line.split(":", 1) for line in lines if "ctxt_switches" in line)
        found[int(name)] = ThreadUsage(
            int(times[0]) / 1e9,
            int(times[1]) / 1e9,
            int(switches.get("voluntary_ctxt_switches", 0)),
            int(switches.get("nonvoluntary_ctxt_switches", 0)),
        )
    return found


def busy_s() -> float:
    """Return the CPU time of the whole machine since it started, over all processors, with the time of guests."""
    fields = _read("/proc/stat").split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, interrupts, soft, stolen = (int(number) for number in fields[:8])
    return (user + nice + system + interrupts + soft + stolen) * TICK_S


def started_with(mark: str) -> list[int]:
    """Return the processes that were started with this text in their environment, whatever became of them."""
    others = [name for name in _names("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [int(name) for name in others if mark in environment_of(int(name))]


def environment_of(pid: int) -> list[str]:
    """Return the variables that a process was started with; empty where it has ended or belongs to another user."""
    return _read(f"/proc/{pid}/environ").split("\0")


def _names(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []  # the process has ended


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""  # the process has ended, or belongs to another user


# ---- Conditions of a trial.


class ConditionsWatch:
    """Follows the target's processes from ``begin`` to ``end``; in between ``look`` is called again and again."""

    def __init__(self, processes: Callable[[], Iterable[int]], own_cpu_s: Callable[[], float]) -> None:
        """``processes`` gives the target's processes, ``own_cpu_s`` the CPU time that perflaw itself has used."""
        self._processes, self._own_cpu_s = processes, own_cpu_s
        self._first: dict[int, ThreadUsage] = {}
        self._last: dict[int, ThreadUsage] = {}
        self._cpu_before: dict[int, float] = {}
        self._cpu: dict[int, float] = {}
        self._switches = [0, 0]
        self._memory = 0
        self._next = 0.0
        self._began = self._busy = self._own = 0.0

    def begin(self) -> None:
        """Begin the measurement; what the processes used before does not count."""
        self._began = time.monotonic()
        self._sample()
        self._first, self._cpu_before = dict(self._last), dict(self._cpu)
        self._busy, self._own = busy_s(), self._own_cpu_s()

    def look(self) -> None:
        """Sample the processes again, if it is time."""
        now = time.monotonic()
        if now >= self._next:
            self._sample()
            self._next = now + max(0.01, _SAMPLING_SHARE * (time.monotonic() - now))

    def _sample(self) -> None:
        memory = 0
        for pid in self._processes():
            stat = stat_of(pid)
            if stat is None or stat.state == "Z":
                continue
            memory += stat.rss
            self._cpu[pid] = stat.cpu_s
            self._last.update(threads_of(pid))
        self._memory = max(self._memory, memory)

    def reaped(self, pid: int, usage: struct_rusage) -> None:
        """Take what a process used that has ended, with the children that it waited for."""
        self._cpu[pid] = usage.ru_utime + usage.ru_stime
        self._memory = max(self._memory, usage.ru_maxrss * 1024)
        before = self._first.get(pid, ThreadUsage(0, 0, 0, 0))
        self._last.pop(pid, None)
        self._switches[0] += usage.ru_nvcsw - before.voluntary
        self._switches[1] += usage.ru_nivcsw - before.involuntary

    def end(self) -> Conditions:
        """Return the conditions since ``begin``."""
        self._sample()
        seconds = max(time.monotonic() - self._began, 1e-9)
        cpu = sum(max(spent - self._cpu_before.get(pid, 0.0), 0.0) for pid, spent in self._cpu.items())
        spent = []
        for thread, now in self._last.items():
            before = self._first.get(thread, ThreadUsage(0, 0, 0, 0))
            spent.append(
                ThreadUsage(
                    now.cpu_s - before.cpu_s,
                    now.delay_s - before.delay_s,
                    now.voluntary - before.voluntary,
                    now.involuntary - before.involuntary,
                )
            )
        on_cpu, delay = sum(usage.cpu_s for usage in spent), sum(usage.delay_s for usage in spent)
        others = busy_s() - self._busy - cpu - (self._own_cpu_s() - self._own)
        return Conditions(
            other_cpu=max(others, 0.0) / seconds,
            run_delay=delay / on_cpu if on_cpu > 0 else 0.0,
            voluntary=(self._switches[0] + sum(usage.voluntary for usage in spent)) / seconds,
            involuntary=(self._switches[1] + sum(usage.involuntary for usage in spent)) / seconds,
            cpu_s=cpu,
            memory_bytes=self._memory,
        )


def own_cpu_s(helpers: Iterable[int]) -> float:
    """Return the CPU time of this process and of its helpers."""
    used = os.times()
    return used.user + used.system + sum(stat.cpu_s for pid in helpers if (stat := stat_of(pid)))
