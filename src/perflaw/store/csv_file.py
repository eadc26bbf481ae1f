"""Numbers a person brings along: a CSV file (RFC 4180) with a header, read into columns by series."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError, StoreError, UsageError
from perflaw.store.number_series import NumberSeries

NEXT = "perflaw fit FILE.csv --response COLUMN"
"""What to type once the file is in order."""


@dataclass(frozen=True, slots=True, eq=False)
class CsvTable:
    """A CSV file as text cells, before anyone says what its columns are."""

    name: str
    """File as the person named it."""
    header: tuple[str, ...]
    """Names of the columns."""
    cells: tuple[tuple[str, ...], ...]
    """Columns of text, one value a row."""
    lines: tuple[int, ...]
    """Line of the file each row ends on, from 1."""

    def column(self, name: str) -> tuple[str, ...]:
        """A column by name; UsageError names the columns there are."""
        if name not in self.header:
            there = ", ".join(self.header)
            raise UsageError(
                f"{self.name} has no column {name!r}", f"its columns are {there}", f"perflaw fit {self.name}"
            )
        return self.cells[self.header.index(name)]


def read_csv(name: str) -> CsvTable:
    """Read a file, or standard input for ``-``; errors as of its two halves."""
    return parse_csv(name, read_text(name))


def parse_csv(name: str, text: str) -> CsvTable:
    """The columns of a text; DataError where it is not a CSV file with a header and rows."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        records = [(reader.line_num, record) for record in reader if record]
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not a CSV file", str(error), NEXT) from None
    if not records:
        raise DataError(f"{name} is empty", "a header line and rows of numbers are wanted", NEXT)
    header = tuple(cell.strip() for cell in records[0][1])
    _check_header(name, header)
    for line, record in records[1:]:
        if len(record) != len(header):
            raise DataError(
                f"{name}, line {line}: {len(record)} cells under {len(header)} columns", "", "mend that line"
            )
    if len(records) == 1:
        raise DataError(f"{name} has no rows", "there is only a header line", NEXT)
    columns = tuple(zip(*(record for _, record in records[1:]), strict=True))
    return CsvTable(name, header, columns, tuple(line for line, _ in records[1:]))


def read_text(name: str) -> str:
    """All text of a file, or of standard input for ``-``; a byte order mark is no part of it.

    Raises StoreError where it cannot be read, DataError where it is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 text", f"byte {error.start} is not", "iconv -t UTF-8 …") from None
    except OSError as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
        raise StoreError(f"cannot read {name}", why, NEXT) from None


def _check_header(name: str, header: tuple[str, ...]) -> None:
    if all(_number(cell) is not None for cell in header):
        raise DataError(
            f"{name} has no header", "its first line is numbers", "put the columns' names on the first line"
        )
    twice = sorted({cell for cell in header if header.count(cell) > 1})
    if twice:
        raise DataError(f"{name}: two columns are called {twice[0]!r}", "names must tell columns apart", "rename one")


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def numeric_columns(table: CsvTable, but: Sequence[str]) -> list[str]:
    """Columns of which at least half the cells (of a thousand spread over them) are numbers, without those named."""
    return [
        name
        for name, cells in zip(table.header, table.cells, strict=True)
        if name not in but and _mostly_numbers(cells)
    ]


def _mostly_numbers(cells: Sequence[str]) -> bool:
    some = cells[:: max(len(cells) // 1000, 1)]
    return 2 * sum(_number(cell) is not None for cell in some) >= len(some)


def split_series(
    table: CsvTable, response: str, features: Sequence[str], by: str | None, run: str | None, drop: bool
) -> list[NumberSeries]:
    """Series in order of their first row; rows with a cell that is no finite number are refused, or dropped.

    Raises UsageError on a missing column, DataError on such cells (with line and count) or where nothing is left.
    """
    numbers = {name: _floats(table.column(name)) for name in (response, *features)}
    finite = np.logical_and.reduce([np.isfinite(values) for values in numbers.values()])
    if not drop and not finite.all():
        raise _invalid(table, numbers, finite)
    if not finite.any():
        raise DataError(f"{table.name}: no row is left", "every row has a cell that is no finite number", NEXT)
    labels = np.array(table.column(run)) if run else None
    names, members = _groups(table.column(by) if by else None, finite.size)
    out = []
    for name, rows in zip(names, members, strict=True):
        keep = rows[finite[rows]]
        if keep.size:
            columns = {feature: numbers[feature][keep] for feature in features}
            chosen = labels[keep] if labels is not None else None
            out.append(NumberSeries(name, numbers[response][keep], columns, chosen, int(rows.size - keep.size)))
    return out


def _floats(cells: Sequence[str]) -> NDArray[np.float64]:
    """Cells as numbers, NaN where a cell is none."""
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        values = (_number(cell) for cell in cells)
        return np.array([math.nan if value is None else value for value in values])


def _groups(keys: Sequence[str] | None, rows: int) -> tuple[list[str | None], list[NDArray[np.intp]]]:
    """Names of the series in order of appearance and the rows of each."""
    if keys is None:
        return [None], [np.arange(rows)]
    places: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        places.setdefault(key, []).append(row)
    return list(places), [np.array(members, dtype=np.intp) for members in places.values()]


def _invalid(table: CsvTable, numbers: dict[str, NDArray[np.float64]], finite: NDArray[np.bool_]) -> DataError:
    """The refusal: the first such cell and how many rows there are."""
    row = int(np.flatnonzero(~finite)[0])
    column = next(name for name, values in numbers.items() if not np.isfinite(values[row]))
    cell = table.column(column)[row]
    count = int((~finite).sum())
    what = f"{table.name}, line {table.lines[row]}: {cell!r} in column {column!r} is no finite number"
    why = "no other row has such a cell" if count == 1 else f"{count} rows have such cells"
    return DataError(what, why, "--drop-invalid leaves such rows out")
