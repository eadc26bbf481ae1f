"""Runs that a recorder is working on, and runs that a killed recorder left behind.

The file ``unfinished`` lies in the folder of a program's run and of each child's until all of them are kept. In the
program's folder it names the plan, in a child's the program's run. The recorder holds a lock on the program's folder, which
the system releases when the recorder ends in whatever way.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from perflaw.errors import StoreError
from perflaw.store.experiment import MARK, Experiment, discard, locked

_REMOVED: Final = ".removed"
"""Suffix of a folder that is being removed."""


class RunClaim:
    """The folders of the run that is being recorded. If it is left by an error, they stay marked and are unlocked."""

    def __init__(self, experiment: Experiment, key: str) -> None:
        """Make the run's folder; ``key`` identifies the plan. OSError if the disk refuses.

        A file system without locks is no reason not to record.
        """
        self.experiment, self.key = experiment, key
        self.children: list[Path] = []
        self._lock = -1
        experiment.make()
        with locked(experiment.runs_folder):
            self.folder = self._new_run(key)
            with suppress(OSError):  # no locks: the run cannot be told from that of a killed recorder
                self._lock = os.open(self.folder, os.O_RDONLY)
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @classmethod
    def with_spool(cls, experiment: Experiment, key: str, command: str) -> RunClaim:
        """A claim with the folder ``spool``; StoreError if the disk refuses, with the command to type elsewhere."""
        try:
            claim = cls(experiment, key)
            (claim.folder / "spool").mkdir(mode=0o700)
        except OSError as error:
            why = f"{error.strerror} ({error.filename})"
            raise StoreError(f"{experiment.folder}: cannot be written", why, command) from error
        return claim

    def child(self) -> Path:
        """A new folder for the run of a child process; OSError if the disk refuses."""
        with locked(self.experiment.runs_folder):
            self.children.append(self._new_run(self.folder.name))
        return self.children[-1]

    def __enter__(self) -> RunClaim:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Remove the marks, the program's last, unless an error left the runs incomplete; release the lock."""
        for folder in (*self.children, self.folder) if kind is None else ():
            remove_mark(folder)
        if self._lock >= 0:
            os.close(self._lock)

    def _new_run(self, text: str) -> Path:
        folder = self.experiment.new_run()
        with suppress(OSError):  # on a full disk, the recording matters more than the mark
            descriptor = os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
        return folder


def remove_mark(folder: Path) -> None:
    """Remove the mark of a run that is kept."""
    with suppress(OSError):  # a mark that stays costs a second attempt
        (folder / MARK).unlink(missing_ok=True)


def mark_of(folder: Path) -> str | None:
    """Text of the folder's mark: the plan's key, for a child the program's run; None if there is no mark."""
    try:
        return (folder / MARK).read_text()
    except OSError:
        return None


def is_abandoned(folder: Path) -> bool:
    """Whether no recorder holds the folder any more; False if that cannot be told."""
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


def discard_unfinished(experiment: Experiment, keys: Collection[str]) -> int:
    """Remove the abandoned runs of these plans with their children; returns the number of programs' runs removed.

    If the recorder is killed meanwhile, the next call finds the remaining runs again.
    """
    with locked(experiment.runs_folder):
        for run in experiment.unfinished():
            with suppress(OSError):  # not empty
                (experiment.runs_folder / run).rmdir()  # its recorder was killed before it made the mark
        marks = {run: mark_of(experiment.runs_folder / run) for run in (*experiment.unfinished(), *experiment.ids())}
        programs = {run for run, mark in marks.items() if mark in keys and is_abandoned(experiment.runs_folder / run)}
        for leftover in experiment.runs_folder.glob(f"*{_REMOVED}"):  # of a recorder killed while it removed one
            discard(leftover)
        parents = {run: manifest.parent if (manifest := experiment.manifest(run)) else "" for run in marks}
        removed = set(programs)
        while more := {run for run in marks.keys() - removed if marks[run] in programs or parents[run] in removed}:
            removed |= more
        for run in sorted(removed - programs) + sorted(programs):
            folder = experiment.runs_folder / run  # renamed first, so that no part of it is ever taken for a run
            discard(folder.rename(folder.with_name(folder.name + _REMOVED)))
        return len(programs)
