"""What a metric's law expects of configurations: the best one, the robust one, the Pareto front, and maps of the objective.

Expectations come from joint draws of the law over the configurations that matter: those that were tried, and those that may be
better. What is expected of a configuration does not come from its own trials: the best of many trials was partly lucky.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, LOW
from perflaw.learn.exploring.acquisition import supported, validity
from perflaw.learn.exploring.gaussian_process import Surrogate, fit_surrogate
from perflaw.learn.exploring.importance import main_knobs
from perflaw.learn.exploring.observations import (
    Array,
    ConfigurationSpace,
    levels_of,
    mean_of,
    ordered_knobs,
    responses,
    units,
    usable,
)
from perflaw.types.explored import Choice, Estimate, FrontPoint, Importance, KnobCurve, Surface, TriedConfiguration
from perflaw.types.studies import Configuration, Knob, StudyMetric, Trial, Value, configuration_key

MIN_CONFIGURATIONS = 4
"""Number of configurations from which on the law of the space is drawn."""
LAWS = 24
"""Number of laws that are drawn under each draw of the hyperparameters."""
MAX_EXAMINED, MAX_DRAWN, MAX_WORKLOADS = 3000, 140, 12
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

    The configurations of the field ``like`` are drawn here too. ``flat``: no dependence on any knob is established.
    Then differences between configurations count as noise, since a flexible law finds a shape in any small sample of
    noise.
    """
    seen = responses(trials, space, metric.name)
    if seen is None or len(seen.y) < MIN_CONFIGURATIONS:
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
    if seen.freedom >= MIN_CONFIGURATIONS and scale.logarithm == seen.logarithm:
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
    while np.prod([len(levels) for levels in several], dtype=float) > MAX_WORKLOADS:
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
    if space.size is not None and space.size <= MAX_EXAMINED:
        examined = list(space.grid(MAX_EXAMINED))
    else:
        examined = [space.sample(rng) for _ in range(MAX_EXAMINED // 2)]
    known = {configuration_key(settings): settings for settings in (of_target(each, space) for each in tried)}
    others = {configuration_key(settings): settings for settings in (of_target(each, space) for each in examined)}
    room = max(20, MAX_DRAWN // len(workloads))

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


# ---- The best and the robust configuration.

NO_MATTER = 0.25
"""Difference of two worst cases, in parts of the noise, up to which the best configuration is the robust one as well."""
UNLUCKY = 1.645
"""Number of standard deviations by which an unlucky run is worse (one in twenty)."""


def choices(field: Field, fields: Mapping[str, Field], trials: Sequence[Trial], margin: float) -> tuple[Choice, Choice]:
    """Return the best configuration that was tried, and the robust one.

    The best has the greatest expected objective, not the luckiest trial. Its probability is that no configuration of the
    space is better by more than ``margin``.
    """
    score = field.metric.sign * field.mean()
    best = int(np.argmax(score[:, : field.tried].mean(axis=0)))
    worst = field.worst() - UNLUCKY * field.noise
    cautious = np.quantile(worst[:, : field.tried], 0.1, axis=0)
    robust = int(np.argmax(cautious))
    if cautious[robust] - cautious[best] <= NO_MATTER * max(field.noise, 1e-12):
        robust = best
    several = field.draws.shape[2] > 1
    expected = "best on average over the workload's settings" if several else "greatest expected objective"
    unlucky = "best under its worst setting of the workload" if several else "best in an unlucky run"
    return (
        _choice(field, fields, best, trials, margin, expected),
        _choice(field, fields, robust, trials, margin, unlucky),
    )


def _choice(
    field: Field, fields: Mapping[str, Field], place: int, trials: Sequence[Trial], margin: float, why: str
) -> Choice:
    settings = field.configurations[place]
    own = [trial for trial in trials if trial.valid and settings.items() <= trial.configuration.items()]
    names = dict.fromkeys(name for trial in own for name in trial.metrics)
    score = field.metric.sign * field.mean()
    holds = float(np.mean(score.max(axis=1) - score[:, place] <= field.margin(margin)))
    return Choice(
        configuration=settings,
        metrics={name: other.estimate(place) for name, other in fields.items()},
        measured={
            name: float(np.mean([trial.metrics[name] for trial in own if name in trial.metrics])) for name in names
        },
        trials=tuple(trial.number for trial in own),
        margin=margin,
        probability=supported(holds, field.distinct),
        why=why,
    )


# ---- The Pareto front.

MIN_PROBABILITY, FRONT_DRAWS = 0.2, 120
"""Smallest probability of a point of the front, and number of draws by which it is computed."""


def front(
    fields: Mapping[str, Field], tried: Sequence[TriedConfiguration], space: ConfigurationSpace
) -> tuple[FrontPoint, ...]:
    """Return the Pareto front of the configurations that were tried, the best objective first; empty for one goal.

    Each point has the numbers of its trials under all workloads.
    """
    with_goal = [field for field in fields.values() if field.metric.goal]
    if len(with_goal) < 2:
        return ()
    first, draws = with_goal[0], min(FRONT_DRAWS, *(len(field.draws) for field in with_goal))
    numbers: dict[str, list[int]] = {}
    for each in tried:
        numbers.setdefault(configuration_key(of_target(each.configuration, space)), []).extend(each.trials)
    scores = np.stack([field.metric.sign * field.mean()[:draws, : first.tried] for field in with_goal], axis=-1)
    probability = np.mean([undominated(draw) for draw in scores], axis=0)
    means = scores.mean(axis=0)
    places = np.flatnonzero((probability >= MIN_PROBABILITY) & (undominated(means) | (probability >= 0.5)))
    points = []
    for place in places[np.argsort(-means[places, 0], kind="stable")].tolist():
        configuration = first.configurations[place]
        metrics = {name: field.estimate(place) for name, field in fields.items()}
        trials = tuple(sorted(numbers.get(configuration_key(configuration), [])))
        points.append(FrontPoint(configuration, metrics, trials, float(probability[place])))
    return tuple(points)


def undominated(scores: Array) -> NDArray[np.bool_]:
    """Return which rows of (n, k) scores no other row reaches in all columns and exceeds in one; greater is better.

    >>> undominated(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0]])).tolist()
    [True, True, False]
    """
    no_worse = np.all(scores[None, :, :] >= scores[:, None, :], axis=2)
    better = np.any(scores[None, :, :] > scores[:, None, :], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=1))


# ---- The objective over two knobs, for each setting of a third.

T = TypeVar("T")
MAX_LEVELS, MAX_MAPS = 12, 6
"""Largest numbers of levels along an axis of the map, and of maps."""
LIKELY_VALID = 0.5
"""The map has an expectation where the configuration is at least as likely to work as not."""


def surface(
    trials: Sequence[Trial], space: ConfigurationSpace, field: Field, best: Choice, importance: Importance | None
) -> Surface | None:
    """Return the maps of the field's metric; None if the space has no two knobs with an order.

    The axes are the two ordered knobs that matter most, with the one of more levels across; the maps are the settings of the
    next knob of any kind. In cells where nothing was measured, the law's expectation stands alone, with the other knobs as in
    the best configuration; it is None where a configuration is invalid or likely to be, by the trials that failed, and for
    settings that never worked.
    """
    order = main_knobs(importance) if importance and importance.shares else [knob.name for knob in space.knobs]
    knobs = {knob.name: knob for knob in space.knobs if len(levels_of(space, knob)) > 1}
    by_importance = [knobs[name] for name in order if name in knobs]
    ordered = [knob for knob in by_importance if knob.ordered][:2]
    if len(ordered) < 2:
        return None
    name = field.metric.name
    rows = usable(trials, name)
    failed = [trial for trial in trials if trial.reason and not trial.valid]
    y, x = (
        (knob, _levels(space, knob, rows)) for knob in sorted(ordered, key=lambda knob: len(levels_of(space, knob)))
    )
    facet = next(((knob, _levels(space, knob, rows)[:MAX_MAPS]) for knob in by_importance if knob not in ordered), None)
    axes = [facet, y, x] if facet else [y, x]
    cells = list(product(*(levels for _, levels in axes)))
    trials_of = [
        [
            trial
            for trial in rows
            if all(_stands_for(space, knob, level, trial) for (knob, _), level in zip(axes, cell, strict=True))
        ]
        for cell in cells
    ]
    base = {**field.workload, **best.configuration}
    names = [knob.name for knob, _ in axes]
    settings = [{**base, **dict(zip(names, cell, strict=True))} for cell in cells]
    dead = {
        (knob.name, level)
        for knob, levels in axes
        for level in levels
        if any(_stands_for(space, knob, level, trial) for trial in failed)
        and not any(_stands_for(space, knob, level, trial) for trial in rows)
    }
    valid = [
        place
        for place, (cell, each) in enumerate(zip(cells, settings, strict=True))
        if dead.isdisjoint(zip(names, cell, strict=True)) and not space.valid(each)
    ]
    if valid and failed:
        good, bad = (units([trial.configuration for trial in some], space) for some in (rows, failed))
        works = validity(good, bad, units([settings[place] for place in valid], space), ordered_knobs(space), 0)
        valid = [place for place, likely in zip(valid, works.tolist(), strict=True) if likely >= LIKELY_VALID]
    expected: list[float | None] = [None] * len(cells)
    if valid:
        means, _ = field.law.predict(units([settings[place] for place in valid], space))
        for place, value in zip(valid, np.median(field.law.scale.back(means), axis=0).tolist(), strict=True):
            expected[place] = float(value)
    maps: list[Value] = facet[1] if facet else [""]
    shape = (len(maps), len(y[1]), len(x[1]))
    return Surface(
        metric=name,
        x=x[0].name,
        y=y[0].name,
        facet=facet[0].name if facet else "",
        x_values=tuple(x[1]),
        y_values=tuple(y[1]),
        facet_values=tuple(maps),
        measured=_nested([mean_of(cell, name) if cell else None for cell in trials_of], shape),
        expected=_nested(expected, shape),
        numbers=_nested([tuple(trial.number for trial in cell) for cell in trials_of], shape),
    )


def knob_curves(field: Field, space: ConfigurationSpace, best: Choice, seed: int) -> list[KnobCurve]:
    """Return what the law expects of the field's metric along each knob, the others as in the best configuration.

    Intervals are those of joint draws of the law, as in :func:`field_of`. Settings that constraints forbid are left out.
    """
    base = {**field.workload, **best.configuration}
    several = {
        knob.name: [level for level in levels_of(space, knob) if not space.valid({**base, knob.name: level})]
        for knob in space.knobs
    }
    several = {name: levels for name, levels in several.items() if len(levels) > 1}
    settings = [{**base, name: level} for name, levels in several.items() for level in levels]
    if not settings:
        return []
    law, rng = field.law, np.random.default_rng([seed, field.distinct])
    draws = law.scale.back(law.sample(units(settings, space), LAWS, rng, law.misfit()))
    ends = iter(np.quantile(draws, [0.5, LOW, HIGH], axis=0).T.tolist())
    return [
        KnobCurve(field.metric.name, name, tuple(levels), tuple(Estimate(*next(ends)) for _ in levels))
        for name, levels in several.items()
    ]


def _levels(space: ConfigurationSpace, knob: Knob, rows: Sequence[Trial]) -> list[Value]:
    """Return the knob's levels with all settings that were tried where they are few, else levels of its range alone."""
    levels = list(levels_of(space, knob))
    if not knob.ordered:
        return levels
    both = sorted({*levels, *(trial.configuration[knob.name] for trial in rows)})
    return both if len(both) <= MAX_LEVELS else levels


def _stands_for(space: ConfigurationSpace, knob: Knob, level: Value, trial: Trial) -> bool:
    """Return whether a level is the trial's setting, or the level nearest to it."""
    value = trial.configuration[knob.name]
    if not knob.ordered or value == level:
        return value == level
    levels = np.array([float(each) for each in levels_of(space, knob)])
    if float(value) in levels or float(level) not in levels:
        return False
    return bool(levels[np.argmin(np.abs(np.log1p(np.abs(levels)) - np.log1p(abs(float(value)))))] == float(level))


def _nested(cells: Sequence[T], shape: tuple[int, int, int]) -> tuple[tuple[tuple[T, ...], ...], ...]:
    """Return cells in the order (map, y, x) as nested tuples of that shape."""
    maps, rows, columns = shape
    flat = iter(cells)
    return tuple(tuple(tuple(next(flat) for _ in range(columns)) for _ in range(rows)) for _ in range(maps))
