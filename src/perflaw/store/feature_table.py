"""Features of runs from a CSV file: which rows belong to which runs, and what they say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perflaw.errors import DataError, UsageError
from perflaw.store.csv_file import CsvTable
from perflaw.types import FEATURE_NAME, Run

RUN, WORKLOAD = "run", "workload"
"""Columns that name a run by its id, and by its workload."""


@dataclass(frozen=True, slots=True)
class Matched:
    """What a table says of runs."""

    features: Mapping[str, Mapping[str, float]]
    """Run → its new features."""
    rows: int
    """Rows that belong to no run."""
    runs: tuple[str, ...]
    """Runs that have no row."""


def match(table: CsvTable, runs: Sequence[Run], on: Sequence[str] = ()) -> Matched:
    """Find the row of each run by ``on``: columns with its id, workload, features or values of ``--vary``.

    By default that is ``run`` where there is such a column, else every column that runs know. All other columns are
    features, an empty cell says nothing. UsageError and DataError with column and line where that cannot be done.
    """
    keys = _keys(table, runs, on)
    names = _names(table, keys)
    columns = {name: table.column(name) for name in (*keys, *names)}
    found: dict[str, dict[str, float]] = {}
    used: set[int] = set()
    for run in runs:
        rows = [row for row in range(len(table.lines)) if all(_is(run, key, columns[key][row]) for key in keys)]
        used.update(rows)
        for row in rows:
            _add(table, found.setdefault(run.id, {}), run.id, row, {name: columns[name][row] for name in names})
    if not found:
        there = ", ".join(sorted({_said(run, keys[0]) for run in runs})[:5])
        raise DataError(f"{table.name}: no row belongs to a run", f"{keys[0]} of runs: {there}", "perflaw feature")
    return Matched(found, len(table.lines) - len(used), tuple(run.id for run in runs if run.id not in found))


def _keys(table: CsvTable, runs: Sequence[Run], on: Sequence[str]) -> list[str]:
    known = dict.fromkeys([RUN, WORKLOAD, *(name for run in runs for name in (*run.features, *run.configuration))])
    if on:
        for name in on:
            table.column(name)
            if name not in known:
                raise UsageError(
                    f"--on {name}: runs do not have it", f"they have {', '.join(known)}", "perflaw feature"
                )
        return list(on)
    if RUN in table.header:
        return [RUN]
    keys = [name for name in table.header if name in known]
    if not keys:
        raise UsageError(
            f"{table.name}: no column tells which row belongs to which run",
            f"wanted is one of {', '.join(list(known)[:8])}",
            "perflaw feature",
        )
    return keys


def _names(table: CsvTable, keys: Sequence[str]) -> list[str]:
    names = [name for name in table.header if name not in keys]
    if not names:
        column = table.header[0]
        why = "runs know all its columns; --on says which of them rows are found by"
        raise UsageError(f"{table.name} adds no feature", why, f"perflaw feature --from {table.name} --on {column}")
    for name in names:
        if not FEATURE_NAME.fullmatch(name):
            why = "a feature's name begins with a letter and has letters, digits, . - _ [ ] alone"
            raise UsageError(f"{table.name}, column {name!r}", why, "name the column otherwise")
    return names


def _is(run: Run, key: str, cell: str) -> bool:
    """Whether a cell says what a run has: its id with or without leading zeros, a number by its value, else the text."""
    if key == RUN:
        return cell.strip().zfill(4) == run.id
    if key == WORKLOAD and run.workload:
        return cell.strip() == run.workload
    if key in run.features:
        return _number(cell) == run.features[key]
    return run.configuration.get(key) == cell.strip()


def _said(run: Run, key: str) -> str:
    if key in run.features:
        return f"{run.features[key]:g}"
    return {RUN: run.id, WORKLOAD: run.workload}.get(key) or run.configuration.get(key, "none")


def _add(table: CsvTable, features: dict[str, float], run: str, row: int, cells: Mapping[str, str]) -> None:
    where = f"{table.name}, line {table.lines[row]}"
    for name, cell in cells.items():
        if not cell.strip():
            continue
        number = _number(cell)
        if number is None:
            raise DataError(f"{where}, column {name}: {cell.strip()[:40]!r} is no number", "", "mend that cell")
        if features.setdefault(name, number) != number:
            raise DataError(f"{where}: another row says otherwise of {name} of run {run}", "", "leave one of them out")


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
