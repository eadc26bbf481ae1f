"""The best configuration and how sure it is, the one with the best worst case, the Pareto front, and the map of the objective.

What is expected of a configuration comes from the law, not from its own trials: the best of many trials was partly lucky.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.acquisition import supported
from perflaw.learn.exploring.field import Field
from perflaw.learn.exploring.importance import main_knobs
from perflaw.learn.exploring.observations import Array, ConfigurationSpace, levels_of, mean_of, units, usable
from perflaw.types.explored import Choice, FrontPoint, Importance, Surface
from perflaw.types.studies import Knob, Trial, Value

NO_MATTER = 0.25
"""Part of the noise by which a worst case must be better for another configuration to be the robust choice."""
UNLUCKY = 1.645
"""Standard deviations by which an unlucky run is worse (one in twenty)."""
LEAST_PROBABILITY, FRONT_DRAWS = 0.2, 120
"""Smallest probability of a point of the front, and draws by which it is computed."""
MOST_LEVELS, MOST_MAPS = 12, 6
"""Largest numbers of levels along an axis of the map, and of maps."""


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


def front(fields: Mapping[str, Field], numbers: Mapping[int, tuple[int, ...]]) -> tuple[FrontPoint, ...]:
    """Return the Pareto front of the configurations that were tried, the best objective first; empty for one goal.

    ``numbers`` are those of the trials of each configuration, by its place in the fields.
    """
    several = [field for field in fields.values() if field.metric.goal]
    if len(several) < 2:
        return ()
    tried, draws = several[0].tried, min(FRONT_DRAWS, *(len(field.draws) for field in several))
    scores = np.stack([field.metric.sign * field.mean()[:draws, :tried] for field in several], axis=-1)
    probability = np.mean([undominated(draw) for draw in scores], axis=0)
    middle = undominated(scores.mean(axis=0))
    places = np.flatnonzero((probability >= LEAST_PROBABILITY) & (middle | (probability >= 0.5)))
    order = places[np.argsort(-scores.mean(axis=0)[places, 0], kind="stable")]
    return tuple(
        FrontPoint(
            several[0].configurations[place],
            {name: field.estimate(place) for name, field in fields.items()},
            numbers.get(place, ()),
            float(probability[place]),
        )
        for place in order.tolist()
    )


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
Axis = tuple[Knob, list[Value]]
"""A knob with the levels that are drawn."""


def surface(
    trials: Sequence[Trial],
    space: ConfigurationSpace,
    field: Field,
    best: Choice,
    importance: Importance | None,
) -> Surface | None:
    """Return the maps of the field's metric; None where the space has no two knobs with an order.

    The axes are the two ordered knobs that matter most, with the one of more levels across; the maps are the settings of the
    next knob of any kind.
    """
    order = main_knobs(importance) if importance and importance.shares else [knob.name for knob in space.knobs]
    knobs = {knob.name: knob for knob in space.knobs if len(levels_of(space, knob)) > 1}
    several = [knobs[name] for name in order if name in knobs]
    two = [knob for knob in several if knob.ordered][:2]
    if len(two) < 2:
        return None
    rows, name = usable(trials, field.metric.name), field.metric.name
    y, x = ((knob, _levels(space, knob, rows)) for knob in sorted(two, key=lambda knob: len(levels_of(space, knob))))
    facet = next(((knob, _levels(space, knob, rows)[:MOST_MAPS]) for knob in several if knob not in two), None)
    maps: list[Value] = facet[1] if facet else [""]
    shape = (len(maps), len(y[1]), len(x[1]))
    axes = [facet, y, x] if facet else [y, x]
    cells = [
        [
            trial
            for trial in rows
            if all(_stands_for(space, knob, level, trial) for (knob, _), level in zip(axes, cell, strict=True))
        ]
        for cell in product(*(levels for _, levels in axes))
    ]
    return Surface(
        metric=name,
        x=x[0].name,
        y=y[0].name,
        facet=facet[0].name if facet else "",
        x_values=tuple(x[1]),
        y_values=tuple(y[1]),
        facet_values=tuple(maps),
        measured=_nested([mean_of(cell, name) if cell else None for cell in cells], shape),
        expected=_nested(_expected(space, field, best, axes), shape),
        numbers=_nested([tuple(trial.number for trial in cell) for cell in cells], shape),
    )


def _levels(space: ConfigurationSpace, knob: Knob, rows: Sequence[Trial]) -> list[Value]:
    """Return the knob's levels with all settings that were tried where they are few, else levels of its range alone."""
    levels = list(levels_of(space, knob))
    if not knob.ordered:
        return levels
    both = sorted({*levels, *(trial.configuration[knob.name] for trial in rows)})
    return both if len(both) <= MOST_LEVELS else levels


def _stands_for(space: ConfigurationSpace, knob: Knob, level: Value, trial: Trial) -> bool:
    """Return whether a level is the trial's setting, or the level nearest to it."""
    value = trial.configuration[knob.name]
    if not knob.ordered or value == level:
        return value == level
    levels = np.array([float(each) for each in levels_of(space, knob)])
    if float(value) in levels or float(level) not in levels:
        return False
    return bool(levels[np.argmin(np.abs(np.log1p(np.abs(levels)) - np.log1p(abs(float(value)))))] == float(level))


def _expected(space: ConfigurationSpace, field: Field, best: Choice, axes: Sequence[Axis]) -> list[float | None]:
    """Return what the law expects in each cell, with the other knobs as in the best configuration; None where it is invalid."""
    base = {**field.workload, **best.configuration}
    names = [knob.name for knob, _ in axes]
    cells = [{**base, **dict(zip(names, cell, strict=True))} for cell in product(*(levels for _, levels in axes))]
    valid = [place for place, cell in enumerate(cells) if not space.valid(cell)]
    values: list[float | None] = [None] * len(cells)
    if valid:
        means, _ = field.law.predict(units([cells[place] for place in valid], space))
        expected = np.median(field.law.scale.back(means), axis=0).tolist()
        for place, value in zip(valid, expected, strict=True):
            values[place] = float(value)
    return values


def _nested(cells: Sequence[T], shape: tuple[int, int, int]) -> tuple[tuple[tuple[T, ...], ...], ...]:
    """Return cells in the order (map, y, x) as nested tuples of that shape."""
    maps, rows, columns = shape
    flat = iter(cells)
    return tuple(tuple(tuple(next(flat) for _ in range(columns)) for _ in range(rows)) for _ in range(maps))
