"""``perflaw dump``: every table of a recording as text; tests assert on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import click

from perflaw.cli.options import experiment_option
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.store.experiment import Recording

COUNTS: Final = "counts"


@click.command("dump", short_help="every table of a recording as text")
@experiment_option
@click.option("--table", metavar="NAME", help="This table only.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
def command(experiment: str, table: str | None, runs: tuple[str, ...]) -> int:
    """Print the manifest and every table of RUN, one row a line; several RUNs are merged first.

    Runs with --collect lines have the table counts as well: each run's own. Those with --collect probes have probes and
    probe_processes, and probe_records, which is printed only by --table.
    """
    from perflaw.store.experiment import open_experiment
    from perflaw.store.merge import merge
    from perflaw.store.probe_tables import PROBE_TABLES
    from perflaw.store.schema import COLUMNS

    known = (*COLUMNS, COUNTS, *PROBE_TABLES)
    if table is not None and table not in known:
        raise UsageError(f"--table {table}: no such table", "there are " + ", ".join(known), f"perflaw dump {runs[0]}")
    recordings = open_experiment(experiment).recordings(runs)
    if table is None:
        for recording in recordings:
            _print_manifest(recording.run)
    if table in (None, COUNTS):
        _print_counts(recordings)
    for name in (table,) if table in PROBE_TABLES else () if table else ("probes", "probe_processes"):
        _print_probes(recordings, str(name))
    if table == COUNTS or table in PROBE_TABLES:
        return 0
    tables = recordings[0].tables() if len(recordings) == 1 else merge([one.tables() for one in recordings])
    for name in [table] if table else COLUMNS:
        for line in _lines(name, list(COLUMNS[name]), tables[name]):
            click.echo(line)
    return 0


def _print_counts(recordings: Iterable[Recording]) -> None:
    """Executions of lines and blocks, of the runs that counted them."""
    from perflaw.store.counts import read_counts

    for recording in recordings:
        counts = read_counts(recording.folder)
        if counts is not None:
            rows = zip(counts.locations, counts.counts.tolist(), strict=True)
            told = ((place.kind, place.name, place.function, count) for place, count in rows)
            for line in _lines(COUNTS, ["kind", "name", "function", "count"], told):
                click.echo(line)


def _print_probes(recordings: Iterable[Recording], name: str) -> None:
    """A table of the runs that collected probes; records are in the run of the program, its children's as well."""
    from perflaw.store.probe_tables import PROBE_TABLES, has_probes, read_probes

    for recording in recordings:
        if has_probes(recording.folder) and (recording.folder / f"{name}.parquet").exists():
            for line in _lines(name, list(PROBE_TABLES[name]), read_probes(recording.folder, name)):
                click.echo(line)


def _print_manifest(run: object) -> None:
    from dataclasses import fields

    for field in fields(run):  # type: ignore[arg-type]  # a dataclass by construction; mypy has no name for "any of them"
        click.echo(f"run {field.name}: {getattr(run, field.name)}")


def _lines(name: str, columns: list[str], rows: Iterable[tuple[object, ...]]) -> Iterator[str]:
    yield ""
    yield f"{name}: {' '.join(columns)}"
    for row in rows:
        yield f"{name}: " + " ".join("-" if value is None else _word(value) for value in row)


def _word(value: object) -> str:
    """A value as one word: text with spaces or control characters is quoted."""
    text = str(value)
    return text if text and text.isprintable() and " " not in text else repr(text)
