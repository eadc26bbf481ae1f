"""Counts of many runs as one matrix: a row a place of the program, a column a run. What the trend learner reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError
from perflaw.store.columns import Array
from perflaw.store.count_calls import CALLS, read_calls
from perflaw.store.count_names import told_apart
from perflaw.store.count_tables import has_counts, read_counts, read_digest
from perflaw.store.experiment import Recording
from perflaw.types import CountMatrix, Location

LINES: Final = ("line", "block")
"""Kinds that only runs with ``--collect lines`` have."""
_NEXT: Final = "perflaw record --collect lines --vary n=100,1000,10000 -- app.py {n}"


class _Rows:
    """Locations by the number of their row, given out as they are met."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = kinds
        self.numbers: dict[tuple[str, str, str, int], int] = {}
        self.locations: list[Location] = []
        self._same: dict[bytes, NDArray[np.intp]] = {}
        """Digest of all places of a run → their rows: runs of one program have the same places as a rule."""

    def of(self, locations: Iterable[Location]) -> NDArray[np.intp]:
        """Rows of these locations; -1 where their kind is not wanted. What function a line is in is no part of a location."""
        return np.array([self._number(one) if one.kind in self.kinds else -1 for one in locations], dtype=np.intp)

    def _number(self, location: Location) -> int:
        key = (location.kind, location.name, location.file, location.line)
        number = self.numbers.setdefault(key, len(self.numbers))
        if number == len(self.locations):
            self.locations.append(location)
        return number

    def stored(self, folder: Path) -> tuple[NDArray[np.intp], Array]:
        """Rows of the places that the run in ``folder`` counted, and the counts."""
        digest, counts = read_digest(folder)
        if digest not in self._same:
            read = read_counts(folder)
            self._same[digest] = self.of(read.locations if read else ())
        return self._same[digest], counts


def read_matrix(recordings: Sequence[Recording], kinds: Sequence[str] = LINES) -> CountMatrix:
    """The counts of these recordings: (locations, runs), a location that a run does not know counts 0 there.

    A program and its child processes are one run: their counts are added up. Incomplete runs are left out, for what they
    counted belongs to another size of the workload than their features say. ``function`` and ``edge`` are calls of a
    component, and of one by another. StoreError where nothing is left.
    """
    roots = _roots(recordings, any(kind in LINES for kind in kinds))
    columns = {run: place for place, run in enumerate(dict.fromkeys(roots.values()))}
    rows = _Rows(kinds)
    cells: list[tuple[NDArray[np.intp], int, Array]] = []
    for recording in recordings:
        if recording.run.id in roots:
            for places, counts in _counted(recording, rows):
                cells.append((places, columns[roots[recording.run.id]], counts))
    if not rows.locations:
        raise _nothing(recordings, kinds)
    matrix = np.zeros((len(rows.locations), len(columns)))
    for places, column, counts in cells:
        np.add.at(matrix[:, column], places[places >= 0], counts[places >= 0])
    return CountMatrix(told_apart(rows.locations), matrix, _features(recordings, columns), tuple(columns))


def _roots(recordings: Sequence[Recording], of_lines: bool) -> dict[str, str]:
    """Id of each run that counts → id of the program's run it belongs to; ``of_lines``: of those that counted lines."""
    runs = {recording.run.id: recording.run for recording in recordings}
    roots = {}
    for run in runs.values():
        root = run
        while root.parent in runs:
            root = runs[root.parent]
        if root.complete:
            roots[run.id] = root.id
    counted = {roots.get(one.run.id) for one in recordings if not of_lines or has_counts(one.folder)}
    return {run: root for run, root in roots.items() if root in counted}


def _counted(recording: Recording, rows: _Rows) -> Iterator[tuple[NDArray[np.intp], Array]]:
    """Rows and counts of a run, of each source that was asked for."""
    if has_counts(recording.folder):  # of compiled programs functions as well
        yield rows.stored(recording.folder)
    if any(kind in CALLS for kind in rows.kinds):
        for locations, counts in read_calls(recording, rows.kinds):
            yield rows.of(locations), counts


def _features(recordings: Iterable[Recording], columns: dict[str, int]) -> dict[str, NDArray[np.float64]]:
    features: dict[str, NDArray[np.float64]] = {}
    for run in (recording.run for recording in recordings if recording.run.id in columns):
        for name, value in run.features.items():
            features.setdefault(name, np.full(len(columns), np.nan))[columns[run.id]] = value
    return features


def _nothing(recordings: Sequence[Recording], kinds: Sequence[str]) -> StoreError:
    folder = recordings[0].folder.parent if recordings else "recordings"
    if recordings and not any(recording.run.complete for recording in recordings):
        return StoreError(
            f"{folder}: no run is complete", "counts of runs that were cut short say nothing of their size", _NEXT
        )
    return StoreError(
        f"{folder}: no counts of {' and '.join(kinds)}s", "no run was recorded with --collect lines", _NEXT
    )
