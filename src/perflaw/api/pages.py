"""Everything known of an experiment as one page: its head, and each view that the recordings allow."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflaw.api.laws import LearntExperiment, check_point, learn_experiment
from perflaw.api.profiles import comparison, profile_document
from perflaw.api.reading import read_recordings
from perflaw.errors import PerflawError, StoreError
from perflaw.notices import notice, progress
from perflaw.parts import in_parts, step_of
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.learn.variance.analyse import Survey
    from perflaw.learn.variance.tree import Options
    from perflaw.report.mine.text import MineView
    from perflaw.report.page.page import Page
    from perflaw.report.trend.view import TrendView
    from perflaw.report.variance.page import VarianceView
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation, Component
    from perflaw.types.documents import Document
    from perflaw.types.variance import Explanation

MAX_EXPLAINED = 120
"""Functions, those of the most important patterns first, that the page explains in full."""
MAX_DRIVEN = 12
"""Functions whose drivers are learnt."""
EXPLAINED = 0.4
"""Part of the time of explaining that passes before drivers are learnt."""
PART = 8
"""Functions that are explained by one task of a cluster."""
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


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a report is asked to show."""

    experiment: str
    """Name of the experiment."""
    runs: tuple[str, ...] = ()
    """Ids of the runs to read; empty: all."""
    metric: str = "time"
    """Metric of the laws, and the first one of variance."""
    at: Mapping[str, float] | None = None
    """Point to predict at."""
    verdicts: Mapping[str, Any] | None = None
    """Document of ``check`` or ``diff`` to show."""


def report_page(request: PageRequest) -> Page:
    """Learn everything that the recordings allow; a notice says why a view is missing. Raises a PerflawError without runs."""
    from perflaw.api.trends import TrendRequest, learn_trend, read_trend_input
    from perflaw.report.overview import checks_data
    from perflaw.store.checks import read_checks
    from perflaw.store.experiment import open_experiment
    from perflaw.store.tables import has_table

    experiment, runs, at = request.experiment, request.runs, request.at
    learnt = learn_experiment(experiment, runs, at, request.metric)
    recordings = learnt.recordings
    check_point(at, learnt.annotations)
    trend: TrendView | None = None
    variance: tuple[VarianceView, ...] = ()
    specs: MineView | None = None
    exploration: Document | None = None
    profile: Document | None = None
    if any(has_table(one.folder, "counts") for one in recordings):
        with noted("clusters of lines"):
            read = read_trend_input(TrendRequest(experiment, runs))
            points = (dict(at),) if at and set(at) <= set(read.matrix.features) else ()
            trend = learn_trend(read, TrendRequest(experiment, runs, at=points))
    with noted("patterns of variance"):
        variance = variance_views(recordings, request.metric)
    if any(has_table(one.folder, "path_about") for one in recordings):
        with noted("specifications of call paths"):
            specs = mine_view(recordings, experiment, request.metric)
    with noted("exploration"):
        exploration = study_data(experiment)
    with noted("profile"):
        profile = profile_document(experiment, runs, None)
    with progress("putting the page together"):
        document = learnt.document(at)
        return replace(
            page_of(experiment, recordings, learnt.annotations, dict(at) if at else None),
            program=learnt.program,
            verdicts=request.verdicts,
            trend=trend,
            variance=variance,
            mine=specs,
            exploration=exploration,
            profile=profile,
            laws=document,
            overview=_overview(request, learnt, document),
            checks=checks_data(read_checks(open_experiment(experiment).folder)),
        )


@contextmanager
def noted(what: str) -> Iterator[None]:
    """A notice says why the page lacks what cannot be learnt from these recordings."""
    try:
        yield
    except PerflawError as error:
        notice(f"no {what}: {error}")


def _overview(request: PageRequest, learnt: LearntExperiment, laws: Document) -> Document | None:
    """What the overview tells of these laws; what changed is left out where there is nothing to compare with."""
    from perflaw.report.overview import overview_data
    from perflaw.report.page.laws import component_keys
    from perflaw.report.profile import next_command

    if not learnt.annotations:
        return None
    changed: Document | None = None
    # Two runs are compared by CPU time where it was recorded: what others take of wall time differs from run to run.
    metrics = ("cpu", "time") if request.metric == "time" else (request.metric,)
    for metric in metrics if not request.runs else ():
        with suppress(PerflawError):  # there is no earlier run of the same size, or it lacks the metric
            changed = comparison(request.experiment, (), metric)
            break
    program = next((one.run for one in learnt.recordings if not one.run.parent), learnt.recordings[0].run)
    keys, other_sizes = component_keys(learnt.annotations), next_command(program, {}, request.experiment)
    return overview_data(laws, keys, learnt.outlook, changed, other_sizes)


def study_data(experiment: str) -> Document | None:
    """The page's data of the study that the experiment is; None where it is none. StoreError where its file is gone."""
    from perflaw.store.experiment import open_experiment

    folder = open_experiment(experiment).folder
    if not (folder / "study.db").is_file():
        return None
    from perflaw.explore.journal import Journal
    from perflaw.explore.space import Space
    from perflaw.explore.study_file import read_study
    from perflaw.explore.studying import Wish, is_explored, wished
    from perflaw.learn.exploring.result import study_result
    from perflaw.report.explore.page import explore_data

    journal = Journal(folder / "study.db")
    try:
        file, digest, seed, trials = (
            journal.get("file"),
            journal.get("digest"),
            journal.get("seed", 0),
            journal.trials(),
        )
    finally:
        journal.close()
    again = "perflaw explore STUDY"
    if not file or not Path(file).is_file():
        raise StoreError(
            f"{folder}: the study's file {file or ''} is gone", "it was moved, or a trial was never made", again
        )
    study = wished(read_study(Path(file)), Wish())
    if study.digest != digest:
        raise StoreError(f"{file}: it changed since its last trial", "its trials would be read by other rules", again)
    space = Space(study.knobs, study.constraints)
    result = study_result(study, trials, space, unfinished=is_explored(folder), seed=seed)
    return explore_data(result, seed)


def mine_view(recordings: Sequence[Recording], experiment: str, metric: str) -> MineView:
    """Specifications of all functions whose call paths were collected, by wall time unless the metric is CPU time."""
    from perflaw.api.mining import MiningRequest, mine_specs
    from perflaw.learn.paths import MiningOptions
    from perflaw.report.mine.text import MineView

    runs, clock = tuple(one.run.id for one in recordings), metric if metric == "cpu" else "time"
    return MineView(mine_specs(MiningRequest(experiment, clock, runs, (), MiningOptions(), time.time_ns())).file)


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
    from perflaw.learn.variance.analyse import compare, survey, surveys_of_metrics
    from perflaw.learn.variance.drivers import drivers
    from perflaw.report.variance.page import Since, VarianceView
    from perflaw.store.call_trees import read_call_tree, read_call_trees
    from perflaw.store.evidence import find_metric

    known = [{one.name for one in recording.run.metrics} for recording in recordings]
    recorded = [name for name in _SIDE_BY_SIDE if all(name in names for names in known)]
    metrics = [find_metric(recordings, name) for name in dict.fromkeys([metric, *recorded])]
    with progress("reading call trees") as show:
        trees = read_call_trees(recordings, metrics, show)
    with progress("finding patterns of variance") as show:
        surveys = surveys_of_metrics(trees, options, show)
    before = read_recordings(against) if against is not None else []
    measured_before = [{one.name for one in recording.run.metrics} for recording in before]
    first = [asked] if asked else []
    # Coroutines whose latency varies, and functions of the patterns, the most important first, one of each list by turns.
    lists = [[latency.component for latency in one.variance.latencies] for one in surveys]
    lists += [[node.component for pattern in one.variance.patterns for node in pattern.nodes] for one in surveys]
    turns = [component for turn in itertools.zip_longest(*lists) for component in turn if component]
    chosen = list(dict.fromkeys([*first, *turns]))[:MAX_EXPLAINED]
    driven = chosen[:MAX_DRIVEN]
    explanations: list[dict[Component, Explanation]] = []
    views = []
    with progress("explaining variance") as show:
        for number, one in enumerate(surveys):

            def tell(done: int, number: int = number) -> None:
                show(EXPLAINED * (number + done / max(len(chosen), 1)) / len(surveys))

            explained = in_parts(partial(_explain_each, survey=one), chosen, PART, tell)
            explanations.append({component: found for component, found in zip(chosen, explained, strict=True) if found})
        told = [one.responses(component) for one in surveys for component in driven]
        drivers_of_all = iter(drivers(told, step_of(show, EXPLAINED, 1.0)))
        for one, of_one in zip(surveys, explanations, strict=True):
            for component, found in zip(driven, [next(drivers_of_all) for _ in driven], strict=True):
                if component in of_one:
                    of_one[component] = replace(of_one[component], drivers=found)
            since, now = None, one.variance
            # Recordings that lack the metric tell nothing of what changed in it.
            if against is not None and all(now.metric.name in names for names in measured_before):
                earlier = survey(read_call_tree(before, now.metric), one.options).variance
                since = Since(against, compare(earlier, now))
            views.append(VarianceView(now, of_one, frozenset(driven), since))
    return tuple(views)


def _explain_each(components: Sequence[Component], survey: Survey) -> list[Explanation | None]:
    return survey.explain_with_curves(components)
