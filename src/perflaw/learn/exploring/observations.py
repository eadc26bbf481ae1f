"""Trials as numbers: which trials are data points, and a metric's values with their configurations in the unit cube."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from perflaw.types.explored import TriedConfiguration
from perflaw.types.studies import Configuration, Knob, StudyMetric, Trial, Value, configuration_key

Array = NDArray[np.float64]
"""Array of floating point numbers; its shape is stated where it is used."""
Mask = NDArray[np.bool_]
LEVELS = 8
"""Number of levels that stand for the range of a knob."""
SHORT_TRIAL = 0.1
"""Smallest weight of a trial that was ended early."""
CONTAMINATED_TRIAL = 0.3
"""Weight of a trial that other programs disturbed, relative to a clean one."""
STOPPED_ERROR, CONTAMINATED_ERROR = 0.1, 0.3
"""Standard errors, relative to the value, of trials that were ended early or that other programs disturbed."""


class ConfigurationSpace(Protocol):
    """The part of a configuration space that learning reads; ``explore.space.Space`` has it."""

    @property
    def knobs(self) -> Sequence[Knob]:
        """Knobs in the study's order."""

    @property
    def size(self) -> int | None:
        """Number of valid configurations; None where they cannot be counted."""

    def valid(self, conf: Configuration) -> str:
        """Say why a configuration is invalid; empty where it is valid."""

    def unit(self, conf: Configuration) -> Array:
        """Return the place of a configuration in the unit cube, (d,)."""

    def grid(self, levels: int) -> Sequence[Configuration]:
        """Return every valid combination of at most ``levels`` levels a knob."""

    def sample(self, rng: np.random.Generator) -> Configuration:
        """Draw a valid configuration."""

    def levels(self, knob: Knob, most: int = 8) -> Sequence[Value]:
        """Return at most ``most`` settings that stand for a knob's range, increasing."""

    def columns(self, confs: Sequence[Configuration]) -> Mapping[str, Array]:
        """Return features for laws, (n,) each; settings of categorical knobs are features ``knob=value``, 0 or 1."""


def levels_of(space: ConfigurationSpace, knob: Knob) -> Sequence[Value]:
    """Return the settings that stand for a knob: all that are listed, or levels of its range."""
    return list(knob.values) if knob.values else list(space.levels(knob, LEVELS))


def ordered_knobs(space: ConfigurationSpace) -> Mask:
    """Return which knobs have an order, (d,)."""
    return np.array([knob.ordered for knob in space.knobs])


def usable(trials: Sequence[Trial], metric: str = "") -> list[Trial]:
    """Return the trials that are data points.

    A data point is valid and has a finite value of ``metric`` where one is named. Trials that other programs disturbed count
    only for configurations that have no clean trial.
    """
    valid = [trial for trial in trials if trial.valid and trial.metrics]
    if metric:
        valid = [trial for trial in valid if np.isfinite(trial.metrics.get(metric, np.nan))]
    clean = {configuration_key(trial.configuration) for trial in valid if not trial.contaminated}
    return [trial for trial in valid if not trial.contaminated or configuration_key(trial.configuration) not in clean]


def mean_of(trials: Sequence[Trial], metric: str) -> float:
    """Return the mean of a metric over the trials that have it: the geometric mean where all values are positive."""
    values = np.array([trial.metrics[metric] for trial in trials if metric in trial.metrics])
    return float(np.exp(np.log(values).mean())) if (values > 0).all() else float(values.mean())


def tried_configurations(trials: Sequence[Trial], objective: StudyMetric | None) -> tuple[TriedConfiguration, ...]:
    """Return the configurations with valid trials, the best first; in the order of trials where there is no objective.

    Trials that were ended early count only for configurations that have no complete trial.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in usable(trials):
        groups.setdefault(configuration_key(trial.configuration), []).append(trial)
    found = []
    for group in groups.values():
        complete = [trial for trial in group if not trial.stopped] or group
        names = dict.fromkeys(name for trial in complete for name in trial.metrics)
        means = {name: mean_of(complete, name) for name in names}
        numbers = tuple(trial.number for trial in group)
        found.append(TriedConfiguration(dict(group[0].configuration), numbers, means))
    if objective is None:
        return tuple(found)
    sign = -objective.sign
    return tuple(sorted(found, key=lambda tried: sign * tried.metrics.get(objective.name, sign * np.inf)))


# ---- One value a configuration: means over its trials.


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """A metric's mean in each configuration that was tried."""

    metric: str
    """Name of the metric."""
    logarithm: bool
    """Whether values are logarithms; they are where all values are positive, since effects of knobs multiply."""
    configurations: tuple[Configuration, ...]
    """The configurations, each once."""
    x: Array
    """Their places in the unit cube, (n, d)."""
    y: Array
    """Mean of each, or of its logarithm, (n,)."""
    weight: Array
    """Number of trials behind each mean, (n,); trials that were cut short count in part."""
    within: float
    """Sum of squares of trials about their configuration's mean."""
    freedom: int
    """Degrees of freedom of ``within``."""

    def natural(self, values: Array) -> Array:
        """Return values in the metric's own unit."""
        return np.exp(values) if self.logarithm else values


def responses(trials: Sequence[Trial], space: ConfigurationSpace, metric: str) -> Responses | None:
    """Collect a metric's means by configuration; None where no trial has a value."""
    rows = usable(trials, metric)
    if not rows:
        return None
    values = np.array([trial.metrics[metric] for trial in rows])
    logarithm = bool((values > 0).all())
    y = np.log(values) if logarithm else values
    keys = [configuration_key(trial.configuration) for trial in rows]
    groups = [np.array([i for i, other in enumerate(keys) if other == key]) for key in dict.fromkeys(keys)]

    # A trial weighs 1, less where it was ended early (its part of the time) or disturbed.
    complete = [trial.measured_s for trial in rows if not trial.stopped and trial.measured_s > 0]
    usual = float(np.median(complete)) if complete else 0.0
    weights = []
    for trial in rows:
        part = min(1.0, trial.measured_s / usual) if trial.stopped and usual else 1.0
        weights.append(max(SHORT_TRIAL, part * (CONTAMINATED_TRIAL if trial.contaminated else 1.0)))
    weight = np.array(weights)

    means = np.array([np.average(y[group], weights=weight[group]) for group in groups])
    within = sum(float(weight[group] @ (y[group] - mean) ** 2) for group, mean in zip(groups, means, strict=True))
    configurations = tuple(rows[group[0]].configuration for group in groups)
    totals = np.array([weight[group].sum() for group in groups])
    x = units(configurations, space)
    return Responses(metric, logarithm, configurations, x, means, totals, within, len(rows) - len(groups))


def units(configurations: Sequence[Configuration], space: ConfigurationSpace) -> Array:
    """Return the places of configurations in the unit cube, (n, d)."""
    rows = [space.unit(configuration) for configuration in configurations]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(space.knobs))


# ---- One value a trial, with its error.


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that the trials of a study say about its objective, as a policy needs it."""

    x: Array
    """Configurations of the trials with a value, in the unit cube, (n, d)."""
    values: Array
    """The objective in its unit, (n,)."""
    errors: Array
    """Standard errors of the values, (n,), nan where unknown."""
    failed: Array
    """Configurations of trials that ran and were no data points, (k, d)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    workload: Mask
    """Which knobs describe the workload, (d,)."""
    sign: float
    """1 where more is better, −1 where less is better."""


def evidence_of(history: Sequence[Trial], space: ConfigurationSpace, objective: StudyMetric) -> Evidence:
    """Return what the trials so far say about the objective."""
    rows = usable(history, objective.name)
    failed = [trial for trial in history if not trial.valid and trial.reason and not trial.contaminated]

    def error(trial: Trial) -> float:
        known = float(trial.scatter.get(objective.name, np.nan))
        extra = STOPPED_ERROR * bool(trial.stopped) + CONTAMINATED_ERROR * bool(trial.contaminated)
        return float(np.hypot(np.nan_to_num(known), extra * abs(trial.metrics[objective.name]))) if extra else known

    return Evidence(
        x=units([trial.configuration for trial in rows], space),
        values=np.array([trial.metrics[objective.name] for trial in rows], dtype=np.float64),
        errors=np.array([error(trial) for trial in rows], dtype=np.float64),
        failed=units([trial.configuration for trial in failed], space),
        ordered=ordered_knobs(space),
        workload=np.array([knob.workload for knob in space.knobs]),
        sign=objective.sign,
    )
