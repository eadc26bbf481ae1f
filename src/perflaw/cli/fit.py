"""``perflaw fit``: laws of numbers a person brings along, in a CSV file or as another tool's results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import at_option, json_option, parse_points
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perflaw.imports.formats import ForeignFile
    from perflaw.learn.series import Learnt
    from perflaw.store.csv_files import CsvTable, NumberSeries


@click.command("fit", short_help="laws of your own numbers: CSV, or results of a benchmark tool")
@click.argument("file", metavar="FILE")
@click.option("--response", metavar="COLUMN", help="Column to explain; of benchmarks the tool's own time by default.")
@click.option("--features", metavar="COLUMN,...", help="Columns it may depend on; all other numeric ones by default.")
@click.option("--by", metavar="COLUMN", help="One law for each value of this column.")
@click.option("--run", metavar="COLUMN", help="Column with the run of each row: rows of a run are not independent.")
@at_option
@click.option("--drop-invalid", is_flag=True, help="Leave rows out that have cells which are no finite numbers.")
@json_option
def command(
    file: str,
    response: str | None,
    features: str | None,
    by: str | None,
    run: str | None,
    at: tuple[str, ...],
    drop_invalid: bool,
    as_json: bool,
) -> int:
    """Learn how a column of FILE depends on its other columns (- is standard input).

    FILE is CSV with a header, or JSON of pytest-benchmark, asv or google-benchmark: then each benchmark is a series, its
    numeric parameters are the features, and times are in ns.

    Predicts at 2 and 10 times the 95th percentile of every feature unless --at says where.
    """
    from perflaw.imports.formats import ForeignFile
    from perflaw.store.csv_files import parse_csv, read_text

    text = read_text(file)
    foreign = ForeignFile(Path(file), text.encode(), "pytest --benchmark-json FILE.json, then perflaw fit FILE.json")
    if foreign.is_json:
        found, response = _benchmarks(foreign, response, features, by, run)
    else:
        table = parse_csv(file, text)
        response = _asked(table, response)
        found = _columns(table, response, features, by, run, drop_invalid)
    _print(found, _learn(found, response, at, file), response, as_json)
    return 0


def _benchmarks(
    file: ForeignFile, response: str | None, features: str | None, by: str | None, run: str | None
) -> tuple[list[NumberSeries], str]:
    """Series of a tool's results and the name of the response; says what was read."""
    from perflaw.imports.benchmarks import split_benchmarks
    from perflaw.imports.registry import read_benchmarks

    if run:
        why = f"{file.path} holds benchmarks, whose runs the tool knows"
        raise UsageError(f"--run {run}", why, f"perflaw fit {file.path}")
    results = read_benchmarks(file)
    found = split_benchmarks(results, response, _names(features), by)
    response = response or results.response
    units = ", ".join(sorted({one.unit for one in found if one.unit}))
    told = f"perflaw: {results.tool}, {len(results.cases)} results in {len(found)} series: {response}"
    click.echo(told + f" in {units}" * bool(units), err=True)
    failed = len(results.cases) - sum(map(_cases, found))
    if failed:
        click.echo(f"perflaw: {failed} results without a number left out", err=True)
    return found, response


def _cases(one: NumberSeries) -> int:
    """How many results a series is of."""
    return len(set(one.runs.tolist())) if one.runs is not None else int(one.response.size)


def _asked(table: CsvTable, response: str | None) -> str:
    """The column to explain, which nobody can guess."""
    if response is None:
        there = ", ".join(table.header)
        raise UsageError(
            "--response is missing", f"columns of {table.name} are {there}", f"--response {table.header[-1]}"
        )
    return response


def _columns(
    table: CsvTable, response: str, features: str | None, by: str | None, run: str | None, drop: bool
) -> list[NumberSeries]:
    """Series of a CSV file; rows left out are told."""
    from perflaw.store.csv_files import split_series

    names = _features(table, response, _names(features), [column for column in (by, run) if column])
    found = split_series(table, response, names, by, run, drop)
    dropped = len(table.lines) - sum(one.response.size for one in found)
    if dropped:
        click.echo(f"perflaw: {dropped} rows with cells that are no finite numbers left out", err=True)
    return found


def _names(features: str | None) -> list[str] | None:
    """Names of ``--features``, each once; None where the option was not given."""
    return None if features is None else list(dict.fromkeys(name.strip() for name in features.split(",")))


def _features(table: CsvTable, response: str, names: list[str] | None, taken: list[str]) -> list[str]:
    """Columns the response may depend on, each checked to be there."""
    from perflaw.store.csv_files import numeric_columns

    for column in (response, *taken):
        table.column(column)
    if names is None:
        return numeric_columns(table, (response, *taken))
    for name in names:
        table.column(name)
        if name in (response, *taken):
            raise UsageError(f"--features {name}", "the column has another part already", "name other columns")
    return names


def _learn(found: Sequence[NumberSeries], response: str, at: tuple[str, ...], file: str) -> list[Learnt]:
    """Laws of the series; those that lack a feature of the points are asked at their own sizes."""
    from perflaw.learn.series import Series, learn

    points = _points(at, {name for one in found for name in one.features}, file)
    series = [Series(one.name or response, one.response, one.features, one.runs) for one in found]
    reached = [all(name in one.features for point in points for name in point) for one in found]
    asked = iter(learn([one for one, inside in zip(series, reached, strict=True) if inside], points or None))
    others = iter(learn([one for one, inside in zip(series, reached, strict=True) if not inside]))
    return [next(asked if inside else others) for inside in reached]


def _points(at: tuple[str, ...], names: set[str], file: str) -> list[Mapping[str, float]]:
    """Points of ``--at``, their names checked against the features."""
    points = parse_points(at)
    for point in points:
        for name in point:
            if name not in names:
                there = ", ".join(sorted(names)) or "none"
                raise UsageError(f"--at {name}=…: {file} has no feature {name!r}", f"the features are {there}")
    return list(points)


def _print(found: list[NumberSeries], laws: list[Learnt], response: str, as_json: bool) -> None:
    """One JSON document a series, or one table."""
    if as_json:
        import json

        from perflaw.types.documents import document

        for one, learnt in zip(found, laws, strict=True):
            fit = {
                "schema": "perflaw.fit/1",
                "series": one.name,
                "law": document(learnt.law),
                "dropped": one.dropped,
                "unit": one.unit,
            }
            click.echo(json.dumps(fit, allow_nan=False, ensure_ascii=False))
        return
    from perflaw.report.annotations.table import fit_table

    named = [
        (one.name if one.name is not None else response, learnt.law) for one, learnt in zip(found, laws, strict=True)
    ]
    click.echo(fit_table(named, sys.stdout.isatty()), nl=False)
