"""The result of a study: what its trials say about every configuration of its space, and what to beware of."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from perflaw.learn.exploring.best import Field, choices, field_of, front, knob_curves, of_target, surface
from perflaw.learn.exploring.gaussian_process import one_thread
from perflaw.learn.exploring.hidden_locks import Collapse, collapses
from perflaw.learn.exploring.importance import ALPHA, importance
from perflaw.learn.exploring.laws import metric_law
from perflaw.learn.exploring.observations import ConfigurationSpace, responses, tried_configurations, usable
from perflaw.types.explored import Choice, Estimate, Importance, MetricLaw, Notice, StudyResult, TriedConfiguration
from perflaw.types.studies import Study, StudyMetric, Trial, configuration_key

MARGIN = 0.05
"""Margin of the probability of the best configuration, as a share, where the study names none."""
BUSY_CORES = 0.25
"""Cores that other programs use in the median trial from which on the whole study ran on a busy machine."""
_NUMBER = re.compile(r"\d[\d.,]*")
MAX_REASONS = 6
"""Number of reasons of invalid trials that get a notice each."""


@one_thread
def study_result(
    study: Study,
    trials: Sequence[Trial],
    space: ConfigurationSpace,
    *,
    unfinished: bool = False,
    ended: str = "",
    seed: int = 0,
) -> StudyResult:
    """Return all that the trials, planned ones included, so far show; the same input gives the same result.

    What the data cannot say is left out, with a notice. ``ended`` says in words why the study ended.
    """
    objective = study.objective
    metrics = sorted(study.metrics, key=lambda metric: metric != objective)
    tried = tried_configurations(trials, objective)
    seen = [responses(trials, space, metric.name) for metric in metrics]
    importances = tuple(importance(each, space, seed) for each in seen if each)
    first = importances[0] if importances else None
    flat = {each.metric for each in importances if each.p > ALPHA and not each.shares}
    fields: dict[str, Field] = {}
    for metric in metrics:  # the fields of all metrics share the configurations that matter for the objective
        like = next(iter(fields.values()), None)
        field = field_of(trials, space, metric, seed, like, metric.name in flat)
        if field:
            fields[metric.name] = field
    best, robust = _choices(study, trials, tried, fields, space)
    locks = collapses(trials, space, objective, seed) if objective else []
    field = fields.get(objective.name) if objective else None
    left: dict[str, float] = {}
    if study.budget.trials is not None:
        left["trials"] = max(0, study.budget.trials - sum(bool(trial.started) for trial in trials))
    if study.budget.minutes is not None:
        left["minutes"] = max(0.0, study.budget.minutes - sum(trial.seconds for trial in trials) / 60)
    return StudyResult(
        study=study,
        trials=tuple(trials),
        objective=objective,
        tried=tried,
        best=best,
        robust=robust,
        pareto=front(fields, tried, space),
        importance=importances,
        laws=_laws(trials, space, metrics, importances, best),
        surface=surface(trials, space, field, best, first) if field and best else None,
        curves=tuple(curve for each in fields.values() for curve in knob_curves(each, space, best, seed))
        if best
        else (),
        notices=notices(trials, space, objective, best, first, locks),
        unfinished=unfinished,
        ended=ended,
        left=left,
    )


def _choices(
    study: Study,
    trials: Sequence[Trial],
    tried: Sequence[TriedConfiguration],
    fields: dict[str, Field],
    space: ConfigurationSpace,
) -> tuple[Choice | None, Choice | None]:
    """Return the best and the robust configuration; after very few trials, the best one that was measured."""
    margin = study.budget.margin or MARGIN
    objective = study.objective
    if objective is None or not tried:
        return None, None
    if objective.name in fields:
        return choices(fields[objective.name], fields, trials, margin)
    first = tried[0]
    values = {name: Estimate(value, value, value) for name, value in first.metrics.items()}
    why = "best of the few that were measured"
    return Choice(of_target(first.configuration, space), values, first.metrics, first.trials, margin, None, why), None


def _laws(
    trials: Sequence[Trial],
    space: ConfigurationSpace,
    metrics: Sequence[StudyMetric],
    importances: Sequence[Importance],
    best: Choice | None,
) -> tuple[MetricLaw, ...]:
    """Return the law of each metric that was measured, with a prediction at the best configuration first."""
    depends = {each.metric: bool(each.shares) for each in importances}
    laws = []
    for metric in metrics:
        rows = usable(trials, metric.name)
        if len(rows) < 2:
            continue
        settings = [trial.configuration for trial in rows]
        at = [{**settings[0], **best.configuration}] if best else []
        points = [{name: float(column[0]) for name, column in space.columns(at).items()}] if at else []
        y = np.array([trial.metrics[metric.name] for trial in rows])
        keys = [configuration_key(each) for each in settings]
        law = metric_law(metric.name, y, space.columns(settings), keys, depends.get(metric.name, False), points)
        laws.append(MetricLaw(metric, law))
    return tuple(laws)


# ---- What a person should know before acting on the result.


def notices(
    trials: Sequence[Trial],
    space: ConfigurationSpace,
    objective: StudyMetric | None,
    best: Choice | None,
    importance: Importance | None,
    locks: Sequence[Collapse],
) -> tuple[Notice, ...]:
    """Return the warnings, the most serious first."""
    found = []
    begun = [trial for trial in trials if trial.started or trial.reason]
    # Reasons that differ in their numbers alone are one reason.
    reasons: dict[str, list[Trial]] = {}
    for trial in begun:
        if not trial.valid and trial.reason:
            reasons.setdefault(_NUMBER.sub("#", trial.reason), []).append(trial)
    several = sorted(reasons.values(), key=lambda failed: (-len(failed), failed[0].number))
    for failed in several[:MAX_REASONS]:
        verb = "is" if len(failed) == 1 else "are"
        alike = "" if len({trial.reason for trial in failed}) == 1 else " (the others differ in the numbers only)"
        words = f"{len(failed)} of {_trials(len(begun))} {verb} invalid: {failed[0].reason}{alike}"
        found.append(Notice("invalid", words, tuple(trial.number for trial in failed)))
    if others := tuple(trial.number for failed in several[MAX_REASONS:] for trial in failed):
        words = f"{len(others)} more are invalid, for {len(several) - MAX_REASONS} other reasons"
        found.append(Notice("invalid", words, others))

    found += map(_collapse, locks)
    if objective is None:
        found.append(Notice("other", "no metric has a goal (goal: max or goal: min), so no configuration is the best"))
    if importance and importance.reason:
        found.append(Notice("null" if importance.p > 0.01 else "few", f"{importance.metric}: {importance.reason}"))
    if contaminated := [trial for trial in trials if trial.contaminated]:
        count, verb = _trials(len(contaminated)), "was" if len(contaminated) == 1 else "were"
        words = f"{count} {verb} disturbed by other programs ({contaminated[0].contaminated})"
        words += "; a disturbed trial counts only where its configuration has no other"
        found.append(Notice("contaminated", words, tuple(trial.number for trial in contaminated)))
    used = [trial.conditions.other_cpu for trial in trials if trial.valid]
    if used and (usual := float(np.median(used))) > BUSY_CORES:
        words = (
            f"the machine was busy in every trial: other programs used {usual:.1f} CPUs at the median. Values are those"
        )
        words += " of a busy machine, and the best configuration may be another one where the machine is quiet"
        found.append(Notice("contaminated", words))
    if stopped := [trial for trial in trials if trial.stopped]:
        usual = max((trial.measured_s for trial in trials if trial.valid and not trial.stopped), default=0.0)
        saved = sum(max(0.0, usual - trial.measured_s) for trial in stopped)
        count, verb = _trials(len(stopped)), "was" if len(stopped) == 1 else "were"
        words = f"{count} {verb} ended early, since no longer able to win; this saved about {saved:,.0f} s"
        found.append(Notice("stopped", words, tuple(trial.number for trial in stopped)))

    valid = [trial for trial in trials if trial.valid]
    own = [knob.name for knob in space.knobs if not knob.workload]
    if silent := [name for name in own if valid and all(name not in trial.verified for trial in valid)]:
        words = f"set, not verified: {', '.join(silent)}. The target was started with these settings, but does not say"
        words += " whether they took effect. Add a verify to these knobs that reads the target's output ({path: …} or"
        words += " {regex: …}) or asks the target ({command: …})"
        found.append(Notice("unverified", words))

    # Knobs that matter whose best setting is a limit of their range.
    matter = {name for share in (importance.shares if importance else ()) if share.sure for name in share.knobs}
    limits = []
    for knob in space.knobs:
        if best is None or knob.name not in matter or knob.workload or not knob.ordered:
            continue
        ends = [float(value) for value in knob.values] or [float(knob.low or 0), float(knob.high or 0)]
        value = float(best.configuration[knob.name])
        if len(set(ends)) > 1 and value in (min(ends), max(ends)):
            limits.append(f"{knob.name} at its {'lower' if value == min(ends) else 'upper'} limit")
    if limits:
        words = f"the best configuration has {', '.join(limits)}; a wider range may hold a better one"
        found.append(Notice("other", words))
    return tuple(found)


def _collapse(collapse: Collapse) -> Notice:
    """Return the notice of a collapse, with what explains it."""
    where = f" with {collapse.where}" if collapse.where else ""
    loss = f"by {collapse.loss * 100:.0f} % at {collapse.top:g}"
    effect = f"{collapse.knob}: the objective gets worse beyond {collapse.peak:g}{where}, {loss}"
    low, high = collapse.switches
    if collapse.lock:
        factor = f" {high / low:,.0f} times" if low >= 1 else ""
        reason = f"voluntary context switches rise{factor} to {high:,.0f} per second: threads wait for one another"
        gone = (
            f"the effect is gone with {collapse.gone}"
            if collapse.gone
            else "no knob of this study removes the effect; look for one that does"
        )
        return Notice("hidden lock", f"hidden lock? {effect}, while {reason}; {gone}", collapse.trials)
    if collapse.processors:
        waiting = f"threads wait for processors for {collapse.delay[1] * 100:.0f} % of their CPU time"
        return Notice("other", f"{effect}; {waiting}: there are more threads than processors", collapse.trials)
    return Notice("other", f"{effect}; context switches do not rise with it, so no lock explains it", collapse.trials)


def _trials(count: int) -> str:
    return f"{count} trial{'s' * (count != 1)}"
