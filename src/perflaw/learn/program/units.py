"""Unit costs: the own cost of a call of each function, and the speed of each run.

Calls are counted exactly, but their costs come from a clock that others disturb. Two assumptions keep unit costs steady:
how fast the machine was during a run is one number for all functions, and a unit cost is constant unless a dependence on
a feature is established. Laws minimize the sum of absolute relative errors, so a single disturbed run does not bend
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.laws.catalogue import Shape
from perflaw.learn.program.terms import ONE, TermSum, monomial

Array = NDArray[np.float64]

SHAPES: Final = {
    Shape(0.0, 1.0): 1.0,
    Shape(0.5): 1.0,
    Shape(1.0): 0.0,
    Shape(1.0, 1.0): 1.5,
    Shape(2.0): 1.0,
    Shape(3.0): 2.0,
}
"""Shape of a dependence → what its score costs for being a rarer shape."""
ACCURACY: Final = 0.02
"""Relative error below which unit costs count as equal: no clock is more exact over a program's runs."""
ERROR: Final = 0.05
"""Probability that any constant unit cost of an experiment is taken for a dependent one."""
ITERATIONS: Final = 12
"""Steps of the iteratively reweighted least squares that minimize absolute errors."""
MIN_RUNS: Final = 4
"""Fewer runs with a cost give a constant."""
MIN_SHARE: Final = 0.005
"""Functions of this share of the cost are tested among themselves; smaller ones need more evidence."""
MIN_VARIATION: Final = 0.5
"""Range of the logarithm of the calls made by a call from which its cost may follow them."""
MAX_SPREAD: Final = 2.3
"""Largest standard deviation of a logarithm in draws: beyond a factor of a hundred nothing is known anyway."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One form of a unit cost u: ``a``, ``a + b/N``, ``a + b·M/N``, ``a + b·shape(x)`` or ``b·shape(x)``."""

    feature: str = ""
    """Feature x; empty where there is none."""
    shape: Shape | None = None
    """Its shape; None where the unit cost is constant, apart from a first call."""
    intercept: bool = True
    """Whether ``a`` is part of it."""
    first_call: bool = False
    """Whether ``b/N`` is part of it: a cost that occurs once, in N calls."""
    by_calls: bool = False
    """Whether ``b·M/N`` is part of it: in N calls the function makes M calls itself, each in a step of a loop."""

    @property
    def parameters(self) -> int:
        """Number of its coefficients."""
        return int(self.intercept) + int(self.first_call or self.by_calls or self.shape is not None)

    @property
    def grows(self) -> bool:
        """Whether it depends on a feature."""
        return self.shape is not None


@dataclass(frozen=True, slots=True)
class UnitLaw:
    """The unit cost of a function."""

    forms: tuple[tuple[float, Candidate, tuple[float, float]], ...]
    """Weight, form, and coefficients a and b of the chosen law, then of those that the data leave open."""
    spread: float
    """Standard deviation of the logarithm of the unit cost between runs of one size."""
    runs: int
    """Runs with a cost."""

    @property
    def established(self) -> bool:
        """Whether it depends on a feature."""
        return self.forms[0][1].grows

    def terms(self, form: int = 0) -> tuple[TermSum, float, float]:
        """The unit cost as a sum of monomials, the cost that occurs once in a run, and that of a call that is made."""
        _, candidate, (a, b) = self.forms[form]
        if candidate.shape is not None:
            key = monomial(candidate.feature, candidate.shape.exponent, candidate.shape.log_exponent)
            return {ONE: a, key: b} if candidate.intercept and a else {key: b}, 0.0, 0.0
        return {ONE: a}, b * candidate.first_call, b * candidate.by_calls


@dataclass(frozen=True, slots=True, eq=False)
class UnitCosts:
    """Unit costs of all functions, and the runs' speeds."""

    laws: tuple[UnitLaw, ...]
    """(F,) the laws, at the median speed of the runs."""
    speed: Array
    """(R,) factor by which all costs of a run are larger than at the median speed."""


def learn_units(
    calls: Array, made: Array, own: Array, features: Mapping[str, Array], accumulates: NDArray[np.bool_]
) -> UnitCosts:
    """Unit costs from calls, calls made and own costs (R, F) of R runs with features (R,) each.

    A function with a loop whose steps call others costs in proportion to the calls it makes. They are counted exactly, so
    this form bends less than any dependence on a feature, and needs no more evidence than a constant.

    ``accumulates`` (F,) marks the garbage collection. Collections become dearer as objects accumulate, but never without
    end, because CPython puts off a full collection until a quarter of all objects is new: the total is a straight line
    in the number of collections, and the part that occurs once may be negative.
    """
    fits = _Fits(calls, made, own, features, accumulates)
    residuals = fits.fit(np.zeros(len(calls)))
    speed = _speed(residuals, own, features)
    if speed.any():
        fits.fit(speed)
    return UnitCosts(tuple(fits.law(f) for f in range(calls.shape[1])), np.exp(speed))


def _speed(residuals: Array, own: Array, features: Mapping[str, Array]) -> Array:
    """Logarithm of each run's speed, (R,): the weighted median of the residuals (F, R) of functions with enough cost.

    A trend of the speed with a feature is a dependence of the program and stays in the unit costs if it is significant.
    """
    share = own.sum(axis=0) / max(own.sum(), 1e-300)
    usable = np.isfinite(residuals).all(axis=1) & (share > 1e-3)
    if usable.sum() < 3:
        return np.zeros(len(own))
    weights = np.minimum(share[usable], np.quantile(share[usable], 0.9))
    columns = residuals[usable]
    order = np.argsort(columns, axis=0)
    cumulated = np.cumsum(weights[order], axis=0)
    middle = (cumulated < cumulated[-1] / 2).sum(axis=0)
    speed: Array = np.take_along_axis(columns, order, axis=0)[middle, np.arange(columns.shape[1])]
    speed = speed - np.median(speed)
    for x in features.values():
        if speed.size > 4 and (x > 0).all() and np.ptp(x) > 0:
            log_x = np.log(x) - np.log(x).mean()
            slope = float(log_x @ speed / (log_x @ log_x))
            error = np.sqrt(((speed - speed.mean() - slope * log_x) ** 2).sum() / (speed.size - 2) / (log_x @ log_x))
            if abs(slope) > stdtrit(speed.size - 2, 0.995) * error:
                speed = speed - slope * log_x
    return speed


class _Fits:
    """All forms fitted to all functions at once; arrays have the functions first."""

    def __init__(
        self,
        calls: Array,
        made: Array,
        own: Array,
        features: Mapping[str, Array],
        accumulates: NDArray[np.bool_],
    ) -> None:
        self.used = ((calls > 0) & (own > 0)).T
        self.runs = self.used.sum(axis=1)
        self.calls = np.where(self.used, calls.T, 1.0)
        self.unit = np.where(self.used, own.T / self.calls, 1.0)
        self.mean_unit = own.sum(axis=0) / np.maximum(calls.sum(axis=0), 1.0)
        varied = {name: x for name, x in features.items() if np.ptp(x) > 0}
        self.candidates = [Candidate(), Candidate(first_call=True), Candidate(by_calls=True)]
        made_per_call = np.where(self.used, made.T / self.calls, 0.0)
        self.columns: list[Array | None] = [None, 1.0 / self.calls, made_per_call]
        # Where the calls made hardly vary, their part of the cost cannot be told from the constant part.
        self.loops = (made_per_call.max(axis=1) > 1.0) & (
            np.ptp(np.where(self.used, np.log(np.maximum(made_per_call, 0.5)), 0.0), axis=1) > MIN_VARIATION
        )
        for name, x in varied.items():
            for shape in SHAPES:
                if bool(shape.defined(x)):
                    column = np.broadcast_to(shape.value(x), self.unit.shape)
                    self.candidates += [Candidate(name, shape), Candidate(name, shape, intercept=False)]
                    self.columns += [column, column]
        share = own.sum(axis=0) / max(own.sum(), 1e-300)
        large = share > MIN_SHARE
        tests = np.where(large, large.sum(), share.size) * max(len(varied), 1)
        freedom = np.maximum(self.runs - 2, 1)
        critical = stdtrit(freedom, 1.0 - ERROR / 2.0 / np.maximum(tests, 1))
        self.accumulates = accumulates
        self.evidence = self.runs * np.log1p(critical**2 / freedom)
        """Gain in score by which a dependence on a feature has to be better than a constant, (F,)."""
        self.coefficients = np.zeros((len(self.candidates), self.runs.size, 2))
        self.scores = np.full((len(self.candidates), self.runs.size), np.inf)
        self.error = np.zeros((len(self.candidates), self.runs.size))
        self.chosen = np.zeros(self.runs.size, dtype=np.intp)

    def fit(self, speed: Array) -> Array:
        """Fit every form to unit costs at the median speed, choose one for each function; its residuals, (F, R).

        Residuals are logarithms of the ratio of unit costs to the law, NaN where a run has no cost.
        """
        unit = self.unit / np.exp(speed)
        log_unit = np.log(unit)
        spread_calls = np.ptp(np.where(self.used, np.log(self.calls), 0.0), axis=1)
        fitted = np.empty((len(self.candidates), *unit.shape))
        for m, (candidate, column) in enumerate(zip(self.candidates, self.columns, strict=True)):
            if column is None:
                a, b, mean = self._median(unit)
            else:
                a, b, mean = self._absolute(unit, column, candidate.intercept)
            possible = (self.runs >= MIN_RUNS) & (a >= 0) & (mean > 0).all(axis=1)
            if candidate.first_call:
                possible &= ((b >= 0) & (spread_calls > 1.0)) | (self.accumulates & (spread_calls > 0.3))
            else:
                possible &= (b >= 0) & ~self.accumulates
            if candidate.by_calls:
                possible &= self.loops
            if column is None:
                possible |= True
            fitted[m] = mean = np.where(mean > 0, mean, 1.0)
            error = np.where(self.used, np.abs(log_unit - np.log(mean)), 0.0).sum(axis=1) / np.maximum(self.runs, 1)
            penalty = 0.0
            if candidate.shape is not None:
                penalty = 2.0 * SHAPES[candidate.shape]
            score = 2.0 * self.runs * np.log(np.maximum(error, ACCURACY)) + penalty
            score += candidate.parameters * np.log(np.maximum(self.runs, 2))
            self.coefficients[m] = np.stack([a, b], axis=1)
            self.error[m] = error
            self.scores[m] = np.where(possible, score, np.inf)
        self.scores[1:3] += 2.0  # both are common, but the constant is the plainer claim
        grows = np.array([one.grows for one in self.candidates])[:, None]
        self.chosen = (self.scores + np.where(grows, self.evidence, 0.0)).argmin(axis=0)
        law = np.take_along_axis(fitted, self.chosen[None, :, None], axis=0)[0]
        return np.where(self.used & (self.runs >= MIN_RUNS)[:, None], log_unit - np.log(law), np.nan)

    def _median(self, unit: Array) -> tuple[Array, Array, Array]:
        """The constant: the median of the runs, weighted by the square root of their calls."""
        weights = np.where(self.used, np.sqrt(self.calls), 0.0)
        order = np.argsort(np.where(self.used, unit, np.inf), axis=1)
        cumulated = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        place = (cumulated < cumulated[:, -1:] / 2).sum(axis=1)
        middle = np.take_along_axis(order, np.minimum(place, unit.shape[1] - 1)[:, None], axis=1)
        median = np.take_along_axis(unit, middle, axis=1)[:, 0]
        a = np.where(self.runs >= MIN_RUNS, median, np.maximum(self.mean_unit, 0.0))
        return a, np.zeros_like(a), np.broadcast_to(a[:, None], unit.shape)

    def _absolute(self, unit: Array, column: Array, intercept: bool) -> tuple[Array, Array, Array]:
        """Coefficients a and b that minimize Σ |u − a − b·column| / u, (F,) each, and the mean, (F, R)."""
        top = np.maximum(column.max(axis=1, keepdims=True), 1e-300)
        x = column / top
        mean, a = unit, np.zeros(len(unit))
        for _ in range(ITERATIONS):
            mean = np.clip(mean, 0.01 * unit, 100.0 * unit)  # an early step may be far off
            weight = np.where(self.used, 1.0 / (mean**2 * np.maximum(np.abs(np.log(unit / mean)), ACCURACY)), 0.0)
            sxx, sxy = (weight * x * x).sum(axis=1), (weight * x * unit).sum(axis=1)
            if intercept:
                s, sx, sy = weight.sum(axis=1), (weight * x).sum(axis=1), (weight * unit).sum(axis=1)
                determinant = s * sxx - sx * sx
                singular = determinant <= 1e-12 * s * sxx
                determinant = np.where(singular, 1.0, determinant)
                a = np.where(singular, -1.0, (sxx * sy - sx * sxy) / determinant)
                b = np.where(singular, -1.0, (s * sxy - sx * sy) / determinant)
            else:
                b = sxy / np.maximum(sxx, 1e-300)
            mean = a[:, None] + b[:, None] * x
        return a, b / top[:, 0], mean

    def law(self, f: int) -> UnitLaw:
        """The law of a function with the forms that the data leave open beside it."""
        chosen = int(self.chosen[f])
        needed = np.array([self.evidence[f] if one.grows else 0.0 for one in self.candidates])
        distance = self.scores[:, f] + needed - self.scores[chosen, f] - needed[chosen]
        weights = np.where(np.isfinite(distance), np.exp(-np.maximum(distance, 0.0) / 2.0), 0.0)
        weights[chosen] = 1.0
        kept = [chosen, *(int(m) for m in np.flatnonzero(weights > 0.01) if m != chosen)]
        total = float(weights[kept].sum())
        forms = tuple(
            (float(weights[m]) / total, self.candidates[m], tuple(self.coefficients[m, f].tolist())) for m in kept
        )
        return UnitLaw(forms, min(float(self.error[chosen, f]) * np.sqrt(2.0), MAX_SPREAD), int(self.runs[f]))


def grows(laws: Sequence[UnitLaw]) -> NDArray[np.bool_]:
    """Which unit costs depend on a feature, (F,)."""
    return np.array([law.established for law in laws], dtype=np.bool_)
