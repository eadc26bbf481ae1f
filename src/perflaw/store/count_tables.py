"""Execution counts on disk: ``counts.parquet`` of a run, and the sources they speak of, kept once an experiment.

Only runs recorded with ``--collect lines`` have them. They stand beside the tables of ``schema.py``, which all runs have.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.store.columns import Column, Table, texts
from perflaw.store.experiment import Recording
from perflaw.store.schema import INT, TEXT
from perflaw.store.tables import connect, damaged, read_table, write_tables
from perflaw.types import Counts, Location

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
