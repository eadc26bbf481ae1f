"""A run's folder while its recorder works on it: how a later one tells whether that was killed.

The file ``unfinished`` lies in the folder of a program's run, and of each child's, until all of them are kept. In the
program's it names the plan, in a child's the program's run. The recorder holds a lock on the program's folder, which the
system takes away from a recorder that is gone, however it went.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from perflaw.store.experiment import Experiment

MARK = "unfinished"


class Claim:
    """The run that is being recorded. Entered and left by an error, it stays marked and is unlocked."""

    def __init__(self, experiment: Experiment, key: str) -> None:
        """Make its folder; OSError where the disk refuses. A file system without locks is no reason not to record."""
        self.experiment, self.key = experiment, key
        self.children: list[Path] = []
        self._lock = -1
        experiment.make()
        with alone(experiment):
            self.folder = self._new(key)
            with suppress(OSError):  # a file system without locks: the run cannot be told from a killed one
                self._lock = os.open(self.folder, os.O_RDONLY)
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def child(self) -> Path:
        """A folder for the run of a child process."""
        with alone(self.experiment):
            self.children.append(self._new(self.folder.name))
        return self.children[-1]

    def __enter__(self) -> Claim:
        """Nothing is to be done."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything is kept: the marks go, the program's last."""
        for folder in (*self.children, self.folder) if kind is None else ():
            _unmark(folder)
        if self._lock >= 0:
            os.close(self._lock)

    def _new(self, text: str) -> Path:
        folder = self.experiment.new_run()
        with suppress(OSError):  # a full disk: what is recorded matters more
            descriptor = os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
        return folder


def _unmark(folder: Path) -> None:
    with suppress(OSError):  # the folder is gone, or nobody may write: a stale mark costs a second try at most
        (folder / MARK).unlink(missing_ok=True)


@contextmanager
def alone(experiment: Experiment) -> Iterator[None]:
    """While entered, nobody else makes or removes folders of runs."""
    descriptor = os.open(experiment.runs_folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: as well as can be
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def marked(folder: Path) -> str | None:
    """What the folder's mark says: the plan, or of a child its program's run; None where there is none."""
    try:
        return (folder / MARK).read_text()
    except OSError:
        return None


def abandoned(folder: Path) -> bool:
    """Whether no recorder holds the folder any more; False where that cannot be told."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
