"""The variance view of ``perflaw variance -o`` and ``perflaw report``, in every metric that tells work from waiting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perflaw.cli.page_file import page_of, write_page

if TYPE_CHECKING:
    from perflaw.learn.variance.options import Options
    from perflaw.learn.variance.survey import Survey
    from perflaw.report.variance_model import Since, VarianceView
    from perflaw.store.experiment import Recording
    from perflaw.types import Component

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
    from perflaw.learn.variance.survey import survey
    from perflaw.report.variance_model import VarianceView
    from perflaw.store.call_trees import read_call_tree
    from perflaw.store.evidence import measured

    names = [metric, *(name for name in _recorded(recordings) if name != metric)]
    surveys = [survey(read_call_tree(recordings, measured(recordings, name)), options) for name in names]
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
    from perflaw.report.variance_model import Since
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
