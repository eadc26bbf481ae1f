"""What a run got of the machine: the kernel's account of its process, and of what else wanted the CPUs meanwhile."""

from __future__ import annotations

import os
import resource
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.types import Machine
from perflaw.types.recordings import MachineLosses

_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_BUSY: Final = (0, 1, 2, 5, 6)
"""Columns of /proc/stat: user, nice, system, interrupts, soft interrupts."""
_STEAL: Final = 7
_USER, _SYSTEM = 11, 12
"""Fields of ``stat_of``: CPU time in user mode and in the kernel."""
PARENT, BEGAN = 1, 19
"""Fields of ``stat_of``: a process's parent and start; the system gives an id to another process later."""
_WATCHED_NS: Final = 10_000_000
"""CPU time for which a machine's losses are watched."""
_LEAST_LOSS_NS: Final = 2000
"""A step takes 0.1 us; what takes longer than this lost time."""
_STEPS: Final = 200
"""Steps between two readings of the CPU clock."""


@dataclass(frozen=True, slots=True)
class _Counters:
    """Counters at one moment, ns and switches."""

    busy_ns: int
    steal_ns: int
    ours_ns: int
    """CPU time of the recorder, that of its writer included."""
    user_ns: int
    system_ns: int
    voluntary: int
    involuntary: int


def stat_of(pid: int) -> list[str]:
    """Fields of ``/proc/PID/stat`` behind the process's name: state, parent and so on (proc(5)); none if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return text[text.rindex(b")") + 2 :].decode().split()


def cpu_ns_of(pid: int) -> int:
    """CPU time of a process so far, by the ticks of the kernel; 0 if it does not exist."""
    fields = stat_of(pid)
    return (int(fields[_USER]) + int(fields[_SYSTEM])) * _TICK_NS if fields else 0


class MachineMeter:
    """The kernel's counters over one run of a program. Made just before the program starts."""

    def __init__(self, beside_ns: Callable[[], int] = int) -> None:
        """``beside_ns``: CPU time so far of a process that works for the recorder."""
        self._beside_ns = beside_ns
        self._before = _counters(beside_ns())
        self._queued_ns = 0
        self._pidfd = -1
        self._poll = select.poll()

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Watch for the end of the program."""
        with suppress(OSError, AttributeError):  # Linux before 5.3
            self._pidfd = os.pidfd_open(process.pid)
            self._poll.register(self._pidfd, select.POLLIN)

    def wait(self, process: subprocess.Popen[bytes], seconds: float) -> bool:
        """Whether the program has ended within these seconds; reads what the kernel only tells before it is reaped."""
        if self._pidfd >= 0:
            if not self._poll.poll(seconds * 1000):
                return False
            os.close(self._pidfd)
            self._pidfd = -1
            self._queued_ns = _queued_of(Path(f"/proc/{process.pid}"))
        with suppress(subprocess.TimeoutExpired):  # it still runs, which the caller is told
            process.wait(seconds)
        return process.returncode is not None

    def read(self) -> Machine:
        """The account of the run, after the program has ended. What only its tracer can tell is 0."""
        before, after = self._before, _counters(self._beside_ns())
        user_ns, system_ns = after.user_ns - before.user_ns, after.system_ns - before.system_ns
        others_ns = after.busy_ns - before.busy_ns - (after.ours_ns - before.ours_ns) - user_ns - system_ns
        return Machine(
            cpus=len(os.sched_getaffinity(0)),
            load=round(os.getloadavg()[0], 2),
            user_ns=user_ns,
            system_ns=system_ns,
            queued_ns=self._queued_ns,
            voluntary_switches=after.voluntary - before.voluntary,
            involuntary_switches=after.involuntary - before.involuntary,
            steal_ns=after.steal_ns - before.steal_ns,
            others_ns=max(0, others_ns),
        )


class RunningMeter:
    """The kernel's counters over a part of the life of a process that runs already. Made when that part begins."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before, self._cpu_before, self._threads_before = _counters(0), _cpu_times(pid), _threads(pid)

    def read(self) -> Machine | None:
        """The account since the meter was made, over all threads that are there now; None if the process has ended."""
        if not (threads := _threads(self._pid)):
            return None
        after, cpu_ns = _counters(0), _cpu_times(self._pid)
        user_ns, system_ns = (max(now - then, 0) for now, then in zip(cpu_ns, self._cpu_before, strict=True))
        nothing = (0, 0, 0)
        grown = [
            [now - then for now, then in zip(known, self._threads_before.get(thread, nothing), strict=True)]
            for thread, known in threads.items()
        ]
        queued_ns, voluntary, involuntary = (sum(max(one, 0) for one in column) for column in zip(*grown, strict=True))
        ours_ns = after.ours_ns - self._before.ours_ns
        return Machine(
            cpus=len(os.sched_getaffinity(0)),
            load=round(os.getloadavg()[0], 2),
            user_ns=user_ns,
            system_ns=system_ns,
            queued_ns=queued_ns,
            voluntary_switches=voluntary,
            involuntary_switches=involuntary,
            steal_ns=after.steal_ns - self._before.steal_ns,
            others_ns=max(0, after.busy_ns - self._before.busy_ns - ours_ns - user_ns - system_ns),
        )


def _cpu_times(pid: int) -> tuple[int, int]:
    """CPU time of a process so far in user mode and in the kernel, ns."""
    fields = stat_of(pid)
    return (int(fields[_USER]) * _TICK_NS, int(fields[_SYSTEM]) * _TICK_NS) if fields else (0, 0)


def _threads(pid: int) -> dict[str, tuple[int, int, int]]:
    """Each thread of a process with the time that it waited for a CPU (ns), and its voluntary and involuntary switches."""
    threads = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError, ValueError, KeyError):  # it has ended
            fields = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line)
            switches = int(fields["voluntary_ctxt_switches"]), int(fields["nonvoluntary_ctxt_switches"])
            threads[task.name] = (_queued_of(task), *switches)
    return threads


def _counters(beside_ns: int) -> _Counters:
    columns = [0] * (_STEAL + 1)
    with suppress(OSError, ValueError):  # no /proc: the counters stay 0
        columns = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    children, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    return _Counters(
        busy_ns=sum(columns[at] for at in _BUSY) * _TICK_NS,
        steal_ns=columns[_STEAL] * _TICK_NS,
        ours_ns=round((own.ru_utime + own.ru_stime) * 1e9) + beside_ns,
        user_ns=round(children.ru_utime * 1e9),
        system_ns=round(children.ru_stime * 1e9),
        voluntary=children.ru_nvcsw,
        involuntary=children.ru_nivcsw,
    )


def _queued_of(thread: Path) -> int:
    """Time that a thread, given by its folder in /proc, waited for a CPU; 0 if the kernel does not say.

    The folder of a process stands for its main thread, which may have ended.
    """
    with suppress(OSError, ValueError, IndexError):  # it has ended, or the kernel keeps no such account
        return int((thread / "schedstat").read_text().split()[1])
    return 0


def watch_losses() -> MachineLosses:
    """Watch what this machine takes from a loop that reads the clock, for 10 ms of CPU time; switches are left out."""
    clock, cpu_clock = time.perf_counter_ns, time.thread_time_ns
    losses = []
    begun = cpu = cpu_clock()
    last = clock()
    off = last - begun
    while cpu - begun < _WATCHED_NS:
        for _ in range(_STEPS):
            now = clock()
            if now - last > _LEAST_LOSS_NS:
                lost, before = now - last, off
                now = clock()
                off = now - cpu_clock()
                if off - before < _LEAST_LOSS_NS:
                    losses.append(lost)
            last = now
        cpu = cpu_clock()
        last = clock()
        off = last - cpu
    return MachineLosses(cpu - begun, tuple(losses))
