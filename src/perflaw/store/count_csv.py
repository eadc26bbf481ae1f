"""A matrix of counts that a person brings along: a CSV file with a row a run and a column a feature or location."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError
from perflaw.store.csv_file import CsvTable, read_csv
from perflaw.types import CountMatrix, Location

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
        number = _number(cell)
        if what == "count" and not number >= 0:
            number = math.inf  # NaN too
        if math.isinf(number) or (math.isnan(number) and cell.strip()):
            where = f"{table.name}, line {line}: {cell!r} in column {name!r} is no {what}"
            why = f"columns that are not counts are called {FEATURE}NAME or {RUN}"
            raise DataError(where, why, "rename the column or mend that line")
        values[place] = number
    return values


def _number(cell: str) -> float:
    """The number in a cell; NaN for an empty one, infinity for what is none."""
    try:
        return float(cell) if cell.strip() else math.nan
    except ValueError:
        return math.inf
