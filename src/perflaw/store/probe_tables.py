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

from perflaw.store.schema import PROBE_TABLES, VALUES, table_of
from perflaw.store.tables import connect, engine, escaped, private_files, write_tables

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
            write_tables(self.folder, {"probe_records": table_of("probe_records", ())})
        shutil.rmtree(self.folder / "probe_records", ignore_errors=True)
        target.chmod(0o600)


def _copy(source: Mapping[str, NDArray[Any]] | None, query: str, target: Path) -> None:
    """Write the result of a query, which may name ``source``, to a Parquet file."""
    duckdb = engine()
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
