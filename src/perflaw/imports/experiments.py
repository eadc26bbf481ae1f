"""Recordings that perflaw made elsewhere, on another machine or in another folder: the same runs under new numbers.

Their tables hold sums of whole nanoseconds, so recordings of different machines merge without conversion.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, StoreError
from perflaw.record.unfinished import RunClaim, discard_unfinished
from perflaw.store.checksums import verify_all
from perflaw.store.experiment import MARK, Experiment, Recording, execution_of, identity_of, write_manifest
from perflaw.types import Run

_KEY: Final = "import"
"""Key of the runs that are being imported, by which the next import finds what an interrupted one left."""


@dataclass(frozen=True, slots=True)
class ImportedRuns:
    """The outcome of importing an experiment."""

    runs: tuple[Run, ...]
    """New runs, children after their parents."""
    known: int
    """Number of runs that were imported before and were not copied again."""


def is_experiment(path: Path) -> bool:
    """Whether a folder is an experiment of perflaw: ``.perflaw/NAME``."""
    return (path / "runs").is_dir()


def import_experiment(target: Experiment, path: Path) -> ImportedRuns:
    """Copy all new runs of the experiment in ``path``.

    DataError where it is the target itself, StoreError where a run cannot be written.
    """
    source = Experiment(path.name, path)
    if source.runs_folder.resolve() == target.runs_folder.resolve():
        raise DataError(f"{path}: this experiment itself", "its recordings are here already", "perflaw runs")
    if target.runs_folder.is_dir():
        discard_unfinished(target, {_KEY})
    present = {identity_of(run): run.id for run in map(target.manifest, target.ids()) if run}
    new: dict[str, Recording] = {}
    ids: dict[str, str] = {}  # of runs in the source → in the target
    for recording in source.recordings():
        if (identity := identity_of(recording.run)) in present:
            ids[recording.run.id] = present[identity]
        else:
            new[recording.run.id] = recording
    known = len(ids)
    executions: dict[str, list[Recording]] = {}  # by the run of the program, which is the first of its recordings
    for recording in sorted(new.values(), key=lambda recording: int(recording.run.id)):
        program = execution_of(recording.run, {run: one.run for run, one in new.items()})
        executions.setdefault(program.id, []).append(recording)
    try:
        # Copy the source texts that execution counts refer to.
        for file in sorted((source.folder / "sources").glob("*.txt")):
            kept = target.folder / "sources" / file.name
            if not kept.exists():
                target.make()
                kept.parent.mkdir(exist_ok=True, mode=0o700)
                part = kept.with_suffix(".part")
                shutil.copyfile(file, part)
                part.replace(kept)
        runs = []
        for execution in executions.values():
            with RunClaim(target, _KEY) as claim:
                for place, recording in enumerate(execution):
                    verify_all(recording.folder)
                    folder = claim.child() if place else claim.folder
                    for file in recording.folder.iterdir():
                        if file.is_file() and file.name not in (MARK, "run.json"):
                            shutil.copyfile(file, folder / file.name)
                    ids[recording.run.id] = folder.name
                    run = replace(recording.run, id=folder.name, parent=ids.get(recording.run.parent, ""), planned="")
                    write_manifest(folder, run)
                    runs.append(run)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{target.folder}: cannot be written", why, "df -h") from error
    return ImportedRuns(tuple(runs), known)
