"""Tables to Parquet and back, by DuckDB. Bytes depend on the rows alone: one thread, given order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perflaw.errors import StoreError
from perflaw.store.columns import NULL, WIDE, Array, Column, Table, Tables, texts
from perflaw.store.schema import ADDED_SINCE, COLUMNS, SUM, TEXT, table_of

if TYPE_CHECKING:
    import duckdb

Schema = Mapping[str, Mapping[str, str]]
"""Table → its columns and their types."""


@lru_cache(maxsize=1)
def connect() -> duckdb.DuckDBPyConnection:
    """The in-memory DuckDB of this process: it uses one thread and never reaches for the network."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": "false"})


def write_tables(folder: Path, tables: Tables, schema: Schema = COLUMNS) -> None:
    """Write one Parquet file a table into ``folder``; OSError if the disk refuses."""
    import duckdb

    connection = connect()
    try:
        for name, table in tables.items():
            arrays, values = _source(table)
            connection.register("source", arrays)
            casts = ", ".join(
                f'CAST({values[column]} AS {kind}) AS "{column}"' for column, kind in schema[name].items()
            )
            target = str(folder / f"{name}.parquet").replace("'", "''")
            connection.execute(f"COPY (SELECT {casts} FROM source) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
            connection.unregister("source")
    except duckdb.Error as error:
        raise OSError(str(error)) from error


def _source(table: Table) -> tuple[dict[str, Array], dict[str, str]]:
    """What DuckDB reads of a table, and what gives each column of it, in SQL."""
    arrays: dict[str, Array] = {}
    values: dict[str, str] = {}
    for name, column in table.columns.items():
        array = column.array()
        values[name] = f'"{name}"'
        if column.words is not None:
            arrays[name] = np.array([*column.words, None], dtype=object)[array] if len(array) else np.array([], np.str_)
        elif array.dtype == WIDE and not _fits(array):
            arrays[f"{name}.high"], arrays[f"{name}.low"] = array["high"], array["low"]
            values[name] = f'CAST("{name}.high" AS HUGEINT) * 18446744073709551616 + "{name}.low"'
        elif array.dtype == WIDE:
            arrays[name] = array["low"].astype(np.int64)
        else:
            arrays[name] = array
            if array.dtype == np.int64 and (array == NULL).any():
                values[name] = f'NULLIF("{name}", {NULL})'
    return arrays, values


def _fits(sums: Array) -> bool:
    """Whether all of them are integers of 64 bits."""
    return bool((sums["high"] == sums["low"].astype(np.int64) >> 63).all())


def read_table(folder: Path, name: str, columns: Sequence[str] = (), schema: Schema = COLUMNS) -> Table:
    """One table, or these columns of it; StoreError where the file is missing or damaged."""
    import duckdb

    kinds = {column: schema[name][column] for column in columns or schema[name]}
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise StoreError(f"{path}: missing", "the recording is damaged", "perflaw runs")
    escaped = str(path).replace("'", "''")
    wanted = ", ".join(_wanted(column, kind) for column, kind in kinds.items())
    try:
        read = connect().execute(f"SELECT {wanted} FROM '{escaped}'").fetchnumpy()
    except duckdb.Error as error:
        raise damaged(path, error) from error
    return Table({column: _column(column, kind, read) for column, kind in kinds.items()})


def damaged(path: Path, error: Exception) -> StoreError:
    """A table that cannot be read."""
    why = "the file is truncated or no table of perflaw's (" + str(error).split("\n")[0] + ")"
    return StoreError(f"{path}: cannot be read", why, "perflaw runs")


def _wanted(column: str, kind: str) -> str:
    if kind != SUM:
        return f'"{column}"'
    whole = f'CAST("{column}" AS HUGEINT)'
    return f'CAST({whole} & {(1 << 64) - 1} AS UBIGINT) AS "{column}.low", CAST({whole} >> 64 AS BIGINT) AS "{column}.high"'


def _column(name: str, kind: str, read: dict[str, Any]) -> Column:
    if kind == SUM:
        sums = np.empty(len(read[f"{name}.low"]), WIDE)
        sums["low"], sums["high"] = read[f"{name}.low"], read[f"{name}.high"]
        return Column(sums)
    values = read[name]
    if kind == TEXT:
        return texts(values.tolist())
    null = np.nan if values.dtype.kind == "f" else NULL
    return Column(values.filled(null) if isinstance(values, np.ma.MaskedArray) else values)


def read_tables(folder: Path) -> Tables:
    """Every table of a recording; empty are those that came with a later version of perflaw than it."""
    missing = {name for name in ADDED_SINCE if not (folder / f"{name}.parquet").is_file()}
    return {name: table_of(name, ()) if name in missing else read_table(folder, name) for name in COLUMNS}
