"""``perflaw fit``: laws of numbers a person brings along in a CSV file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import at_option, json_option, parse_points
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.learn.laws import Learnt
    from perflaw.store.csv_file import CsvSeries, CsvTable


@click.command("fit", short_help="laws of your own numbers in a CSV file")
@click.argument("file", metavar="FILE.csv")
@click.option("--response", required=True, metavar="COLUMN", help="Column to explain.")
@click.option("--features", metavar="COLUMN,...", help="Columns it may depend on; all other numeric ones by default.")
@click.option("--by", metavar="COLUMN", help="One law for each value of this column.")
@click.option("--run", metavar="COLUMN", help="Column with the run of each row: rows of a run are not independent.")
@at_option
@click.option("--drop-invalid", is_flag=True, help="Leave rows out that have cells which are no finite numbers.")
@json_option
def command(
    file: str,
    response: str,
    features: str | None,
    by: str | None,
    run: str | None,
    at: tuple[str, ...],
    drop_invalid: bool,
    as_json: bool,
) -> int:
    """Learn how a column of FILE.csv depends on its other columns (- is standard input).

    Predicts at 2 and 10 times the 95th percentile of every feature unless --at says where.
    """
    from perflaw.learn.laws import Series, learn
    from perflaw.store.csv_file import read_csv, split_series

    table = read_csv(file)
    names = _features(table, response, features, [column for column in (by, run) if column])
    points = _points(at, names, file)
    found = split_series(table, response, names, by, run, drop_invalid)
    laws = learn([Series(one.name or response, one.response, one.features, one.runs) for one in found], points)
    dropped = len(table.lines) - sum(one.response.size for one in found)
    if dropped:
        click.echo(f"perflaw: {dropped} rows with cells that are no finite numbers left out", err=True)
    _print(found, laws, response, as_json)
    return 0


def _features(table: CsvTable, response: str, features: str | None, taken: list[str]) -> list[str]:
    """Columns the response may depend on, each checked to be there."""
    from perflaw.store.csv_file import numeric_columns

    for column in (response, *taken):
        table.column(column)
    if features is None:
        return numeric_columns(table, (response, *taken))
    names = list(dict.fromkeys(name.strip() for name in features.split(",")))
    for name in names:
        table.column(name)
        if name in (response, *taken):
            raise UsageError(f"--features {name}", "the column has another part already", "name other columns")
    return names


def _points(at: tuple[str, ...], names: list[str], file: str) -> list[dict[str, float]] | None:
    """Points of ``--at``, their names checked against the features."""
    points = parse_points(at)
    for point in points:
        for name in point:
            if name not in names:
                there = ", ".join(names) or "none"
                raise UsageError(f"--at {name}=…: {file} has no feature {name!r}", f"the features are {there}")
    return points or None


def _print(found: list[CsvSeries], laws: list[Learnt], response: str, as_json: bool) -> None:
    """One JSON document a series, or one table."""
    if as_json:
        import json

        from perflaw.report.json import law_document

        for one, learnt in zip(found, laws, strict=True):
            law = law_document(learnt.law)
            document = {"schema": "perflaw.fit/1", "series": one.name, "law": law, "dropped": one.dropped}
            click.echo(json.dumps(document, allow_nan=False, ensure_ascii=False))
        return
    from perflaw.report.fit_table import fit_table

    named = [
        (one.name if one.name is not None else response, learnt.law) for one, learnt in zip(found, laws, strict=True)
    ]
    click.echo(fit_table(named, sys.stdout.isatty()), nl=False)
