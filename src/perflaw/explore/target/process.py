"""The processes of a target: started in a session of their own, found wherever they fork away to, and ended.

The agent is made a subreaper, so whatever a target starts stays among the agent's descendants; and all of it carries a
mark in its environment, by which the next agent finds it where this one was killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from resource import struct_rusage
from typing import Final

from perflaw.explore.target.proc import environment_of, family, started_with, stat_of

MARK: Final = "PERFLAW_TRIAL"
"""Variable that all processes of a target have."""
_PDEATHSIG, _SUBREAPER = 1, 36
_GRACE_S: Final = 0.5
_ROUNDS: Final = 200
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> Callable[[], None]:
    """What a child does before it becomes its program: it is to end with this parent, however that ends."""

    def entered() -> None:
        _LIBC.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it had gone already
            os.kill(os.getpid(), signal.SIGKILL)

    return entered


class Started:
    """A command of the target that runs."""

    def __init__(self, command: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        """Start it. OSError where that cannot be."""
        self.began = time.monotonic()
        self.mark = f"{MARK}={environment[MARK]}" if MARK in environment else ""
        self.process = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, preexec_fn=die_with(os.getpid()),
        )  # fmt: skip
        self.status: int | None = None
        """As ``subprocess`` gives it; None while it runs."""
        self.usage: struct_rusage | None = None
        """What it and the children that it waited for used; None while it runs."""
        self.seconds = 0.0
        """How long it ran."""

    @property
    def pid(self) -> int:
        """Number of its first process."""
        return self.process.pid

    def ended(self) -> bool:
        """Whether its first process has ended; what it used is known from then on."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.seconds, self.usage = time.monotonic() - self.began, usage
                self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def gone(self) -> bool:
        """Whether it has ended for good: a server that forks away ends with status 0 and leaves processes that work."""
        return self.ended() and (self.status != 0 or not self.session())

    def session(self) -> list[int]:
        """Processes that came of it and live: its children, and orphans that were given to this process."""
        alive = [pid for pid in family(os.getpid()) if (stat := stat_of(pid)) and stat.state != "Z"]
        return [pid for pid in alive if self.mark and self.mark in environment_of(pid)]

    def told(self) -> str:
        """How it ended, in words."""
        if self.status is not None and self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"

    def close(self) -> None:
        """Close our ends of its pipes."""
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()


def end(started: Started, wanted: str, without: Iterable[int], grace_s: float = _GRACE_S) -> None:
    """Ask the command to end by a signal's name, then end whatever is left of it and what it started."""
    number = getattr(signal, wanted, signal.SIGTERM)
    for pid in [] if started.gone() else [started.pid] if not started.ended() else started.session():
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    until = time.monotonic() + grace_s
    while not started.gone() and time.monotonic() < until:
        time.sleep(0.002)
    end_family(without, (started,))


def end_alone(started: Started) -> None:
    """End a command and its children, and nothing else."""
    for pid in ([] if started.ended() else [started.pid]) + family(started.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while not started.ended():
        time.sleep(0.001)


def end_family(without: Iterable[int], known: Sequence[Started] = ()) -> list[struct_rusage]:
    """Kill every descendant of this process but these, in rounds, for one may start another; what orphans used."""
    ours, used, apart = {one.pid: one for one in known}, [], set(without)
    for _ in range(_ROUNDS):
        left = family(os.getpid(), apart)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            if pid in ours:
                ours[pid].ended()
            else:
                used += _reaped(pid)
        if not left:
            break
        time.sleep(0.001)
    return used


def _reaped(pid: int) -> list[struct_rusage]:
    try:
        return [os.wait4(pid, os.WNOHANG)[2]]
    except ChildProcessError:
        return []  # its parent is not us, but will be when that has ended


def end_marked(mark: str) -> int:
    """Kill what an agent that was killed left behind; how many processes that was."""
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        left = [pid for pid in started_with(f"{MARK}={mark}") if (stat := stat_of(pid)) and stat.state != "Z"]
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
        time.sleep(0.002)
    return len(ended)
