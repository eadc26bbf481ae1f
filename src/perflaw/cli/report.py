"""``perflaw report``: everything known of an experiment, as one self-contained page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflaw.api.laws import learn_experiment
from perflaw.bounds import read_file, read_json
from perflaw.cli.annotate import check_point, point_of
from perflaw.cli.options import at_option, experiment_option, metric_option
from perflaw.cli.pages import mine_view, page_of, variance_views, write_page
from perflaw.cli.progress import note
from perflaw.errors import DataError, StoreError, UsageError
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.report.mine.text import MineView
    from perflaw.report.trend.view import TrendView
    from perflaw.report.variance.page import VarianceView


@click.command("report", short_help="write everything as one page for a browser")
@experiment_option
@metric_option
@at_option
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE.html", help="File to write.")
@click.option("--check", metavar="FILE.json", help="Show the verdicts that `perflaw check --json` wrote.")
@click.option("--diff", metavar="FILE.json", help="Show the changes that `perflaw diff --json` wrote.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(
    experiment: str,
    metric: str,
    at: tuple[str, ...],
    output: str,
    check: str | None,
    diff: str | None,
    runs: tuple[str, ...],
) -> int:
    """Write one HTML file with every law, its evidence and its uncertainty. It opens without a network."""
    from perflaw.api.trends import TrendRequest, learn_trend, read_trend_input
    from perflaw.store.tables import has_table

    point = point_of(at)
    outcomes = _outcomes(check, diff)
    learnt = learn_experiment(experiment, runs, point, metric)
    recordings, annotations = learnt.recordings, learnt.annotations
    check_point(point, annotations)
    page = replace(page_of(experiment, recordings, annotations, point), program=learnt.program)
    trend: TrendView | None = None
    variance: tuple[VarianceView, ...] = ()
    specs: MineView | None = None
    if any(has_table(one.folder, "counts") for one in recordings):
        with _noted("clusters of lines"):
            read = read_trend_input(TrendRequest(experiment, runs))
            points = (point,) if point and set(point) <= set(read.matrix.features) else ()
            trend = learn_trend(read, TrendRequest(experiment, runs, at=points))
    with _noted("patterns of variance"):
        variance = variance_views(recordings, metric)
    if any(has_table(one.folder, "path_about") for one in recordings):
        with _noted("specifications of call paths"):
            specs = mine_view(recordings, experiment, metric)
    size = write_page(output, replace(page, verdicts=outcomes, trend=trend, variance=variance, mine=specs))
    clusters = f", {counted(len(trend.trends.clusters), 'cluster')}" if trend else ""
    click.echo(f"wrote {output}: {counted(len(annotations), 'function')}{clusters}, {size / 1e6:.1f} MB")
    return 0


@contextmanager
def _noted(what: str) -> Iterator[None]:
    """A note says why the page lacks what cannot be learnt from these recordings."""
    try:
        yield
    except (DataError, StoreError) as error:
        note(f"no {what}: {error}")


def _outcomes(check: str | None, diff: str | None) -> dict[str, Any] | None:
    """The document of verdicts to show, if any; a wrong one is refused here, before minutes of learning."""
    if check is not None and diff is not None:
        raise UsageError("--check and --diff together", "a page shows one of them", "perflaw report --check FILE.json")
    path, verb = (check, "check") if check is not None else (diff, "diff")
    if path is None:
        return None
    again = f"perflaw {verb} {'LAWS' if verb == 'check' else 'OLD NEW'} --json > {path}"
    try:
        document = read_json(read_file(Path(path)))
    except OSError as error:
        raise UsageError(path, error.strerror or str(error), again) from error
    except ValueError as error:
        raise UsageError(path, "it is not JSON", again) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != f"perflaw.{verb}/1":
        raise UsageError(path, f"its schema is {schema!r}, expected perflaw.{verb}/1", again)
    return dict(document)
