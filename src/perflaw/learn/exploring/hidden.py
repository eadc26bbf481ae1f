"""Suspect the knob you do not have: more threads make it slower while they wait for one another, "hidden lock?".

A lock that no knob names shows in two things at once: the objective gets worse as a knob like threads grows, and voluntary
context switches (threads that go to sleep) multiply for the same work. Where threads wait for processors instead, run delay
grows: that is told as such.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perflaw.learn.exploring.importance import dependence
from perflaw.learn.exploring.responses import axes_of, kinds, levels_of, usable
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.learn.exploring.surrogate import Surrogate, fit_surrogate
from perflaw.types.studies import Configuration, Knob, StudyMetric, Trial, Value

# ---- How a response goes along one knob: draws of its curve, from trials that differ in that knob alone or from a
# law.

DRAWS = 400
"""Draws from such rows."""
MOST_CONTEXTS = 12
EACH = 12


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """Trials, looked at along one knob."""

    rows: Sequence[Trial]
    """Trials that are data."""
    space: SpaceLike
    """Where they lie."""
    knob: Knob
    """The knob."""
    levels: Array
    """(L,) its levels."""
    seed: int
    """Of all draws."""

    def contexts(self) -> list[dict[str, Value]]:
        """Everything as it was tried, then each setting of each knob without order."""
        found: list[dict[str, Value]] = [{}]
        for knob in self.space.knobs:
            if knob.kind in ("categorical", "bool"):
                found += [{knob.name: option} for option in levels_of(self.space, knob)]
        return found


class Response:
    """A positive response (n,) of the trials."""

    def __init__(self, along: Along, values: Array) -> None:
        self._along, self._values = along, values

    @cached_property
    def _law(self) -> Surrogate:
        x = np.array([self._along.space.unit(one.configuration) for one in self._along.rows])
        return fit_surrogate(x, kinds(self._along.space), self._values, 1.0, self._along.seed)

    def curve(self, held: Configuration) -> Array:
        """Draws of the logarithm of the response along the knob, others held or as they were tried: (draws, L).

        Of a grid, or a good part of one, the mean over its rows and how unsure that is; a law smooths where it need not.
        """
        rng = np.random.default_rng([self._along.seed, len(self._along.rows)])
        whole = self._whole_rows(held)
        if len(whole) >= FEWEST:
            return np.asarray(whole[rng.integers(len(whole), size=(DRAWS, len(whole)))].mean(axis=1))
        return self._foreseen(held, rng)

    def _whole_rows(self, held: Configuration) -> Array:
        """(R, L) mean logarithms of configurations that were tried at every level of the knob."""
        along = self._along
        found: dict[str, dict[float, list[float]]] = {}
        for one, value in zip(along.rows, np.log(self._values), strict=True):
            if all(one.configuration.get(name) == setting for name, setting in held.items()):
                beside = sorted(
                    (name, str(setting)) for name, setting in one.configuration.items() if name != along.knob.name
                )
                level = float(one.configuration[along.knob.name])
                found.setdefault(str(beside), {}).setdefault(level, []).append(float(value))
        return np.array(
            [[np.mean(row[at]) for at in along.levels] for row in found.values() if len(row) == along.levels.size]
        )

    def _foreseen(self, held: Configuration, rng: np.random.Generator) -> Array:
        along, law = self._along, self._law
        some = np.sort(rng.permutation(len(along.rows))[:MOST_CONTEXTS])
        levels = levels_of(along.space, along.knob)
        contexts = [{**along.rows[i].configuration, **held} for i in some]
        at = np.array([along.space.unit({**one, along.knob.name: level}) for one in contexts for level in levels])
        drawn = law.joint(at, EACH, rng) * law.scale.spread + law.scale.centre
        return np.asarray(drawn.reshape(len(drawn), len(contexts), len(levels)).mean(axis=1))


LIKE_THREADS = re.compile(r"thread|worker|proc|client|conn|pool|job|parallel|concurren|core|cpu", re.IGNORECASE)
"""Names of knobs that say how many work at once."""
FEWEST = 8
"""Trials below which nothing is suspected."""
WORSE = 0.9
"""A collapse leaves at most so much of what the peak has."""
MORE = 3.0
"""So many times as many switches, or as much waiting, are a jump."""
LEAST_SWITCHES = 200.0
"""Switches a second at the top below which nobody waits."""
LEAST_DELAY = 0.2
"""Share of the CPU time that threads wait for processors from which that is the explanation."""
SURE = 0.95
ALPHA = 0.01


@dataclass(frozen=True, slots=True)
class Collapse:
    """A knob whose growth makes the objective worse, and what went on meanwhile."""

    knob: str
    """The knob."""
    peak: float
    """Its level at which the objective is best."""
    top: float
    """Its greatest level."""
    loss: float
    """Part of the objective lost from peak to top, 0 to 1; where less is better, how much more it is."""
    switches: tuple[float, float]
    """Voluntary context switches a second, at the lowest level and at the top."""
    lock: bool
    """Whether switches jump: threads wait for one another."""
    delay: tuple[float, float]
    """Run delay as a share of CPU time, at the lowest level and at the top."""
    processors: bool
    """Whether run delay jumps: threads wait for processors."""
    trials: tuple[int, ...]
    """Numbers of the trials beyond the peak."""
    where: str = ""
    """Setting of another knob that it takes: ``memory_status = on``; empty where it shows over all."""
    gone: str = ""
    """Settings of other knobs under which there is no collapse: ``memory_status = off``."""


def collapses(trials: Sequence[Trial], space: SpaceLike, objective: StudyMetric, seed: int = 0) -> list[Collapse]:
    """Return the collapses that the trials support, for every knob that says how many work at once."""
    rows = [one for one in usable(trials) if np.isfinite(one.metrics.get(objective.name, np.nan)) and not one.stopped]
    rows = rows or [one for one in usable(trials) if np.isfinite(one.metrics.get(objective.name, np.nan))]
    if len(rows) < FEWEST:
        return []
    found = [_collapse(rows, space, objective, knob, seed) for knob in space.knobs if like_threads(knob)]
    return [one for one in found if one]


def like_threads(knob: Knob) -> bool:
    """Whether a knob counts what works at once: whole numbers from 1 on without a unit, named so."""
    numbers = [one for one in knob.values if isinstance(one, int | float) and not isinstance(one, bool)]
    low = knob.low if knob.low is not None else min(numbers, default=0)
    high = knob.high if knob.high is not None else max(numbers, default=0)
    counts = (
        knob.kind in ("int", "ordinal") and low >= 0 and high > 1 and high <= 65536 and knob.unit in ("", "threads")
    )
    return bool(counts and LIKE_THREADS.search(knob.name))


def _collapse(
    rows: Sequence[Trial], space: SpaceLike, objective: StudyMetric, knob: Knob, seed: int
) -> Collapse | None:
    """The collapse along one knob; None where there is none, or the trials do not establish it."""
    looked = Along(rows, space, knob, np.array([float(one) for one in levels_of(space, knob)]), seed)
    values = np.array([one.metrics[objective.name] for one in rows])
    if len(looked.levels) < 3 or (values <= 0).any() or np.ptp(values) <= 0 or not _depends(looked, np.log(values)):
        return None
    sign, response = -1.0 if objective.goal == "min" else 1.0, Response(looked, values)
    curves = [(held, sign * response.curve(held)) for held in looked.contexts()]
    held, curve = next(((held, curve) for held, curve in curves if _falls(curve)), ({}, None))
    if curve is None:
        return None
    place = int(np.argmax(curve.mean(axis=0)))
    switched = np.array([one.conditions.voluntary for one in rows])
    *switches, often = _jump(looked, switched, LEAST_SWITCHES, held)
    lock = often and _multiplies(looked, (switched + LEAST_SWITCHES / 100) / values**sign, place, held)
    delayed = np.array([one.conditions.run_delay for one in rows])
    *delay, waited = _jump(looked, delayed, LEAST_DELAY, held)
    waits = waited and _multiplies(looked, delayed + LEAST_DELAY / 100, place, held)
    beyond = tuple(one.number for one in rows if _beyond(one, knob, looked.levels[place], held))
    lost = float((curve[:, place] - curve[:, -1]).mean())
    gone = [
        _text(other) for other, one in curves if other and not held.items() & other.items() and _gone(one, place, lost)
    ]
    return Collapse(
        knob.name, float(looked.levels[place]), float(looked.levels[-1]),
        float(-np.expm1(-lost) if sign > 0 else np.expm1(lost)),
        (switches[0], switches[1]), lock, (delay[0], delay[1]), waits, beyond, _text(held), ", ".join(gone),
    )  # fmt: skip


def _depends(looked: Along, values: Array) -> bool:
    """Whether the objective depends on any knob at all."""
    places, axes = axes_of(looked.space, looked.rows[0].configuration)
    x = np.array([looked.space.unit(one.configuration) for one in looked.rows])[:, places]
    return dependence(axes, x, values, np.random.default_rng(looked.seed)) <= ALPHA


def _falls(curve: Array) -> bool:
    """Whether draws of a curve, (draws, L), surely fall behind their peak."""
    place = int(np.argmax(curve.mean(axis=0)))
    return bool(np.mean(curve[:, place] - curve[:, -1] > -np.log(WORSE)) >= SURE)


def _gone(curve: Array, place: int, lost: float) -> bool:
    """Whether a curve surely has no such fall."""
    return bool(np.mean(curve[:, place] - curve[:, -1] < lost / 3) >= SURE)


def _jump(looked: Along, seen: Array, least: float, held: Configuration) -> tuple[float, float, bool]:
    """What was seen (n,) at the lowest level and at the top, and whether that is enough to be told."""
    shift = least / 100
    if np.ptp(seen) <= 0:
        return float(seen[0]), float(seen[0]), False
    curve = Response(looked, seen + shift).curve(held)
    low, top = (float(max(0.0, np.exp(np.median(curve[:, place])) - shift)) for place in (0, -1))
    return low, top, top >= least


def _multiplies(looked: Along, seen: Array, peak: int, held: Configuration) -> bool:
    """Whether something (n,) multiplies from the lowest level to the top, and goes on growing behind the peak.

    Of switches it is those for a unit of work: threads that fight for a lock switch as often as they can from the
    first fight on, and do less and less between; threads that only sleep switch as often for each piece of work.
    """
    curve = Response(looked, seen).curve(held)
    multiplied = np.mean(curve[:, -1] - curve[:, 0] > np.log(MORE)) >= SURE
    return bool(multiplied and np.median(curve[:, -1] - curve[:, peak]) > 0)


def _beyond(one: Trial, knob: Knob, peak: float, held: Configuration) -> bool:
    return float(one.configuration[knob.name]) > peak and all(one.configuration.get(k) == v for k, v in held.items())


def _text(settings: Configuration) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
