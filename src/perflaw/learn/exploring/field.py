"""Joint draws of a metric's law over the configurations that matter: those tried, and those that may be better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from perflaw.learn.exploring.responses import Responses, kinds, levels_of, responses
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.learn.exploring.surrogate import Surrogate, fit_surrogate
from perflaw.types.explored import Estimate
from perflaw.types.studies import Configuration, StudyMetric, Trial, Value

FEWEST = 4
"""Configurations below which no law of the space is drawn."""
EACH = 24
"""Draws of the whole law for each covariance."""
MOST_LOOKED, MOST_DRAWN, MOST_WORKLOADS = 3000, 140, 12
"""Configurations that are looked at, those of them that are drawn jointly, and settings of the workload."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Joint draws of a metric's law over configurations of the target and settings of the workload."""

    metric: StudyMetric
    """Which metric."""
    configurations: tuple[Configuration, ...]
    """Configurations of the target's knobs, those tried first."""
    tried: int
    """How many of them were tried."""
    draws: Array
    """(draws, configurations, workloads); logarithms where ``logarithm``."""
    noise: float
    """Standard deviation of one trial on the same scale."""
    logarithm: bool
    """Whether draws are of the logarithm."""
    law: Surrogate
    """The law itself."""
    distinct: int
    """Configurations tried that the law was learnt from."""
    workload: Configuration
    """The first of the workload's settings."""

    @property
    def sign(self) -> float:
        """1 where more is better, −1 where less is; 1 without a goal."""
        return -1.0 if self.metric.goal == "min" else 1.0

    def mean(self) -> Array:
        """Mean over the workload's settings, (draws, configurations)."""
        return np.asarray(self.draws.mean(axis=2))

    def worst(self) -> Array:
        """The worst setting of the workload in an unlucky run, against the best there; greater is better, like ``mean``."""
        scores = self.sign * self.draws
        behind = scores - scores.mean(axis=0).max(axis=0)[None, None, :]
        return np.asarray(behind.min(axis=2))

    def estimate(self, place: int) -> Estimate:
        """What is expected of a configuration, in the metric's unit."""
        values = self.natural(self.mean()[:, place])
        low, middle, high = np.quantile(values, [0.025, 0.5, 0.975])
        return Estimate(float(middle), float(low), float(high))

    def natural(self, values: Array) -> Array:
        """Values in the metric's unit."""
        return np.exp(values) if self.logarithm else values

    def margin(self, share: float) -> float:
        """How much better by a share is, on the draws' scale (a positive number)."""
        if self.logarithm:
            return float(-np.log1p(-share) if self.sign > 0 else np.log1p(share))
        return float(share * np.abs(self.mean()).max())


def field_of(
    trials: Sequence[Trial],
    space: SpaceLike,
    metric: StudyMetric,
    seed: int,
    like: Field | None = None,
    flat: bool = False,
) -> Field | None:
    """Draw the metric's law; None where too little was tried. ``like``: over the same configurations as another field.

    ``flat``: no dependence on any knob was established, so that what configurations differ by counts as noise: a small
    sample of noise looks like a law to any law that may bend.
    """
    found = responses(trials, space, metric.name)
    if found is None or len(found.y) < FEWEST:
        return None
    sign = -1.0 if metric.goal == "min" else 1.0
    rows, values = _rows(found)
    law = fit_surrogate(rows, kinds(space), values, sign, seed, _flat(found, values) if flat else None)
    rng = np.random.default_rng([seed, len(found.y)])
    settings = workloads(space)
    configurations, tried = (like.configurations, like.tried) if like else _candidates(found, space, law, settings, rng)
    at = np.array([space.unit({**one, **setting}) for one in configurations for setting in settings])
    middle = law.predict(at)[0].repeat(EACH, axis=0)
    drawn = middle + law.misfit() * (law.joint(at, EACH, rng) - middle)
    base = law.scale.sign * (drawn * law.scale.spread + law.scale.centre)
    shape = (len(drawn), len(configurations), len(settings))
    noise = float(np.median([one.curves.noise for one in law.draws]) ** 0.5) * law.scale.spread
    if found.freedom >= FEWEST and law.scale.logarithm == found.logarithm:
        noise = float(np.sqrt(found.within / found.freedom))
    return Field(
        metric, configurations, tried, base.reshape(shape), noise, law.scale.logarithm, law, len(found.y), settings[0]
    )


def _rows(found: Responses) -> tuple[Array, Array]:
    """Places and responses, a configuration once for each of its trials: the surrogate weighs by repetition."""
    times = [max(1, round(weight)) for weight in found.weight.tolist()]
    return np.repeat(found.x, times, axis=0), found.natural(np.repeat(found.y, times))


def _flat(found: Responses, values: Array) -> Array:
    """Standard errors as if all configurations were alike, (n,)."""
    spread = float(found.y.std())
    return np.asarray(values * spread if found.logarithm else np.full(values.size, spread))


def workloads(space: SpaceLike) -> list[dict[str, Value]]:
    """Settings of the knobs that describe the workload; one empty setting where there are none."""
    knobs = [knob for knob in space.knobs if knob.workload]
    several = [list(levels_of(space, knob)) for knob in knobs]
    while np.prod([len(one) for one in several], dtype=float) > MOST_WORKLOADS:
        longest = max(several, key=len)
        several[several.index(longest)] = [longest[0], longest[-1]] if len(longest) < 4 else longest[::2]
        if all(len(one) <= 2 for one in several):
            break
    names = [knob.name for knob in knobs]
    return [dict(zip(names, one, strict=True)) for one in product(*several)][:64]


def of_target(configuration: Configuration, space: SpaceLike) -> dict[str, Value]:
    """The settings of the target alone."""
    return {knob.name: configuration[knob.name] for knob in space.knobs if not knob.workload}


def _candidates(
    found: Responses, space: SpaceLike, law: Surrogate, settings: list[dict[str, Value]], rng: np.random.Generator
) -> tuple[tuple[Configuration, ...], int]:
    """Configurations tried, and of the others those that may be the best: by what the law hopes of them."""
    tried = _once([of_target(one, space) for one in found.configurations])
    known = {_key(one) for one in tried}
    others = [one for one in _once([of_target(one, space) for one in _looked(space, rng)]) if _key(one) not in known]
    room = max(20, MOST_DRAWN // len(settings))
    tried = _likely(tried, space, law, settings, 2 * room)
    some = _likely(others, space, law, settings, max(room // 4, room - len(tried)))
    return (*tried, *some), len(tried)


def _looked(space: SpaceLike, rng: np.random.Generator) -> list[Configuration]:
    """Configurations of the space: all of a small one, else some at random."""
    if space.size is not None and space.size <= MOST_LOOKED:
        return list(space.grid(MOST_LOOKED))
    return [space.sample(rng) for _ in range(MOST_LOOKED // 2)]


def _likely(
    some: Sequence[Configuration], space: SpaceLike, law: Surrogate, settings: list[dict[str, Value]], most: int
) -> list[Configuration]:
    """The most hopeful of them, in their order."""
    if len(some) <= most:
        return list(some)
    at = np.array([space.unit({**one, **setting}) for one in some for setting in settings])
    means, deviations = law.predict(at)
    hope = (means + 1.5 * deviations).mean(axis=0).reshape(len(some), -1).mean(axis=1)
    return [some[i] for i in np.sort(np.argsort(-hope, kind="stable")[:most])]


def _once(several: Sequence[Configuration]) -> list[Configuration]:
    return list({_key(one): one for one in several}.values())


def _key(one: Configuration) -> str:
    return repr(sorted(one.items()))
