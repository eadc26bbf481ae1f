"""Rows to Parquet and back, by DuckDB. Bytes depend on the rows alone: one thread, given order."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError
from perflaw.store.schema import COLUMNS, INT, REAL, SUM, TEXT, Row, Tables

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
    """Columns of a table as arrays."""
    kinds = COLUMNS[name]
    turned = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return {column: _array(kind, values) for (column, kind), values in zip(kinds.items(), turned, strict=True)}


def _array(kind: str, values: Row) -> NDArray[Any]:
    """A column as an array. Integers of more than 64 bits travel as text, for no array type holds them."""
    if kind in _DTYPES:
        return np.array(values, dtype=_DTYPES[kind])
    if kind != TEXT and None not in values:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    texts = [None if value is None else str(value) for value in values]
    return np.array(texts, dtype=object) if texts else np.array([], dtype=np.str_)


def read_table(folder: Path, name: str) -> list[Row]:
    """All rows of one table, sums as ``int``; StoreError where the file is missing or damaged."""
    return _fetch(
        folder,
        name,
        ", ".join(
            f'CAST("{column}" AS HUGEINT)' if kind == SUM else f'"{column}"' for column, kind in COLUMNS[name].items()
        ),
    )


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
