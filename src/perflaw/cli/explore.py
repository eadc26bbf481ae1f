"""``perflaw explore``: try configurations of a system, learn how its performance depends on them, name the best."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import json_option, print_document
from perflaw.cli.progress import detail, note, seconds_words, step, tell
from perflaw.errors import DataError, StoreError
from perflaw.progress import duration_words

if TYPE_CHECKING:
    from perflaw.explore.explorer import Explorer
    from perflaw.explore.studying import Wish
    from perflaw.notices import Show
    from perflaw.store.experiment import Experiment
    from perflaw.types import Evidence
    from perflaw.types.explored import StudyResult
    from perflaw.types.studies import Configuration, Reading, Study, Trial


# ---- The page of ``perflaw explore --page``: written whole beside its place and moved there, so that a reader never
# sees half.


def write_explore_page(output: str, found: StudyResult, seed: int) -> None:
    """Write the page; StoreError where it cannot be written."""
    from perflaw.report.explore.page import render_study

    text = render_study(found, seed)
    path = Path(output)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):  # the error to tell is the first one
            part.unlink()
        why = error.strerror or str(error)
        raise StoreError(f"{output}: cannot be written", why, "--page another/file.html") from error


class LivePage:
    """A page that follows its study: written anew after a trial, unless that would take more than a part of the time."""

    MOST_PART = 0.2
    """Part of the time since it was last written that writing may take."""

    def __init__(self, output: str, result: Callable[[bool], StudyResult], seed: int) -> None:
        """``result`` gives what the trials so far say, told whether more are to come."""
        self._output, self._result, self._seed = output, result, seed
        self._took = self._wrote = 0.0

    def write(self, unfinished: bool) -> None:
        """Write it; while the study is unfinished only if the last writing was long enough ago."""
        began = time.monotonic()
        if unfinished and began - self._wrote < self._took / self.MOST_PART:
            return
        write_explore_page(self._output, self._result(unfinished), self._seed)
        self._wrote = time.monotonic()
        self._took = self._wrote - began


# ---- What a study would do, in words: ``perflaw explore --dry-run``.


def tell_plan(target: Experiment, study: Study, wish: Wish, as_json: bool) -> int:
    """Print the plan; nothing is written and nothing run."""
    from perflaw.explore.studying import looked_at, plan_of

    trials, seed = looked_at(target, study, wish)
    plan = plan_of(study, seed, trials)
    if as_json:
        print_document(
            {
                "schema": "perflaw.explore-plan/1",
                "study": plan.study.name,
                "policy": plan.study.policy,
                "seed": seed,
                "size": plan.size,
                "made": plan.made,
                "left": plan.trials,
                "first": [{"configuration": dict(configuration), "why": why} for configuration, why in plan.first],
                "seconds": plan.seconds,
                "most_s": plan.most_s,
            }
        )
        return 0
    study, size = plan.study, "endless" if plan.size is None else f"{plan.size:,}"
    lines = [f"study {study.name}: {len(study.knobs)} knobs, {size} configurations, policy {study.policy}"]
    for knob in study.knobs:
        if knob.low is not None and knob.high is not None:
            settings_text = f"{knob.low:g} to {knob.high:g} {knob.unit}".rstrip()
        else:
            settings_text = ", ".join(map(str, knob.values)) if isinstance(knob.values, tuple) else ""
        lines.append(f"  {knob.name}: {settings_text}")
    lines.append(f"runs      {study.target.run or study.target.start}")
    if study.target.workload:
        lines.append(f"workload  {study.target.workload}")
    if study.restore.get("snapshot"):
        lines.append(f"restores  {', '.join(study.restore['snapshot'])}")
    lines += ["first, as far as nothing is learnt meanwhile:"] if plan.first else []
    lines += [f"  {settings(configuration)}{f'  ({why})' if why else ''}" for configuration, why in plan.first]
    lines += [f"note: {plan.warning}"] if plan.warning else []
    left = "trials until time or margin end it" if plan.trials is None else f"{plan.trials} trials"
    done = f", {plan.made} are made" if plan.made else ""
    takes = f", about {duration_words(plan.seconds)} as earlier ones took" if plan.seconds is not None else ""
    most = f", {duration_words(plan.most_s)} at most by the timeouts" if plan.most_s is not None else ""
    for line in [*lines, f"to be made: {left}{done}{takes}{most}. Nothing was touched."]:
        click.echo(line)
    return 0


def settings(configuration: Configuration) -> str:
    """A configuration in a line."""
    return ", ".join(f"{name} = {value}" for name, value in configuration.items())


# ---- How far a study is, on a terminal: best so far, the trial that runs, time left. Nothing on a pipe.


class Shown:
    """What a study's step shows."""

    def __init__(self, study: Study, show: Show, clock: Callable[[], float] = time.monotonic) -> None:
        self._study, self._show, self._clock, self._line = study, show, clock, ""
        self._metric = next((metric for metric in study.metrics if metric.goal), study.metrics[0])
        self._total = study.budget.trials
        self._done, self._left_s = 0.0, None if self._total is None else 0.0
        self._told_at = self._clock()
        self._between_s: list[float] = []
        """Seconds from the end of each trial to that of the next: what comes before and after it takes its time as well."""

    def limit(self, size: int | None) -> None:
        """There are only so many configurations; None: endless."""
        if size is not None:
            most = size * self._study.repetitions
            self._total = most if self._total is None else min(self._total, most)

    def reading(self, reading: Reading) -> None:
        """A value of the trial that runs."""
        if reading.metric == self._metric.name and self._line:
            now = f"now {reading.value:.4g} {self._metric.unit}".rstrip()
            since = self._clock() - self._told_at
            left = None if self._left_s is None else max(self._left_s - since, 0.0)
            self._show(self._done, left, f"{self._line} · {now} after {reading.at_s:.1f} s")

    def trial(self, trial: Trial, trials: Sequence[Trial]) -> None:
        """A trial is over."""
        made = [one for one in trials if one.started]
        # The best value so far and the one that a search this long would have to beat.
        name, sign = self._metric.name, -1 if self._metric.goal == "min" else 1
        values = [(sign * one.metrics[name], one) for one in made if one.valid and name in one.metrics]
        if not values:
            best_text = "no valid trial yet"
        else:
            value, best = max(values, key=lambda each: each[0])
            gain = sum(one.number > best.number for one in made)
            since = f", no better one in the last {gain}" if gain > 2 else ""
            best_text = (
                f"best {name} {sign * value:.4g} {self._metric.unit}".rstrip() + f" (trial {best.number}{since})"
            )
        parts = [f"{len(made)} of {self._total or '?'} trials", best_text]
        if not trial.valid:
            parts.append(f"trial {trial.number} is no data point: {trial.reason[:60]}")
        self._line = " · ".join(parts)
        detail(f"trial {trial.number}: {settings(trial.configuration)}: {seconds_words(trial.seconds)}")
        now = self._clock()
        self._between_s.append(now - self._told_at)
        self._told_at = now
        if self._total is not None:
            left = max(0, self._total - len(made))
            self._done = len(made) / max(self._total, 1)
            self._left_s = left * median(self._between_s) if made else None
        self._show(self._done, self._left_s, self._line)


# ---- The laws of a study as a ``.law`` file with its JSON twin, as ``perflaw annotate -o`` writes them.


def write_study_laws(path: Path, found: StudyResult, experiment: Experiment) -> None:
    """Write the laws of all metrics over the runs of the study's trials; StoreError where that cannot be.

    They are learnt from what the runs hold, in the runs' own units, so that later runs can be held against them.
    """
    import numpy as np

    from perflaw.api.laws import write_laws
    from perflaw.learn.exploring.laws import metric_law
    from perflaw.learn.exploring.observations import usable
    from perflaw.report.documents import annotate_document
    from perflaw.store.evidence import by_key, find_metric, gather
    from perflaw.types import Annotation, Scope
    from perflaw.types.studies import configuration_key

    runs = tuple(one.run for one in usable(found.trials) if one.run)
    if not runs:
        raise DataError(f"{path}: no laws to write", "no trial is valid", "perflaw explore STUDY")
    recordings = experiment.recordings(runs)
    # What the runs hold of every metric that has a law, by component and metric.
    everywhere = set.intersection(*({metric.name for metric in one.run.metrics} for one in recordings))
    names = [one.metric.name for one in found.laws if one.metric.name in everywhere]
    evidence: dict[tuple[str, str], Evidence] = {}
    for metric in (find_metric(recordings, name) for name in names):
        evidence |= by_key(gather(recordings, metric), metric)

    # The law of each metric as an annotation of the study's component.
    settings = {trial.run: configuration_key(trial.configuration) for trial in found.trials}
    annotations = []
    for (_, name), of_metric in evidence.items():
        groups = np.array([settings[run] for run in of_metric.run.tolist()])
        features = {feature: values for feature, values in of_metric.features.items() if np.isfinite(values).all()}
        depends = any(one.shares for one in found.importance if one.metric == name)
        at = next((one.law.predictions[:1] for one in found.laws if one.metric.name == name), ())
        points = [dict(one.features) for one in at if features.keys() <= one.features.keys()]
        law = metric_law(name, of_metric.cost, features, groups, depends, points)
        annotations.append(
            Annotation(
                component=of_metric.component,
                metric=find_metric(recordings, name),
                features=tuple(features),
                scopes=(Scope(None, 1.0, law),),
                calls=sum(cost.calls for cost in of_metric.runs),
                total=sum(cost.total for cost in of_metric.runs),
                share=1.0,
                self_share=1.0,
            )
        )
    document = annotate_document(annotations, [one.run for one in recordings], None)
    write_laws(path, document, annotations, recordings, evidence)


@click.command("explore", short_help="try configurations of a system and learn how its performance depends on them")
@click.option("-e", "--experiment", metavar="NAME", help="Experiment under .perflaw/.  [default: the study's name]")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of everything random.  [default: 0]")
@click.option("--policy", metavar="NAME", help="Another policy than the study names.")
@click.option("--trials", type=click.IntRange(1), metavar="N", help="Another number of trials.")
@click.option("--dry-run", is_flag=True, help="Say what would be tried and what that costs; touch nothing.")
@click.option("--rescore", is_flag=True, help="Compute the metrics of finished trials anew from what they printed.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Secret shared with a remote agent.")
@click.option("--ca", type=click.Path(path_type=Path), help="Certificate that a remote agent shows.")
@click.option("-o", "--output", metavar="FILE.law", help="Write the laws to a file.")
@click.option("--page", metavar="FILE.html", help="Write the page, anew after each trial.")
@json_option
@click.argument("study", type=click.Path(path_type=Path))
def command(
    experiment: str | None,
    seed: int | None,
    policy: str | None,
    trials: int | None,
    dry_run: bool,
    rescore: bool,
    token_file: Path | None,
    ca: Path | None,
    output: str | None,
    page: str | None,
    as_json: bool,
    study: Path,
) -> int:
    """Make the trials of a study: STUDY is a YAML file, a Python file, or the XML of SPEX.

    \b
    perflaw explore study.yaml --dry-run
    perflaw explore study.yaml --seed 1 --page study.html

    The same command goes on where it was interrupted, whatever was killed; with more --trials it adds to them.
    """
    from perflaw.api.laws import kept_laws
    from perflaw.explore.study_file import read_study
    from perflaw.explore.studying import Wish, wished
    from perflaw.report.documents import explore_document
    from perflaw.report.explore.text import explore_text
    from perflaw.report.quantity import counted
    from perflaw.store.experiment import open_experiment

    wish = Wish(seed, policy, trials, rescore)
    asked = wished(read_study(study), wish)
    target = open_experiment(experiment or asked.name)
    if dry_run:
        return tell_plan(target, asked, wish, as_json)
    found, agreed = _explored(target, asked, wish, study, (token_file, ca), page)
    if found.best and found.laws:
        write_study_laws(kept_laws(target), found, target)
    if output:
        write_study_laws(Path(output), found, target)
        tell(f"wrote {output}: {counted(len(found.laws), 'law')}")
    document = explore_document(found, agreed)
    if as_json:
        print_document(document)
    else:
        click.echo(explore_text(document, sys.stdout.isatty(), name=str(study)), nl=False)
    return 0


def _explored(
    target: Experiment, study: Study, wish: Wish, file: Path, remote: tuple[Path | None, Path | None], page: str | None
) -> tuple[StudyResult, int]:
    """Make the trials that are still to be made; what all of them say, and the seed.

    ``remote``: the secret shared with a remote agent, and the certificate that it shows.
    """
    from perflaw.explore.agent.client import agents_of
    from perflaw.explore.explorer import Explorer
    from perflaw.explore.studying import opened

    with opened(target, study, wish, note) as (journal, seed):
        with step(f"exploring {study.name}") as show:
            shown = Shown(study, show)
            with journal.step():
                journal.put(file=str(file.absolute()))  # the report reads the study again
            agent = agents_of(study, *remote)
            explorer = Explorer(study, seed, target, journal, agent, shown.reading)
            shown.limit(explorer.space.size)
            if explorer.steering.warning:
                note(explorer.steering.warning)
            live = None
            if page is not None:
                live = LivePage(page, lambda unfinished: _result(explorer, seed, unfinished), seed)
            try:
                for trial in explorer.run():
                    shown.trial(trial, explorer.trials())
                    if live:
                        live.write(unfinished=True)
            except KeyboardInterrupt:
                made = sum(bool(trial.started) for trial in explorer.trials())
                note(f"interrupted; {made} trials are kept, the same command goes on")
                raise
        # What comes now is not in the time left of the trials.
        with step("learning what the trials show"):
            if live:
                live.write(unfinished=False)
            return _result(explorer, seed, False), seed


def _result(explorer: Explorer, seed: int, unfinished: bool) -> StudyResult:
    from perflaw.learn.exploring.result import study_result

    return study_result(
        explorer.study, explorer.trials(), explorer.space, unfinished=unfinished, ended=explorer.ended, seed=seed
    )
