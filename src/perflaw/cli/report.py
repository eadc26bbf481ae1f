"""``perflaw report``: everything known of an experiment, as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflaw.bounds import read_file, read_json
from perflaw.cli.annotate import point_of
from perflaw.cli.options import at_option, experiment_option, metric_option
from perflaw.cli.pages import write_page
from perflaw.cli.progress import QUIET, verbosity
from perflaw.errors import StoreError, UsageError
from perflaw.notices import progress
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.report.plots import NamedPlot


@click.command("report", short_help="write everything as one page for a browser")
@experiment_option
@metric_option
@at_option
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE.html", help="File to write.")
@click.option("--check", metavar="FILE.json", help="Show the verdicts that `perflaw check --json` wrote.")
@click.option("--diff", metavar="FILE.json", help="Show the changes that `perflaw diff --json` wrote.")
@click.option("--plots", metavar="DIR", help="Write every plot of the page there, as SVG and as PNG.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(
    experiment: str,
    metric: str,
    at: tuple[str, ...],
    output: str,
    check: str | None,
    diff: str | None,
    plots: str | None,
    runs: tuple[str, ...],
) -> int:
    """Write one HTML file with every law, its evidence and its uncertainty. It opens without a network.

    \b
    perflaw report
    perflaw report -e nightly --at n=1e6 -o nightly.html
    perflaw check perf.law -e new --json > check.json; perflaw report --check check.json
    """
    from perflaw.api.pages import PageRequest, report_page

    if plots:
        _png_of("<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>")  # before minutes of learning
    page = report_page(PageRequest(experiment, runs, metric, point_of(at), _outcomes(check, diff)))
    size = write_page(output, page)
    clusters = f", {counted(len(page.trend.trends.clusters), 'cluster')}" if page.trend else ""
    if verbosity() > QUIET:
        click.echo(f"wrote {output}: {counted(len(page.annotations), 'function')}{clusters}, {size / 1e6:.1f} MB")
    if plots:
        from perflaw.report.plots import page_plots, plots_text

        drawn = page_plots(page)
        write_plots(Path(plots), drawn, f"{page.target} – plots of {experiment}")
        if verbosity() > QUIET:
            click.echo(plots_text(drawn, plots))
    return 0


def write_plots(folder: Path, plots: Sequence[NamedPlot], heading: str) -> None:
    """Write each plot as ``NAME.svg`` and ``NAME.png``, and ``index.html``. StoreError where that cannot be."""
    from perflaw.report.plots import plots_index

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with progress("drawing plots") as show:
            for place, one in enumerate(plots, 1):
                one.plot.save(folder / f"{one.name}.svg")
                (folder / f"{one.name}.png").write_bytes(_png_of(one.plot.svg))
                show(place / len(plots))
        (folder / "index.html").write_text(plots_index(plots, heading), encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be written", error.strerror or str(error), "--plots another/folder"
        ) from error


def _png_of(svg: str) -> bytes:
    """A picture in dots, two for each unit, on white."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise UsageError("pictures as PNG", f"{error.name} is missing", "pip install 'perflaw[plots]'") from error
    return bytes(svg_to_bytes(svg_string=svg, zoom=2, background="white"))


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
