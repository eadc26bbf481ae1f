"""Trials by configuration: which count as data, and the mean of each configuration's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perflaw.learn.exploring.spaces import SpaceLike
from perflaw.types.explored import Tried
from perflaw.types.studies import Study, StudyMetric, Trial


def usable(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that are data points: valid, run to their end, and undisturbed where enough such are left."""
    valid = [one for one in trials if one.valid and one.metrics]
    clean = {str(sorted(one.configuration.items())) for one in valid if not one.contaminated}
    return [one for one in valid if not one.contaminated or str(sorted(one.configuration.items())) not in clean]


def objective_of(study: Study) -> StudyMetric | None:
    """The first metric with a goal, None where none has one."""
    return next((one for one in study.metrics if one.goal), None)


def tried_of(trials: Sequence[Trial], space: SpaceLike, objective: StudyMetric | None) -> tuple[Tried, ...]:
    """Configurations with valid trials, the best first (without an objective in the order they were tried)."""
    groups: dict[str, list[Trial]] = {}
    for one in usable(trials):
        groups.setdefault(space.key(one.configuration), []).append(one)
    found = [_tried(group) for group in groups.values()]
    if objective is None:
        return tuple(found)
    sign = -1.0 if objective.goal == "max" else 1.0
    return tuple(sorted(found, key=lambda one: sign * one.metrics.get(objective.name, sign * np.inf)))


def _tried(group: Sequence[Trial]) -> Tried:
    """Means of the trials that ran to their end; of those ended early only where there are no others."""
    whole = [one for one in group if not one.stopped] or list(group)
    names = dict.fromkeys(name for one in whole for name in one.metrics)
    means = {name: mean_of(whole, name) for name in names}
    return Tried(dict(group[0].configuration), tuple(one.number for one in group), means)


def mean_of(trials: Sequence[Trial], name: str) -> float:
    """Mean of a metric over the trials that have it: of the logarithm where all are positive."""
    values = np.array([one.metrics[name] for one in trials if name in one.metrics])
    return float(np.exp(np.log(values).mean())) if (values > 0).all() else float(values.mean())


def left_of(study: Study, trials: Sequence[Trial]) -> Mapping[str, float]:
    """What is left of the budget."""
    left: dict[str, float] = {}
    if study.budget.trials is not None:
        left["trials"] = max(0, study.budget.trials - sum(bool(one.started) for one in trials))
    if study.budget.minutes is not None:
        left["minutes"] = max(0.0, study.budget.minutes - sum(one.seconds for one in trials) / 60)
    return left
