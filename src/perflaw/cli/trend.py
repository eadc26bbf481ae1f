"""``perflaw trend``: which places of the program grow badly with the size of the work."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from perflaw.api.pages import page_of
from perflaw.api.trends import TrendRequest, learn_trend, read_trend_input
from perflaw.cli.options import (
    at_option,
    cluster_option,
    experiment_option,
    json_option,
    parse_points,
    print_document,
)
from perflaw.cli.pages import write_page
from perflaw.cli.progress import tell
from perflaw.cluster import on_cluster
from perflaw.report.quantity import counted


@click.command("trend", short_help="find the places in the code that scale badly with the size of the work")
@experiment_option
@at_option
@click.option("--feature", "features", multiple=True, metavar="NAME", help="Learn laws in these features only.")
@click.option("--count", "counts", multiple=True, metavar="NAME=LOCATION",
              help="Use the count of a location as a feature of that name.")  # fmt: skip
@click.option("--kind", "kinds", metavar="KIND,...", help="Kinds of locations: line, block, function, edge.")
@click.option(
    "--alpha", type=float, default=0.02, show_default=True, help="Members of a cluster fit with R² > 1 − alpha."
)
@click.option(
    "--sigma", type=float, default=10.0, show_default=True, help="Leave out counts whose deviation is smaller."
)
@click.option("--nonzero", type=int, default=6, show_default=True, help="Runs with a count above 0 that a law needs.")
@click.option("--paper", is_flag=True, help="Follow trend-prof's paper: bootstrap, power laws predict.")
@click.option("--all", "every", is_flag=True, help="List clusters of small counts as well.")
@cluster_option
@json_option
@click.option("-o", "--output", metavar="FILE.html", help="Write clusters, plots and sources as a page.")
@click.argument("source", nargs=-1, metavar="[RUN... | FILE.csv]")
def command(
    experiment: str,
    at: tuple[str, ...],
    features: tuple[str, ...],
    counts: tuple[str, ...],
    kinds: str | None,
    alpha: float,
    sigma: float,
    nonzero: int,
    paper: bool,
    every: bool,
    cluster: str | None,
    as_json: bool,
    output: str | None,
    source: tuple[str, ...],
) -> int:
    """Cluster the lines of a program by how their counts vary over runs, and learn how each cluster grows.

    Reads an experiment's runs (or the RUNs named) that were recorded with --collect lines; if there are none, it takes
    the counts of functions and calls. Or it reads a matrix: FILE.csv with a row for each run, columns feature:NAME, and
    a column for each location.

    The clusters are ordered by their largest count. Counts are predicted at ten times the 95th percentile of the
    features, or at the point of --at.

    \b
    perflaw trend --at n=1e6
    perflaw trend -o trend.html
    perflaw trend counts.csv
    """
    request = TrendRequest(experiment, source, features, counts, kinds, parse_points(at))
    read = read_trend_input(request)
    with on_cluster(cluster):
        view = learn_trend(read, request, alpha, sigma, nonzero, paper)
    if output:
        from perflaw.report.page.page import Page

        page = Page(
            target=Path(request.file or "").name, experiment="", command="", created="", runs=[], annotations=[]
        )
        if read.recordings:
            page = page_of(request.experiment, read.recordings, [], None)
        size = write_page(output, replace(page, trend=view))
        tell(f"wrote {output}: {counted(len(view.trends.clusters), 'cluster')}, {size / 1e6:.1f} MB")
    from perflaw.report.documents import trend_document

    document = trend_document(view)
    if as_json:
        print_document(document)
    else:
        from perflaw.report.trend.table import trend_table

        click.echo(trend_table(document, sys.stdout.isatty(), every), nl=False)
    return 0
