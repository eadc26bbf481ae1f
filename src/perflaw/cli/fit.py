"""``perflaw fit``: learns laws of numbers from a CSV file or from another tool's benchmark results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import at_option, json_option, parse_points
from perflaw.cli.progress import note
from perflaw.errors import UsageError
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.imports.formats import ForeignFile
    from perflaw.store.csv_files import NumberSeries


@click.command("fit", short_help="learn laws from your own numbers: CSV, or results of a benchmark tool")
@click.argument("file", metavar="FILE")
@click.option("--response", metavar="COLUMN", help="Column to explain.  [default for benchmarks: the tool's time]")
@click.option("--features", metavar="COLUMN,...", help="Columns it may depend on.  [default: all numeric columns]")
@click.option("--by", metavar="COLUMN", help="Learn one law for each value of this column.")
@click.option("--run", metavar="COLUMN", help="Column with the run of each row: rows of a run are not independent.")
@at_option
@click.option("--drop-invalid", is_flag=True, help="Leave out rows with cells that are not finite numbers.")
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

    FILE is CSV with a header, or what a benchmark tool wrote: pytest-benchmark, asv, google-benchmark, hyperfine, Go's
    go test -bench, Criterion, cargo bench, or durations of tests in JUnit XML. Of these each benchmark is a series, its
    numeric parameters are the features, and times are in ns.

    Without --at, predictions are made at 2 and 10 times the 95th percentile of every feature.

    \b
    perflaw fit times.csv --response seconds --at n=1e6
    perflaw fit times.csv --response seconds --by host
    perflaw fit benchmark.json
    """
    from perflaw.imports.formats import ForeignFile
    from perflaw.imports.registry import holds_benchmarks
    from perflaw.store.csv_files import read_text

    text = read_text(file)
    names = None if features is None else list(dict.fromkeys(name.strip() for name in features.split(",")))
    foreign = ForeignFile(Path(file), text.encode(), "pytest --benchmark-json FILE.json, then perflaw fit FILE.json")
    if holds_benchmarks(foreign):
        series, response = _benchmark_series(foreign, response, names, by, run)
    else:
        series, response = _csv_series(file, text, response, names, by, run, drop_invalid)
    # The laws of the series.
    from perflaw.learn.series import Series, learn

    points = parse_points(at)
    known = sorted({name for each in series for name in each.features})
    for name in (name for point in points for name in point):
        if name not in known:
            why = f"the features are {', '.join(known) or 'none'}"
            example = f"--at {known[0]}=1e6" if known else f"perflaw fit {file}"
            raise UsageError(f"--at {name}=…: {file} has no feature {name!r}", why, example)
    responses = [Series(each.name or response, each.response, each.features, each.runs) for each in series]
    has_point = [all(name in each.features for point in points for name in point) for each in series]
    at_points = iter(learn([each for each, has in zip(responses, has_point, strict=True) if has], points or None))
    elsewhere = iter(learn([each for each, has in zip(responses, has_point, strict=True) if not has]))
    learnt = [next(at_points if has else elsewhere) for has in has_point]
    from perflaw.report.documents import fit_document
    from perflaw.report.fits import fit_table

    documents = [
        fit_document(each.name, law.law, each.dropped, each.unit) for each, law in zip(series, learnt, strict=True)
    ]
    if as_json:
        for document in documents:
            click.echo(json.dumps(document, allow_nan=False, ensure_ascii=False))
    else:
        click.echo(fit_table(documents, response, sys.stdout.isatty()), nl=False)
    return 0


def _benchmark_series(
    file: ForeignFile, response: str | None, names: list[str] | None, by: str | None, run: str | None
) -> tuple[list[NumberSeries], str]:
    """The series of a benchmark tool's results, and the name of the response."""
    from perflaw.imports.benchmarks import split_benchmarks
    from perflaw.imports.registry import read_benchmarks

    if run:
        why = f"{file.path} holds benchmarks, which state their runs"
        raise UsageError(f"--run {run}", why, f"perflaw fit {file.path}")
    results = read_benchmarks(file)
    series = split_benchmarks(results, response, names, by)
    response = response or results.response
    units = ", ".join(sorted({each.unit for each in series if each.unit}))
    number = len(results.cases)
    summary = f"{results.tool}, {counted(number, 'result')} in {len(series)} series: {response}"
    note(summary + f" in {units}" * bool(units))
    used = sum(len(set(each.runs.tolist())) if each.runs is not None else int(each.response.size) for each in series)
    if used < number:
        note(f"left out: {counted(number - used, 'result')} without a number")
    return series, response


def _csv_series(
    file: str, text: str, response: str | None, names: list[str] | None, by: str | None, run: str | None, drop: bool
) -> tuple[list[NumberSeries], str]:
    """The series of a CSV file, and the name of the response; UsageError where a column is missing or used twice."""
    from perflaw.store.csv_files import numeric_columns, parse_csv, split_series

    table = parse_csv(file, text)
    if response is None:
        columns = ", ".join(table.header)
        why = f"the columns of {table.name} are {columns}"
        raise UsageError("--response is missing", why, f"--response {table.header[-1]}")
    taken = [response, *(column for column in (by, run) if column)]
    for column in (*taken, *(names or ())):
        table.column(column)  # refuses a column that is not there
    if names is None:
        names = numeric_columns(table, tuple(taken))
    for name in names:
        if name in taken:
            raise UsageError(f"--features {name}", "another option names this column already", "name other columns")
    series = split_series(table, response, names, by, run, drop)
    if dropped := len(table.lines) - sum(each.response.size for each in series):
        note(f"left out: {counted(dropped, 'row')} with cells that are not finite numbers")
    return series, response
