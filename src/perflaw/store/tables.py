"""Tables to Parquet files and back, by DuckDB. The bytes depend on the rows alone: one thread, given order."""

from __future__ import annotations

import _thread
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.store.checksums import verify
from perflaw.store.columns import NULL, WIDE, Array, Column, Table, Tables, coded_texts, texts
from perflaw.store.schema import ADDED_SINCE, COLUMNS, REAL, SCHEMA, SUM, TEXT, table_of

if TYPE_CHECKING:
    import duckdb


_FORM: Final = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
"""Of a table's file, which is open when DuckDB writes it. A recording is not there before its manifest is."""
MAX_FILES, MAX_TOGETHER = 64, 1 << 20
"""Files, and their bytes, that are read by one query."""
LARGE, MAX_WORDS = 1 << 16, 4096
"""Bytes of files from which on DuckDB codes their texts, and the most distinct texts of a column for which it does.

It makes a Python text of each value otherwise, which takes three times as long as reading all else.
"""
Words = Mapping[str, tuple[str, ...]]
"""Column → the texts that its codes stand for."""


RENEWED_AFTER: Final = 25
"""Calls of ``write_tables`` after which the process takes a new DuckDB.

As long as a database is open, it keeps some 0.4 kB of each table that it was given and wrote (seen with 2.0), which is what
a process that records for days would grow by.
"""
_writes: Final = count(1)


@cache
def engine() -> Any:
    """DuckDB's extension module. The package around it imports ninety modules for other ways to use it, at twice the time.

    Before version 1.4 the extension module is a part of the package, which is then what this gives.
    """
    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


@cache
def connect() -> duckdb.DuckDBPyConnection:
    """The in-memory DuckDB of this process: it uses one thread and never reaches for the network."""
    connection: duckdb.DuckDBPyConnection = engine().connect(
        config={"threads": 1, "autoinstall_known_extensions": "false"}
    )
    return connection


@contextmanager
def private_files() -> Iterator[None]:
    """While entered, new files are the user's alone."""
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


def write_tables(folder: Path, tables: Tables) -> None:
    """Write one Parquet file for each table into ``folder``, the user's alone, through to the disk.

    OSError if the disk refuses, also where it tells so late: all files stay open until their data is on the disk, because
    of an error that is told to DuckDB when it closes a file nobody else would hear. Two tables are written at once, the
    largest first. The bytes of each do not depend on that.
    """
    connection, opened = connect(), dict[str, int]()
    waiting = deque(sorted(tables, key=lambda name: -len(tables[name])))
    writing, failures = _thread.allocate_lock(), list[Exception]()

    def write_waiting() -> None:
        with suppress(IndexError):  # none is left
            while not failures:
                _write_table(connection, folder, name := waiting.popleft(), tables[name])

    def write_beside() -> None:
        with writing:
            try:
                write_waiting()
            except Exception as error:
                failures.append(error)

    try:
        with private_files():
            for name in tables:
                opened[name] = os.open(folder / f"{name}.parquet", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            # A thread that finds no memory to begin in is not missed; to wait for its beginning would take for ever.
            with suppress(RuntimeError, MemoryError):
                _thread.start_new_thread(write_beside, ())
            try:
                write_waiting()
            finally:
                waiting.clear()  # a thread that begins only now finds nothing left to write, and ends
                with writing:
                    pass
        if failures:
            raise failures.pop()
        for name in list(opened):
            os.fdatasync(opened[name])
            os.close(opened.pop(name))
    except engine().Error as error:
        connect.cache_clear()  # after some errors DuckDB refuses whatever it is asked
        raise OSError(str(error)) from error
    finally:
        for descriptor in opened.values():
            with suppress(OSError):  # another error is being told
                os.close(descriptor)
        if next(_writes) % RENEWED_AFTER == 0:
            connect.cache_clear()


def _write_table(connection: duckdb.DuckDBPyConnection, folder: Path, name: str, table: Table) -> None:
    arrays, expressions = _source(table)
    kinds = SCHEMA[name].items()
    casts = ", ".join(f'CAST({expressions[column]} AS {kind}) AS "{column}"' for column, kind in kinds)
    target = escaped(folder / f"{name}.parquet")
    with connection.cursor() as cursor:
        cursor.register("source", arrays)
        cursor.execute(f"COPY (SELECT {casts} FROM source) TO '{target}' ({_FORM})")


def _source(table: Table) -> tuple[dict[str, Array], dict[str, str]]:
    """Arrays that DuckDB reads, and the SQL expression over them for each column."""
    arrays: dict[str, Array] = {}
    expressions: dict[str, str] = {}
    for name, column in table.columns.items():
        array = column.array()
        expressions[name] = f'"{name}"'
        if column.words is not None:
            arrays[name] = np.array([*column.words, None], dtype=object)[array] if len(array) else np.array([], np.str_)
        elif array.dtype != WIDE:
            arrays[name] = array
            if array.dtype == np.int64 and (array == NULL).any():
                expressions[name] = f'NULLIF("{name}", {NULL})'
        elif (array["high"] == array["low"].astype(np.int64) >> 63).all():  # all sums fit into 64 bits
            arrays[name] = array["low"].astype(np.int64)
        else:
            arrays[f"{name}.high"], arrays[f"{name}.low"] = array["high"], array["low"]
            expressions[name] = f'CAST("{name}.high" AS HUGEINT) * 18446744073709551616 + "{name}.low"'
    return arrays, expressions


def has_table(folder: Path, name: str) -> bool:
    """Whether the run of ``folder`` has a table."""
    return (folder / f"{name}.parquet").is_file()


def bytes_of(folder: Path, names: Iterable[str]) -> int:
    """What tables of a recording take on disk; a missing one takes nothing."""
    return sum((folder / f"{name}.parquet").stat().st_size for name in names if has_table(folder, name))


def read_table(folder: Path, name: str, columns: Sequence[str] = ()) -> Table:
    """One table, or some of its columns; StoreError where the file is missing or damaged."""
    kinds = {column: SCHEMA[name][column] for column in columns or SCHEMA[name]}
    path = folder / f"{name}.parquet"
    words = _words([path], kinds)
    return _table(path, read_arrays(path, _expressions(kinds, words)), kinds, words)


def read_each(folders: Sequence[Path], name: str, columns: Sequence[str] = ()) -> Iterator[Table]:
    """One table of each folder, or some of its columns; StoreError where a file is missing or damaged.

    Small files are read together, because on them a query takes longer than what it reads.
    """
    kinds = {column: SCHEMA[name][column] for column in columns or SCHEMA[name]}
    waiting = [folder / f"{name}.parquet" for folder in folders]
    while waiting:
        size, count = 0, 0
        for path in waiting[:MAX_FILES]:
            size += path.stat().st_size if path.is_file() else 0
            if size > MAX_TOGETHER:
                break
            count += 1
        some, waiting = waiting[: max(count, 1)], waiting[max(count, 1) :]
        words = _words(some, kinds)
        parts = _read_together(some, _expressions(kinds, words)) if len(some) > 1 else None
        # Files that cannot be read together are read one by one, which tells the one that is damaged.
        each = parts or (read_arrays(path, _expressions(kinds, words)) for path in some)
        for path, arrays in zip(some, each, strict=True):
            yield _table(path, arrays, kinds, words)


def _read_together(paths: Sequence[Path], expressions: str) -> list[dict[str, Any]] | None:
    """What `read_arrays` gives for each of several files, by one query; None where that fails."""
    for path in paths:
        verify(path)
    files = ", ".join(f"'{escaped(path)}'" for path in paths)
    source = f"read_parquet([{files}], filename = 'perflaw file')"
    place = f'list_position([{files}], "perflaw file")'
    try:
        arrays = connect().execute(f'SELECT {expressions}, {place} AS "perflaw file" FROM {source}').fetchnumpy()
    except (engine().Error, UnicodeDecodeError):  # the caller reads one by one, and reports the file that fails
        return None
    file = np.asarray(arrays.pop("perflaw file"))
    ends = np.searchsorted(file, np.arange(1, len(paths) + 1), side="right")
    return [
        {column: values[first:last] for column, values in arrays.items()}
        for first, last in zip([0, *ends[:-1]], ends, strict=True)
    ]


def _words(paths: Sequence[Path], kinds: Mapping[str, str]) -> Words:
    """The distinct texts of columns with many rows and few texts; of others, and of files that cannot be read, nothing."""
    columns = [column for column, kind in kinds.items() if kind == TEXT]
    if not columns or sum(path.stat().st_size for path in paths if path.is_file()) < LARGE:
        return {}
    for path in paths:
        if path.is_file():
            verify(path)
    lists = ", ".join(f'list(DISTINCT "{column}") AS "{column}"' for column in columns)
    files = ", ".join(f"'{escaped(path)}'" for path in paths)
    try:
        found = connect().execute(f"SELECT {lists} FROM read_parquet([{files}])").fetchone()
    except (engine().Error, UnicodeDecodeError):  # whoever reads the columns reports the file that fails
        return {}
    words = {
        column: tuple(word for word in of_one or () if word is not None)
        for column, of_one in zip(columns, found or (), strict=False)
    }
    return {
        column: of_one
        for column, of_one in words.items()
        if 0 < len(of_one) <= MAX_WORDS and all(isinstance(word, str) and "\0" not in word for word in of_one)
    }


def _expressions(kinds: Mapping[str, str], words: Words) -> str:
    """SQL for columns: a sum is read as its two halves, a text whose words are known as the number of its word."""
    expressions = []
    for column, kind in kinds.items():
        if kind == SUM:
            whole = f'CAST("{column}" AS HUGEINT)'
            expressions.append(f'CAST({whole} & {(1 << 64) - 1} AS UBIGINT) AS "{column}.low"')
            expressions.append(f'CAST({whole} >> 64 AS BIGINT) AS "{column}.high"')
        elif column in words:
            known = ", ".join("'" + word.replace("'", "''") + "'" for word in words[column])
            expressions.append(f'enum_code(CAST("{column}" AS ENUM({known}))) AS "{column}"')
        else:
            expressions.append(f'"{column}" AS "{column}"')  # DuckDB finds "File" too, and calls it that
    return ", ".join(expressions)


def _table(path: Path, arrays: Mapping[str, Any], kinds: Mapping[str, str], words: Words) -> Table:
    """Columns as they are read, as a table; StoreError where the file has another type of column than the schema."""
    table = {}
    for column, kind in kinds.items():
        if kind == SUM:
            sums = np.empty(len(arrays[f"{column}.low"]), WIDE)
            sums["low"], sums["high"] = arrays[f"{column}.low"], arrays[f"{column}.high"]
            table[column] = Column(sums)
            continue
        values = arrays[column]
        if column in words:
            table[column] = coded_texts(values, words[column])
            continue
        if kind == TEXT:
            column_of_texts = _texts(values)
            if column_of_texts is None:
                raise _unreadable(path, f"column {column} has no texts")
            table[column] = column_of_texts
            continue
        if values.dtype != (np.float64 if kind == REAL else np.int64):
            raise _unreadable(path, f"column {column} is of the type {values.dtype}")
        null = np.nan if kind == REAL else NULL
        table[column] = Column(values.filled(null) if isinstance(values, np.ma.MaskedArray) else values)
    return Table(table)


def _texts(values: Array) -> Column | None:
    """A column of texts, or None if the values are others, such as bytes or lists."""
    try:
        column = texts(values.tolist())
    except TypeError:  # values that cannot be hashed
        return None
    return column if all(isinstance(word, str) for word in column.words or ()) else None


def _unreadable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path}: cannot be read", f"the file is truncated or no table of perflaw's ({why})", "perflaw runs"
    )


def read_arrays(path: Path, expressions: str) -> dict[str, Any]:
    """SQL expressions over a Parquet file, as arrays by name; StoreError where the file is missing or damaged."""
    if not path.is_file():
        raise StoreError(f"{path}: missing", "the recording is damaged", "perflaw runs")
    verify(path)
    try:
        return connect().execute(f"SELECT {expressions} FROM '{escaped(path)}'").fetchnumpy()
    except (engine().Error, UnicodeDecodeError) as error:  # of bytes that DuckDB repeats
        raise _unreadable(path, str(error).split("\n")[0]) from error


def escaped(path: Path) -> str:
    """A path for a text in SQL."""
    return str(path).replace("'", "''")


def read_tables(folder: Path, without: Collection[str] = ()) -> Tables:
    """Every table of a recording. Those ``without``, and those that its version of perflaw did not write yet, are empty."""
    missing = {name for name in ADDED_SINCE if not has_table(folder, name)} | {*without}
    return {name: table_of(name, ()) if name in missing else read_table(folder, name) for name in COLUMNS}
