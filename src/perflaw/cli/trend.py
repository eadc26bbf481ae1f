"""``perflaw trend``: which places of the program grow badly with the size of the work."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import (
    at_option,
    cluster_option,
    experiment_option,
    json_option,
    parse_points,
    print_document,
    read_recordings,
)
from perflaw.cli.pages import page_of, write_page
from perflaw.cluster import on_cluster
from perflaw.errors import UsageError
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.report.trend.view import TrendView
    from perflaw.store.experiment import Recording
    from perflaw.types import CountMatrix

KINDS = ("line", "block", "function", "edge")
"""The kinds of locations whose executions a recording counts."""
RECORD_LINES = "perflaw record --collect lines --vary n=100,300,1000,3000,10000,30000 -- app.py {n}"


@dataclass(frozen=True, slots=True)
class TrendRequest:
    """What a person asks for on the command line."""

    experiment: str
    """Name of the experiment."""
    source: tuple[str, ...] = ()
    """Runs, or one CSV file; empty for all runs."""
    features: tuple[str, ...] = ()
    """Features to learn laws in; empty for all."""
    counts: tuple[str, ...] = ()
    """Texts ``NAME=LOCATION``: features that are the count of a location."""
    kinds: str | None = None
    """Kinds of locations, separated by commas."""
    at: Sequence[Mapping[str, float]] = ()
    """Points to predict at."""

    @property
    def file(self) -> str | None:
        """The CSV file, if the source is a file."""
        first = self.source[0] if self.source else ""
        return first if first == "-" or first.lower().endswith(".csv") or (first and Path(first).is_file()) else None


@dataclass(frozen=True, slots=True, eq=False)
class TrendInput:
    """The counts that were read."""

    matrix: CountMatrix
    """All counts, with the features that were asked for."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is (§6.2.3 of the paper)."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → text."""
    recordings: Sequence[Recording] = ()
    """The recordings that the counts come from; empty for a file."""
    left_out: tuple[str, ...] = ()
    """What was not read and why, a sentence each."""


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
        click.echo(f"wrote {output}: {counted(len(view.trends.clusters), 'cluster')}, {size / 1e6:.1f} MB", err=True)
    from perflaw.report.documents import trend_document

    document = trend_document(view)
    if as_json:
        print_document(document)
    else:
        from perflaw.report.trend.table import trend_table

        click.echo(trend_table(document, sys.stdout.isatty(), every), nl=False)
    return 0


def learn_trend(
    read: TrendInput,
    request: TrendRequest,
    alpha: float = 0.02,
    sigma: float = 10.0,
    nonzero: int = 6,
    paper: bool = False,
) -> TrendView:
    """Clusters and their laws, with what a report needs to show them."""
    from perflaw.learn.trend import TrendOptions, trend
    from perflaw.report.trend.view import TrendView

    options = TrendOptions(alpha=alpha, sigma=sigma, nonzero=nonzero, paper=paper)
    matrix = read.matrix
    names = [location.name for location in matrix.locations]
    trends = trend(matrix.counts, names, matrix.features, list(request.at) or None, options)
    return TrendView(trends, matrix, read.sources, read.left_out, bool(request.at), read.counted, paper)


def read_trend_input(request: TrendRequest) -> TrendInput:
    """Read the counts and features of a request; raises a PerflawError that says what is missing or mistyped."""
    if file := request.file:
        from perflaw.store.csv_files import read_csv_matrix

        if len(request.source) > 1:
            what = f"{' '.join(request.source)}: several files"
            raise UsageError(what, "one matrix is read at a time", f"perflaw trend {file}")
        if request.kinds:
            raise UsageError(f"--kind {request.kinds}", "columns of a file have no kind", f"perflaw trend {file}")
        read = TrendInput(read_csv_matrix(file))
    else:
        read = _read_experiment(request)
    matrix = read.matrix
    known = matrix.features
    for name in request.features:
        if name not in known:
            why = f"runs have {_first(known)}"
            raise UsageError(f"--feature {name}: no run has it", why, f"--feature {next(iter(known), 'n')}")
    features = {name: x for name, x in known.items() if not request.features or name in request.features}
    # Feature → location of texts NAME=LOCATION; UsageError for an unknown location or a name in use.
    locations = [location.name for location in matrix.locations]
    counted = {}
    for text in request.counts:
        name, equals, place = text.partition("=")
        if name in matrix.features:
            why = "a name can mean only one of them"
            raise UsageError(f"--count {text}: {name} is a feature already", why, f"--count {name}s={place}")
        if not name or not equals or place not in locations:
            near = difflib.get_close_matches(place, locations[:20_000], 3, 0.3) or locations[:3]
            why = f"similar locations are {', '.join(near)}"
            raise UsageError(f"--count {text}: no such location", why, f"--count {name or 'swaps'}={near[0]}")
        counted[name] = place
    rows = {location.name: row for row, location in enumerate(matrix.locations)}
    features |= {name: matrix.counts[rows[place]] for name, place in counted.items()}
    for name in (name for point in request.at for name in point):
        if name not in features:
            raise UsageError(f"--at {name}=…: no such feature", f"runs have {_first(features)}", "perflaw runs")
    return replace(read, matrix=replace(matrix, features=features), counted=counted)


def _first(names: Iterable[str]) -> str:
    """The first names of features, for a message."""
    return ", ".join(sorted(names)[:8]) or "none"


def _read_experiment(request: TrendRequest) -> TrendInput:
    """Counts of an experiment's lines and blocks; without counted lines those of functions and calls."""
    from perflaw.store.counts import read_matrix, read_sources
    from perflaw.store.experiment import execution_of
    from perflaw.store.tables import has_table

    kinds = tuple(dict.fromkeys(kind.strip() for kind in (request.kinds or "").split(",") if kind.strip()))
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"--kind {kind}: no such kind", f"there are {', '.join(KINDS)}", "--kind line,block")
    recordings = read_recordings(request.experiment, request.source)
    counted = [one for one in recordings if has_table(one.folder, "counts")]
    instead = not kinds and not counted
    kinds = kinds or (("line", "block") if counted else ("function", "edge"))
    used = list(recordings)
    if {"line", "block"} & set(kinds):
        # Recordings with counted lines, with all processes of the same run, whether these counted lines or not.
        runs = {one.run.id: one.run for one in recordings}
        programs = {execution_of(one.run, runs).id for one in counted}
        used = [one for one in recordings if execution_of(one.run, runs).id in programs]
    matrix = read_matrix(used or recordings, kinds)
    left_out = _left_out(recordings, used, matrix)
    if "edge" in kinds and (silent := sum(not one.run.metrics for one in used)):
        left_out.append(f"no calls between functions in {silent} of {len(used)} runs: coverage does not count them")
    if instead:
        left_out.insert(0, f"no run counted lines: functions and calls are clustered instead ({RECORD_LINES})")
    return TrendInput(matrix, sources=read_sources(used), recordings=recordings, left_out=tuple(left_out))


def _left_out(recordings: Sequence[Recording], used: Sequence[Recording], matrix: CountMatrix) -> list[str]:
    """What the matrix does not hold and why, a sentence each."""

    def runs(number: int) -> str:
        return f"{number} run{'s' * (number != 1)}"

    ids = {one.run.id for one in recordings}
    programs = [one.run for one in used if one.run.parent not in ids]
    failed = [run for run in programs if run.id not in matrix.runs]
    children = len(used) - len(programs)
    partial = sum(not one.run.complete for one in used if one.run.parent in ids)
    sentences = []
    if len(used) < len(recordings):
        sentences.append(f"left out: {runs(len(recordings) - len(used))} recorded without --collect lines")
    if failed:
        names = ", ".join(run.id for run in failed[:5]) + " …" * (len(failed) > 5)
        sentences.append(f"left out: {runs(len(failed))} incomplete or failed ({names}: {failed[0].ended})")
    if children:
        sentences.append(f"{runs(children)} of child processes added to the runs that started them")
    if partial:
        sentences.append(f"{runs(partial)} of child processes incomplete: their counts are too small")
    return sentences
