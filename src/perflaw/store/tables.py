"""Rows to Parquet and back, by DuckDB. Bytes depend on the rows alone: one thread, given order."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError
from perflaw.store.schema import COLUMNS, INT, REAL, SUM, Row, Tables

if TYPE_CHECKING:
    import duckdb

_DTYPES: dict[str, Any] = {INT: np.int64, REAL: np.float64}


@lru_cache(maxsize=1)
def connect() -> duckdb.DuckDBPyConnection:
    """The in-memory DuckDB of this process: it uses one thread and never reaches for the network."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": "false"})


def write_tables(folder: Path, tables: Tables) -> None:
    """Write one Parquet file a table into ``folder``; OSError if the disk refuses."""
    import duckdb

    connection = connect()
    try:
        for name, rows in tables.items():
            connection.register("source", _columns(name, rows))
            casts = ", ".join(f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in COLUMNS[name].items())
            target = str(folder / f"{name}.parquet").replace("'", "''")
            connection.execute(f"COPY (SELECT {casts} FROM source) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
            connection.unregister("source")
    except duckdb.Error as error:
        raise OSError(str(error)) from error


def _columns(name: str, rows: list[Row]) -> dict[str, NDArray[Any]]:
    """Columns of a table as arrays; sums travel as text, for no array type holds 128 bits."""
    kinds = COLUMNS[name]
    turned = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return {column: _array(kind, values) for (column, kind), values in zip(kinds.items(), turned, strict=True)}


def _array(kind: str, values: Row) -> NDArray[Any]:
    if kind in _DTYPES:
        return np.array(values, dtype=_DTYPES[kind])
    texts = [None if value is None else str(value) for value in values]
    return np.array(texts, dtype=object) if texts else np.array([], dtype=np.str_)


def read_table(folder: Path, name: str) -> list[Row]:
    """All rows of one table, sums as ``int``; StoreError where the file is missing or damaged."""
    columns = ", ".join(
        f'CAST("{column}" AS VARCHAR)' if kind == SUM else f'"{column}"' for column, kind in COLUMNS[name].items()
    )
    rows = _fetch(folder, name, columns)
    sums = [index for index, kind in enumerate(COLUMNS[name].values()) if kind == SUM]
    return [_with_ints(row, sums) for row in rows] if sums else rows


def _with_ints(row: Row, sums: list[int]) -> Row:
    values = list(row)
    for index in sums:
        values[index] = int(values[index])
    return tuple(values)


def _fetch(folder: Path, name: str, columns: str) -> list[Row]:
    import duckdb

    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise StoreError(f"{path}: missing", "the recording is damaged", "perflaw runs")
    connection = connect()
    try:
        escaped = str(path).replace("'", "''")
        return list(connection.execute(f"SELECT {columns} FROM '{escaped}'").fetchall())
    except duckdb.Error as error:
        why = "the file is truncated or no table of perflaw's (" + str(error).split("\n")[0] + ")"
        raise StoreError(f"{path}: cannot be read", why, "perflaw runs") from error


def read_tables(folder: Path) -> Tables:
    """Every table of a recording."""
    return {name: read_table(folder, name) for name in COLUMNS}
