"""``perflaw dump``: every table of a recording as text; tests assert on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from perflaw.cli.options import experiment_option
from perflaw.errors import UsageError


@click.command("dump", short_help="every table of a recording as text")
@experiment_option
@click.option("--table", metavar="NAME", help="This table only.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
def command(experiment: str, table: str | None, runs: tuple[str, ...]) -> int:
    """Print the manifest and every table of RUN, one row a line; several RUNs are merged first."""
    from perflaw.store.experiment import open_experiment
    from perflaw.store.merge import merge
    from perflaw.store.schema import COLUMNS

    if table is not None and table not in COLUMNS:
        raise UsageError(
            f"--table {table}: no such table", "there are " + ", ".join(COLUMNS), f"perflaw dump {runs[0]}"
        )
    recordings = open_experiment(experiment).recordings(runs)
    if table is None:
        for recording in recordings:
            _print_manifest(recording.run)
    tables = recordings[0].tables() if len(recordings) == 1 else merge([one.tables() for one in recordings])
    for name in [table] if table else COLUMNS:
        for line in _lines(name, list(COLUMNS[name]), tables[name]):
            click.echo(line)
    return 0


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
