"""The page of ``perflaw report``, ``trend``, ``variance`` and ``mine``: its head, its views, and its file."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.api.reading import read_recordings, write_text
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.api.mining import MinedSpecs
    from perflaw.learn.variance.tree import Options
    from perflaw.report.mine.text import MineView
    from perflaw.report.page.page import Page
    from perflaw.report.variance.page import VarianceView
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation, Component

MAX_EXPLAINED = 120
"""Functions, those of the most important patterns first, that the page explains in full."""
MAX_DRIVEN = 12
"""Functions whose drivers are learnt: each takes the law learner a part of a second."""
_SIDE_BY_SIDE = ("time", "cpu", "events")


def page_of(
    experiment: str, recordings: Sequence[Recording], annotations: Sequence[Annotation], at: dict[str, float] | None
) -> Page:
    """The head of a page: the newest command of an experiment, its runs, and what they lost or left out."""
    from perflaw.report.page.page import Page

    runs = [recording.run for recording in recordings]
    incomplete = sum(not run.complete for run in runs)
    opened = sum(run.lost.open_invocations for run in runs)
    lost = [f"{counted(incomplete, 'run')} incomplete"] * bool(incomplete)
    lost += [f"{counted(opened, 'call')} had not ended"] * bool(opened)
    aside = sum(run.lost.subinterpreters for run in runs)
    lost += [f"{counted(aside, 'subinterpreter')} not recorded"] * bool(aside)
    library = max(run.lost.library_functions for run in runs)
    unselected = max(run.lost.unselected_functions for run in runs)
    untimed = max(run.lost.counted_functions for run in runs)
    left_out = [f"{counted(library, 'library function')} called only by libraries"] * bool(library)
    left_out += [f"{counted(unselected, 'function')} by --select or --exclude"] * bool(unselected)
    left_out += [f"the time of most calls of {counted(untimed, 'tiny library function')} (--budget)"] * bool(untimed)
    newest = runs[-1]
    return Page(
        target=newest.target,
        experiment=experiment,
        command=" ".join((Path(newest.command[0]).name, *newest.command[1:])),
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
    """Write the page and return its number of characters; StoreError where it cannot be written."""
    from perflaw.report.page.page import render

    text = render(page)
    write_text(output, text, "-o another/file.html")
    return len(text)


def mine_view(recordings: Sequence[Recording], experiment: str, metric: str) -> MineView:
    """Specifications of all functions whose call paths were collected, by wall time unless the metric is CPU time."""
    from perflaw.api.mining import MiningRequest, mine_specs
    from perflaw.learn.paths import MiningOptions
    from perflaw.report.mine.text import MineView

    runs, clock = tuple(one.run.id for one in recordings), metric if metric == "cpu" else "time"
    return MineView(mine_specs(MiningRequest(experiment, clock, runs, (), MiningOptions(), time.time_ns())).file)


def write_mine(output: str, experiment: str, mined: MinedSpecs) -> None:
    """Write a page of specifications alone."""
    from perflaw.mine.journal import read_journal
    from perflaw.report.mine.text import MineView
    from perflaw.report.page.page import Page
    from perflaw.store.experiment import open_experiment

    page = Page("specifications", "", "", "", [], [])
    if mined.recordings:
        page = page_of(experiment, mined.recordings, [], None)
    journal = read_journal(open_experiment(experiment).folder) if mined.recordings else []
    size = write_page(output, replace(page, mine=MineView(mined.file, mined.steps, journal)))
    click.echo(f"wrote {output}: {counted(len(mined.file.specs), 'specification')}, {size / 1e6:.1f} MB", err=True)


def variance_views(
    recordings: Sequence[Recording],
    metric: str = "time",
    options: Options | None = None,
    asked: Component | None = None,
    against: str | None = None,
) -> tuple[VarianceView, ...]:
    """A view for each metric: the one asked for first, then wall time, CPU time and events where recorded.

    Functions that vary in one metric are explained in all metrics, the function ``asked`` for first. Each view holds
    what changed since the experiment ``against``.
    """
    from perflaw.learn.variance.analyse import compare, survey
    from perflaw.report.variance.page import Since, VarianceView
    from perflaw.store.call_trees import read_call_tree, read_call_trees
    from perflaw.store.evidence import find_metric

    known = [{one.name for one in recording.run.metrics} for recording in recordings]
    recorded = [name for name in _SIDE_BY_SIDE if all(name in names for names in known)]
    metrics = [find_metric(recordings, name) for name in dict.fromkeys([metric, *recorded])]
    surveys = [survey(tree, options) for tree in read_call_trees(recordings, metrics)]
    before = read_recordings(against) if against is not None else []
    measured_before = [{one.name for one in recording.run.metrics} for recording in before]
    first = [asked] if asked else []
    # Coroutines whose latency varies, and functions of the patterns, the most important first, one of each list by turns.
    lists = [[latency.component for latency in one.variance.latencies] for one in surveys]
    lists += [[node.component for pattern in one.variance.patterns for node in pattern.nodes] for one in surveys]
    turns = [component for turn in itertools.zip_longest(*lists) for component in turn if component]
    chosen = list(dict.fromkeys([*first, *turns]))[:MAX_EXPLAINED]
    driven = frozenset(chosen[:MAX_DRIVEN])
    views = []
    for one in surveys:
        explained = {component: one.explain_with_curve(component, component in driven) for component in chosen}
        explanations = {component: value for component, value in explained.items() if value is not None}
        since, now = None, one.variance
        # Recordings that lack the metric tell nothing of what changed in it.
        if against is not None and all(now.metric.name in names for names in measured_before):
            earlier = survey(read_call_tree(before, now.metric), one.options).variance
            since = Since(against, compare(earlier, now))
        views.append(VarianceView(now, explanations, driven, since))
    return tuple(views)


def write_variance(
    output: str,
    experiment: str,
    recordings: Sequence[Recording],
    metric: str,
    options: Options,
    asked: Component | None,
    against: str | None,
) -> None:
    """Write a page of variance alone, which opens with the function ``asked`` for."""
    views = variance_views(recordings, metric, options, asked, against)
    size = write_page(output, replace(page_of(experiment, recordings, [], None), variance=views))
    patterns = counted(len(views[0].variance.patterns), "pattern")
    click.echo(f"wrote {output}: {patterns}, {size / 1e6:.1f} MB", err=True)
