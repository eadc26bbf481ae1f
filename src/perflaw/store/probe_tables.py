"""Records of probes on disk: tables that only runs recorded with ``--collect probes`` have.

They stand beside the tables of ``schema.py``. ``probe_records`` is written in parts while the program runs, so that memory
stays bounded, and made one file in the end; encoded by differences it takes 3 to 7 bytes a record.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from perflaw.store.columns import Table, Tables
from perflaw.store.schema import INT, OPTIONAL, REAL, TEXT
from perflaw.store.tables import connect, read_table, write_tables

PROBE_TABLES: Final[dict[str, dict[str, str]]] = {
    # One row a process (pid) and probe. fields: names with commas between. produced, lost: known where the process lost none.
    "probes": {
        "process": INT,
        "probe": INT,
        "name": TEXT,
        "type": TEXT,
        "unit": TEXT,
        "fields": TEXT,
        "subsample": INT,
        "produced": OPTIONAL,
        "received": INT,
        "lost": OPTIONAL,
    },
    # One row a process: the account of its records. kept: those in probe_records. ns_per_tick: of its clock.
    "probe_processes": {
        "process": INT,
        "host": TEXT,
        "language": TEXT,
        "produced": INT,
        "received": INT,
        "lost": INT,
        "kept": INT,
        "ns_per_tick": REAL,
    },
    # One row a record. at: ns of the host's CLOCK_MONOTONIC when it was made (of other hosts: as if on this one).
    # v0 … v5: as the probe's fields; cycles are ns here.
    "probe_records": {
        "process": INT,
        "thread": INT,
        "cpu": INT,
        "probe": INT,
        "at": INT,
        **{f"v{place}": OPTIONAL for place in range(6)},
    },
}
_VERSIONS: Final = (", PARQUET_VERSION V2", "")
"""Differences of times take a third of the times; the oldest DuckDB that we take cannot write them."""


class RecordParts:
    """Writes ``probe_records`` part by part into a folder beside its tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The run's; parts are in ``probe_records`` below it until the end."""
        self.rows = 0
        """Rows written so far."""
        self._parts: list[Path] = []

    def write(self, columns: Mapping[str, NDArray[Any]], count: NDArray[Any]) -> None:
        """Some rows: columns of int64, and ``values`` (n, 6), of which ``count`` (n,) are there. OSError on a full disk."""
        place = self.folder / "probe_records"
        place.mkdir(mode=0o700, exist_ok=True)
        source = {name: array for name, array in columns.items() if name != "values"}
        source |= {f"v{field}": columns["values"][:, field].copy() for field in range(6)}
        source["count"] = count
        chosen = [f'"{name}"' for name in PROBE_TABLES["probe_records"] if not name.startswith("v")]
        chosen += [f'CASE WHEN "count" > {field} THEN v{field} END AS v{field}' for field in range(6)]
        part = place / f"{len(self._parts):06d}.parquet"
        _copy(source, f"SELECT {', '.join(chosen)} FROM source", part)
        self._parts.append(part)
        self.rows += len(count)

    def finish(self) -> None:
        """Make the parts one file; OSError where the disk refuses: the parts stay then."""
        target = self.folder / "probe_records.parquet"
        if len(self._parts) == 1:
            self._parts[0].replace(target)
        elif self._parts:
            names = ", ".join("'" + str(part).replace("'", "''") + "'" for part in self._parts)
            _copy(None, f"SELECT * FROM read_parquet([{names}])", target)
        else:
            write_tables(self.folder, {"probe_records": _no_rows()}, PROBE_TABLES)
        shutil.rmtree(self.folder / "probe_records", ignore_errors=True)
        target.chmod(0o600)


def _copy(source: Mapping[str, NDArray[Any]] | None, query: str, target: Path) -> None:
    import duckdb

    connection, to = connect(), str(target).replace("'", "''")
    previous = os.umask(0o077)
    try:
        if source is not None:
            connection.register("source", source)
        for version in _VERSIONS:
            try:
                connection.execute(f"COPY ({query}) TO '{to}' (FORMAT parquet, COMPRESSION zstd{version})")
                break
            except (duckdb.BinderException, duckdb.NotImplementedException, duckdb.InvalidInputException):
                if not version:
                    raise
    except duckdb.Error as error:
        raise OSError(str(error)) from error
    finally:
        os.umask(previous)
        if source is not None:
            connection.unregister("source")


def _no_rows() -> Table:
    import numpy as np

    from perflaw.store.columns import Column

    return Table({name: Column(np.empty(0, np.int64)) for name in PROBE_TABLES["probe_records"]})


def write_probes(folder: Path, tables: Tables) -> None:
    """Write ``probes`` and ``probe_processes`` into the run of ``folder``; OSError if the disk refuses."""
    previous = os.umask(0o077)
    try:
        write_tables(folder, tables, PROBE_TABLES)
    finally:
        os.umask(previous)


def has_probes(folder: Path) -> bool:
    """Whether the run of ``folder`` has them."""
    return (folder / "probes.parquet").exists()


def read_probes(folder: Path, name: str = "probes") -> Table:
    """One of the tables; StoreError where it is missing or damaged."""
    return read_table(folder, name, schema=PROBE_TABLES)
