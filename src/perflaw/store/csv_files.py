"""Numbers that a person brings along: CSV files (RFC 4180) with a header, read as series or as a matrix of counts."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError, StoreError, UsageError

if TYPE_CHECKING:
    from perflaw.types import CountMatrix

FEATURE: Final = "feature:"
"""In a matrix of counts, names of columns with features begin with this."""
RUN: Final = "run"
"""In a matrix of counts, the column with the names of the runs."""
_FIT: Final = "perflaw fit FILE.csv --response COLUMN"
_TREND: Final = "perflaw trend FILE.csv"


@dataclass(frozen=True, slots=True, eq=False)
class NumberSeries:
    """Rows of one series: finite numbers only."""

    name: str | None
    """Value of the column that separates series, or the benchmark; None where there is none."""
    response: NDArray[np.float64]
    """Responses, (n,)."""
    features: dict[str, NDArray[np.float64]]
    """Features by name, (n,) each."""
    runs: NDArray[np.str_] | None
    """Run labels, (n,)."""
    dropped: int
    """Rows left out because a cell was no finite number."""
    unit: str = ""
    """Unit of the responses (ns, bytes); empty where the file does not have it."""


@dataclass(frozen=True, slots=True, eq=False)
class CsvTable:
    """A CSV file as text cells."""

    name: str
    """File as the person named it."""
    header: tuple[str, ...]
    """Names of the columns."""
    cells: tuple[tuple[str, ...], ...]
    """Columns of text, one value for each row."""
    lines: tuple[int, ...]
    """Line of the file on which each row ends, from 1."""

    def column(self, name: str) -> tuple[str, ...]:
        """A column by name; UsageError lists the columns where there is none of that name."""
        if name not in self.header:
            why, command = f"its columns are {', '.join(self.header)}", f"perflaw fit {self.name}"
            raise UsageError(f"{self.name} has no column {name!r}", why, command)
        return self.cells[self.header.index(name)]


def read_csv(name: str) -> CsvTable:
    """Read a file, or standard input for ``-``. Raises the errors of `read_text` and `parse_csv`."""
    return parse_csv(name, read_text(name))


def read_text(name: str) -> str:
    """The text of a file, or of standard input for ``-``, without a byte order mark.

    Raises StoreError where it cannot be read, DataError where it is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 text", f"byte {error.start} is not", "iconv -t UTF-8 …") from None
    except OSError as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
        raise StoreError(f"cannot read {name}", why, _FIT) from None


def parse_csv(name: str, text: str) -> CsvTable:
    """The columns of a text; DataError where it is not a CSV file with a header and rows."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        records = [(reader.line_num, record) for record in reader if record]
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not a CSV file", str(error), _FIT) from None
    if not records:
        raise DataError(f"{name} is empty", "a header line and rows of numbers are expected", _FIT)
    header = tuple(cell.strip() for cell in records[0][1])
    if all(number(cell) is not None for cell in header):
        why = "its first line holds only numbers"
        raise DataError(f"{name} has no header", why, "put the names of the columns on the first line")
    if repeated := sorted({cell for cell in header if header.count(cell) > 1}):
        what = f"{name}: two columns are called {repeated[0]!r}"
        raise DataError(what, "names must distinguish the columns", "rename one of them")
    for line, record in records[1:]:
        if len(record) != len(header):
            values = f"{len(record)} value{'s' * (len(record) != 1)}"
            what = f"{name}, line {line}: it has {values}, but the header has {len(header)}"
            raise DataError(what, "a comment line, or `;` as separator?", "correct that line")
    if len(records) == 1:
        raise DataError(f"{name} has no rows", "there is only a header line", _FIT)
    columns = tuple(zip(*(record for _, record in records[1:]), strict=True))
    return CsvTable(name, header, columns, tuple(line for line, _ in records[1:]))


def number(cell: str) -> float | None:
    """The number in a cell, possibly not finite; None where there is none."""
    try:
        return float(cell)
    except ValueError:
        return None


def numeric_columns(table: CsvTable, excluded: Sequence[str]) -> list[str]:
    """Columns in which at least half of the cells (of a thousand spread over the column) are numbers."""
    columns = []
    for name, cells in zip(table.header, table.cells, strict=True):
        some = cells[:: max(len(cells) // 1000, 1)]
        if name not in excluded and 2 * sum(number(cell) is not None for cell in some) >= len(some):
            columns.append(name)
    return columns


def split_series(
    table: CsvTable, response: str, features: Sequence[str], by: str | None, run: str | None, drop: bool
) -> list[NumberSeries]:
    """Series in order of their first row. Rows with a cell that is no finite number are refused, or dropped.

    Raises UsageError on a missing column, DataError on such cells (with line and count) or where nothing is left.
    """
    numbers = {}
    for name in (response, *features):
        # Cells as numbers, NaN where a cell is none.
        cells = table.column(name)
        try:
            numbers[name] = np.array(list(map(float, cells)))
        except ValueError:
            values = (number(cell) for cell in cells)
            numbers[name] = np.array([math.nan if value is None else value for value in values])
    finite = np.logical_and.reduce([np.isfinite(values) for values in numbers.values()])
    if not drop and not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        column = next(name for name, values in numbers.items() if not np.isfinite(values[row]))
        count = int((~finite).sum())
        cell = table.column(column)[row]
        what = f"{table.name}, line {table.lines[row]}: {cell!r} in column {column!r} is no finite number"
        why = "no other row has such a cell" if count == 1 else f"{count} rows have such cells"
        raise DataError(what, why, "--drop-invalid leaves such rows out")
    if not finite.any():
        raise DataError(f"{table.name}: no row is left", "every row has a cell that is no finite number", _FIT)
    labels = np.array(table.column(run)) if run else None
    rows_by_name: dict[str | None, list[int]] = {}
    for row, key in enumerate(table.column(by) if by else [None] * finite.size):
        rows_by_name.setdefault(key, []).append(row)
    series = []
    for key, members in rows_by_name.items():
        rows = np.array(members, dtype=np.intp)
        kept = rows[finite[rows]]
        if kept.size:
            columns = {feature: numbers[feature][kept] for feature in features}
            runs = labels[kept] if labels is not None else None
            series.append(NumberSeries(key, numbers[response][kept], columns, runs, int(rows.size - kept.size)))
    return series


def read_csv_matrix(path: str) -> CountMatrix:
    """The matrix of counts in a file, or on standard input for ``-``.

    Rows are runs. Columns ``feature:NAME`` are features (an empty cell: unknown for this run), the column ``run`` names the
    runs (otherwise they are numbered from 1), every other column has the counts of a location of that name. Raises
    StoreError where the file cannot be read, DataError where it is no such table, is transposed, or has counts that are
    none.
    """
    table = read_csv(path)
    if any(cell.strip().startswith(FEATURE) for cell in table.cells[0]):
        what = f"{table.name}: its rows are locations and its columns are runs"
        raise DataError(what, "one row for each run is expected, one column for each location", "transpose the table")
    features = [name for name in table.header if name.startswith(FEATURE)]
    locations = [name for name in table.header if name != RUN and name not in features]
    if not locations:
        raise DataError(f"{table.name} has no counts", f"all its columns are {FEATURE}… or {RUN}", _TREND)
    runs = tuple(str(row) for row in range(1, len(table.lines) + 1))
    if RUN in table.header:
        runs = tuple(cell.strip() for cell in table.column(RUN))
        for row, name in enumerate(runs):
            if name in runs[:row]:
                what = f"{table.name}, line {table.lines[row]}: run {name!r} again"
                raise DataError(what, "each run has one row", "rename one of them")
    from perflaw.types import CountMatrix, Location  # recordings need the other readers of this module alone

    return CountMatrix(
        tuple(Location("column", name) for name in locations),
        np.array([_matrix_column(table, name, "count") for name in locations]),
        {name.removeprefix(FEATURE): _matrix_column(table, name, "value of a feature") for name in features},
        runs,
    )


def _matrix_column(table: CsvTable, name: str, kind: str) -> NDArray[np.float64]:
    """The numbers of a column. Counts are finite and not negative; values of features are finite, or NaN in empty cells."""
    values = np.empty(len(table.lines))
    for row, (line, cell) in enumerate(zip(table.lines, table.column(name), strict=True)):
        value = number(cell) if cell.strip() else math.nan
        missing = kind != "count" and not cell.strip()
        if value is None or not (missing or (math.isfinite(value) and (kind != "count" or value >= 0))):
            what = f"{table.name}, line {line}: {cell!r} in column {name!r} is no {kind}"
            why = f"columns that are not counts are called {FEATURE}NAME or {RUN}"
            raise DataError(what, why, "rename the column or correct that line")
        values[row] = value
    return values
