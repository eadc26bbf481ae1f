"""Features of whole runs that are added, changed and removed after the recording.

They describe the whole execution of a program, so the runs of its child processes have the same features. A change is
written to all runs or to none: the new manifests stand beside the old ones before the first replaces one.
Numbers that a pattern finds in the output of a run are features too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, StoreError, UsageError
from perflaw.store.csv_files import CsvTable
from perflaw.store.csv_files import number as cell_number
from perflaw.store.experiment import Experiment, Recording, execution_of, locked, stage_manifest
from perflaw.types import FEATURE_NAME, Run

Features = Mapping[str, float]
RUN, WORKLOAD = "run", "workload"
"""Columns of a CSV file that name a run by its id, and by its workload."""
MAX_SHOWN: Final = 8
"""Names that an error lists at most."""


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """The outcome of a change."""

    runs: int
    """Runs whose features changed, those of child processes included."""
    replaced: Mapping[str, tuple[str, ...]]
    """Feature → runs in which it had another value before."""


def executions(experiment: Experiment, runs: Sequence[str]) -> dict[str, list[Recording]]:
    """The chosen executions (all, where no run is named) by the program's run, each with the runs of its child processes.

    A child process stands for its whole execution. Raises the errors of ``Experiment.recordings``.
    """
    manifests = {run: manifest for run in experiment.ids() if (manifest := experiment.manifest(run))}
    chosen = {execution_of(one.run, manifests).id for one in experiment.recordings(tuple(runs))}
    found: dict[str, list[Recording]] = {run: [] for run in manifests if run in chosen}
    for run, manifest in manifests.items():
        if (root := execution_of(manifest, manifests).id) in chosen:
            found[root].append(Recording(manifest, experiment.runs_folder / run))
    return found


def change_features(
    experiment: Experiment, find: Callable[[], Mapping[str, tuple[Sequence[Recording], Features]]]
) -> FeatureChange:
    """Give executions new features. ``find`` gives the runs of each and all their features; it is called under a lock.

    StoreError where a manifest cannot be read or written; then none has changed.
    """
    with locked(experiment.folder):
        wanted = find()
        staged: dict[Path, Path] = {}
        replaced: dict[str, list[str]] = {}
        try:
            for root, (recordings, features) in wanted.items():
                for name, value in recordings[0].run.features.items():
                    if features.get(name, value) != value:
                        replaced.setdefault(name, []).append(root)
                for recording in recordings:
                    if dict(recording.run.features) != dict(features):
                        path = recording.folder / "run.json"
                        document = {**json.loads(path.read_text(encoding="utf-8")), "features": dict(features)}
                        staged[path] = stage_manifest(recording.folder, document)
            for path, part in staged.items():
                part.replace(path)
        except OSError as error:
            raise StoreError(f"{error.filename}: cannot be written", error.strerror or str(error), "df -h") from error
        finally:
            for part in staged.values():
                part.unlink(missing_ok=True)
    return FeatureChange(len(staged), {name: tuple(runs) for name, runs in replaced.items()})


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Features of runs in a CSV file."""

    features: Mapping[str, Mapping[str, float]]
    """Run → its new features."""
    unmatched_rows: int
    """Rows that belong to no run."""
    unmatched_runs: tuple[str, ...]
    """Runs that have no row."""


def match_rows(table: CsvTable, runs: Sequence[Run], on: Sequence[str] = ()) -> FeatureTable:
    """Find the rows of each run, by the columns ``on`` or else by those that runs know; all other columns are features.

    By default the column ``run`` alone identifies a run; without it, ``workload`` and columns named like features or
    configuration do. An empty cell gives no feature. UsageError and DataError name column and line.
    """
    # The columns by which the rows of a run are found.
    known = dict.fromkeys([RUN, WORKLOAD, *(name for run in runs for name in (*run.features, *run.configuration))])
    for name in on:
        table.column(name)
        if name not in known:
            raise UsageError(f"--on {name}: runs do not have it", f"they have {', '.join(known)}", "perflaw feature")
    if on:
        keys = list(on)
    else:
        keys = [RUN] if RUN in table.header else [name for name in table.header if name in known]
        if not keys:
            what = f"{table.name}: no column tells which row belongs to which run"
            raise UsageError(what, f"expected is one of {', '.join(list(known)[:MAX_SHOWN])}", "perflaw feature")
    names = [name for name in table.header if name not in keys]
    if not names:
        why = "runs know all its columns; --on says by which of them rows are found"
        command = f"perflaw feature --from {table.name} --on {table.header[0]}"
        raise UsageError(f"{table.name} adds no feature", why, command)
    for name in names:
        if not FEATURE_NAME.fullmatch(name):
            why = "a feature's name begins with a letter and holds only letters, digits, . - _ [ ]"
            raise UsageError(f"{table.name}, column {name!r}", why, "rename the column")
    columns = {name: table.column(name) for name in (*keys, *names)}
    features: dict[str, dict[str, float]] = {}
    used: set[int] = set()
    for run in runs:
        rows = [row for row in range(len(table.lines)) if all(_matches(run, key, columns[key][row]) for key in keys)]
        used.update(rows)
        for row in rows:
            cells = {name: columns[name][row] for name in names}
            _add_row(features.setdefault(run.id, {}), cells, f"{table.name}, line {table.lines[row]}", run.id)
    if not features:
        key = keys[0]
        values = {
            f"{run.features[key]:g}"
            if key in run.features
            else {RUN: run.id, WORKLOAD: run.workload}.get(key) or run.configuration.get(key, "none")
            for run in runs
        }
        why = f"{key} of runs: {', '.join(sorted(values)[:5])}"
        raise DataError(f"{table.name}: no row belongs to a run", why, "perflaw feature")
    return FeatureTable(features, len(table.lines) - len(used), tuple(run.id for run in runs if run.id not in features))


def _matches(run: Run, key: str, cell: str) -> bool:
    """Whether a cell has the value of a run: its id with or without leading zeros, a number by its value, else the text."""
    if key == RUN:
        return cell.strip().zfill(4) == run.id
    if key == WORKLOAD and run.workload:
        return cell.strip() == run.workload
    if key in run.features:
        return cell_number(cell) == run.features[key]
    return run.configuration.get(key) == cell.strip()


def _add_row(features: dict[str, float], cells: Mapping[str, str], where: str, run: str) -> None:
    """Add the features in a row; DataError where a cell is no number or contradicts another row."""
    for name, cell in cells.items():
        if not cell.strip():
            continue
        number = cell_number(cell)
        if number is None or not math.isfinite(number):
            shown = repr(cell.strip()[:40])
            raise DataError(
                f"{where}, column {name}: {shown} is no number", "a feature is a finite number", "correct that cell"
            )
        if features.setdefault(name, number) != number:
            what = f"{where}: another row has another value of {name} for run {run}"
            raise DataError(what, "a run has one value of a feature", "leave one of them out")


STREAMS: Final = ("stdout", "stderr")
"""Streams that are kept, in the order in which they are searched."""
_THOUSANDS: Final = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def output_path(folder: Path, stream: str) -> Path:
    """File with the output of the run in ``folder`` on a stream."""
    return folder / f"{stream}.txt"


def read_output(folder: Path) -> list[str] | None:
    """The output of a run, stream by stream; None where it was not kept."""
    paths = [path for stream in STREAMS if (path := output_path(folder, stream)).is_file()]
    return [path.read_bytes().decode("utf-8", "replace") for path in paths] or None


PATTERN: Final = r"perflaw feature compares --pattern 'compares: (\d+)'"
"""How a feature is read from what runs printed."""


def find_number(texts: list[str], pattern: str) -> float:
    r"""The number in the first match of a pattern: its first group, or all of it. ``^`` and ``$`` match at ends of lines.

    DataError where nothing matches, or the match is not a finite number.

    >>> find_number(["read 1,024 bytes"], r"read ([\d,]+)")
    1024.0
    """
    found = next(filter(None, (re.search(pattern, text, re.MULTILINE) for text in texts)), None)
    if found is None:
        what = "nothing that it printed matches" if any(texts) else "it printed nothing"
        raise DataError(what, "a pattern is searched in stdout and stderr", PATTERN)
    word = (found[1] if found.re.groups else found[0]) or ""
    number = cell_number(word.replace(",", "") if _THOUSANDS.fullmatch(word) else word)
    if number is None or not math.isfinite(number):
        raise DataError(f"{word[:40]!r} is no number", "the first group of the pattern is taken, or all of it", PATTERN)
    return number
