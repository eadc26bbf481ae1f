"""Costs of a run at a point that was not run, with draws of the whole call tree behind the intervals.

One draw holds for all functions, so that no function costs more than its callers in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, LOW
from perflaw.learn.program.counts import CountLaw, Point
from perflaw.learn.program.model import CostModel
from perflaw.learn.program.terms import values_by_key
from perflaw.types import CPU, TIME, Prediction

Array = NDArray[np.float64]

DRAWS: Final = 200
"""Draws behind an interval."""
FARTHEST: Final = 50.0
"""Largest logarithm by which a draw drifts from the law: far beyond what is told as unknown."""
DISTURBED: Final = 2.0
"""Recording costs the program up to so many times the cost of an event a call beyond the tracer's own time.

The tracer takes its own time out of all costs, but not that it displaces the program's data and code from the caches:
measured at nothing in hot loops, and at up to twice the cost of an event in code that seldom runs. The cost of an event is
that of the calibration, or what the events of the run itself took, if that is more: where other processes empty the caches,
events and the program's code miss them alike.
"""
REFILL_NS: Final = 50_000.0
"""Each time the program loses its CPU to another, it may take up to so long to fill the caches anew.

From some microseconds to a millisecond, by the data in use (Li, Ding and Shen 2007, Quantifying the cost of context
switch)."""
MOST_DISTURBED: Final = 0.5
"""Largest share of a cost that is put down to the two."""


@dataclass(frozen=True, slots=True, eq=False)
class Forecasts:
    """Costs of a run at one point."""

    inclusive: Array
    """(F,) expected cost while each function is active."""
    draws: Array
    """(F, DRAWS) the same in each draw of the model."""
    whole: float
    """Expected cost of the run."""
    whole_draws: Array
    """(DRAWS,) the same in each draw."""
    machine: Array
    """(DRAWS,) speed of a new run in each draw, relative to the median run."""

    def of_functions(self, point: Point) -> list[Prediction]:
        """The predictions for all functions."""
        return self._predictions(self.inclusive, self.draws, point)

    def of_whole(self, point: Point) -> Prediction:
        """The prediction for the whole run."""
        return self._predictions(np.array([self.whole]), self.whole_draws[None], point)[0]

    def relative_limits(self) -> Array:
        """Limits of the mean of each function and of a new run, (4, F), divided by the mean; 1 where that is 0."""
        means = np.maximum(self.inclusive, 0.0)
        limits = np.array(self._limits(means, self.draws))
        return np.divide(limits, means, out=np.ones_like(limits), where=means > 0)

    def _predictions(self, means: Array, draws: Array, point: Point) -> list[Prediction]:
        """Predictions from expected costs (n,) and their draws (n, DRAWS)."""
        means = np.maximum(means, 0.0)
        columns = (means, *self._limits(means, draws))
        return [Prediction(dict(point), *five) for five in zip(*(one.tolist() for one in columns), strict=True)]

    def _limits(self, means: Array, draws: Array) -> tuple[Array, Array, Array, Array]:
        """Lower and upper ends of the intervals for means (n,) and for a new run, from draws (n, DRAWS)."""
        low, high = np.quantile(draws, [LOW, HIGH], axis=1)
        new_low, new_high = np.quantile(draws * self.machine, [LOW, HIGH], axis=1)
        return (
            np.minimum(low, means),
            np.maximum(high, means),
            np.minimum(new_low, means),
            np.maximum(new_high, means),
        )


def forecast(model: CostModel, point: Point) -> Forecasts:
    """Costs of a run at a point, with draws of the whole tree."""
    return forecast_each(model, [point])[0]


def forecast_each(model: CostModel, points: Sequence[Point]) -> list[Forecasts]:
    """Costs of runs at points with the same features: the laws of calls are asked once for all of them."""
    counts = {id(strand.count): strand.count for strand in model.strands}
    spreads = {law: count.spreads(points) for law, count in counts.items()}
    return [
        _forecast(model, point, {law: of_points[place] for law, of_points in spreads.items()})
        for place, point in enumerate(points)
    ]


def _forecast(model: CostModel, point: Point, spread: Mapping[int, float]) -> Forecasts:
    """Costs of a run at a point where the counts of strands, by their identity, have these standard deviations."""
    at = {name: np.array([float(value)]) for name, value in point.items()}
    strands = model.strand_costs(at)
    # Costs of the strands in each draw, (K, DRAWS). Functions with the same law of calls share their draw, and all share
    # the error of the runs' median speed.
    random = np.random.default_rng(0)
    normal: dict[int, Array] = {}
    unit: dict[int, Array] = {}
    out = np.empty((len(strands), DRAWS))
    speeds = np.log(model.units.speed)
    # The median of R normal numbers has 1.25 times the standard error of their mean.
    error = 1.25 * (speeds.std(ddof=1) if speeds.size > 1 else 0.0) / np.sqrt(max(speeds.size, 1))
    common = random.standard_t(max(speeds.size - 1, 1), DRAWS) * error
    units = _term_values(model, at)
    # Logarithm of how far the point is beyond the data, in the feature in which it is farthest; 0 within the data.
    tops = {name: float(x.max()) for name, x in model.features.items()}
    far = [log(float(at[name][0]) / top) for name, top in tops.items() if top > 0 and at[name][0] > top]
    beyond = max(far, default=0.0)
    for k, strand in enumerate(model.strands):
        law = id(strand.count)
        if law not in normal:
            normal[law] = random.normal(size=DRAWS)
        if strand.cell not in unit:
            unit[strand.cell] = _unit_draws(model, strand.cell, units[strand.cell], beyond, random)
        out[k] = strands[k] * np.exp(normal[law] * spread[law] + common) * unit[strand.cell]
    # A program is disturbed as a whole: not at all in half of the draws, in the others by up to the most.
    disturbed = np.maximum(random.uniform(-1.0, 1.0, DRAWS), 0.0)
    out *= 1.0 - _disturbed_share(model, at, strands)[:, None] * disturbed
    draws = np.maximum(out, 0.0)
    machine = np.random.default_rng(1).normal(0.0, float(speeds.std(ddof=1)) if speeds.size > 1 else 0.0, DRAWS)
    return Forecasts(
        model.active.sum(strands), model.active.sum(draws), float(strands.sum()), draws.sum(axis=0), np.exp(machine)
    )


def _disturbed_share(model: CostModel, at: Mapping[str, Array], strands: Array) -> Array:
    """Largest share of the costs of the strands (K,) at a point that tracer and other processes may have caused, (K,)."""
    event_ns = _event_costs(model)
    if model.costs.metric not in (CPU, TIME) or not event_ns.size:
        return np.zeros(len(strands))
    calls = _calls([strand.count for strand in model.strands], at)
    most = DISTURBED * float(np.median(event_ns)) * np.maximum(calls, 0.0)
    shares = np.divide(most, strands, out=np.zeros(len(strands)), where=strands > 0)
    machines = [(run.machine, cost) for run, cost in zip(model.runs, model.measured(), strict=True)]
    switched = [
        REFILL_NS * (machine.voluntary_switches + machine.involuntary_switches) / max(cost, 1.0)
        for machine, cost in machines
        if machine is not None
    ]
    shares += float(np.median(switched)) if switched else 0.0
    return np.asarray(np.minimum(shares, MOST_DISTURBED))


def _event_costs(model: CostModel) -> Array:
    """Cost of an event in each run by a real clock: by calibration, or in the run itself if that is more.

    A call is two events. What the tracer did while the program ran is known for whole runs.
    """
    costs = []
    for run, calls in zip(model.runs, model.costs.calls.sum(axis=1), strict=True):
        if run.clock.name != "fake":
            start = run.machine.tracer_start_ns if run.machine else 0
            active = 0 if model.costs.per else run.clock.own_ns - run.clock.waited_ns - start
            costs.append(max(run.clock.event_ns, active / max(2.0 * calls, 1.0)))
    return np.array(costs)


def _calls(laws: Sequence[CountLaw | None], at: Mapping[str, Array]) -> Array:
    """Calls at a point by some laws, many of which are the same one, (K,); 0 without a law."""
    distinct = {id(law): law.terms for law in laws if law}
    known = values_by_key(distinct.values(), at, 1)
    calls = {law: sum(c * float(known[key][0]) for key, c in terms.items()) for law, terms in distinct.items()}
    return np.array([calls.get(id(law), 0.0) for law in laws], dtype=np.float64)


def _term_values(model: CostModel, at: Mapping[str, Array]) -> list[list[Array]]:
    """Cost of each cell at a point for a unit of each coefficient, (k,), of each form of its unit cost."""
    of_strand = np.array([strand.cell for strand in model.strands], dtype=np.intp)
    counts = [strand.count for strand in model.strands], [strand.made for strand in model.strands]
    calls, made = (np.bincount(of_strand, _calls(laws, at), len(model.cells)) for laws in counts)
    known = values_by_key((one.form.terms for law in model.units.laws for one in law.forms), at, 1)
    out = []
    for cell, law in enumerate(model.units.laws):
        forms = [one.form for one in law.forms]
        of_calls = [calls[cell] * np.concatenate([known[key] for key in form.terms]) for form in forms]
        out.append(
            [
                np.append(each, made[cell] if form.by_calls else 1.0) if form.by_calls or form.first_call else each
                for form, each in zip(forms, of_calls, strict=True)
            ]
        )
    return out


def _unit_draws(
    model: CostModel, cell: int, units: Sequence[Array], beyond: float, random: np.random.Generator
) -> Array:
    """Cost of a cell in each draw, relative to the chosen law: errors of coefficients, drift, and forms left open."""
    law = model.units.laws[cell]
    size = float(law.forms[0].coefficients @ units[0])
    # Forms are drawn by their weights, as by ``random.choice``, which takes longer.
    cumulated = np.cumsum([one.weight for one in law.forms])
    drawn = (cumulated / cumulated[-1]).searchsorted(random.random(DRAWS), side="right")
    out = np.ones(DRAWS)
    for place in np.flatnonzero(np.bincount(drawn)).tolist() if size > 0 else ():
        one, mine = law.forms[place], drawn == place
        errors = one.deviations @ random.normal(size=(one.coefficients.size, int(mine.sum())))
        coefficients = np.maximum(one.coefficients[:, None] + errors, np.minimum(one.coefficients, 0.0)[:, None])
        out[mine] = units[place] @ coefficients / size
    drift = np.minimum(np.maximum(random.normal(0.0, law.drift * beyond, DRAWS), -FARTHEST), FARTHEST)
    return np.minimum(np.maximum(out, 0.01), 100.0) * np.exp(drift)
