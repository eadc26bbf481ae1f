"""``perflaw report``: all laws of an experiment as one self-contained page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflaw.cli.annotate import check_point, learn_experiment, point_of
from perflaw.cli.options import at_option, experiment_option, metric_option
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from perflaw.report.page_model import Page
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation


@click.command("report", short_help="all laws as one page to open in a browser")
@experiment_option
@metric_option
@at_option
@click.option(
    "-o", "--output", default="report.html", show_default=True, metavar="FILE.html", help="Where to write it."
)
@click.option("--check", metavar="FILE.json", help="Verdicts to show with the laws: what `perflaw check --json` wrote.")
@click.option("--diff", metavar="FILE.json", help="Changes to show with the laws: what `perflaw diff --json` wrote.")
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
    """Write one HTML file with every law, its evidence and its uncertainty; it opens without a network."""
    from perflaw.report.html import render

    point = point_of(at)
    outcomes = _outcomes(check, diff)
    recordings, annotations = learn_experiment(experiment, runs, point, metric)
    check_point(point, annotations)
    text = render(replace(_page(experiment, recordings, annotations, point), outcomes=outcomes))
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{output}: cannot be written", error.strerror or str(error), "-o another/file.html"
        ) from error
    click.echo(f"wrote {output}: {len(annotations)} functions, {len(text) / 1e6:.1f} MB")
    return 0


def _outcomes(check: str | None, diff: str | None) -> dict[str, Any] | None:
    """The document of verdicts to show, if any; told wrong here, before minutes of learning."""
    if check is not None and diff is not None:
        raise UsageError("--check and --diff together", "a page shows one of them", "perflaw report --check FILE.json")
    path, verb = (check, "check") if check is not None else (diff, "diff")
    if path is None:
        return None
    again = f"perflaw {verb} {'LAWS' if verb == 'check' else 'OLD NEW'} --json > {path}"
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(path, error.strerror or str(error), again) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(path, "it is not JSON", again) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != f"perflaw.{verb}/1":
        raise UsageError(path, f"it says schema {schema!r}, and perflaw.{verb}/1 is wanted", again)
    return dict(document)


def _page(
    experiment: str, recordings: Sequence[Recording], annotations: Sequence[Annotation], at: dict[str, float] | None
) -> Page:
    from perflaw.report.page_model import Page

    runs = [recording.run for recording in recordings]
    opened = sum(run.lost.open_invocations for run in runs)
    incomplete = sum(not run.complete for run in runs)
    library = max(run.lost.library_functions for run in runs)
    unselected = max(run.lost.unselected_functions for run in runs)
    lost = [f"{incomplete} runs incomplete"] * bool(incomplete) + [f"{opened} calls had not ended"] * bool(opened)
    left_out = [f"{library} library functions that only libraries call"] * bool(library)
    left_out += [f"{unselected} functions by --select or --exclude"] * bool(unselected)
    return Page(
        target=runs[-1].target,
        experiment=experiment,
        command=" ".join((Path(runs[-1].command[0]).name, *runs[-1].command[1:])),
        created=max(run.started for run in runs),
        runs=[
            {
                "id": run.id,
                "features": dict(run.features),
                "wall_ns": run.wall_ns,
                "complete": run.complete,
                "calls": run.calls,
            }
            for run in runs
        ],
        annotations=annotations,
        slowdown=f"slowdown {statistics.median(run.slowdown for run in runs):.1f}x",
        lost=", ".join(lost) or "nothing lost",
        left_out=f"left out: {', '.join(left_out)}" if left_out else "",
        at=at,
    )
