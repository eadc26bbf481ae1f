"""The cost model as laws: the cost of a run in each function, and in the whole program, over the run's features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import FAMILIES
from perflaw.laws.evaluation import evaluate
from perflaw.laws.growth import REACH, leading_term
from perflaw.laws.tree import Binary, Call, Expression, Name, Number
from perflaw.learn.program.counts import Point
from perflaw.learn.program.forecasts import Forecasts, forecast_each
from perflaw.learn.program.model import CostModel
from perflaw.learn.program.short import FAR, OF_INTERVAL, TOLERANCE, not_above_larger, short_law
from perflaw.learn.program.terms import (
    BEYOND,
    LARGEST,
    Monomial,
    TermSum,
    expression_of,
    joined,
    values,
    values_by_key,
    without_conditions,
)
from perflaw.learn.series.law import FEWEST_SIZES, Evidence, distribution, judge
from perflaw.learn.ways import ways_of
from perflaw.types import Component, Curve, Law, Noise, Prediction, ProgramForecast, Verdict
from perflaw.types.programs import OUTSIDE, ProgramPart
from perflaw.types.recordings import COLLECTING

Array = NDArray[np.float64]

FACTORS: Final = (2.0, 10.0)
"""Predictions are made at so many times the 95th percentile of every feature."""
MIN_SIZES: Final = 3
"""Sizes of a feature below which a growth is a guess."""
ACROSS: Final = 12
"""Points within the data, and half of those beyond them, at which it is asked whether a term matters."""
NEGLIGIBLE: Final = 2e-3
"""Share of the cost, from the smallest size to ten times the largest, below which a term is not written."""
MIN_SHORT: Final = 1e-3
"""Share of the cost at ten times the data from which a law of many terms is given in few."""
GRID: Final = 40
"""Sizes at which laws are compared with those of their callers."""


class RunLaws:
    """Laws of the cost of a run, with predictions at the same points for all functions."""

    def __init__(self, model: CostModel, at: Point | None) -> None:
        """Draw the model at the points of the predictions: at ``at``, or beyond the data."""
        self.model = model
        tops = {name: float(np.percentile(x, 95)) for name, x in model.features.items()}
        points = [at] if at else [{name: factor * top for name, top in tops.items()} for factor in FACTORS]
        known = [point for point in points if point is not None and model.features.keys() <= point.keys()]
        # Growth is asked for just beyond the data, because laws that go on from the count at the largest size begin there.
        self._top = {name: float(x.max()) * (1.0 + 1e-9) for name, x in model.features.items()}
        near = [{**self._top, name: factor * top} for name, top in self._top.items() for factor in (1.0, 1.25)]
        told = forecast_each(model, [*({name: point[name] for name in model.features} for point in known), *near])
        self.forecasts: list[tuple[Point, Forecasts]] = list(zip(known, told, strict=False))
        growing = iter(told[len(known) :])
        self._limits: dict[str, list[tuple[float, Array]]] = {}
        """Values of a feature, with the limits of the means of all components there; see :meth:`_relative_limits`."""
        self._slopes: dict[str, tuple[Array, Array]] = {}
        """Interval of the local exponent of each component at the largest value of a feature, (F,) each."""
        half_width = np.full(len(model.components), np.inf)
        for name, top in self._top.items():
            at_top, beyond_top = next(growing), next(growing)
            start, end = at_top.draws, beyond_top.draws
            limits = at_top.relative_limits()
            self._limits[name] = [(top, limits)]
            low, high = limits[:2]
            half_width = np.minimum(half_width, (high - low) / 2.0)
            with np.errstate(all="ignore"):
                slope = np.nan_to_num(np.log(end / start) / log(1.25))
            low, high = np.quantile(slope, [0.025, 0.975], axis=1)
            self._slopes[name] = low, high
        # What matters is the same with and without a point that is asked for, unless that is farther.
        beyond = {name: max(FACTORS) * top for name, top in tops.items()}
        inclusive = [model.inclusive_costs(point) for point in [*known, beyond]]
        self._shares = np.max([costs / (costs.max(initial=0.0) or 1.0) for costs in inclusive], axis=0)
        self._terms = self._written([self._within_reach(joined(terms)) for terms in model.inclusive_terms()])
        if len(model.features) == 1:
            self._shorten(np.minimum(TOLERANCE, OF_INTERVAL * half_width), inclusive[-1])
        self._keys = list(dict.fromkeys(key for terms in self._terms for key in terms))
        """All monomials of the laws."""
        self._coefficients = self._matrix()
        at_top = values(self._keys, {name: np.array([x]) for name, x in self._top.items()}, 1)[:, 0].tolist()
        self._at_top = dict(zip(self._keys, at_top, strict=True))
        self._local = {key: [_local_exponent(key, name, self._top) for name in self._top] for key in self._keys}
        """Values of the monomials at the largest values of the features, and their local exponents there."""
        self._composed = self._evaluate(model.features, len(model.runs)) * model.units.speed
        speeds = np.log(model.units.speed)
        self._noise = Noise("lognormal", max(float(speeds.std(ddof=1)) if speeds.size > 1 else 0.0, 1e-6))
        self._predictions = [self._predicted(point, forecasts) for point, forecasts in self.forecasts]
        self._sizes = {name: np.unique(x).size for name, x in model.features.items()}
        points_of_runs = np.array(list(model.features.values())).reshape(len(model.features), len(model.runs))
        self._distinct = np.unique(points_of_runs, axis=1).shape[1]
        self._places = {(one.name, one.file, one.line): place for place, one in enumerate(model.components)}
        self._measured = model.measured_inclusive()

    def are_shown(self, at: Point | None) -> bool:
        """Whether a table shows them: they are predicted at the point asked for, or without one, runs have several sizes.

        A point that names a feature of calls asks for these.
        """
        return at.keys() <= self.model.features.keys() and bool(self.forecasts) if at else self._distinct > 1

    def place(self, component: Component) -> int | None:
        """Number of a component in the model; None if no complete execution called it."""
        return self._places.get((component.name, component.file, component.line))

    def share(self, component: int) -> tuple[float, float]:
        """Shares of the cost of all executions in a component, with and without its callees."""
        costs = self.model.costs
        whole = max(float(costs.own.sum()), 1e-300)
        return float(self._measured[:, component].sum()) / whole, float(costs.own[:, component].sum()) / whole

    def largest_share(self, component: int) -> float:
        """Largest share of the cost in a component, at the points of the predictions or far beyond the data."""
        return float(self._shares[component])

    def of(self, component: int) -> Law:
        """The law of the inclusive cost of a run in a component."""
        slopes = {name: (low[component], high[component]) for name, (low, high) in self._slopes.items()}
        model = self.model
        terms = self._terms[component]
        keys = list(terms)
        coefficients = np.array([terms[key] for key in keys])
        contributions = coefficients * np.array([self._at_top[key] for key in keys])
        total = float(contributions.sum()) or 1.0
        locals_ = np.array([self._local[key] for key in keys]).reshape(len(keys), len(self._top)).T
        slope = {
            name: float((contributions * local).sum() / total) for name, local in zip(self._top, locals_, strict=True)
        }
        features = tuple(name for name in model.features if any(_depends(key, name) for key in keys))
        mean = expression_of(terms)
        # It grows as its leading term at the last point of the predictions, or at ten times the data without one.
        reach = {name: REACH * top for name, top in self._top.items()}
        leading = leading_term(mean, self.forecasts[-1][0] if self.forecasts else reach)
        shape = leading.shape
        growing = [key for key in keys if without_conditions(key)]
        family = "constant" if not growing else "sum"
        if len(growing) == 1:
            named = (one.name for one in FAMILIES if not one.free and one.shape == shape)
            family = "product" if shape is None else next(named, "power")
        verdict: Verdict = "law" if features else "none"
        reason = "" if features else "the cost of a run depends on none of its features"
        for name, sizes in [(name, self._sizes[name]) for name in features]:
            if sizes < MIN_SIZES:
                verdict = "inconclusive"
                reason = reason or f"{sizes} sizes of {name} were recorded, a growth needs at least {MIN_SIZES}"
        if not features and (sizes := self._distinct) < FEWEST_SIZES:
            # What growth there is could not be seen.
            runs, varied = len(model.runs), next(iter(model.features), "")
            verdict, reason = judge(Evidence(runs, runs, sizes, (0.0, 0.0), varied, ways=ways_of(model.runs)))
        return Law(
            family=family,
            expression=distribution(mean, self._noise),
            mean=mean,
            features=features,
            slope=slope,
            slope_low={name: min(slopes[name][0], slope[name]) for name in slope},
            slope_high={name: max(slopes[name][1], slope[name]) for name in slope},
            noise=self._noise,
            n=len(model.runs),
            runs=len(model.runs),
            r2=_r2(self._measured[:, component], self._composed[component]),
            verdict=verdict,
            reason=reason,
            exponent=None if shape is None else shape.exponent,
            log_exponent=None if shape is None else shape.log_exponent,
            coefficient=leading.coefficient,
            intercept=float(terms[()]) if () in terms and growing else None,
            range={name: (float(x.min()), float(x.max())) for name, x in model.features.items()},
            predictions=tuple(of_functions[component] for of_functions in self._predictions),
        )

    def _shorten(self, tolerance: Array, beyond: Array) -> None:
        """Give the laws of many terms a short form, at most so much (F,) below the composed cost, and never above it.

        ``beyond`` (F,) are the costs at ten times the data: what is small there keeps its terms.
        """
        [(feature, x)] = self.model.features.items()
        low, high = float(x.min()), float(x.max())
        shortened: list[int] = []
        for component in np.flatnonzero(beyond >= MIN_SHORT * beyond.max(initial=0.0)).tolist():
            terms = self._terms[component]
            short = short_law(terms, feature, low, high, float(tolerance[component]))
            if short is not terms:
                self._terms[component] = short
                shortened.append(component)
        if not shortened:
            return
        grid = {feature: np.geomspace(low, FAR * high, GRID)}
        model = self.model
        sums = model.active.sum(model.coefficients @ values(list(model.monomials), grid, GRID))
        self._keys = list(dict.fromkeys(key for terms in self._terms for key in terms))
        laws = self._matrix() @ values(self._keys, grid, GRID)
        factors = not_above_larger(laws, sums, shortened)
        for component in np.flatnonzero(factors < 1.0).tolist():
            self._terms[component] = {key: c * factors[component] for key, c in self._terms[component].items()}

    def _matrix(self) -> Array:
        """Coefficients of the laws' monomials, (F, T)."""
        number = {key: place for place, key in enumerate(self._keys)}
        matrix = np.zeros((len(self._terms), len(number)))
        for row, terms in zip(matrix, self._terms, strict=True):
            row[[number[key] for key in terms]] = list(terms.values())
        return matrix

    def _evaluate(self, at: Mapping[str, Array], count: int) -> Array:
        """What the laws of all components say at some points, (F, count)."""
        return np.asarray(self._coefficients @ values(self._keys, at, count))

    def costs_at(self, point: Point) -> Array:
        """What the laws of all components say at a point, (F,)."""
        return self._evaluate({name: np.array([float(value)]) for name, value in point.items()}, 1)[:, 0]

    def _predicted(self, point: Point, forecasts: Forecasts) -> list[Prediction]:
        """Predictions for all components: what their laws say at a point, with the intervals of the composed costs."""
        means = self.costs_at(point)
        composed = np.maximum(forecasts.inclusive, 0.0)
        factors = np.divide(means, composed, out=np.ones_like(means), where=composed > 0)
        ends = np.array([composed, *(forecasts.relative_limits() * composed)]) * factors
        return [Prediction(dict(point), *five) for five in ends.T.tolist()]

    def curves(self, component: int, law: Law, count: int) -> tuple[Curve, ...]:
        """The law of a component over each of its features, from the smallest value to ten times the largest.

        Other features are at their medians. Intervals, relative to the mean, are those of some values, interpolated.
        """
        curves = []
        for name in law.features:
            x = self.model.features[name]
            low, high = float(x.min()), BEYOND * float(x.max())
            grid = np.geomspace(low, high, count) if 0 < low < high else np.linspace(low, max(low, high), count)
            columns = {other: np.full(count, np.median(one)) for other, one in self.model.features.items()} | {
                name: grid
            }
            mean = np.clip(np.broadcast_to(evaluate(law.mean, columns), grid.shape), 0.0, LARGEST)
            known, limits = self._relative_limits(name)
            ends = [np.interp(np.log1p(grid), known, limit) * mean for limit in limits[:, :, component]]
            curves.append(Curve(name, *(tuple(one.tolist()) for one in (grid, mean, *ends))))
        return tuple(curves)

    def _relative_limits(self, name: str) -> tuple[Array, Array]:
        """Logarithms of 1 + some values of a feature, (n,), and the limits divided by the means there, (4, n, F).

        The values are the smallest and the largest, those of the predictions, and ten times the largest.
        """
        known = self._limits[name]
        if len(known) == 1:
            low, top = float(self.model.features[name].min()), self._top[name]
            asked = [(point[name], forecasts) for point, forecasts in self.forecasts if point[name] not in (low, top)]
            known += [(x, forecasts.relative_limits()) for x, forecasts in asked]
            far = [] if any(point[name] >= max(FACTORS) * top for point, _ in self.forecasts) else [max(FACTORS) * top]
            ends = forecast_each(self.model, [{**self._top, name: x} for x in (low, *far)])
            known += [(x, one.relative_limits()) for x, one in zip((low, *far), ends, strict=True)]
            known.sort(key=lambda one: one[0])
        return np.log1p([x for x, _ in known]), np.array([limits for _, limits in known]).transpose(1, 0, 2)

    def _written(self, sums: Sequence[TermSum]) -> list[TermSum]:
        """The terms of each sum that matter anywhere from the smallest size to ten times the largest."""
        # A piece may hold between two limits alone, so looking at the ends is not enough.
        across = {
            name: np.append(np.linspace(x.min(), x.max(), ACROSS), x.max() * np.geomspace(1.0, 10.0, 2 * ACROSS))
            for name, x in self.model.features.items()
        }
        far = {name: np.array([3.0 * x]) for name, x in self._top.items()}
        at_far, at_all = values_by_key(sums, far, 1), values_by_key(sums, across, 3 * ACROSS)
        out: list[TermSum] = []
        for terms in (_alike(one, at_far) for one in sums):
            keys = list(terms)
            parts = np.abs([terms[key] * at_all[key] for key in keys]).reshape(len(keys), 3 * ACROSS)
            kept = (parts > NEGLIGIBLE * parts.sum(axis=0)).any(axis=1)
            out.append({key: terms[key] for key, keep in zip(keys, kept, strict=True) if keep} or {(): 0.0})
        return out

    def _within_reach(self, terms: TermSum) -> TermSum:
        """The sum without conditions that hold everywhere up to ten times the data and at the points of the predictions."""
        points = [point for point, _ in self.forecasts]
        reach = {name: max([REACH * top, *(at[name] for at in points)]) for name, top in self._top.items()}
        out: dict[Monomial, float] = {}
        for key, coefficient in terms.items():
            kept = tuple(factor for factor in key if not _holds_up_to(factor[0], reach))
            out[kept] = out.get(kept, 0.0) + coefficient
        return out


def forecast_program(model: CostModel, at: Point | None, laws: RunLaws | None = None) -> ProgramForecast:
    """The model's answer for whole runs. ``laws`` are those at the point, if there are."""
    size = np.lexsort([*reversed(list(model.features.values()))]) if model.features else np.arange(len(model.runs))
    largest = {name: float(x[size[-1]]) for name, x in model.features.items()}
    of_largest = np.logical_and.reduce(
        [np.ones(len(model.runs), bool), *(x == largest[n] for n, x in model.features.items())]
    )
    outside = [one.name == OUTSIDE for one in model.components]
    known = at is not None and bool(model.features) and model.features.keys() <= at.keys()
    predicted, parts = None, []
    if at is not None and known:
        laws = laws or RunLaws(model, at)
        [(_, forecasts)] = laws.forecasts
        predicted = forecasts.of_whole(at)
        own = model.costs.own.sum(axis=0) / max(float(model.costs.own.sum()), 1e-300)
        for place, component in enumerate(model.components):
            if component.name in (OUTSIDE, COLLECTING) and own[place] > 0:
                law = laws.of(place)
                parts.append(ProgramPart(component, float(own[place]), law, law.predictions[0]))
    # Laws that are shown are short forms of the model, and the rows of the table have their numbers.
    inclusive = laws.costs_at(largest) if laws else model.inclusive_costs(largest)
    return ProgramForecast(
        features=largest,
        composed=float(np.median(model.composed()[of_largest])),
        measured=float(np.median(model.measured()[of_largest])),
        unrecorded=float(inclusive[outside].sum()),
        executions=len(model.runs),
        predicted=predicted,
        queued=0.0 if model.costs.queued is None else float(np.median(model.costs.queued[of_largest])),
        per=model.costs.per.name if model.costs.per else "",
        parts=tuple(parts),
    )


def _alike(terms: TermSum, at: Mapping[Monomial, Array]) -> TermSum:
    """The sum in which powers that would be written alike are one term, with the same value at a point.

    ``at`` are the values of the monomials there, (1,) each.
    """
    groups: dict[Monomial, dict[Monomial, float]] = {}
    for key, coefficient in terms.items():
        written = tuple((base, round(power, 2)) for base, power in key)
        groups.setdefault(written, {})[key] = coefficient
    out: dict[Monomial, float] = {}
    for group in groups.values():
        parts = {key: coefficient * float(at[key][0]) for key, coefficient in group.items()}
        most = max(parts, key=lambda key: abs(parts[key]))
        if len(group) == 1 or not at[most][0]:
            out |= group
        else:
            out[most] = sum(parts.values()) / float(at[most][0])
    return out


def _holds_up_to(base: Expression, reach: Point) -> bool:
    """Whether a factor is the condition that a feature is at most a limit, which is out of reach."""
    match base:
        case Binary("<=", Name(name), Number(limit)):
            return limit >= reach.get(name, limit + 1.0)
    return False


def _depends(key: Monomial, name: str) -> bool:
    return any(part == Name(name) for base, _ in key for part in base.walk())


def _local_exponent(key: Monomial, name: str, at: Point) -> float:
    """Local exponent of a monomial in a feature: that of powers and logarithms, by differences for other bases."""
    if all(base in (Name(name), _log(name)) or not _depends(((base, 1.0),), name) for base, _ in key):
        powers = dict(key)
        return powers.get(Name(name), 0.0) + powers.get(_log(name), 0.0) / max(log(max(at[name], 1.0)), 1e-9)
    points = {other: np.array([x, 1.01 * x if other == name else x]) for other, x in at.items()}
    low, high = values([key], points, 2)[0]
    return log(high / low) / log(1.01) if low > 0 and high > 0 else 0.0


def _log(name: str) -> Expression:
    return Call("log", (Name(name),))


def _r2(measured: Array, composed: Array) -> float | None:
    """Share of the variance of the logarithm of the runs' cost that the model explains; None where it does not vary."""
    used = (measured > 0) & (composed > 0)
    if used.sum() < 3:
        return None
    y = np.log(measured[used])
    scatter = float(((y - y.mean()) ** 2).sum())
    return None if scatter <= 0 else 1.0 - float(((y - np.log(composed[used])) ** 2).sum()) / scatter
