"""Records of probes on disk: tables that only runs recorded with ``--collect probes`` have.

They stand beside the tables of ``schema.py``. ``probe_records`` is written in parts while the program runs, so that memory
stays bounded, and becomes one file in the end; encoded by differences it takes 3 to 7 bytes a record.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from perflaw.store.columns import Table, Tables
from perflaw.store.schema import INT, OPTIONAL, REAL, TEXT, table_of
from perflaw.store.tables import connect, escaped, private_files, read_table, write_tables

VALUES: Final = 6
"""Values that a record has at most."""
PROBE_TABLES: Final[dict[str, dict[str, str]]] = {
    # One row for each process (pid) and probe. fields: names separated by commas. produced, lost: null where the process
    # was lost.
    "probes": {
        "process": INT, "probe": INT, "name": TEXT, "type": TEXT, "unit": TEXT, "fields": TEXT, "subsample": INT,
        "produced": OPTIONAL, "received": INT, "lost": OPTIONAL,
    },
    # One row for each process: the account of its records. kept: those in probe_records. ns_per_tick: of its clock.
    "probe_processes": {
        "process": INT, "host": TEXT, "language": TEXT, "produced": INT, "received": INT, "lost": INT, "kept": INT,
        "ns_per_tick": REAL,
    },
    # One row for each record. at: ns of this host's CLOCK_MONOTONIC when it was made, whichever host made it.
    # v0 … v5: the probe's fields; cycles are converted to ns.
    "probe_records": {
        "process": INT, "thread": INT, "cpu": INT, "probe": INT, "at": INT,
        **{f"v{place}": OPTIONAL for place in range(VALUES)},
    },
}  # fmt: skip
_PARQUET_VERSIONS: Final = (", PARQUET_VERSION V2", "")
"""Version 2 stores differences of times in a third of the room; the oldest DuckDB that we accept cannot write it."""


class RecordParts:
    """Writes ``probe_records`` part by part into a folder beside its tables."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is that of the run."""
        self.folder = folder
        self.rows = 0
        """Rows written so far."""
        self._parts: list[Path] = []

    def write(self, columns: Mapping[str, NDArray[Any]], count: NDArray[Any]) -> None:
        """Write some rows: columns of int64, and ``values`` (n, 6), of which ``count`` (n,) are used.

        OSError on a full disk.
        """
        place = self.folder / "probe_records"
        place.mkdir(mode=0o700, exist_ok=True)
        source = {name: array for name, array in columns.items() if name != "values"}
        source |= {f"v{field}": columns["values"][:, field].copy() for field in range(VALUES)}
        source["count"] = count
        expressions = [f'"{name}"' for name in PROBE_TABLES["probe_records"] if not name.startswith("v")]
        expressions += [f'CASE WHEN "count" > {field} THEN v{field} END AS v{field}' for field in range(VALUES)]
        part = place / f"{len(self._parts):06d}.parquet"
        _copy(source, f"SELECT {', '.join(expressions)} FROM source", part)
        self._parts.append(part)
        self.rows += len(count)

    def finish(self) -> None:
        """Make one file of the parts. OSError where the disk refuses; the parts stay then."""
        target = self.folder / "probe_records.parquet"
        if len(self._parts) == 1:
            self._parts[0].replace(target)
        elif self._parts:
            names = ", ".join(f"'{escaped(part)}'" for part in self._parts)
            _copy(None, f"SELECT * FROM read_parquet([{names}])", target)
        else:
            write_probes(self.folder, {"probe_records": table_of("probe_records", (), PROBE_TABLES)})
        shutil.rmtree(self.folder / "probe_records", ignore_errors=True)
        target.chmod(0o600)


def _copy(source: Mapping[str, NDArray[Any]] | None, query: str, target: Path) -> None:
    """Write the result of a query, which may name ``source``, to a Parquet file."""
    import duckdb

    connection = connect()
    try:
        if source is not None:
            connection.register("source", source)
        for version in _PARQUET_VERSIONS:
            try:
                with private_files():
                    connection.execute(
                        f"COPY ({query}) TO '{escaped(target)}' (FORMAT parquet, COMPRESSION zstd{version})"
                    )
                break
            except (duckdb.BinderException, duckdb.NotImplementedException, duckdb.InvalidInputException):
                if not version:
                    raise
    except duckdb.Error as error:
        raise OSError(str(error)) from error
    finally:
        if source is not None:
            connection.unregister("source")


def write_probes(folder: Path, tables: Tables) -> None:
    """Write tables of probes into the run of ``folder``; OSError if the disk refuses."""
    write_tables(folder, tables, PROBE_TABLES)


def has_probes(folder: Path) -> bool:
    """Whether the run of ``folder`` has tables of probes."""
    return (folder / "probes.parquet").exists()


def read_probes(folder: Path, name: str = "probes") -> Table:
    """One of the tables; StoreError where it is missing or damaged."""
    return read_table(folder, name, schema=PROBE_TABLES)
