"""``perflaw import``: traces of other tools, and recordings of other machines, as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import check_store, own_experiment_option, parse_features, push_option
from perflaw.cli.progress import note, tell
from perflaw.cli.record_messages import print_build
from perflaw.errors import UsageError
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.imports.experiments import ImportedRuns


@click.command("import", short_help="read traces of other tools and recordings of other machines")
@own_experiment_option
@push_option
@click.option("--feature", multiple=True, metavar="NAME=NUMBER", help="Declare a feature of these runs.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
def command(experiment: str, store: str | None, feature: tuple[str, ...], files: tuple[Path, ...]) -> int:
    """Make a run of each FILE: a trace of another tool, gzip or plain.

    These are trace-event JSON (Chrome, Perfetto, viztracer, uftrace), Perfetto's protobuf, spans of OTLP, Zipkin and
    Jaeger, evented profiles of speedscope, recordings of JFR, function traces of Xdebug, and folders
    of uftrace and LTTng.

    \b
    perflaw import -e web trace.json.gz
    perflaw variance -e web

    A folder .perflaw/NAME of another machine gives the recordings in it, which then count with those that are here.

    Sampled stacks and totals (perf, pprof, cProfile, gprof, callgrind) have no single calls and are refused.
    """
    from perflaw.cli.push import push_runs
    from perflaw.imports.experiments import is_experiment
    from perflaw.imports.runs import import_trace
    from perflaw.store.experiment import open_experiment
    from perflaw.types import Run

    check_store(store)
    target, features, new = open_experiment(experiment), parse_features(feature), list[Run]()
    for path in files:
        if is_experiment(path):
            # Copy the recordings of an experiment, and say how many.
            from perflaw.imports.experiments import import_experiment

            if features:
                why = "recordings of perflaw's have their features already"
                raise UsageError(f"--feature with {path}", why, f"perflaw import {path} && perflaw feature NAME=NUMBER")
            imported = import_experiment(target, path)
            new += imported.runs
            tell(f"{imported_message('imported', imported)} → {target.folder}")
        else:
            trace = import_trace(target, path, features, print_build)
            # What the file gave, and what was decided about its calls.
            runs = (trace.run, *trace.children)
            new += runs
            unfinished = sum(run.lost.open_invocations for run in runs)
            notes = [f"{number} {text}" for text, number in sorted(trace.notes.items()) if number]
            notes += [f"{unfinished} calls never end: counted as open, without a time"] if unfinished else []
            notes += [f"{trace.run.lost.reason}; what is there is kept"] if trace.run.lost.reason else []
            for text in notes:
                note(f"{path}: {text}")
            calls, functions = sum(run.calls for run in runs), max(run.functions for run in runs)
            message = f"imported {counted(calls, 'call')}, {counted(functions, 'function')}"
            message += f", {counted(len(runs), 'process')}" * (len(runs) > 1)
            tell(f"{message} → {target.folder}/runs/{trace.run.id}")
    return push_runs(target, store, [run.id for run in new]) if store else 0


def imported_message(verb: str, imported: ImportedRuns) -> str:
    """How many runs of another experiment were copied, and how many were here already."""
    machines = len({run.host for run in imported.runs})
    message = f"{verb} {counted(len(imported.runs), 'run')}"
    message += f" of {counted(machines, 'machine')}" * bool(imported.runs)
    return message + f", {imported.known} more are here already" * bool(imported.known)
