"""Execution counts: on disk, and of many runs as one matrix for the trend learner.

``counts.parquet`` of a run has the counts, ``sources.parquet`` its source files, whose texts are kept once an experiment.
Only runs recorded with ``--collect lines`` have them, beside the tables of ``schema.py``, which all runs have.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError
from perflaw.parts import untold
from perflaw.store.columns import Array, Column, Table, texts
from perflaw.store.experiment import Recording, execution_of
from perflaw.store.schema import COUNTED, TEXT
from perflaw.store.tables import has_table, private_files, read_arrays, read_table, write_tables
from perflaw.types import TIME, CountMatrix, Counts, Location
from perflaw.types.recordings import PSEUDO_COMPONENTS

LINES: Final = ("line", "block")
"""Kinds of locations that only runs with ``--collect lines`` have; their names begin with that of their file."""
CALLS: Final = ("function", "edge")
"""Kinds of locations that the call tree of every run gives."""


def write_counts(folder: Path, counts: Counts, sources: Mapping[str, str]) -> None:
    """Write the counts of the run in ``folder``, and the texts of its source files (file → text).

    OSError if the disk refuses. Texts that the experiment has already take no room.
    """
    columns = {
        name: texts([getattr(location, name) for location in counts.locations])
        if kind == TEXT
        else Column(np.array([location.line for location in counts.locations], dtype=np.int64))
        for name, kind in COUNTED["counts"].items()
        if name != "count"
    }
    columns["count"] = Column(np.asarray(counts.counts, dtype=np.int64))
    digests = {}
    with private_files():
        for file, text in sorted(sources.items()):
            data = text.encode(errors="replace")
            digests[file] = digest = blake2b(data, digest_size=16).hexdigest()
            path = _sources_folder(folder) / f"{digest}.txt"
            if not path.exists():  # the file appears whole or not at all
                path.parent.mkdir(exist_ok=True)
                part = path.with_name(f"{digest}.{secrets.token_hex(4)}.part")
                part.write_bytes(data)
                part.replace(path)
    kept = {"file": texts(list(digests)), "digest": texts(list(digests.values()))}
    write_tables(folder, {"sources": Table(kept), "counts": Table(columns)})


def _sources_folder(run: Path) -> Path:
    """Folder of source texts: in the experiment, or in the folder of a recording that stands alone."""
    return (run.parent.parent if run.parent.name == "runs" else run) / "sources"


def read_counts(folder: Path) -> Counts | None:
    """The counts of the run in ``folder``; None where it has none. StoreError where the file is damaged."""
    if not has_table(folder, "counts"):
        return None
    *fields, counts = (column.plain() for column in read_table(folder, "counts").columns.values())
    locations = tuple(Location(*row) for row in zip(*fields, strict=True))
    return Counts(locations, np.array(counts, dtype=np.int64))


def read_sources(recordings: Sequence[Recording]) -> dict[str, str]:
    """File → its text in the newest recording that has it; files whose text is no longer kept are left out."""
    paths: dict[str, Path] = {}
    for recording in recordings:
        if has_table(recording.folder, "sources"):
            for file, digest in read_table(recording.folder, "sources"):
                paths[file] = _sources_folder(recording.folder) / f"{digest}.txt"
    return {file: path.read_bytes().decode(errors="replace") for file, path in paths.items() if path.is_file()}


def read_matrix(
    recordings: Sequence[Recording], kinds: Sequence[str] = LINES, tell: Callable[[float], None] = untold
) -> CountMatrix:
    """The counts of these recordings: (locations, runs); a location that a run does not know counts 0 there.

    A program and its child processes are one run: their counts are added up. Incomplete runs are left out, for their
    counts belong to another size of the workload than their features say. ``function`` and ``edge`` are calls of a
    component, and of one component by another. ``tell`` is told the part of the recordings that is read, 0 to 1.
    StoreError where nothing is left.
    """
    # Id of each run to be read → id of its program's run.
    need_counts = any(kind in LINES for kind in kinds)
    runs = {recording.run.id: recording.run for recording in recordings}
    programs = {run.id: execution_of(run, runs) for run in runs.values()}
    roots = {run: program.id for run, program in programs.items() if program.complete}
    counted = {roots.get(one.run.id) for one in recordings if not need_counts or has_table(one.folder, "counts")}
    roots = {run: root for run, root in roots.items() if root in counted}
    columns = {run: place for place, run in enumerate(dict.fromkeys(roots.values()))}
    rows = _MatrixRows(kinds)
    cells: list[tuple[NDArray[np.intp], int, Array]] = []
    for number, recording in enumerate(recordings):
        tell(number / len(recordings))
        if recording.run.id in roots:
            column = columns[roots[recording.run.id]]
            if has_table(recording.folder, "counts"):  # those of compiled programs count functions as well
                places, counts = rows.of_counts(recording.folder)
                cells.append((places, column, counts))
            if any(kind in CALLS for kind in kinds):
                cells += [(rows.of(locations), column, counts) for locations, counts in _calls(recording, kinds)]
    if not rows.locations:
        folder = recordings[0].folder.parent if recordings else "recordings"
        what, why = f"no counts of {' and '.join(kinds)}s", "no run was recorded with --collect lines"
        if recordings and not any(recording.run.complete for recording in recordings):
            what, why = "no run is complete", "counts of runs that were cut short say nothing of their size"
        elif recordings and set(kinds) == {"edge"} and not any(recording.run.metrics for recording in recordings):
            why = "coverage counts lines, branches and functions, and not who calls whom"
            command = (
                "gcc -O2 -g -finstrument-functions … && perflaw record --vary n=100,300,1000,3000,10000,30000 -- …"
            )
            raise StoreError(f"{folder}: no counts of edges", why, command)
        command = "perflaw record --collect lines --vary n=100,300,1000,3000,10000,30000 -- app.py {n}"
        raise StoreError(f"{folder}: {what}", why, command)
    matrix = np.zeros((len(rows.locations), len(columns)))
    for places, column, counts in cells:
        np.add.at(matrix[:, column], places[places >= 0], counts[places >= 0])
    features: dict[str, NDArray[np.float64]] = {}
    for run in (recording.run for recording in recordings if recording.run.id in columns):
        for name, value in run.features.items():
            features.setdefault(name, np.full(len(columns), np.nan))[columns[run.id]] = value
    return CountMatrix(_with_unique_names(rows.locations), matrix, features, tuple(columns))


class _MatrixRows:
    """Rows of the matrix: locations get numbers when they are first met."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = kinds
        self.numbers: dict[tuple[str, str, str, int], int] = {}
        self.locations: list[Location] = []
        self._by_digest: dict[bytes, NDArray[np.intp]] = {}
        """Digest of all locations of a run → their rows. Runs of one program usually have the same locations."""

    def of(self, locations: Iterable[Location]) -> NDArray[np.intp]:
        """Rows of these locations; -1 where the kind is not wanted. The function that a line is in does not identify it."""
        rows = []
        for location in locations:
            key = (location.kind, location.name, location.file, location.line)
            row = self.numbers.setdefault(key, len(self.numbers)) if location.kind in self.kinds else -1
            if row == len(self.locations):
                self.locations.append(location)
            rows.append(row)
        return np.array(rows, dtype=np.intp)

    def of_counts(self, folder: Path) -> tuple[NDArray[np.intp], Array]:
        """Rows of the locations that the run in ``folder`` counted, and the counts.

        Locations are read only if no earlier run had the same ones, which a digest by DuckDB tells.
        """
        read = read_arrays(folder / "counts.parquet", "hash(kind, name, file, line) AS place, count")
        digest = blake2b(np.ascontiguousarray(read["place"]).tobytes(), digest_size=16).digest()
        if digest not in self._by_digest:
            counts = read_counts(folder)
            self._by_digest[digest] = self.of(counts.locations if counts else ())
        return self._by_digest[digest], read["count"]


def _calls(recording: Recording, kinds: Sequence[str]) -> Iterator[tuple[list[Location], Array]]:
    """Calls that began in a recording: of each function, and of each pair of caller and callee."""
    functions: dict[int, Location] = {}
    calls = []
    for number, name, file, line, language, _, _, ended, still_open in read_table(recording.folder, "components"):
        if name not in PSEUDO_COMPONENTS:
            functions[number] = Location("function", name, file, line, name, language)
            calls.append(ended + still_open)
    if "function" in kinds:
        yield list(functions.values()), np.array(calls, dtype=np.int64)
    if "edge" not in kinds:
        return
    nodes = read_table(recording.folder, "calltree", ("node", "parent", "component"))
    tree = {node: (parent, component) for node, parent, component in nodes}
    edges: dict[Location, int] = {}
    for node, metric, ended, still_open in read_table(recording.folder, "moments", ("node", "metric", "n", "open")):
        parent, component = tree[node]
        if metric == TIME.name and parent in tree and tree[parent][1] in functions and component in functions:
            caller, callee = functions[tree[parent][1]], functions[component]
            edge = replace(callee, kind="edge", name=f"{caller.name} -> {callee.name}", function=caller.name)
            edges[edge] = edges.get(edge, 0) + ended + still_open
    yield list(edges), np.array(list(edges.values()), dtype=np.int64)


def _with_unique_names(locations: Sequence[Location]) -> tuple[Location, ...]:
    """The locations with names that are unique.

    Files of the same name get as much of their path as distinguishes them. Names that are still equal (functions of one
    name, blocks of a line) get file and line, then a number.
    """
    # File → the shortest end of its path that no other file has.
    shown: dict[str, str] = {}
    waiting, length = sorted({location.file for location in locations}), 1
    while waiting:
        ends: dict[str, list[str]] = {}
        for file in waiting:
            ends.setdefault("/".join(PurePath(file).parts[-length:]), []).append(file)
        for end, files in ends.items():
            if len(files) == 1 or length > len(PurePath(files[0]).parts):
                shown[files[0]] = end
        waiting = [file for file in waiting if file not in shown]
        length += 1
    seen: dict[str, int] = {}
    unique = []
    for location in locations:
        name = location.name
        if location.kind in LINES and location.file:
            name = name.replace(PurePath(location.file).name, shown[location.file], 1)
        if name in seen and location.kind not in LINES:
            name = f"{name} ({location.file}:{location.line})"
        seen[name] = seen.get(name, 0) + 1
        unique.append(replace(location, name=name if seen[name] == 1 else f"{name} #{seen[name]}"))
    return tuple(unique)
