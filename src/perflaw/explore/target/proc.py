"""What /proc tells of processes: families, CPU time, waiting for a CPU, switches, memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
"""Step of the CPU times of /proc."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Stat:
    """A process as /proc/PID/stat tells it."""

    pid: int
    """Its number."""
    parent: int
    """Its parent's number."""
    state: str
    """``R``, ``S``, …; ``Z``: it has ended and nobody has asked how."""
    cpu_s: float
    """CPU time of it and of the children that it has waited for."""
    rss: int
    """Resident memory, bytes."""


@dataclass(frozen=True, slots=True)
class Thread:
    """What a thread has spent so far."""

    cpu_s: float
    """On a CPU."""
    delay_s: float
    """Runnable, but waiting for one."""
    voluntary: int
    """Switches because it waited for something."""
    involuntary: int
    """Switches because its time was over."""


def stat_of(pid: int) -> Stat | None:
    """The process; None where there is none."""
    text = _read(f"/proc/{pid}/stat")
    if not text:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    ticks = sum(int(number) for number in fields[11:15])
    return Stat(pid, int(fields[1]), fields[0], ticks * TICK_S, int(fields[21]) * _PAGE)


def children_of(pid: int) -> list[int]:
    """Children of all its threads, those that have ended and were not waited for as well."""
    found: list[int] = []
    for thread in _names(f"/proc/{pid}/task"):
        found += [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return found


def family(pid: int, without: Iterable[int] = ()) -> list[int]:
    """All descendants of a process, parents first, without these and theirs."""
    apart, found = set(without), []
    waiting = children_of(pid)
    while waiting:
        one = waiting.pop(0)
        if one not in apart:
            found.append(one)
            waiting += children_of(one)
    return found


def threads_of(pid: int) -> dict[int, Thread]:
    """Thread → what it has spent; of a process that has ended its first thread at most."""
    found: dict[int, Thread] = {}
    for name in _names(f"/proc/{pid}/task"):
        times = _read(f"/proc/{pid}/task/{name}/schedstat").split()
        if len(times) == 3:
            found[int(name)] = Thread(int(times[0]) / 1e9, int(times[1]) / 1e9, *_switches(pid, name))
    return found


def _switches(pid: int, thread: str) -> tuple[int, int]:
    lines = _read(f"/proc/{pid}/task/{thread}/status").splitlines()
    told = dict(line.split(":", 1) for line in lines if "ctxt_switches" in line)
    return int(told.get("voluntary_ctxt_switches", 0)), int(told.get("nonvoluntary_ctxt_switches", 0))


def busy_s() -> float:
    """CPU time of the whole machine since it started, all CPUs together; time that guests used is in it."""
    fields = _read("/proc/stat").split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, interrupts, soft, stolen = (int(number) for number in fields[:8])
    return (user + nice + system + interrupts + soft + stolen) * TICK_S


def started_with(mark: str) -> list[int]:
    """Processes in whose first environment this text stands, wherever they have gone to."""
    others = [name for name in _names("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [int(name) for name in others if mark in environment_of(int(name))]


def environment_of(pid: int) -> list[str]:
    """Variables that a process was started with; empty where it has ended or is somebody else's."""
    return _read(f"/proc/{pid}/environ").split("\0")


def _names(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []  # it has ended


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""  # it has ended, or is somebody else's


def _read(path: str) -> str:
    return _bytes(path).decode("utf-8", "replace")
