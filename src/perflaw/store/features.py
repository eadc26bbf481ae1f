"""Features of whole runs, added, changed and removed after the recording.

They describe the whole execution of a program, so its child processes' runs have the same. All runs of a change are
written or none: the new manifests stand beside the old ones before the first takes its place.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflaw.errors import DataError, StoreError, UsageError
from perflaw.store.csv_files import CsvTable
from perflaw.store.experiment import Experiment, Recording
from perflaw.types import FEATURE_NAME, Run

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


# ---- Features of runs from a CSV file: which rows belong to which runs, and what they say.

RUN, WORKLOAD = "run", "workload"
"""Columns that name a run by its id, and by its workload."""


@dataclass(frozen=True, slots=True)
class Matched:
    """What a table says of runs."""

    features: Mapping[str, Mapping[str, float]]
    """Run → its new features."""
    rows: int
    """Rows that belong to no run."""
    runs: tuple[str, ...]
    """Runs that have no row."""


def match(table: CsvTable, runs: Sequence[Run], on: Sequence[str] = ()) -> Matched:
    """Find the row of each run by ``on``: columns with its id, workload, features or values of ``--vary``.

    By default that is ``run`` where there is such a column, else every column that runs know. All other columns are
    features, an empty cell says nothing. UsageError and DataError with column and line where that cannot be done.
    """
    keys = _keys(table, runs, on)
    names = _names(table, keys)
    columns = {name: table.column(name) for name in (*keys, *names)}
    found: dict[str, dict[str, float]] = {}
    used: set[int] = set()
    for run in runs:
        rows = [row for row in range(len(table.lines)) if all(_is(run, key, columns[key][row]) for key in keys)]
        used.update(rows)
        for row in rows:
            _add(table, found.setdefault(run.id, {}), run.id, row, {name: columns[name][row] for name in names})
    if not found:
        there = ", ".join(sorted({_said(run, keys[0]) for run in runs})[:5])
        raise DataError(f"{table.name}: no row belongs to a run", f"{keys[0]} of runs: {there}", "perflaw feature")
    return Matched(found, len(table.lines) - len(used), tuple(run.id for run in runs if run.id not in found))


def _keys(table: CsvTable, runs: Sequence[Run], on: Sequence[str]) -> list[str]:
    known = dict.fromkeys([RUN, WORKLOAD, *(name for run in runs for name in (*run.features, *run.configuration))])
    if on:
        for name in on:
            table.column(name)
            if name not in known:
                raise UsageError(
                    f"--on {name}: runs do not have it", f"they have {', '.join(known)}", "perflaw feature"
                )
        return list(on)
    if RUN in table.header:
        return [RUN]
    keys = [name for name in table.header if name in known]
    if not keys:
        raise UsageError(
            f"{table.name}: no column tells which row belongs to which run",
            f"wanted is one of {', '.join(list(known)[:8])}",
            "perflaw feature",
        )
    return keys


def _names(table: CsvTable, keys: Sequence[str]) -> list[str]:
    names = [name for name in table.header if name not in keys]
    if not names:
        column = table.header[0]
        why = "runs know all its columns; --on says which of them rows are found by"
        raise UsageError(f"{table.name} adds no feature", why, f"perflaw feature --from {table.name} --on {column}")
    for name in names:
        if not FEATURE_NAME.fullmatch(name):
            why = "a feature's name begins with a letter and has letters, digits, . - _ [ ] alone"
            raise UsageError(f"{table.name}, column {name!r}", why, "name the column otherwise")
    return names


def _is(run: Run, key: str, cell: str) -> bool:
    """Whether a cell says what a run has: its id with or without leading zeros, a number by its value, else the text."""
    if key == RUN:
        return cell.strip().zfill(4) == run.id
    if key == WORKLOAD and run.workload:
        return cell.strip() == run.workload
    if key in run.features:
        return _number(cell) == run.features[key]
    return run.configuration.get(key) == cell.strip()


def _said(run: Run, key: str) -> str:
    if key in run.features:
        return f"{run.features[key]:g}"
    return {RUN: run.id, WORKLOAD: run.workload}.get(key) or run.configuration.get(key, "none")


def _add(table: CsvTable, features: dict[str, float], run: str, row: int, cells: Mapping[str, str]) -> None:
    where = f"{table.name}, line {table.lines[row]}"
    for name, cell in cells.items():
        if not cell.strip():
            continue
        number = _number(cell)
        if number is None:
            raise DataError(f"{where}, column {name}: {cell.strip()[:40]!r} is no number", "", "mend that cell")
        if features.setdefault(name, number) != number:
            raise DataError(f"{where}: another row says otherwise of {name} of run {run}", "", "leave one of them out")


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
