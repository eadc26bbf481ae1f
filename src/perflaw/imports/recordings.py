"""Recordings of perflaw made elsewhere, on another machine or in another folder: the same runs under new numbers.

What they hold are sums of whole nanoseconds, so recordings of any machines merge as they are.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from perflaw.errors import DataError, StoreError
from perflaw.record.claim import MARK, Claim
from perflaw.store.experiment import Experiment, Recording, write_manifest
from perflaw.types import Run


@dataclass(frozen=True, slots=True)
class Adopted:
    """What came of one folder."""

    runs: tuple[Run, ...]
    """The new ones, children behind their parents."""
    known: int
    """How many are here already: a recording counts once."""


def is_experiment(path: Path) -> bool:
    """Whether a folder is an experiment of perflaw's: ``.perflaw/NAME``."""
    return (path / "runs").is_dir()


def adopt(target: Experiment, path: Path) -> Adopted:
    """Copy all runs of the experiment in ``path``. DataError where it is this one, StoreError where one cannot be kept."""
    source = Experiment(path.name, path)
    if source.runs_folder.resolve() == target.runs_folder.resolve():
        raise DataError(f"{path}: this experiment itself", "its recordings are here already", "perflaw runs")
    found = source.recordings()
    here = {_identity(run): run.id for run in map(target.manifest, target.ids()) if run}
    names = {one.run.id: here[_identity(one.run)] for one in found if _identity(one.run) in here}
    known = len(names)
    try:
        _copy_sources(source, target)
        runs = [run for one in _executions(found, names) for run in _copied(target, one, names)]
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{target.folder}: cannot be written", why, "df -h") from error
    return Adopted(tuple(runs), known)


def _identity(run: Run) -> tuple[object, ...]:
    """What no two runs have in common."""
    return run.host, run.started, run.pid, run.command, run.span_ns, run.calls


def _executions(found: list[Recording], names: dict[str, str]) -> Iterator[list[Recording]]:
    """Those that are not here yet, each program before its children."""
    new = {one.run.id: one for one in found if one.run.id not in names}
    order: dict[str, list[Recording]] = {}
    for one in sorted(new.values(), key=lambda each: int(each.run.id)):
        root = one.run
        while root.parent in new:
            root = new[root.parent].run
        order.setdefault(root.id, []).append(one)
    yield from order.values()


def _copied(target: Experiment, execution: list[Recording], names: dict[str, str]) -> Iterator[Run]:
    """Copies of a program's run and its children's; ``names`` learns their new ids."""
    with Claim(target, "") as claim:
        for place, one in enumerate(execution):
            folder = claim.child() if place else claim.folder
            for file in one.folder.iterdir():
                if file.is_file() and file.name not in (MARK, "run.json"):
                    shutil.copyfile(file, folder / file.name)
            names[one.run.id] = folder.name
            run = replace(one.run, id=folder.name, parent=names.get(one.run.parent, ""), planned="")
            write_manifest(folder, run)
            yield run


def _copy_sources(source: Experiment, target: Experiment) -> None:
    """Texts that execution counts speak of; each is named by what is in it."""
    for file in sorted((source.folder / "sources").glob("*.txt")):
        kept = target.folder / "sources" / file.name
        if not kept.exists():
            target.make()
            kept.parent.mkdir(exist_ok=True, mode=0o700)
            part = kept.with_suffix(".part")
            shutil.copyfile(file, part)
            part.replace(kept)
