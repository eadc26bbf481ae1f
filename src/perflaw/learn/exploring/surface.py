"""The objective over the two knobs that matter most, for each setting of a third: the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflaw.learn.exploring.field import Field
from perflaw.learn.exploring.importance import main_knobs
from perflaw.learn.exploring.responses import levels_of, ordered
from perflaw.learn.exploring.spaces import SpaceLike
from perflaw.learn.exploring.tried import mean_of, usable
from perflaw.types.explored import Choice, Importance, Surface
from perflaw.types.studies import Knob, Trial, Value

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
