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
from perflaw.types import CountMatrix, Location

# ---- Numbers a person brings along, as the learner wants them: one series of responses and features.


@dataclass(frozen=True, slots=True, eq=False)
class NumberSeries:
    """Rows of one series: finite numbers only."""

    name: str | None
    """Value of the column that tells series apart, or the benchmark; None where there is none."""
    response: NDArray[np.float64]
    """Responses, (n,)."""
    features: dict[str, NDArray[np.float64]]
    """Features by name, (n,) each."""
    runs: NDArray[np.str_] | None
    """Run labels, (n,)."""
    dropped: int
    """Rows left out because a cell was no finite number."""
    unit: str = ""
    """Unit of the responses where the file says it: ns, bytes; empty where it does not."""


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


# ---- A matrix of counts that a person brings along: a CSV file with a row a run and a column a feature or location.

FEATURE = "feature:"
"""What the names of features' columns begin with."""
RUN = "run"
"""The column of the runs' names."""
_NEXT = "perflaw trend FILE.csv"


def read_csv_matrix(path: str) -> CountMatrix:
    """The matrix in a file, or on standard input for ``-``.

    Rows are runs. Columns ``feature:NAME`` are features (an empty cell: this run does not say it), ``run`` names the runs
    (else they are numbered from 1), every other column holds the counts of a location of that name. Raises StoreError where
    the file cannot be read, DataError where it is no such table, says the transposed one, or has counts that are none.
    """
    table = read_csv(path)
    if any(cell.strip().startswith(FEATURE) for cell in table.cells[0]):
        what = f"{table.name}: its rows are locations and its columns are runs"
        raise DataError(what, "a row a run, and a column a feature or location, is wanted", "turn the table round")
    features = [name for name in table.header if name.startswith(FEATURE)]
    places = [name for name in table.header if name != RUN and name not in features]
    if not places:
        raise DataError(f"{table.name} has no counts", f"all its columns are {FEATURE}… or {RUN}", _NEXT)
    return CountMatrix(
        tuple(Location("column", name) for name in places),
        np.array([_numbers(table, name, "count") for name in places]),
        {name.removeprefix(FEATURE): _numbers(table, name, "value of a feature") for name in features},
        _runs(table),
    )


def _runs(table: CsvTable) -> tuple[str, ...]:
    if RUN not in table.header:
        return tuple(str(number) for number in range(1, len(table.lines) + 1))
    names = tuple(cell.strip() for cell in table.column(RUN))
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        line = table.lines[len(names) - 1 - names[::-1].index(twice)]
        raise DataError(f"{table.name}, line {line}: run {twice!r} again", "a run is one row", "rename one")
    return names


def _numbers(table: CsvTable, name: str, what: str) -> NDArray[np.float64]:
    """A column's cells; counts are finite and not negative, values of features finite or missing."""
    values = np.empty(len(table.lines))
    for place, (line, cell) in enumerate(zip(table.lines, table.column(name), strict=True)):
        number = _count_csv_number(cell)
        if what == "count" and not number >= 0:
            number = math.inf  # NaN too
        if math.isinf(number) or (math.isnan(number) and cell.strip()):
            where = f"{table.name}, line {line}: {cell!r} in column {name!r} is no {what}"
            why = f"columns that are not counts are called {FEATURE}NAME or {RUN}"
            raise DataError(where, why, "rename the column or mend that line")
        values[place] = number
    return values


def _count_csv_number(cell: str) -> float:
    """The number in a cell; NaN for an empty one, infinity for what is none."""
    try:
        return float(cell) if cell.strip() else math.nan
    except ValueError:
        return math.inf
