"""``perflaw trend``: which places of the program scale badly with the size of the work."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import at_option, experiment_option, json_option, parse_points
from perflaw.cli.pages import page_of, write_page
from perflaw.cli.trend_source import Asked, Found, gathered

if TYPE_CHECKING:
    from perflaw.report.trend.words import TrendView


@click.command("trend", short_help="which places of the program scale badly with the size of the work")
@experiment_option
@at_option
@click.option("--feature", "features", multiple=True, metavar="NAME", help="Learn in these features alone.")
@click.option(
    "--count",
    "counts",
    multiple=True,
    metavar="NAME=LOCATION",
    help="Take a location's count as a feature of that name.",
)
@click.option("--kind", "kinds", metavar="KIND,...", help="Locations to look at: line, block, function, edge.")
@click.option(
    "--alpha", type=float, default=0.02, show_default=True, help="Members of a cluster fit with R² > 1 − alpha."
)
@click.option("--sigma", type=float, default=10.0, show_default=True, help="Leave out counts that vary less than this.")
@click.option("--paper", is_flag=True, help="The choices of trend-prof's paper: bootstrap, power laws predict.")
@click.option("--all", "every", is_flag=True, help="List clusters of small cost as well.")
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
    paper: bool,
    every: bool,
    as_json: bool,
    output: str | None,
    source: tuple[str, ...],
) -> int:
    """Cluster the lines of a program by how their counts vary over runs, and learn how each cluster grows.

    Reads an experiment's runs (or the RUNs named), recorded with --collect lines; of others it takes functions and
    calls. Or a matrix: FILE.csv with a row a run, columns feature:NAME, and a column a location.

    Clusters stand in the order of their largest cost. Costs are predicted at ten times the 95th percentile of the
    features unless --at says where.
    """
    asked = Asked(experiment, source, features, counts, kinds, parse_points(at))
    found = gathered(asked)
    view = learnt(found, asked, alpha, sigma, paper)
    if output:
        _write(output, view, asked, found)
    if as_json:
        from perflaw.report.documents import dumps
        from perflaw.report.trend.document import trend_document

        click.echo(dumps(trend_document(view)))
    else:
        from perflaw.report.trend.table import trend_table

        click.echo(trend_table(view, sys.stdout.isatty(), every), nl=False)
    return 0


def learnt(found: Found, asked: Asked, alpha: float = 0.02, sigma: float = 10.0, paper: bool = False) -> TrendView:
    """Clusters and their laws, with what a report needs to show them."""
    from perflaw.learn.trend import TrendOptions, trend
    from perflaw.report.trend.words import TrendView

    options = TrendOptions(alpha=alpha, sigma=sigma, paper=paper)
    matrix = found.matrix
    names = [location.name for location in matrix.locations]
    trends = trend(matrix.counts, names, matrix.features, list(asked.at) or None, options)
    return TrendView(trends, matrix, found.sources, found.left_out, bool(asked.at), found.counted, paper)


def _write(output: str, view: TrendView, asked: Asked, found: Found) -> None:
    from perflaw.report.page.model import Page

    page = Page(target=Path(asked.file or "").name, experiment="", command="", created="", runs=[], annotations=[])
    if found.recordings:
        page = page_of(asked.experiment, found.recordings, [], None)
    size = write_page(output, replace(page, trend=view))
    click.echo(f"wrote {output}: {len(view.trends.clusters)} clusters, {size / 1e6:.1f} MB", err=True)
