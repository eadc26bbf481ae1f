"""Work that is needed later and begins now, in another thread."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import suppress
from typing import Final

WAIT_S: Final = 10.0
"""Time for which the end of the work is waited for."""


class Ahead:
    """Work in a thread of its own that only prepares: who needs it does it anew where it has failed.

    ``threading.Thread.start`` waits until the thread runs, and without memory for that it waits for ever.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._running = _thread.allocate_lock()
        with suppress(RuntimeError, MemoryError):  # no more threads: the lock is free
            self._running.acquire()
            _thread.start_new_thread(self._run, (work,))
            return
        self._running.release()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            with suppress(Exception):
                work()
        finally:
            self._running.release()

    def join(self) -> None:
        """Wait until the work is done, at most ``WAIT_S``."""
        self._running.acquire(timeout=WAIT_S)
