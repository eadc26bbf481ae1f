"""A metric's trials as numbers: places in the unit cube, means by configuration, scatter within."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.components import Axis, Data
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.types.explored import Tried
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Trial

# ---- Trials by configuration: which count as data, and the mean of each configuration's.


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


LEVELS = 8
"""Levels that stand for the range of a knob."""
SHORT = 0.1
"""A trial that was cut short counts at least so much."""


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """What a metric was in each configuration tried."""

    metric: str
    """Its name."""
    logarithm: bool
    """Whether values are logarithms: where all are positive, for what knobs do multiplies."""
    configurations: tuple[Configuration, ...]
    """The configurations, each once."""
    numbers: tuple[tuple[int, ...], ...]
    """Numbers of the trials of each."""
    x: Array
    """(n, d) places in the unit cube, all knobs."""
    y: Array
    """(n,) mean of each, of the logarithm where so."""
    weight: Array
    """(n,) trials that each is the mean of."""
    within: float
    """Sum of squares of trials about their configuration's mean."""
    freedom: int
    """Its degrees of freedom."""

    def natural(self, values: Array) -> Array:
        """Values in the metric's own unit."""
        return np.exp(values) if self.logarithm else values


def responses(trials: Sequence[Trial], space: SpaceLike, metric: str) -> Responses | None:
    """Collect the metric's responses; None where no trial has one."""
    rows = [one for one in usable(trials) if np.isfinite(one.metrics.get(metric, np.nan))]
    if not rows:
        return None
    values = np.array([one.metrics[metric] for one in rows])
    logarithm = bool((values > 0).all())
    y = np.log(values) if logarithm else values
    keys = [space.key(one.configuration) for one in rows]
    groups = {key: np.array([i for i, other in enumerate(keys) if other == key]) for key in dict.fromkeys(keys)}
    weight = trial_weights(rows)
    means = np.array([np.average(y[some], weights=weight[some]) for some in groups.values()])
    within = sum(float(weight[some] @ (y[some] - mean) ** 2) for some, mean in zip(groups.values(), means, strict=True))
    firsts = tuple(rows[some[0]].configuration for some in groups.values())
    numbers = tuple(tuple(rows[i].number for i in some) for some in groups.values())
    x = np.array([space.unit(one) for one in firsts], dtype=np.float64).reshape(len(firsts), -1)
    whole = np.array([weight[some].sum() for some in groups.values()])
    return Responses(metric, logarithm, firsts, numbers, x, means, whole, within, len(rows) - len(groups))


def trial_weights(rows: Sequence[Trial]) -> Array:
    """How much each trial says: 1, less where it was cut short (its part of the time) or others disturbed it."""
    whole = [one.measured_s for one in rows if not one.stopped and one.measured_s > 0]
    usual = float(np.median(whole)) if whole else 0.0
    parts = [min(1.0, one.measured_s / usual) if one.stopped and usual else 1.0 for one in rows]
    return np.array(
        [max(SHORT, part * (0.3 if one.contaminated else 1.0)) for part, one in zip(parts, rows, strict=True)]
    )


def axes_of(space: SpaceLike, base: Configuration) -> tuple[list[int], tuple[Axis, ...]]:
    """Places of the knobs that have several levels, and the axes of these; ``base`` is any configuration."""
    places, axes = [], []
    for place, knob in enumerate(space.knobs):
        levels = np.array([float(space.unit({**base, knob.name: level})[place]) for level in levels_of(space, knob)])
        if np.unique(levels).size > 1:
            places.append(place)
            axes.append(Axis(knob.name, np.unique(levels), ordered(knob)))
    return places, tuple(axes)


def levels_of(space: SpaceLike, knob: Knob) -> Sequence[bool | int | float | str]:
    """Settings that stand for a knob: all that are listed, else some of its range."""
    return list(knob.values) if knob.values else list(space.levels(knob, LEVELS))


def ordered(knob: Knob) -> bool:
    """Whether near settings are alike."""
    return knob.kind in ("int", "float", "ordinal")


def data_of(found: Responses, places: Sequence[int], axes: tuple[Axis, ...]) -> tuple[Data, float]:
    """Standardized data for the components, and the factor they were divided by."""
    spread = float(found.y.std()) or 1.0
    y = (found.y - found.y.mean()) / spread
    x = found.x[:, list(places)]
    return Data(axes, x, y, found.weight, found.within / spread**2, found.freedom), spread


def kinds(space: SpaceLike) -> NDArray[np.bool_]:
    """Which knobs have an order, (d,)."""
    return np.array([ordered(knob) for knob in space.knobs])
