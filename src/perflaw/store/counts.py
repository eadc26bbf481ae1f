"""Counts of many runs as one matrix: a row a place of the program, a column a run. What the trend learner reads."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError
from perflaw.store.columns import Array, Column, Table, texts
from perflaw.store.csv_files import read_csv_matrix
from perflaw.store.experiment import Recording
from perflaw.store.schema import COLLECTING, INT, TEXT
from perflaw.store.tables import connect, damaged, read_table, write_tables
from perflaw.types import TIME, CountMatrix, Counts, Location

# ---- Execution counts on disk: ``counts.parquet`` of a run, and the sources they speak of, kept once an experiment.
#
# Only runs recorded with ``--collect lines`` have them. They stand beside the tables of ``schema.py``, which all runs
# have.

COUNTED: Final[dict[str, dict[str, str]]] = {
    # One row a place of the program; the fields of ``Location``, and how often it was executed.
    "counts": {"kind": TEXT, "name": TEXT, "file": TEXT, "line": INT, "function": TEXT, "language": TEXT, "count": INT},
    # One row a source file: where its text is kept.
    "sources": {"file": TEXT, "digest": TEXT},
}


def write_counts(folder: Path, counts: Counts, sources: Mapping[str, str]) -> None:
    """Write what was counted in the run of ``folder``, and the texts of its source files (file → text).

    OSError if the disk refuses. Texts that another run of the experiment has kept already take no room.
    """
    places = counts.locations
    columns = {
        name: texts([getattr(place, name) for place in places])
        for name, kind in COUNTED["counts"].items()
        if kind == TEXT
    }
    columns["line"] = Column(np.array([place.line for place in places], dtype=np.int64))
    columns["count"] = Column(np.asarray(counts.counts, dtype=np.int64))
    previous = os.umask(0o077)
    try:
        digests = {file: _keep_source(_shelf(folder), text) for file, text in sorted(sources.items())}
        kept = {"file": texts(list(digests)), "digest": texts(list(digests.values()))}
        ordered = {name: columns[name] for name in COUNTED["counts"]}
        write_tables(folder, {"sources": Table(kept), "counts": Table(ordered)}, COUNTED)
    finally:
        os.umask(previous)


def has_counts(folder: Path) -> bool:
    """Whether the run of ``folder`` counted executions."""
    return (folder / "counts.parquet").exists()


def read_counts(folder: Path) -> Counts | None:
    """What was counted in the run of ``folder``; None where it did not count. StoreError where the file is damaged."""
    if not has_counts(folder):
        return None
    *fields, counts = (column.plain() for column in read_table(folder, "counts", schema=COUNTED).columns.values())
    locations = tuple(Location(*row) for row in zip(*fields, strict=True))
    return Counts(locations, np.array(counts, dtype=np.int64))


def read_digest(folder: Path) -> tuple[bytes, NDArray[np.int64]]:
    """A digest of the places that the run of ``folder`` counted, in their order, and their counts. Errors as above.

    Equal digests are equal places; two runs of one version of DuckDB that counted the same places have equal ones.
    """
    import duckdb

    path = str(folder / "counts.parquet").replace("'", "''")
    try:
        query = f"SELECT hash(kind, name, file, line) AS place, count FROM '{path}'"
        read = connect().execute(query).fetchnumpy()
    except duckdb.Error as error:
        raise damaged(folder / "counts.parquet", error) from error
    return blake2b(np.ascontiguousarray(read["place"]).tobytes(), digest_size=16).digest(), read["count"]


def read_sources(recordings: Sequence[Recording]) -> dict[str, str]:
    """File → text of it as the newest of these recordings saw it; files whose text is no longer kept are left out."""
    digests: dict[str, tuple[Path, str]] = {}
    for recording in recordings:
        if (recording.folder / "sources.parquet").exists():
            for file, digest in read_table(recording.folder, "sources", schema=COUNTED):
                digests[file] = (_shelf(recording.folder) / f"{digest}.txt", digest)
    return {file: path.read_bytes().decode(errors="replace") for file, (path, _) in digests.items() if path.is_file()}


def _shelf(folder: Path) -> Path:
    """Where sources are kept: in the experiment; beside a recording that stands alone, in its folder."""
    return (folder.parent.parent if folder.parent.name == "runs" else folder) / "sources"


def _keep_source(shelf: Path, text: str) -> str:
    """The digest under which a text is kept; it appears there whole or not at all."""
    data = text.encode(errors="replace")
    digest = blake2b(data, digest_size=16).hexdigest()
    path = shelf / f"{digest}.txt"
    if not path.exists():
        shelf.mkdir(exist_ok=True)
        part = shelf / f"{digest}.{secrets.token_hex(4)}.part"
        part.write_bytes(data)
        part.replace(path)
    return digest


# ---- Calls as execution counts: of each function, and of each pair of caller and callee, from a recording's call
# tree.

CALLS: Final = ("function", "edge")
"""Kinds that the call tree of every run gives."""


def read_calls(recording: Recording, kinds: Sequence[str]) -> Iterator[tuple[list[Location], Array]]:
    """Calls that began, of each function and of each pair of caller and callee."""
    functions: dict[int, Location] = {}
    calls = []
    for number, name, file, line, language, _, _, ended, still_open in read_table(recording.folder, "components"):
        if name == COLLECTING:
            continue
        functions[number] = Location("function", name, file, line, name, language)
        calls.append(ended + still_open)
    if "function" in kinds:
        yield list(functions.values()), np.array(calls, dtype=np.int64)
    if "edge" in kinds:
        edges = dict(_edges(recording, functions))
        yield list(edges), np.array(list(edges.values()), dtype=np.int64)


def _edges(recording: Recording, functions: dict[int, Location]) -> dict[Location, int]:
    """Calls of one function by another: what its nodes below that one add up to."""
    tree = {
        row[0]: (row[1], row[2]) for row in read_table(recording.folder, "calltree", ("node", "parent", "component"))
    }
    moments = read_table(recording.folder, "moments", ("node", "metric", "n", "open"))
    edges: dict[Location, int] = {}
    for node, metric, ended, still_open in moments:
        parent, component = tree[node]
        if metric == TIME.name and parent in tree and tree[parent][1] in functions and component in functions:
            caller, callee = functions[tree[parent][1]], functions[component]
            edge = replace(callee, kind="edge", name=f"{caller.name} -> {callee.name}", function=caller.name)
            edges[edge] = edges.get(edge, 0) + ended + still_open
    return edges


# ---- Names of locations that are unique in a matrix: files of one name are told apart by as much of their path as it
# takes.

_OF_FILES = ("line", "block")
"""Kinds whose names begin with that of their file."""


def told_apart(locations: Sequence[Location]) -> tuple[Location, ...]:
    """The same with names that are unique: of files of one name the path is told as far as it takes, else the line."""
    shown = _shown([location.file for location in locations])
    named = [
        replace(location, name=location.name.replace(PurePath(location.file).name, shown[location.file], 1))
        if location.kind in _OF_FILES and location.file
        else location
        for location in locations
    ]
    return tuple(_numbered(named))


def _shown(files: Iterable[str]) -> dict[str, str]:
    """File → the least of its last parts that no other file ends with.

    >>> _shown(["/a/x.c", "/b/x.c", "/b/y.c"])
    {'/a/x.c': 'a/x.c', '/b/x.c': 'b/x.c', '/b/y.c': 'y.c'}
    """
    shown: dict[str, str] = {}
    waiting, length = sorted(set(files)), 1
    while waiting:
        ends: dict[str, list[str]] = {}
        for file in waiting:
            ends.setdefault("/".join(PurePath(file).parts[-length:]), []).append(file)
        alone = {
            those[0]: end for end, those in ends.items() if len(those) == 1 or length > len(PurePath(those[0]).parts)
        }
        shown.update(alone)
        waiting = [file for file in waiting if file not in alone]
        length += 1
    return dict(sorted(shown.items()))


def _numbered(locations: Iterable[Location]) -> Iterator[Location]:
    """Names that still clash (functions of one name, blocks of a line) are told apart by file and line, then by number."""
    seen: dict[str, int] = {}
    for location in locations:
        name = location.name
        if name in seen and location.kind not in _OF_FILES:
            name = f"{name} ({location.file}:{location.line})"
        seen[name] = seen.get(name, 0) + 1
        yield replace(location, name=name if seen[name] == 1 else f"{name} #{seen[name]}")


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


# ---- Execution counts: written by recorders, read by ``perflaw trend``. All of it in one place to import from.

__all__ = ["read_counts", "read_csv_matrix", "read_matrix", "read_sources", "write_counts"]
