"""The page of ``perflaw report`` and ``perflaw trend``: what it says of an experiment, and its file."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.errors import StoreError

if TYPE_CHECKING:
    from perflaw.cli.mining import MinedSpecs
    from perflaw.learn.variance.analyse import Survey
    from perflaw.learn.variance.options import Options
    from perflaw.report.mine.words import MineView
    from perflaw.report.page.model import Page
    from perflaw.report.variance.page import Since, VarianceView
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation, Component


def page_of(
    experiment: str, recordings: Sequence[Recording], annotations: Sequence[Annotation], at: dict[str, float] | None
) -> Page:
    """What a page says of an experiment: its newest command, its runs, what they lost."""
    from perflaw.report.page.model import Page

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


def write_page(output: str, page: Page) -> int:
    """Write the page, and say how many characters it has; StoreError where it cannot be written."""
    from perflaw.report.page.html import render

    text = render(page)
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{output}: cannot be written", error.strerror or str(error), "-o another/file.html"
        ) from error
    return len(text)


# ---- The call-path view of ``perflaw mine -o`` and ``perflaw report``.


def mine_view(recordings: Sequence[Recording], experiment: str, metric: str) -> MineView:
    """Specifications of all functions of which call paths were collected, by wall time but where CPU time is asked for."""
    from perflaw.cli.mining import MiningRequest, mine_specs
    from perflaw.learn.paths.options import MiningOptions
    from perflaw.report.mine.words import MineView

    runs, clock = tuple(one.run.id for one in recordings), metric if metric == "cpu" else "time"
    return MineView(mine_specs(MiningRequest(experiment, clock, runs, (), MiningOptions(), time.time_ns())).file)


def write_mine(output: str, experiment: str, mined: MinedSpecs) -> None:
    """Write the page of specifications alone."""
    from perflaw.report.mine.words import MineView
    from perflaw.report.page.model import Page

    specs = len(mined.file.specs)
    nothing = Page("specifications", "", "", "", [], [])
    page = page_of(experiment, mined.recordings, [], None) if mined.recordings else nothing
    size = write_page(output, replace(page, mine=MineView(mined.file, mined.steps)))
    click.echo(f"wrote {output}: {specs} specification{'s' * (specs != 1)}, {size / 1e6:.1f} MB", err=True)


# ---- The variance view of ``perflaw variance -o`` and ``perflaw report``, in every metric that tells work from
# waiting.

FULL = 120
"""Functions, those of the most important patterns first, that the page explains in full."""
DRIVEN = 12
"""Functions of which it is learnt what drives them: that takes the law learner, a part of a second each."""
_SIDE_BY_SIDE = ("time", "cpu", "events")


def variance_views(
    recordings: Sequence[Recording],
    metric: str = "time",
    options: Options | None = None,
    asked: Component | None = None,
    against: str | None = None,
) -> tuple[VarianceView, ...]:
    """A view for each metric: the one asked for first, then wall time, CPU time and events as far as recorded.

    Functions that vary in one metric are explained in all, the one ``asked`` for first. What changed since the experiment
    ``against`` stands beside.
    """
    from perflaw.learn.variance.analyse import survey
    from perflaw.report.variance.page import VarianceView
    from perflaw.store.call_trees import read_call_tree
    from perflaw.store.evidence import find_metric

    names = [metric, *(name for name in _recorded(recordings) if name != metric)]
    surveys = [survey(read_call_tree(recordings, find_metric(recordings, name)), options) for name in names]
    chosen = list(dict.fromkeys([*([asked] if asked else []), *_by_turns(surveys)]))[:FULL]
    driven = frozenset(chosen[:DRIVEN])
    views = []
    for one in surveys:
        found = {component: one.explained(component, component in driven) for component in chosen}
        known = {key: value for key, value in found.items() if value is not None}
        views.append(VarianceView(one.found, known, driven, _since(against, one)))
    return tuple(views)


def _since(against: str | None, now: Survey) -> Since | None:
    """What changed since the recordings of another experiment, None where there is none or it lacks the metric."""
    from perflaw.learn.variance.analyse import patterns_in
    from perflaw.learn.variance.compare import compare
    from perflaw.report.variance.page import Since
    from perflaw.store.call_trees import read_call_tree
    from perflaw.store.experiment import open_experiment

    if against is None:
        return None
    recordings, metric = open_experiment(against).recordings(), now.found.metric
    if not all(metric.name in (known.name for known in one.run.metrics) for one in recordings):
        return None
    before = patterns_in(read_call_tree(recordings, metric), now.options)[1]
    return Since(against, compare(before, now.found))


def write_variance(
    output: str,
    experiment: str,
    recordings: Sequence[Recording],
    metric: str,
    options: Options,
    asked: Component | None,
    against: str | None,
) -> None:
    """Write the page of variance alone; the function ``asked`` for is what it opens with."""
    views = variance_views(recordings, metric, options, asked, against)
    size = write_page(output, replace(page_of(experiment, recordings, [], None), variance=views))
    patterns = len(views[0].found.patterns)
    click.echo(f"wrote {output}: {patterns} pattern{'s' * (patterns != 1)}, {size / 1e6:.1f} MB", err=True)


def _recorded(recordings: Sequence[Recording]) -> list[str]:
    """Wall time, CPU time and events, those that every run has."""
    known = [{metric.name for metric in one.run.metrics} for one in recordings]
    return [name for name in _SIDE_BY_SIDE if all(name in some for some in known)]


def _by_turns(surveys: Iterable[Survey]) -> list[Component]:
    """Functions of the patterns, most important patterns first, all metrics by turns."""
    lists = [[node.component for pattern in one.found.patterns for node in pattern.nodes] for one in surveys]
    longest = max(map(len, lists), default=0)
    return [some[place] for place in range(longest) for some in lists if place < len(some)]
