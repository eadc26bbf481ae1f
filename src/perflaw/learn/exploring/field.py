"""Joint draws of a metric's law over the configurations that matter: those tried, and those that may be better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from perflaw.confidence import HIGH, LOW
from perflaw.learn.exploring.observations import (
    Array,
    ConfigurationSpace,
    levels_of,
    ordered_knobs,
    responses,
)
from perflaw.learn.exploring.surrogate import Surrogate, fit_surrogate
from perflaw.types.explored import Estimate
from perflaw.types.studies import Configuration, StudyMetric, Trial, Value, configuration_key

FEWEST = 4
"""Number of configurations below which no law of the space is drawn."""
LAWS = 24
"""Laws that are drawn under each draw of the hyperparameters."""
MOST_EXAMINED, MOST_DRAWN, MOST_WORKLOADS = 3000, 140, 12
"""Largest numbers of configurations that are examined, of those that are drawn jointly, and of settings of the workload."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Joint draws of a metric's law over configurations of the target and settings of the workload."""

    metric: StudyMetric
    """The metric."""
    configurations: tuple[Configuration, ...]
    """Configurations of the target's knobs, those that were tried first."""
    tried: int
    """Number of configurations that were tried."""
    draws: Array
    """Draws of the law, (draws, configurations, workloads); logarithms where ``logarithm``."""
    noise: float
    """Standard deviation of one trial on the same scale."""
    logarithm: bool
    """Whether draws are of the metric's logarithm."""
    law: Surrogate
    """The law that was drawn."""
    distinct: int
    """Number of configurations that the law was learned from."""
    workload: Configuration
    """First setting of the workload."""

    def mean(self) -> Array:
        """Return the mean over the workload's settings, (draws, configurations)."""
        return np.asarray(self.draws.mean(axis=2))

    def worst(self) -> Array:
        """Return how far each configuration is behind the best one under its worst workload, (draws, configurations)."""
        scores = self.metric.sign * self.draws
        behind = scores - scores.mean(axis=0).max(axis=0)[None, None, :]
        return np.asarray(behind.min(axis=2))

    def estimate(self, place: int) -> Estimate:
        """Return the expected value of a configuration, in the metric's unit."""
        values = self.mean()[:, place]
        low, middle, high = np.quantile(np.exp(values) if self.logarithm else values, [LOW, 0.5, HIGH])
        return Estimate(float(middle), float(low), float(high))

    def margin(self, share: float) -> float:
        """Return the positive distance, on the draws' scale, to a value that is better by a share."""
        if self.logarithm:
            return float(-np.log1p(-share) if self.metric.sign > 0 else np.log1p(share))
        return float(share * np.abs(self.mean()).max())


def field_of(
    trials: Sequence[Trial],
    space: ConfigurationSpace,
    metric: StudyMetric,
    seed: int,
    like: Field | None = None,
    flat: bool = False,
) -> Field | None:
    """Draw the metric's law; None where too few configurations were tried.

    Args:
        trials: all trials of the study.
        space: the study's configurations.
        metric: the metric.
        seed: seed of the draws.
        like: a field whose configurations are drawn here too.
        flat: whether no dependence on any knob is established. Differences between configurations count as noise then,
            since a flexible law finds a shape in any small sample of noise.
    """
    seen = responses(trials, space, metric.name)
    if seen is None or len(seen.y) < FEWEST:
        return None
    values, errors = seen.natural(seen.y), None
    if flat:
        spread = float(seen.y.std())
        errors = values * spread if seen.logarithm else np.full(values.size, spread)
    law = fit_surrogate(seen.x, ordered_knobs(space), values, metric.sign, seed, errors, trials=seen.weight)
    rng = np.random.default_rng([seed, len(seen.y)])
    workloads = workloads_of(space)
    if like:
        configurations, tried = like.configurations, like.tried
    else:
        configurations, tried = _candidates(seen.configurations, space, law, workloads, rng)
    at = np.array([space.unit({**settings, **load}) for settings in configurations for load in workloads])
    drawn = law.sample(at, LAWS, rng, law.misfit())
    scale = law.scale
    base = scale.sign * (drawn * scale.spread + scale.centre)
    noise = law.noise * scale.spread
    if seen.freedom >= FEWEST and scale.logarithm == seen.logarithm:
        noise = float(np.sqrt(seen.within / seen.freedom))
    return Field(
        metric=metric,
        configurations=configurations,
        tried=tried,
        draws=base.reshape(len(drawn), len(configurations), len(workloads)),
        noise=noise,
        logarithm=scale.logarithm,
        law=law,
        distinct=len(seen.y),
        workload=workloads[0],
    )


def workloads_of(space: ConfigurationSpace) -> list[dict[str, Value]]:
    """Return combinations of settings of the knobs that describe the workload; one empty setting where there are none."""
    knobs = [knob for knob in space.knobs if knob.workload]
    several = [list(levels_of(space, knob)) for knob in knobs]
    while np.prod([len(levels) for levels in several], dtype=float) > MOST_WORKLOADS:
        longest = max(several, key=len)
        several[several.index(longest)] = [longest[0], longest[-1]] if len(longest) < 4 else longest[::2]
        if all(len(levels) <= 2 for levels in several):
            break
    names = [knob.name for knob in knobs]
    return [dict(zip(names, settings, strict=True)) for settings in product(*several)][:64]


def of_target(configuration: Configuration, space: ConfigurationSpace) -> dict[str, Value]:
    """Return the settings of the target alone, without the workload's."""
    return {knob.name: configuration[knob.name] for knob in space.knobs if not knob.workload}


def _candidates(
    tried: Sequence[Configuration],
    space: ConfigurationSpace,
    law: Surrogate,
    workloads: list[dict[str, Value]],
    rng: np.random.Generator,
) -> tuple[tuple[Configuration, ...], int]:
    """Return configurations that were tried and others that may be the best, and the number of the former."""
    if space.size is not None and space.size <= MOST_EXAMINED:
        examined = list(space.grid(MOST_EXAMINED))
    else:
        examined = [space.sample(rng) for _ in range(MOST_EXAMINED // 2)]
    known = {configuration_key(settings): settings for settings in (of_target(each, space) for each in tried)}
    others = {configuration_key(settings): settings for settings in (of_target(each, space) for each in examined)}
    room = max(20, MOST_DRAWN // len(workloads))

    def promising(several: list[dict[str, Value]], most: int) -> list[dict[str, Value]]:
        """Return the ``most`` configurations with the best upper bounds, in their order."""
        if len(several) <= most:
            return several
        at = np.array([space.unit({**settings, **load}) for settings in several for load in workloads])
        means, deviations = law.predict(at)
        upper = (means + 1.5 * deviations).mean(axis=0).reshape(len(several), -1).mean(axis=1)
        return [several[i] for i in np.sort(np.argsort(-upper, kind="stable")[:most])]

    kept = promising(list(known.values()), 2 * room)
    untried = [settings for key, settings in others.items() if key not in known]
    return (*kept, *promising(untried, max(room // 4, room - len(kept)))), len(kept)
