"""Hidden locks: more threads make the target slower while they wait for one another, and no knob of the study names why.

A lock shows in two things at once: the objective gets worse as a knob such as threads grows, and voluntary context switches
(threads that go to sleep) multiply for the same work. Where threads wait for processors instead, run delay grows; that is
reported as such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from perflaw.learn.exploring.gaussian_process import fit_surrogate
from perflaw.learn.exploring.importance import dependence, levels_in_cube
from perflaw.learn.exploring.observations import Array, ConfigurationSpace, levels_of, ordered_knobs, units, usable
from perflaw.types.studies import Configuration, Knob, StudyMetric, Trial, Value, configuration_key

LIKE_THREADS = re.compile(r"thread|worker|proc|client|conn|pool|job|parallel|concurren|core|cpu", re.IGNORECASE)
"""Names of knobs that set how many threads or processes work at once."""
MIN_ROWS = 8
"""Number of trials, or of complete rows of a grid, from which on a collapse is looked for."""
MAX_REMAINING = 0.9
"""Largest fraction of the peak that remains after a collapse."""
MIN_JUMP = 3.0
"""Factor by which switches, or waiting, multiply if they explain a collapse."""
MIN_SWITCHES = 200.0
"""Voluntary switches per second at the top level below which threads do not wait."""
MIN_DELAY = 0.2
"""Run delay, as a share of the CPU time, from which on waiting for processors explains a collapse."""
MIN_PROBABILITY = 0.95
"""Probability from which on a collapse or its cause is reported."""
ALPHA = 0.01
"""Level of the test that the objective depends on any knob."""
DRAWS = 400
"""Draws of a curve from complete rows of a grid."""
CONTEXTS, LAWS = 12, 12
"""Trials along which a law's curve is averaged, and laws that are drawn under each draw of hyperparameters."""


@dataclass(frozen=True, slots=True)
class Collapse:
    """A knob whose growth makes the objective worse, and what the threads did meanwhile."""

    knob: str
    """Name of the knob."""
    peak: float
    """Level at which the objective is best."""
    top: float
    """Largest level."""
    loss: float
    """Part of the objective that is lost from the peak to the top, 0 to 1; where less is better, its relative increase."""
    switches: tuple[float, float]
    """Voluntary context switches per second, at the lowest and at the top level."""
    lock: bool
    """Whether switches jump: threads wait for one another."""
    delay: tuple[float, float]
    """Run delay as a share of the CPU time, at the lowest and at the top level."""
    processors: bool
    """Whether run delay jumps: threads wait for processors."""
    trials: tuple[int, ...]
    """Numbers of the trials beyond the peak."""
    where: str = ""
    """Setting of another knob that the collapse needs: ``memory_status = on``; empty where it shows over all settings."""
    gone: str = ""
    """Settings of other knobs under which there is no collapse: ``memory_status = off``."""


def collapses(
    trials: Sequence[Trial], space: ConfigurationSpace, objective: StudyMetric, seed: int = 0
) -> list[Collapse]:
    """Return the collapses that the trials establish, for every knob that says how many work at once."""
    rows = usable(trials, objective.name)
    rows = [trial for trial in rows if not trial.stopped] or rows
    if len(rows) < MIN_ROWS:
        return []
    found = [_collapse(rows, space, objective, knob, seed) for knob in space.knobs if like_threads(knob)]
    return [collapse for collapse in found if collapse]


def like_threads(knob: Knob) -> bool:
    """Return whether a knob counts what works at once: whole numbers without a unit, with a name that says so."""
    numbers = [value for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)]
    low = knob.low if knob.low is not None else min(numbers, default=0)
    high = knob.high if knob.high is not None else max(numbers, default=0)
    counts = knob.kind in ("int", "ordinal") and low >= 0 and 1 < high <= 65536 and knob.unit in ("", "threads")
    return bool(counts and LIKE_THREADS.search(knob.name))


def _collapse(
    rows: Sequence[Trial], space: ConfigurationSpace, objective: StudyMetric, knob: Knob, seed: int
) -> Collapse | None:
    """Return the collapse along one knob; None where there is none, or the trials do not establish it."""
    curves = KnobCurves(rows, space, knob, seed)
    values = np.array([trial.metrics[objective.name] for trial in rows])
    if len(curves.levels) < 3 or (values <= 0).any() or np.ptp(values) <= 0 or not curves.depends(np.log(values)):
        return None
    sign = objective.sign
    objective_curve = curves.of(values)
    several = [(held, sign * objective_curve(held)) for held in curves.contexts()]
    peaks = [int(np.argmax(curve.mean(axis=0))) for _, curve in several]
    falling = [
        (held, curve, peak)
        for (held, curve), peak in zip(several, peaks, strict=True)
        if np.mean(curve[:, peak] - curve[:, -1] > -np.log(MAX_REMAINING)) >= MIN_PROBABILITY
    ]
    if not falling:
        return None
    held, curve, peak = falling[0]
    switches = np.array([trial.conditions.voluntary for trial in rows])
    low_switches, top_switches, many = curves.ends(switches, MIN_SWITCHES, held)
    lock = many and curves.multiplies((switches + MIN_SWITCHES / 100) / values**sign, peak, held)
    delays = np.array([trial.conditions.run_delay for trial in rows])
    low_delay, top_delay, long = curves.ends(delays, MIN_DELAY, held)
    waits = long and curves.multiplies(delays + MIN_DELAY / 100, peak, held)
    lost = float((curve[:, peak] - curve[:, -1]).mean())
    gone = [
        _text(other)
        for other, line in several
        if other
        and not held.items() & other.items()
        and np.mean(line[:, peak] - line[:, -1] < lost / 3) >= MIN_PROBABILITY
    ]
    return Collapse(
        knob=knob.name,
        peak=float(curves.levels[peak]),
        top=float(curves.levels[-1]),
        loss=float(-np.expm1(-lost) if sign > 0 else np.expm1(lost)),
        switches=(low_switches, top_switches),
        lock=lock,
        delay=(low_delay, top_delay),
        processors=waits,
        trials=tuple(
            trial.number
            for trial in rows
            if float(trial.configuration[knob.name]) > curves.levels[peak]
            and held.items() <= trial.configuration.items()
        ),
        where=_text(held),
        gone=", ".join(gone),
    )


def _text(settings: Configuration) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


class KnobCurves:
    """Curves of positive responses along one knob, as draws."""

    def __init__(self, rows: Sequence[Trial], space: ConfigurationSpace, knob: Knob, seed: int) -> None:
        """Look at the trials ``rows`` along ``knob``; ``seed`` is that of all draws."""
        self._rows, self._space, self._knob, self._seed = rows, space, knob, seed
        self.levels = np.array([float(level) for level in levels_of(space, knob)])
        self._x = units([trial.configuration for trial in rows], space)

    def of(self, values: Array) -> Callable[[Configuration], Array]:
        """Return the curve of a positive response (n,): a function of the settings that are held while the knob varies.

        It gives draws of the response's logarithm along the knob, (draws, L), with the other knobs as they were tried. Where
        the trials hold enough complete rows of a grid, these are bootstrap means of the rows; else a law is fitted and drawn,
        which smooths.
        """
        logarithms = np.log(values)
        law = cache(lambda: fit_surrogate(self._x, ordered_knobs(self._space), values, 1.0, self._seed))

        def curve(held: Configuration) -> Array:
            rng = np.random.default_rng([self._seed, len(self._rows)])
            # Mean logarithms of configurations that were tried at every level of the knob, (rows, L).
            found: dict[str, dict[float, list[float]]] = {}
            for trial, value in zip(self._rows, logarithms, strict=True):
                if held.items() <= trial.configuration.items():
                    others = {name: setting for name, setting in trial.configuration.items() if name != self._knob.name}
                    level = float(trial.configuration[self._knob.name])
                    found.setdefault(configuration_key(others), {}).setdefault(level, []).append(float(value))
            rows = [row for row in found.values() if all(level in row for level in self.levels)]
            complete = np.array([[np.mean(row[level]) for level in self.levels] for row in rows])
            if len(complete) >= MIN_ROWS:
                picks = rng.integers(len(complete), size=(DRAWS, len(complete)))
                return np.asarray(complete[picks].mean(axis=1))
            some = np.sort(rng.permutation(len(self._rows))[:CONTEXTS])
            contexts = [{**self._rows[i].configuration, **held} for i in some]
            levels = levels_of(self._space, self._knob)
            at = [{**context, self._knob.name: level} for context in contexts for level in levels]
            scale = law().scale
            drawn = law().sample(units(at, self._space), LAWS, rng) * scale.spread + scale.centre
            return np.asarray(drawn.reshape(len(drawn), len(contexts), len(levels)).mean(axis=1))

        return curve

    def contexts(self) -> list[dict[str, Value]]:
        """Return what is held while the knob varies: nothing, then each setting of each knob without an order."""
        found: list[dict[str, Value]] = [{}]
        for knob in self._space.knobs:
            if not knob.ordered:
                found += [{knob.name: option} for option in levels_of(self._space, knob)]
        return found

    def depends(self, values: Array) -> bool:
        """Return whether a response (n,) depends on any knob at all."""
        places, levels = levels_in_cube(self._space, self._rows[0].configuration)
        ordered = ordered_knobs(self._space)[places]
        return dependence(levels, ordered, self._x[:, places], values, np.random.default_rng(self._seed)) <= ALPHA

    def ends(self, values: Array, least: float, held: Configuration) -> tuple[float, float, bool]:
        """Return the median of a response (n,) ≥ 0 at the lowest and the top level, and whether it varies up to ``least``."""
        if np.ptp(values) <= 0:
            return float(values[0]), float(values[0]), False
        shift = least / 100
        curve = self.of(values + shift)(held)
        low, top = (float(max(0.0, np.exp(np.median(curve[:, place])) - shift)) for place in (0, -1))
        return low, top, top >= least

    def multiplies(self, values: Array, peak: int, held: Configuration) -> bool:
        """Return whether a response (n,) multiplies from the lowest to the top level and still grows behind the peak.

        Of switches this is asked per unit of work: threads that fight for a lock switch as often as they can from the first
        conflict on, and do less and less in between; threads that only sleep switch as often for each unit of work.
        """
        curve = self.of(values)(held)
        multiplied = np.mean(curve[:, -1] - curve[:, 0] > np.log(MIN_JUMP)) >= MIN_PROBABILITY
        return bool(multiplied and np.median(curve[:, -1] - curve[:, peak]) > 0)
