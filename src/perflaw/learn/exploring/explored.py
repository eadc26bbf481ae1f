"""The result of a study: what its trials say of every configuration of its space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perflaw.learn.exploring.best import choices, front, surface
from perflaw.learn.exploring.field import Field, field_of, of_target
from perflaw.learn.exploring.hidden import Collapse, collapses
from perflaw.learn.exploring.importance import ALPHA, importance
from perflaw.learn.exploring.laws import metric_law
from perflaw.learn.exploring.responses import left_of, objective_of, ordered, responses, tried_of, usable
from perflaw.learn.exploring.spaces import SpaceLike
from perflaw.learn.exploring.threads import one_thread
from perflaw.types.explored import Choice, Estimate, Explored, FrontPoint, Importance, MetricLaw, Notice, Tried
from perflaw.types.studies import Study, StudyMetric, Trial

# ---- What a person should know before acting on a result.

MOST_REASONS = 6
"""Reasons of invalid trials that are told apart."""


def notices(
    trials: Sequence[Trial],
    space: SpaceLike,
    objective: StudyMetric | None,
    best: Choice | None,
    importance: Importance | None,
    collapses: Sequence[Collapse],
) -> tuple[Notice, ...]:
    """Return the warnings, the gravest first."""
    found = [*_invalid(trials), *map(_collapse, collapses)]
    if objective is None:
        found.append(Notice("other", "no metric has a goal (goal: max or goal: min): no configuration is best"))
    if importance and importance.reason:
        found.append(Notice("null" if importance.p > 0.01 else "few", f"{importance.metric}: {importance.reason}"))
    return (*found, *_contaminated(trials), *_stopped(trials), *(_edges(best, space, importance) if best else ()))


def _invalid(trials: Sequence[Trial]) -> Iterator[Notice]:
    """Invalid trials by their reason, the most frequent first."""
    begun = [one for one in trials if one.started or one.reason]
    reasons: dict[str, list[int]] = {}
    for one in begun:
        if not one.valid and one.reason:
            reasons.setdefault(one.reason, []).append(one.number)
    several = sorted(reasons.items(), key=lambda each: (-len(each[1]), each[1][0]))
    for reason, numbers in several[:MOST_REASONS]:
        words = f"{_trials(len(numbers))} of {len(begun)} invalid: {reason}"
        yield Notice("invalid", words, tuple(numbers))
    rest = tuple(number for _, numbers in several[MOST_REASONS:] for number in numbers)
    if rest:
        yield Notice(
            "invalid", f"{_trials(len(rest))} more invalid, for {len(several) - MOST_REASONS} other reasons", rest
        )


def _collapse(one: Collapse) -> Notice:
    """A collapse, and what explains it."""
    where = f" with {one.where}" if one.where else ""
    what = f"{one.knob}: beyond {one.peak:g} it gets worse, {one.loss * 100:.0f} % at {one.top:g}{where}"
    low, high = one.switches
    if one.lock:
        much = f" {high / low:,.0f} times" if low >= 1 else ""
        told = f"voluntary context switches rise{much} to {high:,.0f} a second: threads wait for one another"
        gone = (
            f"it is gone with {one.gone}" if one.gone else "no knob of this study takes it away; look for one that does"
        )
        return Notice("hidden lock", f"hidden lock? {what}, while {told}; {gone}", one.trials)
    if one.processors:
        told = f"threads wait for processors ({one.delay[1] * 100:.0f} % of their CPU time)"
        return Notice("other", f"{what}; {told}: there are more threads than processors", one.trials)
    return Notice("other", f"{what}; context switches do not rise with it, so no lock explains it", one.trials)


def _contaminated(trials: Sequence[Trial]) -> Iterator[Notice]:
    numbers = tuple(one.number for one in trials if one.contaminated)
    if numbers:
        first = next(one.contaminated for one in trials if one.contaminated)
        words = (
            f"{_trials(len(numbers))} disturbed by others (such as: {first}): not counted where a clean one is there"
        )
        yield Notice("contaminated", words, numbers)


def _stopped(trials: Sequence[Trial]) -> Iterator[Notice]:
    stopped = [one for one in trials if one.stopped]
    if stopped:
        whole = [one.measured_s for one in trials if one.valid and not one.stopped]
        usual = max(whole, default=0.0)
        saved = sum(max(0.0, usual - one.measured_s) for one in stopped)
        words = f"{_trials(len(stopped))} ended early, for they could not win any more: about {saved:,.0f} s saved"
        yield Notice("stopped", words, tuple(one.number for one in stopped))


def _edges(best: Choice, space: SpaceLike, importance: Importance | None) -> Iterator[Notice]:
    """Knobs that matter whose best setting is the end of their range: what lies beyond was not asked."""
    matter = {name for one in (importance.shares if importance else ()) if one.sure for name in one.knobs}
    ends = []
    for knob in space.knobs:
        if knob.name not in matter or knob.workload or not ordered(knob):
            continue
        numbers = [float(one) for one in knob.values] or [float(knob.low or 0), float(knob.high or 0)]
        value = float(best.configuration[knob.name])
        if len(set(numbers)) > 1 and value in (min(numbers), max(numbers)):
            ends.append(f"{knob.name} ({'least' if value == min(numbers) else 'greatest'})")
    if ends:
        words = f"the best lies at the end of what was asked of {', '.join(ends)}: wider ranges may hold a better one"
        yield Notice("other", words)


def _trials(count: int) -> str:
    return f"{count} trial{'s' * (count != 1)}"


MARGIN = 0.05
"""Share that the probability of the best speaks of where the study says none."""


@one_thread
def explored(
    study: Study, trials: Sequence[Trial], space: SpaceLike, *, unfinished: bool = False, ended: str = "", seed: int = 0
) -> Explored:
    """Return all that the trials so far tell; the same input gives the same result.

    ``unfinished``: trials are still to come; ``ended`` says why the study is over. Raises no error for want of data: what
    cannot be said is left out, with a notice.
    """
    objective = objective_of(study)
    metrics = sorted(study.metrics, key=lambda one: one != objective)
    tried = tried_of(trials, space, objective)
    parts = _importance(trials, space, metrics, seed)
    flat = {one.metric for one in parts if one.p > ALPHA and not one.shares}
    fields = _fields(trials, space, metrics, seed, flat)
    best, robust = _choices(study, trials, tried, objective, fields, space)
    first = parts[0] if parts else None
    field = fields.get(objective.name) if objective else None
    locks = collapses(trials, space, objective, seed) if objective else []
    return Explored(
        study=study,
        trials=tuple(trials),
        objective=objective,
        tried=tried,
        best=best,
        robust=robust,
        pareto=_front(fields, tried, space),
        importance=parts,
        laws=_laws(trials, space, metrics, parts, best),
        surface=surface(trials, space, field, best, first) if field and best else None,
        notices=notices(trials, space, objective, best, first, locks),
        unfinished=unfinished,
        ended=ended,
        left=left_of(study, trials),
    )


def _importance(
    trials: Sequence[Trial], space: SpaceLike, metrics: Sequence[StudyMetric], seed: int
) -> tuple[Importance, ...]:
    found = [responses(trials, space, metric.name) for metric in metrics]
    return tuple(importance(one, space, seed) for one in found if one)


def _fields(
    trials: Sequence[Trial], space: SpaceLike, metrics: Sequence[StudyMetric], seed: int, flat: set[str]
) -> dict[str, Field]:
    """Laws of all metrics over the same configurations: those that the objective makes interesting."""
    found: dict[str, Field] = {}
    for metric in metrics:
        like = next(iter(found.values()), None)
        field = field_of(trials, space, metric, seed, like, metric.name in flat)
        if field:
            found[metric.name] = field
    return found


def _choices(
    study: Study,
    trials: Sequence[Trial],
    tried: Sequence[Tried],
    objective: StudyMetric | None,
    fields: dict[str, Field],
    space: SpaceLike,
) -> tuple[Choice | None, Choice | None]:
    """The best and the robust configuration; with very few trials the best of what was measured, no more said."""
    margin = study.budget.margin or MARGIN
    if objective is None or not tried:
        return None, None
    if objective.name in fields:
        return choices(fields[objective.name], fields, trials, margin)
    first = tried[0]
    spread = {name: Estimate(value, value, value) for name, value in first.metrics.items()}
    why = "best of the few that were measured"
    return Choice(of_target(first.configuration, space), spread, first.metrics, first.trials, margin, None, why), None


def _front(fields: dict[str, Field], tried: Sequence[Tried], space: SpaceLike) -> tuple[FrontPoint, ...]:
    first = next(iter(fields.values()), None)
    if first is None:
        return ()
    numbers: dict[int, tuple[int, ...]] = {}
    places = {repr(sorted(one.items())): place for place, one in enumerate(first.configurations[: first.tried])}
    for one in tried:
        place = places.get(repr(sorted(of_target(one.configuration, space).items())))
        if place is not None:
            numbers[place] = tuple(sorted((*numbers.get(place, ()), *one.trials)))
    return front(fields, numbers)


def _laws(
    trials: Sequence[Trial],
    space: SpaceLike,
    metrics: Sequence[StudyMetric],
    parts: Sequence[Importance],
    best: Choice | None,
) -> tuple[MetricLaw, ...]:
    """The law of each metric that was measured, asked first at the best configuration."""
    depends = {one.metric: bool(one.shares) for one in parts}
    found = []
    for metric in metrics:
        rows = [one for one in usable(trials) if np.isfinite(one.metrics.get(metric.name, np.nan))]
        if len(rows) < 2:
            continue
        settings = [one.configuration for one in rows]
        at = [{**one.configuration, **best.configuration} for one in rows[:1]] if best else []
        points = [{name: float(column[0]) for name, column in space.columns(at).items()}] if at else []
        y = np.array([one.metrics[metric.name] for one in rows])
        keys = [space.key(one) for one in settings]
        law = metric_law(metric.name, y, space.columns(settings), keys, depends.get(metric.name, False), points)
        found.append(MetricLaw(metric, law))
    return tuple(found)
