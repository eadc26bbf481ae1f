"""``perflaw runs``: the recordings of an experiment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from perflaw.cli.options import experiment_option, json_option, print_document
from perflaw.cli.progress import note, step
from perflaw.errors import StoreError
from perflaw.types.documents import encoded

NEWEST: Final = 100
"""Recordings in the table; an experiment may hold many more."""


@click.command("runs", short_help="list the recordings of an experiment")
@experiment_option
@json_option
@click.option("--verify", is_flag=True, help="Compare every table with its checksum; exit status 2 if one was altered.")
@click.option("--all", "show_all", is_flag=True, help=f"Show more than the newest {NEWEST} in the table.")
def command(experiment: str, as_json: bool, verify: bool, show_all: bool) -> int:
    """List the recordings: when each was made, of which command, with which features, and how it ended.

    \b
    perflaw runs
    perflaw runs -e nightly --verify
    """
    from perflaw.store.checksums import verify_all
    from perflaw.store.experiment import STORE, open_experiment
    from perflaw.types import Run

    target = open_experiment(experiment)
    runs: list[Run] = []
    damaged: dict[str, str] = {}
    unsealed: list[str] = []
    finished, unfinished = target.listed()
    earlier = 0 if show_all or verify or as_json else max(0, len(finished) - NEWEST)
    asked = finished[earlier:]
    with step("verifying the recordings" if verify else "reading the recordings") as show:
        for done, run_id in enumerate(asked):
            show(done / len(asked))
            try:
                recording = target.recording(run_id)
                if verify and not verify_all(recording.folder):
                    unsealed.append(run_id)
                runs.append(recording.run)
            except StoreError as error:
                damaged[run_id] = f"{error.what}: {error.why}"
    if not runs and not damaged and not unfinished:
        others = ", ".join(sorted(path.name for path in Path(STORE).glob("*") if (path / "runs").is_dir())) or "none"
        why = f"nothing was recorded there; the experiments in this folder are: {others}"
        raise StoreError(f"{target.folder}: no recordings", why, "perflaw record -- python app.py")
    document = encoded({"schema": "perflaw.runs/1", "runs": runs, "damaged": damaged, "unfinished": unfinished})
    if verify:
        sealed = len(runs) - len(unsealed)
        older = f" · {len(unsealed)} of an earlier version have no checksums" * bool(unsealed)
        note(f"{sealed} recordings are as they were written, {len(damaged)} are damaged{older}")
    status = 2 if verify and damaged else 0
    if as_json:
        print_document(document)
        return status
    from perflaw.report.annotations import runs_table

    click.echo(runs_table(document, sys.stdout.isatty()), nl=False)
    if earlier:
        note(f"{earlier:,} earlier recordings are not shown: perflaw runs --all")
    return status
