"""Features of whole runs, added, changed and removed after the recording.

They describe the whole execution of a program, so its child processes' runs have the same. All runs of a change are
written or none: the new manifests stand beside the old ones before the first takes its place.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflaw.errors import StoreError
from perflaw.store.experiment import Experiment, Recording

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Changed:
    """What came of a change."""

    runs: int
    """Runs whose features are others now, child processes' among them."""
    replaced: Mapping[str, tuple[str, ...]]
    """Feature → runs in which it had another value before."""


def executions(experiment: Experiment, runs: Sequence[str]) -> dict[str, list[Recording]]:
    """The chosen executions (all, where none is named) by the program's run, each with its child processes' runs.

    A child stands for its whole execution. StoreError as of ``Experiment.recordings``.
    """
    manifests = {run: experiment.manifest(run) for run in experiment.ids()}
    every = {run: Recording(manifest, experiment.runs_folder / run) for run, manifest in manifests.items() if manifest}
    chosen = {_root(one, every) for one in experiment.recordings(tuple(runs))}
    found: dict[str, list[Recording]] = {root: [] for root in every if root in chosen}
    for one in every.values():
        if (root := _root(one, every)) in chosen:
            found[root].append(one)
    return found


def _root(one: Recording, every: Mapping[str, Recording]) -> str:
    seen: set[str] = set()
    while one.run.parent in every and one.run.id not in seen:
        seen.add(one.run.id)
        one = every[one.run.parent]
    return one.run.id


def change(experiment: Experiment, find: Callable[[], Mapping[str, tuple[Sequence[Recording], Features]]]) -> Changed:
    """Give executions new features: ``find`` tells the runs of each and all their features, and is asked under a lock.

    StoreError where a manifest cannot be read or written; then none has changed.
    """
    with _locked(experiment.folder):
        wanted = find()
        staged: dict[Path, Path] = {}
        replaced: dict[str, list[str]] = {}
        try:
            for root, (recordings, features) in wanted.items():
                for name, value in recordings[0].run.features.items():
                    if features.get(name, value) != value:
                        replaced.setdefault(name, []).append(root)
                for one in recordings:
                    if dict(one.run.features) != dict(features):
                        staged[one.folder / "run.json"] = _stage(one.folder, features)
            for path, part in staged.items():
                part.replace(path)
        except OSError as error:
            raise StoreError(f"{error.filename}: cannot be written", error.strerror or str(error), "df -h") from error
        finally:
            for part in staged.values():
                part.unlink(missing_ok=True)
    return Changed(len(staged), {name: tuple(runs) for name, runs in replaced.items()})


def _stage(folder: Path, features: Features) -> Path:
    """The run's manifest with these features, beside the one that is there. What else is in it stays as it is."""
    document: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    text = json.dumps({**document, "features": dict(features)}, indent=1, allow_nan=False)
    part = folder / "run.json.part"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return part


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One change at a time; where the file system has no locks, as well as it goes."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # there is no such experiment: what is asked for under the lock says so
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks: as well as can be
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
