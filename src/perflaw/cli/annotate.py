"""``perflaw annotate``: the law of each function's cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import at_option, experiment_option, json_option, metric_option, parse_points
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation


@click.command("annotate", short_help="learn the law of each function's cost")
@experiment_option
@metric_option
@at_option
@json_option
@click.option("--text", "as_text", is_flag=True, help="The annotations in the annotation language.")
@click.option("--all", "every", is_flag=True, help="List functions of small share as well.")
@click.option("--paper", is_flag=True, help="The choices of Freud's paper: four classes, all minima of a density.")
@click.option("-o", "--output", metavar="FILE.law", help="Write the annotations to a file.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(
    experiment: str,
    metric: str,
    at: tuple[str, ...],
    as_json: bool,
    as_text: bool,
    every: bool,
    paper: bool,
    output: str | None,
    runs: tuple[str, ...],
) -> int:
    """Learn the law of each function's cost from the experiment's recordings (or the RUNs named), dearest first.

    With --at, functions are ranked by what a run of that size will cost in them.
    """
    point = point_of(at)
    recordings, annotations = learn_experiment(experiment, runs, point, metric, paper)
    check_point(point, annotations)
    if output:
        from perflaw.cli.twin import write_twin

        _write(Path(output), annotations)
        write_twin(Path(output), annotations, recordings, metric, point)
    if as_json:
        from perflaw.report.documents import annotate_document
        from perflaw.types.documents import dumps

        click.echo(dumps(annotate_document(annotations, [one.run for one in recordings], point)))
    elif as_text:
        from perflaw.report.annotations.lawfile import law_file

        click.echo(law_file(annotations), nl=False)
    else:
        _print_table(annotations, recordings, point, every)
    return 0


def point_of(at: tuple[str, ...]) -> dict[str, float] | None:
    """The point of ``--at``, None where there is none; UsageError where there are several."""
    points = parse_points(at)
    if len(points) > 1:
        together = ",".join(at)
        raise UsageError("--at given twice", "functions are ranked at one point", f"--at {together}")
    return points[0] if points else None


def learn_experiment(
    experiment: str, runs: tuple[str, ...], at: dict[str, float] | None, name: str, paper: bool = False
) -> tuple[Sequence[Recording], list[Annotation]]:
    """The experiment's recordings and what is learnt from them of the metric of that name."""
    from perflaw.learn.annotations import Options, annotate
    from perflaw.store.evidence import gather, measured
    from perflaw.store.experiment import open_experiment

    recordings = open_experiment(experiment).recordings(runs)
    metric = measured(recordings, name)
    clocks = [one.run.clock for one in recordings] if metric.unit == "ns" else []
    quantum = max([1.0, *(float(one.tick_ns) for one in clocks)])
    # Calibrations that differ from run to run shift all calls of a run.
    events = [one.event_ns for one in clocks] or [0]
    resolution = max([quantum, float(max(events) - min(events)), *(one.exact_ns for one in clocks)])
    options = Options(paper=paper, resolution=resolution)
    return recordings, annotate(gather(recordings, metric), at, quantum, metric, options)


def check_point(at: dict[str, float] | None, annotations: Sequence[Annotation]) -> None:
    """Refuse a point none of whose features was ever recorded: it is mistyped."""
    known = {name for one in annotations for name in one.features}
    for name in at or {}:
        if name not in known:
            some = ", ".join(sorted(known)[:8]) or "none"
            raise UsageError(f"--at {name}=…: no such feature", f"recorded were: {some}", "perflaw runs")


def _write(path: Path, annotations: Sequence[Annotation]) -> None:
    from perflaw.report.annotations.lawfile import law_file

    try:
        path.write_text(law_file(annotations), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "-o another/file.law") from error


def _print_table(
    annotations: Sequence[Annotation], recordings: Sequence[Recording], at: dict[str, float] | None, every: bool
) -> None:
    from perflaw.report.annotations.table import annotations_table

    click.echo(annotations_table(annotations, at, sys.stdout.isatty(), every), nl=False)
    left_out = max(one.run.lost.library_functions for one in recordings)
    unselected = max(one.run.lost.unselected_functions for one in recordings)
    if left_out:
        click.echo(f"left out: {left_out} library functions that only libraries call (--select records them)")
    if unselected:
        click.echo(f"left out by --select or --exclude: {unselected} functions")
