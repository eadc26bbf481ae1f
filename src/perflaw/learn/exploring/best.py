"""The best configuration, free of the luck that chose it, how sure it is, and the choice whose worst case is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.acquisition import KEPT_BACK, SOONEST
from perflaw.learn.exploring.field import Field
from perflaw.learn.exploring.importance import main_knobs
from perflaw.learn.exploring.responses import levels_of, mean_of, ordered, usable
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.types.explored import Choice, FrontPoint, Importance, Surface
from perflaw.types.studies import Knob, Trial, Value

NO_MATTER = 0.25
"""Parts of the noise by which a worst case must be better to be another choice."""
UNLUCKY = 1.645
"""Standard deviations of the noise that an unlucky run is off (one in twenty)."""


def choices(field: Field, fields: Mapping[str, Field], trials: Sequence[Trial], margin: float) -> tuple[Choice, Choice]:
    """Return the best configuration tried and the robust one.

    The best is that of the greatest expectation, not of the luckiest trial; the probability is that no configuration of
    the space is better by more than the margin.
    """
    score = field.sign * field.mean()
    best = int(np.argmax(score[:, : field.tried].mean(axis=0)))
    worst = field.worst() - UNLUCKY * field.noise
    doubt = np.quantile(worst[:, : field.tried], 0.1, axis=0)
    robust = int(np.argmax(doubt))
    robust = robust if doubt[robust] - doubt[best] > NO_MATTER * max(field.noise, 1e-12) else best
    several = field.draws.shape[2] > 1
    why = (
        "best in its worst setting of the workload" if several else "best in an unlucky run, as far as the trials tell"
    )
    words = "best on average over the workload's settings" if several else "greatest expectation"
    return (
        choice(field, fields, best, trials, margin, words),
        choice(field, fields, robust, trials, margin, why),
    )


def choice(
    field: Field, fields: Mapping[str, Field], place: int, trials: Sequence[Trial], margin: float, why: str
) -> Choice:
    """A configuration of the field as a choice."""
    settings = field.configurations[place]
    own = [one for one in trials if one.valid and all(one.configuration.get(k) == v for k, v in settings.items())]
    names = dict.fromkeys(name for one in own for name in one.metrics)
    measured = {name: float(np.mean([one.metrics[name] for one in own if name in one.metrics])) for name in names}
    expected = {name: other.estimate(place) for name, other in fields.items()}
    return Choice(
        settings, expected, measured, tuple(one.number for one in own), margin, within(field, place, margin), why
    )


def within(field: Field, place: int, margin: float) -> float:
    """Probability that no configuration drawn is better than this one by more than the margin; cautious as ``margin`` is."""
    if field.distinct < SOONEST:
        return 0.0
    score = field.sign * field.mean()
    holds = float(np.mean(score.max(axis=1) - score[:, place] <= field.margin(margin)))
    return holds * field.distinct / (field.distinct + KEPT_BACK)


# ---- The Pareto front: configurations than which none is better in every metric with a goal, and how sure that is.

LEAST = 0.2
"""Configurations less probable than this are not told."""
MOST_DRAWS = 120


def front(fields: Mapping[str, Field], numbers: Mapping[int, tuple[int, ...]]) -> tuple[FrontPoint, ...]:
    """Return the front of the configurations tried, along the first metric, the best first.

    ``fields`` have the same configurations in the same order; ``numbers`` are the trials of each place.
    """
    several = [one for one in fields.values() if one.metric.goal]
    if len(several) < 2:
        return ()
    tried, draws = several[0].tried, min(MOST_DRAWS, *(len(one.draws) for one in several))
    scores = np.stack([one.sign * one.mean()[:draws, :tried] for one in several], axis=-1)
    probability = np.mean([undominated(one) for one in scores], axis=0)
    middle = undominated(scores.mean(axis=0))
    places = np.flatnonzero((probability >= LEAST) & (middle | (probability >= 0.5)))
    order = places[np.argsort(-scores.mean(axis=0)[places, 0], kind="stable")]
    return tuple(
        FrontPoint(several[0].configurations[i], {name: one.estimate(i) for name, one in fields.items()},
                   numbers.get(i, ()), float(probability[i]))
        for i in order.tolist()
    )  # fmt: skip


def undominated(scores: Array) -> NDArray[np.bool_]:
    """Which of (n, k) scores, greater is better, no other reaches in all and passes in one.

    >>> undominated(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0]])).tolist()
    [True, True, False]
    """
    no_worse = np.all(scores[None, :, :] >= scores[:, None, :], axis=2)
    better = np.any(scores[None, :, :] > scores[:, None, :], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=1))


# ---- The objective over the two knobs that matter most, for each setting of a third: the paper's Figure 3.

MOST_CELLS, MOST_FACETS = 12, 6
"""Levels along a knob, and maps, that are drawn."""


def surface(
    trials: Sequence[Trial], space: SpaceLike, field: Field, best: Choice, importance: Importance | None
) -> Surface | None:
    """Return the maps; None where the space has no two knobs with an order."""
    chosen = _knobs(space, importance)
    if chosen is None:
        return None
    x, y, facet = chosen
    rows = [one for one in usable(trials) if field.metric.name in one.metrics]
    across, upwards = _levels(space, x, rows), _levels(space, y, rows)
    maps: list[Value] = _levels(space, facet, rows)[:MOST_FACETS] if facet else [""]
    cells = [[[_cell(rows, space, (x, a), (y, b), (facet, c)) for a in across] for b in upwards] for c in maps]
    name = field.metric.name
    measured = tuple(
        tuple(tuple(mean_of(some, name) if some else None for some in row) for row in one) for one in cells
    )
    numbers = tuple(tuple(tuple(tuple(one.number for one in some) for some in row) for row in one) for one in cells)
    expected = _expected(space, field, best, (x, across), (y, upwards), (facet, maps))
    return Surface(
        name, x.name, y.name, facet.name if facet else "", tuple(across), tuple(upwards), tuple(maps),
        measured, expected, numbers,
    )  # fmt: skip


def _knobs(space: SpaceLike, importance: Importance | None) -> tuple[Knob, Knob, Knob | None] | None:
    """The two ordered knobs that matter most (the one of more levels across), and the next of any kind."""
    order = main_knobs(importance) if importance and importance.shares else [knob.name for knob in space.knobs]
    known = {knob.name: knob for knob in space.knobs}
    several = [known[name] for name in order if name in known and len(levels_of(space, known[name])) > 1]
    two = [knob for knob in several if ordered(knob)][:2]
    if len(two) < 2:
        return None
    y, x = sorted(two, key=lambda knob: len(levels_of(space, knob)))
    return x, y, next((knob for knob in several if knob not in two), None)


def _levels(space: SpaceLike, knob: Knob, rows: Sequence[Trial]) -> list[Value]:
    """All settings tried where they are few, else levels of the range."""
    tried = {one.configuration[knob.name] for one in rows}
    levels = list(levels_of(space, knob))
    both = sorted({*levels, *tried}) if ordered(knob) else levels
    return both if len(both) <= MOST_CELLS else levels


def _cell(
    rows: Sequence[Trial],
    space: SpaceLike,
    x: tuple[Knob, Value],
    y: tuple[Knob, Value],
    facet: tuple[Knob | None, Value],
) -> list[Trial]:
    """Trials in a cell: those whose setting is nearest to the cell's level."""
    wanted = [pair for pair in (x, y, facet) if pair[0] is not None]
    return [
        one
        for one in rows
        if all(_near(space, knob, one.configuration[knob.name], level) for knob, level in wanted if knob)
    ]


def _near(space: SpaceLike, knob: Knob, value: Value, level: Value) -> bool:
    if not ordered(knob) or value == level:
        return value == level
    levels = np.array([float(one) for one in levels_of(space, knob)])
    if float(value) in levels or float(level) not in levels:
        return False
    return bool(levels[np.argmin(np.abs(np.log1p(np.abs(levels)) - np.log1p(abs(float(value)))))] == float(level))


def _expected(
    space: SpaceLike,
    field: Field,
    best: Choice,
    x: tuple[Knob, list[Value]],
    y: tuple[Knob, list[Value]],
    facet: tuple[Knob | None, list[Value]],
) -> tuple[tuple[tuple[float | None, ...], ...], ...]:
    """What the law expects in each cell, other knobs as in the best configuration, the workload as its first setting."""
    base = {**field.workload, **best.configuration}
    thirds = [{facet[0].name: setting} if facet[0] else {} for setting in facet[1]]
    asked = [{**base, **third, y[0].name: b, x[0].name: a} for third in thirds for b in y[1] for a in x[1]]
    allowed = [place for place, one in enumerate(asked) if not space.valid(one)]
    values: list[float | None] = [None] * len(asked)
    if allowed:
        means, _ = field.law.predict(np.array([space.unit(asked[place]) for place in allowed]))
        told = np.median(field.law.scale.back(means), axis=0).tolist()
        for place, value in zip(allowed, told, strict=True):
            values[place] = float(value)
    rows = [tuple(values[start : start + len(x[1])]) for start in range(0, len(values), len(x[1]))]
    return tuple(tuple(rows[start : start + len(y[1])]) for start in range(0, len(rows), len(y[1])))
