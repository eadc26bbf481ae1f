"""A process of its own writes the tables, so that a crash inside DuckDB takes nothing with it that the recorder knows.

DuckDB may crash where an allocation of its own fails, and the kernel kills what takes too much memory. The recorder then
still has the tables, and has them written again. A process in which DuckDB was opened can not fork any more, because
DuckDB's threads would be missing in the child: this one is forked before, and opens DuckDB while the program runs.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, Protocol

from perflaw.store.tables import connect

WAIT_S: Final = 10.0
"""Time that a new writer has to open DuckDB."""
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
"""The recorder decides what these mean. When it ends, in whatever way, so does its writer."""
_CPUCLOCK_SCHED: Final = 2
"""The kernel's number of the clock that counts all CPU time of a process."""


class WriterCrashedError(OSError):
    """The process that writes ended before it answered."""


class Job(Protocol):
    """Something to write; it can be pickled."""

    def write(self, folder: Path) -> None:
        """Write it into a folder; OSError if the disk refuses."""


class Writer:
    """Writes in a process of its own, or in this one if no other can be had. Leaving the context ends that process."""

    def __init__(self) -> None:
        self._process = 0
        self._jobs: BinaryIO | None = None
        self._answers: BinaryIO | None = None
        self._is_opening = False
        """Whether the process has not said yet that DuckDB is open."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def start(self) -> None:
        """Fork the process ahead. No effect if there is one, if none can be had, or if DuckDB is open in this process."""
        if self._process or connect.cache_info().currsize:
            return
        descriptors: list[int] = []
        try:
            for _ in range(2):
                descriptors += os.pipe()
            with warnings.catch_warnings(action="ignore"):  # other threads hold no lock that the child needs
                process = os.fork()
        except (OSError, MemoryError):
            for descriptor in descriptors:
                os.close(descriptor)
            return
        jobs, to, back, answers = descriptors
        if not process:
            _live(jobs, answers)
        os.close(jobs)
        os.close(answers)
        self._process, self._is_opening = process, True
        self._jobs, self._answers = os.fdopen(to, "wb"), os.fdopen(back, "rb")

    def write(self, job: Job, folder: Path) -> None:
        """Have a job written into ``folder``. Raises what it raises there; WriterCrashedError if that process crashes."""
        self.start()
        try:
            if not self._jobs or not self._answers or not self._opened():
                self._end()
                job.write(folder)
                return
            pickle.dump((job, folder), self._jobs, protocol=5)
            self._jobs.flush()
            error = pickle.load(self._answers)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise WriterCrashedError(f"the process that writes it ended by {self._end()}") from None
        except BaseException:
            self._end()
            raise
        if error:
            raise error

    def cpu_ns(self) -> int:
        """CPU time of the process so far; 0 if there is none."""
        try:
            return time.clock_gettime_ns(~self._process << 3 | _CPUCLOCK_SCHED) if self._process else 0
        except OSError:
            return 0

    def _opened(self) -> bool:
        """Wait until the process has opened DuckDB; False if that takes too long. EOFError if it has ended."""
        assert self._answers
        if self._is_opening:
            if not select.select([self._answers], [], [], WAIT_S)[0]:
                return False
            pickle.load(self._answers)
            self._is_opening = False
        return True

    def _end(self) -> str:
        """End the process, if there is one; returns what it ended by."""
        for pipe in filter(None, (self._jobs, self._answers)):
            with suppress(OSError):  # what could not be sent is not wanted any more
                pipe.close()
        process, self._process, self._jobs, self._answers = self._process, 0, None, None
        if not process:
            return ""
        os.kill(process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return signal.Signals(-status).name if status < 0 else f"exit status {status}"


def _live(jobs: int, answers: int) -> NoReturn:
    """The life of the process: read jobs and answer each with its error or None, until the recorder has ended."""
    try:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        low, high = sorted((jobs, answers))
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # whoever reads the recorder's output does not wait for this process
            os.dup2(nothing, descriptor)
        for first, end in ((3, low), (low + 1, high), (high + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(first, end)  # among them is the standard input of the program, which must end
        with suppress(Exception):  # tried again with each job
            connect()
        with os.fdopen(jobs, "rb") as read, os.fdopen(answers, "wb") as write:
            _answer(write, None)
            while True:
                job, folder = pickle.load(read)
                try:
                    job.write(folder)
                except Exception as error:
                    _answer(write, error)
                else:
                    _answer(write, None)
    finally:
        os._exit(1)


def _answer(to: BinaryIO, error: Exception | None) -> None:
    pickle.dump(error, to)
    to.flush()
