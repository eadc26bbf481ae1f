"""Threads that run before all others for some milliseconds: the recorder's, and those of a program that it asks to stop.

On a busy machine a thread that was asked to stop first waits for a processor, and the threads that have stopped already wait
for it meanwhile. The kernel permits real-time priorities to root and with the capability SYS_NICE; elsewhere nothing changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Final

_GUARD: Final = """
import os, sys
threads = []
for line in sys.stdin:
    threads = line.split()
for thread in threads:
    try:
        os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))
    except OSError:  # the thread has ended
        pass
"""
"""A process that gives threads their ordinary priority back when the recorder was killed before it had done so itself."""


@contextmanager
def urgent() -> Iterator[None]:
    """Run before all other programs while entered, if permitted: threads that are stopped wait for this one."""
    before, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        if _run_first(0):
            _tell_guard([])  # no thread has to wait for its start
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, before, priority)


@contextmanager
def hastened(threads: Sequence[int]) -> Iterator[None]:
    """Have threads of another process run before other programs while entered, which is to be short.

    Threads whose policy is not the ordinary one keep it. Threads and processes that they create meanwhile are ordinary ones.
    """
    ordinary = []
    for thread in threads:
        with suppress(OSError):  # it has ended
            if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                ordinary.append(thread)
    with ExitStack() as stack:
        if ordinary and _tell_guard(ordinary):
            stack.callback(_tell_guard, [])
            for thread in ordinary:
                if _run_first(thread):
                    stack.callback(_run_as_others, thread)
        yield


def _run_first(thread: int) -> bool:
    """Give a thread the lowest of the real-time priorities; whether the system permits it."""
    try:
        least = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        os.sched_setscheduler(thread, os.SCHED_RR | os.SCHED_RESET_ON_FORK, least)
    except OSError:  # the capability SYS_NICE is missing, or the thread has ended
        return False
    return True


def _run_as_others(thread: int) -> None:
    with suppress(OSError):  # it has ended
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _tell_guard(threads: Sequence[int]) -> bool:
    """Say which threads have another priority now; whether somebody hears it."""
    try:
        os.write(_guard(), f"{' '.join(map(str, threads))}\n".encode())
    except OSError:  # it cannot be started, or was killed
        return False
    return True


@cache
def _guard() -> int:
    """The pipe to the guard, which is started once; it is in a session of its own, where Ctrl-C does not reach it."""
    reading, writing = os.pipe()
    command = [sys.executable, "-I", "-S", "-c", _GUARD]
    os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)], setsid=True)
    os.close(reading)
    return writing
