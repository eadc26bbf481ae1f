"""Waits in which a thread has nothing to do, because nobody asks it for anything.

How long such a wait takes is decided by whoever asks and says nothing of the program: it is longer with fewer clients. The
kernel tells in which system call a thread sleeps. A thread is idle if it waits for any of several files, or for a connection,
and if the function that waits is called by functions that the thread is always in, such as an event loop. The same system call
within the work for a request, which waits for a subprocess, say, is a part of what the request takes.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from typing import Final

Stack = tuple[str, ...]

_WAITS: Final = {
    "x86_64": frozenset(
        (
            *(7, 271),  # poll, ppoll
            *(23, 270),  # select, pselect6
            *(232, 281, 441),  # epoll_wait, epoll_pwait, epoll_pwait2
            *(43, 288),  # accept, accept4
            426,  # io_uring_enter
        )
    )
}
"""Machine → numbers of the system calls that wait for any of several files or for a connection."""
ALWAYS: Final = 0.98
"""Part of a thread's looks that find it in functions which it is always in; one may meet it between two turns of a loop."""
LEAST_LOOKS: Final = 500
"""Looks at a thread from which on it is said what it is always in."""
MOST_LOOKS: Final = 4_000
"""Looks at which all are halved, so that the newer ones count for more and few stacks are in memory."""


class IdleWaits:
    """What one thread is in, whether it runs or sleeps."""

    def __init__(self) -> None:
        self._looks: Counter[Stack] = Counter()
        self._waits: set[Stack] = set()
        self._total = 0
        self._asleep = 0

    def add_running(self, stack: Stack) -> None:
        """A look found it running."""
        self._add(stack, 1)

    def add_asleep(self) -> None:
        """A look found it asleep; the next stack that is read of it while it sleeps counts for all of these looks."""
        self._asleep += 1

    def add_sleeping(self, stack: Stack, *, is_wait: bool) -> int:
        """Where it sleeps; ``is_wait``: in a system call that waits for any of several files or for a connection.

        Gives the looks that this counts for.
        """
        looks, self._asleep = self._asleep, 0
        self._add(stack, looks)
        if is_wait:
            self._waits.add(stack)
        return looks

    def _add(self, stack: Stack, looks: int) -> None:
        self._looks[stack] += looks
        self._total += looks
        if self._total > MOST_LOOKS:
            self._looks = Counter({one: count // 2 for one, count in self._looks.items() if count > 1})
            self._waits &= self._looks.keys()
            self._total = self._looks.total()

    def functions(self) -> frozenset[str]:
        """Functions whose durations contain idle waits.

        >>> waits = IdleWaits()
        >>> for stack in [("run", "turn", "page")] * 400 + [("run", "turn", "page", "query")] * 60:
        ...     waits.add_running(stack)
        >>> for _ in range(30):
        ...     waits.add_running(("page", "query"))  # it changed while it was read
        >>> for stack in [("run", "turn", "select"), ("run", "turn", "page", "communicate")] * 30:
        ...     waits.add_asleep()
        ...     _ = waits.add_sleeping(stack, is_wait=True)
        >>> sorted(waits.functions())
        ['run', 'select', 'turn']
        """
        # A stack that changes while it is read lacks its outermost functions, and says nothing of what is always there.
        outer = {stack[:-1] for stack in self._waits}
        lengths = {len(one) for one in outer}
        of_outermost, within = Counter[Stack](), Counter[Stack]()
        for stack, looks in self._looks.items():
            of_outermost[stack[:1]] += looks
            for length in lengths:
                if len(stack) >= length and stack[:length] in outer:
                    within[stack[:length]] += looks
        found: set[str] = set()
        for stack in self._waits:
            if of_outermost[stack[:1]] >= LEAST_LOOKS and within[stack[:-1]] >= ALWAYS * of_outermost[stack[:1]]:
                found.update(stack)
        return frozenset(found)


class SleepingThread:
    """Says in which system call a thread sleeps; ``close`` it at the end."""

    def __init__(self, pid: int, thread: int) -> None:
        """OSError if the kernel does not tell, or the thread has ended."""
        self._file = os.open(f"/proc/{pid}/task/{thread}/syscall", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close its file."""
        os.close(self._file)

    def call(self) -> bytes:
        """The system call with its arguments; empty if the thread runs. OSError if it has ended."""
        text = os.pread(self._file, 512, 0)
        return b"" if text.startswith((b"running", b"-1")) else text

    @staticmethod
    def is_wait(call: bytes) -> bool:
        """Whether the system call waits for any of several files or for a connection."""
        return bool(call) and int(call.split()[0]) in _WAITS.get(platform.machine(), ())
