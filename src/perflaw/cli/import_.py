"""``perflaw import``: traces of other tools, and recordings of other machines, as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, parse_features
from perflaw.cli.recorded import tell_build
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perflaw.imports.importing import Imported
    from perflaw.store.experiment import Experiment


@click.command("import", short_help="traces of other tools and recordings of other machines")
@experiment_option
@click.option("--feature", multiple=True, metavar="NAME=NUMBER", help="Declare a feature of these runs.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
def command(experiment: str, feature: tuple[str, ...], files: tuple[Path, ...]) -> int:
    """Make a run of each FILE: trace-event JSON (Chrome, Perfetto, viztracer, uftrace), OTLP spans, gzip or plain.

    \b
    perflaw import -e web trace.json.gz
    perflaw variance -e web

    A folder .perflaw/NAME of another machine gives the recordings in it, which then count with those that are here.

    Sampled stacks and totals (perf, pprof, cProfile, gprof, callgrind) have no single calls and are refused.
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.imports.importing import import_trace
    from perflaw.imports.recordings import is_experiment
    from perflaw.store.experiment import open_experiment

    target, features = open_experiment(experiment), parse_features(feature)
    for path in files:
        if is_experiment(path):
            _adopt(path, target, features)
            continue
        _tell(path, import_trace(target, path, features, tell_build), target.folder)
    return 0


def _adopt(path: Path, target: Experiment, features: Mapping[str, float]) -> None:
    """Copy the recordings of an experiment, and say how many."""
    from perflaw.imports.recordings import adopt

    if features:
        why = "recordings of perflaw's have their features already"
        raise UsageError(f"--feature with {path}", why, f"perflaw import {path} && perflaw feature NAME=NUMBER")
    adopted = adopt(target, path)
    machines = len({run.host for run in adopted.runs})
    told = f"imported {len(adopted.runs)} run{'s' * (len(adopted.runs) != 1)}"
    told += f" of {machines} machine{'s' * (machines != 1)}" * bool(adopted.runs)
    told += f", {adopted.known} more are here already" * bool(adopted.known)
    click.echo(f"{told} → {target.folder}", err=True)


def _tell(path: Path, imported: Imported, folder: Path) -> None:
    """What became of a file, and what had to be decided about its calls."""
    runs = (imported.run, *imported.children)
    opened = sum(run.lost.open_invocations for run in runs)
    said = dict(sorted(imported.said.items()))
    for what, count in said.items():
        if count:
            click.echo(f"perflaw: {path}: {count} {what}", err=True)
    if opened:
        click.echo(f"perflaw: {path}: {opened} calls never end: counted as open, without a time", err=True)
    if imported.run.lost.reason:
        click.echo(f"perflaw: {path}: {imported.run.lost.reason}; what is there is kept", err=True)
    calls, processes = sum(run.calls for run in runs), f", {len(runs)} processes" if len(runs) > 1 else ""
    where = f"{folder}/runs/{imported.run.id}"
    click.echo(f"imported {calls} calls, {max(run.functions for run in runs)} functions{processes} → {where}", err=True)
