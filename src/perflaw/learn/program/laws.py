"""The cost model as laws: the cost of a run in each function, and in the whole program, over the run's features."""

from __future__ import annotations

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import FAMILIES
from perflaw.laws.growth import REACH, leading_term
from perflaw.laws.tree import Binary, Call, Expression, Name, Number
from perflaw.learn.program.counts import Point
from perflaw.learn.program.model import CostModel, Forecasts
from perflaw.learn.program.terms import Monomial, TermSum, expression_of, joined, values, without_conditions
from perflaw.learn.series.law import distribution
from perflaw.types import Component, Law, Noise, ProgramForecast, Verdict
from perflaw.types.programs import OUTSIDE

Array = NDArray[np.float64]

FACTORS: Final = (2.0, 10.0)
"""Predictions are made at so many times the 95th percentile of every feature."""
MIN_SIZES: Final = 3
"""Sizes of a feature below which a growth is a guess."""
NEGLIGIBLE: Final = 2e-3
"""Share of the cost, from the smallest size to ten times the largest, below which a term is not written."""


class RunLaws:
    """Laws of the cost of a run, with predictions at the same points for all functions."""

    def __init__(self, model: CostModel, at: Point | None) -> None:
        """Draw the model at the points of the predictions: at ``at``, or beyond the data."""
        self.model = model
        tops = {name: float(np.percentile(x, 95)) for name, x in model.features.items()}
        points = [at] if at else [{name: factor * top for name, top in tops.items()} for factor in FACTORS]
        known = [point for point in points if point is not None and model.features.keys() <= point.keys()]
        self.forecasts: list[tuple[Point, Forecasts]] = [(point, model.predict(point)) for point in known]
        self._predictions = [forecasts.of_functions(point) for point, forecasts in self.forecasts]
        self._top = {name: float(x.max()) for name, x in model.features.items()}
        self._slopes: dict[str, tuple[Array, Array]] = {}
        """Interval of the local exponent of each component at the largest value of a feature, (F,) each."""
        for name, top in self._top.items():
            start, end = (model.predict({**self._top, name: factor * top}).draws for factor in (1.0, 1.25))
            with np.errstate(all="ignore"):
                slope = np.nan_to_num(np.log(end / start) / log(1.25))
            low, high = np.quantile(slope, [0.025, 0.975], axis=1)
            self._slopes[name] = low, high
        self._terms = model.inclusive_terms()
        self._places = {(one.name, one.file, one.line): place for place, one in enumerate(model.components)}
        self._measured = model.measured_inclusive()

    def place(self, component: Component) -> int | None:
        """Number of a component in the model; None if no complete execution called it."""
        return self._places.get((component.name, component.file, component.line))

    def largest_share(self, component: int) -> float:
        """Share of the cost in a component at the last point of the predictions; 0 without one."""
        if not self.forecasts:
            return 0.0
        _, forecasts = self.forecasts[-1]
        return float(forecasts.inclusive[component]) / (forecasts.whole or 1.0)

    def of(self, component: int) -> Law:
        """The law of the inclusive cost of a run in a component."""
        predictions = [of_functions[component] for of_functions in self._predictions]
        slopes = {name: (low[component], high[component]) for name, (low, high) in self._slopes.items()}
        model = self.model
        terms = self._written(self._terms[component])
        keys = list(terms)
        coefficients = np.array([terms[key] for key in keys])
        contributions = coefficients * values(keys, {name: np.array([x]) for name, x in self._top.items()}, 1)[:, 0]
        total = float(contributions.sum()) or 1.0
        slope = {}
        for name in self._top:
            local = np.array([_local_exponent(key, name, self._top) for key in keys])
            slope[name] = float((contributions * local).sum() / total)
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
        for name, sizes in [(name, np.unique(model.features[name]).size) for name in features]:
            if sizes < MIN_SIZES:
                verdict = "inconclusive"
                reason = reason or f"{sizes} sizes of {name} were recorded, a growth needs at least {MIN_SIZES}"
        speeds = np.log(model.units.speed)
        composed = coefficients @ values(keys, model.features, len(model.runs)) * model.units.speed
        noise = Noise("lognormal", max(float(speeds.std(ddof=1)) if speeds.size > 1 else 0.0, 1e-6))
        return Law(
            family=family,
            expression=distribution(mean, noise),
            mean=mean,
            features=features,
            slope=slope,
            slope_low={name: min(slopes[name][0], slope[name]) for name in slope},
            slope_high={name: max(slopes[name][1], slope[name]) for name in slope},
            noise=noise,
            n=len(model.runs),
            runs=len(model.runs),
            r2=_r2(self._measured[:, component], composed),
            verdict=verdict,
            reason=reason,
            exponent=None if shape is None else shape.exponent,
            log_exponent=None if shape is None else shape.log_exponent,
            coefficient=leading.coefficient,
            intercept=float(terms[()]) if () in terms and growing else None,
            range={name: (float(x.min()), float(x.max())) for name, x in model.features.items()},
            predictions=tuple(predictions),
        )

    def _written(self, terms: TermSum) -> dict[Monomial, float]:
        """The terms that matter anywhere from the smallest size to ten times the largest."""
        terms = self._alike(self._within_reach(joined(terms)))
        keys = list(terms)
        if not keys:
            return {(): 0.0}
        ends = {name: np.array([x.min(), x.max(), 10.0 * x.max()]) for name, x in self.model.features.items()}
        parts = np.abs(np.array([terms[key] for key in keys])[:, None] * values(keys, ends, 3))
        kept = (parts > NEGLIGIBLE * parts.sum(axis=0)).any(axis=1)
        return {key: terms[key] for key, keep in zip(keys, kept, strict=True) if keep} or {(): 0.0}

    def _within_reach(self, terms: TermSum) -> TermSum:
        """The sum without conditions that hold everywhere up to ten times the data and at the points of the predictions."""
        points = [point for point, _ in self.forecasts]
        reach = {name: max([REACH * top, *(at[name] for at in points)]) for name, top in self._top.items()}
        out: dict[Monomial, float] = {}
        for key, coefficient in terms.items():
            kept = tuple(factor for factor in key if not _holds_up_to(factor[0], reach))
            out[kept] = out.get(kept, 0.0) + coefficient
        return out

    def _alike(self, terms: TermSum) -> TermSum:
        """The sum in which powers that would be written alike are one term, with the same value at three times the data."""
        far = {name: np.array([3.0 * x]) for name, x in self._top.items()}
        groups: dict[Monomial, dict[Monomial, float]] = {}
        for key, coefficient in terms.items():
            written = tuple((base, round(power, 2)) for base, power in key)
            groups.setdefault(written, {})[key] = coefficient
        out: dict[Monomial, float] = {}
        for group in groups.values():
            each = values(list(group), far, 1)[:, 0]
            most = max(range(len(group)), key=lambda place: abs(list(group.values())[place] * each[place]))
            if len(group) == 1 or not each[most]:
                out |= group
            else:
                out[list(group)[most]] = float(np.array(list(group.values())) @ each / each[most])
        return out


def forecast_program(model: CostModel, at: Point | None) -> ProgramForecast | None:
    """The model's answer for whole runs; None without a complete execution."""
    if not model.runs:
        return None
    size = np.lexsort([*reversed(list(model.features.values()))]) if model.features else np.arange(len(model.runs))
    largest = {name: float(x[size[-1]]) for name, x in model.features.items()}
    of_largest = np.logical_and.reduce(
        [np.ones(len(model.runs), bool), *(x == largest[n] for n, x in model.features.items())]
    )
    outside = [one.name == OUTSIDE for one in model.components]
    known = at is not None and bool(model.features) and model.features.keys() <= at.keys()
    return ProgramForecast(
        features=largest,
        composed=float(np.median(model.composed()[of_largest])),
        measured=float(np.median(model.measured()[of_largest])),
        unrecorded=float(np.median(model.costs.own[of_largest][:, outside].sum(axis=1))),
        executions=len(model.runs),
        predicted=model.predict(at).of_whole(at) if at is not None and known else None,
        queued=0.0 if model.costs.queued is None else float(np.median(model.costs.queued[of_largest])),
    )


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
