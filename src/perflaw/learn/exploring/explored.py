"""The result of a study: what its trials say of every configuration of its space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflaw.learn.exploring.best import choices
from perflaw.learn.exploring.field import Field, field_of, of_target
from perflaw.learn.exploring.hidden import collapses
from perflaw.learn.exploring.importance import ALPHA, importance
from perflaw.learn.exploring.laws import metric_law
from perflaw.learn.exploring.notices import notices
from perflaw.learn.exploring.pareto import front
from perflaw.learn.exploring.responses import responses
from perflaw.learn.exploring.spaces import SpaceLike
from perflaw.learn.exploring.surface import surface
from perflaw.learn.exploring.threads import one_thread
from perflaw.learn.exploring.tried import left_of, objective_of, tried_of, usable
from perflaw.types.explored import Choice, Estimate, Explored, FrontPoint, Importance, MetricLaw, Tried
from perflaw.types.studies import Study, StudyMetric, Trial

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
