"""``perflaw dump``: every table of a recording as text; tests assert on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

import click

from perflaw.cli.options import experiment_option
from perflaw.errors import UsageError

COUNTS: Final = "counts"


@click.command("dump", short_help="print every table of a recording as text")
@experiment_option
@click.option("--table", metavar="NAME", help="Print only this table.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
def command(experiment: str, table: str | None, runs: tuple[str, ...]) -> int:
    """Print the manifest and every table of RUN, one row a line. Several RUNs are merged first.

    Runs recorded with --collect lines also have the table counts, which is printed run by run. Runs recorded with
    --collect probes have the tables probes and probe_processes, and probe_records, which only --table prints.

    \b
    perflaw dump 0001
    perflaw dump 0001 --table calltree
    """
    from perflaw.store.counts import read_counts
    from perflaw.store.experiment import open_experiment
    from perflaw.store.merge import merge
    from perflaw.store.schema import COLUMNS, PROBE_TABLES
    from perflaw.store.tables import has_table, read_table

    known = (*COLUMNS, COUNTS, *PROBE_TABLES)
    if table is not None and table not in known:
        why = "the tables are " + ", ".join(known)
        raise UsageError(f"--table {table}: there is no such table", why, f"perflaw dump {runs[0]}")
    recordings = open_experiment(experiment).recordings(runs)
    if table is None:
        for recording in recordings:
            for field in fields(recording.run):
                click.echo(f"run {field.name}: {getattr(recording.run, field.name)}")
    if table in (None, COUNTS):
        for recording in recordings:
            if (counts := read_counts(recording.folder)) is not None:
                executions = zip(counts.locations, counts.counts.tolist(), strict=True)
                rows = ((place.kind, place.name, place.function, number) for place, number in executions)
                _print_table(COUNTS, ["kind", "name", "function", "count"], rows)
    for name in [table] if table in PROBE_TABLES else [] if table else ["probes", "probe_processes"]:
        for recording in recordings:  # records are in the program's run, also those of its child processes
            if has_table(recording.folder, name):
                _print_table(name, list(PROBE_TABLES[name]), read_table(recording.folder, name))
    if table in (COUNTS, *PROBE_TABLES):
        return 0
    merged = [recording.tables() for recording in recordings]
    tables = merged[0] if len(merged) == 1 else merge(merged)
    for name in [table] if table else COLUMNS:
        _print_table(name, list(COLUMNS[name]), tables[name])
    return 0


def _print_table(name: str, columns: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    """Print a header and the rows; a text with spaces or control characters is quoted, a missing value is a dash."""
    click.echo(f"\n{name}: {' '.join(columns)}")
    for row in rows:
        words = []
        for value in row:
            text = "-" if value is None else str(value)
            words.append(text if text and text.isprintable() and " " not in text else repr(text))
        click.echo(f"{name}: {' '.join(words)}")
