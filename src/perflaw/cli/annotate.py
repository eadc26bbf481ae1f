"""``perflaw annotate``: the law of each function's cost."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from perflaw.api.laws import check_point, learn_experiment, write_laws
from perflaw.cli.options import (
    at_option,
    cluster_option,
    experiment_option,
    json_option,
    metric_option,
    parse_points,
    print_document,
)
from perflaw.cluster import on_cluster
from perflaw.errors import UsageError


@click.command("annotate", short_help="learn the law of each function's cost")
@experiment_option
@metric_option
@at_option
@cluster_option
@json_option
@click.option("--text", "as_text", is_flag=True, help="Print the annotations in the annotation language.")
@click.option(
    "--calls", is_flag=True, help="Show the laws of a call, over its arguments and state, not those of a run."
)
@click.option("--all", "every", is_flag=True, help="List functions of small share as well.")
@click.option("--paper", is_flag=True, help="Follow Freud's paper: four classes, all minima of a density.")
@click.option("-o", "--output", metavar="FILE.law", help="Write the annotations to a file.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(
    experiment: str,
    metric: str,
    at: tuple[str, ...],
    cluster: str | None,
    as_json: bool,
    as_text: bool,
    calls: bool,
    every: bool,
    paper: bool,
    output: str | None,
    runs: tuple[str, ...],
) -> int:
    """Learn the law of each function's cost from the experiment's recordings (or the RUNs named).

    Functions are ranked by their share of the cost; with --at, by the cost that a run of that size will have in them.

    \b
    perflaw annotate --at n=1e6
    perflaw annotate -e nightly --metric cpu
    perflaw annotate -o perf.law
    """
    from perflaw.report.annotations import SMALL_SHARE, annotations_text, law_file

    point = point_of(at)
    # A table needs no more than it shows.
    whole = bool(output) or as_json or as_text or paper
    least_share = 0.0 if whole or every or at else SMALL_SHARE
    with on_cluster(cluster):
        learnt = learn_experiment(experiment, runs, point, metric, paper, calls=whole or calls, least_share=least_share)
    annotations = learnt.annotations
    check_point(point, annotations)
    document = learnt.document(point, calls)
    if output:
        from perflaw.store.evidence import by_key

        evidence = by_key(learnt.evidence, learnt.metric)
        write_laws(Path(output), document, annotations, learnt.recordings, evidence, learnt.costs)
    if as_text and not as_json:
        click.echo(law_file(annotations), nl=False)
        return 0
    if as_json:
        print_document(document)
    else:
        from perflaw.report.annotations import annotations_text

        click.echo(annotations_text(document, sys.stdout.isatty(), every), nl=False)
    return 0


def point_of(at: tuple[str, ...]) -> dict[str, float] | None:
    """The point of ``--at``, None without the option; UsageError if it is given twice."""
    points = parse_points(at)
    if len(points) > 1:
        together = ",".join(at)
        raise UsageError("--at is given twice", "functions are ranked at one point", f"--at {together}")
    return points[0] if points else None
