"""Experiments as they change, seen from outside: what they hold, who writes to them, and whether anything is new.

Nothing here takes a lock, opens a table or writes, so recorders, explorers and miners beside it notice nothing.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perflaw.errors import StoreError, UsageError
from perflaw.store.checks import FILE as CHECKS
from perflaw.store.checks import read_checks
from perflaw.store.experiment import STORE, Experiment, open_experiment

STUDY, STUDY_LOCK, MINING = "study.db", "study.lock", "mining.jsonl"
"""Files of a study and of mining in an experiment's folder."""
_LOCKS: Final = Path("/proc/locks")
_BUSY_S: Final = 0.2
"""Longest wait for a study's journal."""


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """An experiment at one moment."""

    name: str
    """Its name."""
    mark: str
    """Another text whenever a finished run, a trial, a decision of mining or a check was added or changed."""
    runs: int = 0
    """Number of finished runs."""
    newest: str = ""
    """Id of the newest finished run."""
    changed: float = 0.0
    """When anything of it changed last, in seconds since 1970; 0 where nothing is in it."""
    target: str = ""
    """Program of the newest run; empty where it cannot be told."""
    recording: tuple[str, ...] = ()
    """Ids of the runs that are being recorded now."""
    abandoned: int = 0
    """Runs whose recorder ended before they were kept."""
    trials: int | None = None
    """Trials of the study that have ended; None where it is no study."""
    explored: bool = False
    """Whether trials are made now."""
    mined: bool = False
    """Whether it holds decisions of mining in a running program."""
    is_mined_now: bool = False
    """Whether a program is mined now."""
    checks: tuple[dict[str, Any], ...] = ()
    """The history of checks, the oldest first."""
    error: str = ""
    """Why its newest run or its study cannot be read."""


def held_locks() -> frozenset[int]:
    """Inodes of the files and folders that processes hold locks on, as the kernel lists them; none where it does not.

    A look that tried the locks would for a moment hold them itself, and keep a recorder that starts just then out.
    """
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return frozenset()
    places = (field for line in lines if "->" not in line for field in line.split() if field.count(":") == 2)
    return frozenset(int(place.rpartition(":")[2]) for place in places)


def is_held(path: Path, held: frozenset[int] | None = None) -> bool:
    """Whether a process holds a lock on a file or folder."""
    try:
        inode = path.stat().st_ino
    except OSError:
        return False
    return inode in (held_locks() if held is None else held)


def experiment_names(root: Path | None = None) -> list[str]:
    """Names of the experiments in a folder."""
    names = []
    for path in sorted(((root or Path()) / STORE).glob("*")):
        try:
            folder = open_experiment(path.name, root).folder
        except UsageError:  # no experiment has such a name
            continue
        if (folder / "runs").is_dir() or (folder / STUDY).is_file():
            names.append(path.name)
    return names


def experiment_state(
    name: str, root: Path | None = None, held: frozenset[int] | None = None, before: ExperimentState | None = None
) -> ExperimentState:
    """The state of an experiment; what is slower to read is taken from the state ``before`` where nothing is new."""
    target = open_experiment(name, root)
    held = held_locks() if held is None else held
    finished, unfinished = target.listed()
    recording = tuple(run for run in unfinished if is_held(target.runs_folder / run, held))
    explored = is_held(target.folder / STUDY_LOCK, held)
    is_mined_now = is_held(target.folder / MINING, held)
    mark, changed = _mark(target, finished)
    now = ExperimentState(name, mark, len(finished), finished[-1] if finished else "", changed)
    known: dict[str, Any] = {}
    if before and before.mark == mark:
        known = {field: getattr(before, field) for field in ("target", "trials", "mined", "checks", "error")}
    else:
        known = _read(target, now.newest)
    return ExperimentState(
        name, mark, now.runs, now.newest, changed, recording=recording,
        abandoned=len(unfinished) - len(recording), explored=explored, is_mined_now=is_mined_now,
        **known,
    )  # fmt: skip


def _mark(target: Experiment, finished: list[str]) -> tuple[str, float]:
    """A digest of names, sizes and times of everything that a report reads, and the latest time."""
    digest, latest = hashlib.sha256(), 0.0
    folder, runs = os.fspath(target.folder), os.fspath(target.runs_folder)
    for path in (
        *(f"{runs}/{run}/run.json" for run in finished),
        *(f"{folder}/{name}" for name in (STUDY, f"{STUDY}-wal", CHECKS, MINING)),
    ):
        try:
            about = os.stat(path)  # noqa: PTH116 (10^5 runs are looked at)
        except OSError:
            continue
        digest.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode(errors="replace"))
        latest = max(latest, about.st_mtime) if about.st_size else latest
    return digest.hexdigest()[:16], latest


def _read(target: Experiment, newest: str) -> dict[str, Any]:
    program, error, trials = "", "", None
    try:
        program = target.recording(newest).run.target if newest else ""
    except StoreError as problem:
        error = f"{problem.what}: {problem.why}"
    if (target.folder / STUDY).is_file():
        try:
            trials = ended_trials(target.folder / STUDY)
        except sqlite3.Error as problem:
            trials, error = 0, error or f"{target.folder / STUDY}: cannot be read: {problem}"
    checks = tuple(read_checks(target.folder))
    mined = (target.folder / MINING).is_file()
    return {"target": program, "trials": trials, "mined": mined, "checks": checks, "error": error}


def ended_trials(path: Path) -> int:
    """Number of trials in a study's journal that have ended; sqlite3.Error where it cannot be read."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)) as database:
        row = database.execute("SELECT COUNT(*) FROM trials WHERE state = 'done'").fetchone()
    return int(row[0])
