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

from perflaw.learn.program.forms import Candidate, exponential_forms, kinked_forms, smooth_forms
from perflaw.learn.program.terms import LARGEST, ONE, TermSum, values
from perflaw.special import stdtrit

Array = NDArray[np.float64]
Fit = tuple[Array, Array, Array, Array]
"""Coefficients (F, k), means (F, R), errors (F,) and drifts (F,) of a form for all functions; the error is infinite where
the form is impossible or was not tried."""

MAX_NUMBERS: Final = 1 << 16
"""Numbers in an array of functions and runs up to which several forms are fitted together."""
MISFIT: Final = 0.06
"""Mean relative error of the best smooth law from which kinks and exponentials are tried."""
DRIFT: Final = 0.1
"""Standard deviation of the exponent by which unit costs drift beyond the data, as data outgrow one cache after another."""
GOVERNING: Final = 0.5
"""Share of the cost at the largest size that the last term of a law above a kink has."""
OPEN_SHARE: Final = 1.0 / 3.0
"""Share of the cost at the largest size from which a steep term beside a constant is left open."""
STEEPEST: Final = 3.0
"""Exponent of calls times unit cost up to which all are plausible."""
STEEP: Final = 3.0
"""What each further one costs, where the calls grow too: the cost of a function seldom grows faster than the cube."""
ACCURACY: Final = 0.03
"""Relative error below which unit costs count as equal: no clock is more exact over a program's runs."""
ERROR: Final = 0.05
"""Probability that any constant unit cost of an experiment is taken for a dependent one."""
ITERATIONS: Final = 12
"""Steps of the iteratively reweighted least squares that minimize absolute errors."""
MIN_WEIGHT: Final = 0.003
"""Least weight of a form that is left open, relative to that of the chosen one."""
TESTED_OPEN: Final = 0.25
"""A dependence is left open as if it were one of so many tests, as a power of their number."""
EQUAL: Final = 1e-12
"""Relative difference up to which unit costs are the same but for rounding."""
MIN_RUNS: Final = 4
"""Fewer runs with a cost give a constant."""
MIN_TREND: Final = 3
"""Fewest sizes that show a trend of the residuals."""
MIN_SHARE: Final = 0.005
"""Functions of this share of the cost are tested among themselves; smaller ones need more evidence."""
MIN_SHARE_STEEP: Final = 1e-4
"""Share of the cost from which kinks and exponentials are tried."""
MIN_VARIATION: Final = 0.5
"""Range of the logarithm of the calls made by a call from which its cost may follow them."""
MAX_SPREAD: Final = 2.3
"""Largest standard deviation of a logarithm in draws: beyond a factor of a hundred nothing is known anyway."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedForm:
    """A form of a unit cost with its coefficients."""

    weight: float
    """Probability that it is the true one."""
    form: Candidate
    """The form."""
    coefficients: Array
    """(k,) coefficients of its terms."""
    deviations: Array
    """(k, k) a matrix whose product with k standard normal numbers has the errors of the coefficients."""

    @property
    def spread(self) -> float:
        """Relative standard error of the first coefficient."""
        return float(np.hypot.reduce(self.deviations[0]) / self.coefficients[0])

    @classmethod
    def constant(cls, cost: float, spread: float) -> FittedForm:
        """The constant unit cost, known up to a relative error."""
        return cls(1.0, Candidate((ONE,)), np.array([cost]), np.array([[cost * spread]]))


@dataclass(frozen=True, slots=True, eq=False)
class UnitLaw:
    """The unit cost of a function."""

    forms: tuple[FittedForm, ...]
    """The chosen law, then those that the data leave open."""
    drift: float = DRIFT
    """Standard deviation of the exponent by which the unit cost may leave the law beyond the data."""

    @property
    def established(self) -> bool:
        """Whether it depends on a feature."""
        return self.forms[0].form.grows

    def terms(self, form: int = 0) -> tuple[TermSum, float, float]:
        """The unit cost as a sum of monomials, the cost that occurs once in a run, and that of a call that is made."""
        candidate, coefficients = self.forms[form].form, self.forms[form].coefficients.tolist()
        terms = {
            key: c for key, c in zip(candidate.terms, coefficients, strict=False) if c or key == candidate.terms[-1]
        }
        return terms, coefficients[-1] * candidate.first_call, coefficients[-1] * candidate.by_calls


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
        columns = np.array(list(features.values())).reshape(len(features), len(calls)).T
        self.size = np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)
        """Number of the size of each run: runs of one size have the same features."""
        # The sets of runs in which functions have a cost are few: what depends on the set alone is found once a set.
        self.patterns, self.pattern = np.unique(self.used, axis=0, return_inverse=True)
        self.calls = np.where(self.used, calls.T, 1.0)
        self.unit = np.where(self.used, own.T / self.calls, 1.0)
        # What costs the same in all runs, as one event a call, depends on nothing.
        least, most = (np.where(self.used, self.unit, other) for other in (np.inf, -np.inf))
        self.differs = most.max(axis=1) > least.min(axis=1) * (1.0 + EQUAL)
        self.counted = ~self.differs & (self._sizes_used() >= MIN_TREND)
        """Functions of which a call costs exactly the same at several sizes, (F,): no clock tells that, and it is no error."""
        self.mean_unit = own.sum(axis=0) / np.maximum(calls.sum(axis=0), 1.0)
        self.made = np.where(self.used, made.T / self.calls, 0.0)
        # Where the calls made hardly vary, their part of the cost cannot be told from the constant part.
        self.loops = (self.made.max(axis=1) > 1.0) & (
            np.ptp(np.where(self.used, np.log(np.maximum(self.made, 0.5)), 0.0), axis=1) > MIN_VARIATION
        )
        self.features = {name: x for name, x in features.items() if np.ptp(x) > 0}
        self.bases: dict[int, tuple[Array, Array]] = {}
        """By the identity of each of these forms, because hashing a form takes longer than its values."""
        self.smooth = self._with_squares(smooth_forms(self.features))
        self.steep = self._with_squares([*exponential_forms(self.features), *kinked_forms(self.features)])
        self.calls_exponent = {name: self._calls_exponent(x) for name, x in self.features.items() if x.min() > 0}
        share = own.sum(axis=0) / max(own.sum(), 1e-300)
        large = share > MIN_SHARE
        self.matters = share > MIN_SHARE_STEEP
        tests = np.where(large, large.sum(), share.size) * max(len(self.features), 1)
        freedom = np.maximum(self.runs - 2, 1)
        critical = stdtrit(freedom, 1.0 - ERROR / 2.0 / np.maximum(tests, 1))
        self.accumulates = accumulates
        self.evidence = self.runs * np.log1p(critical**2 / freedom)
        """Gain in score by which a dependence on a feature has to be better than a constant, (F,)."""
        open_ = stdtrit(freedom, 1.0 - ERROR / 2.0 / np.maximum(tests, 1) ** TESTED_OPEN)
        self.open_evidence = self.runs * np.log1p(open_**2 / freedom)
        """The same for a dependence to be left open, (F,)."""
        self.forms: list[Candidate] = []
        self.coefficients: list[Array] = []
        self.scores = self.error = np.zeros((0, self.runs.size))
        self.chosen = np.zeros(self.runs.size, dtype=np.intp)
        self.residual = np.zeros(self.unit.shape)

    def fit(self, speed: Array) -> Array:
        """Fit every form to unit costs at the median speed, choose one for each function; its residuals, (F, R).

        Residuals are logarithms of the ratio of unit costs to the law, NaN where a run has no cost.
        """
        unit = self.unit / np.exp(speed)
        everything = np.arange(self.runs.size)
        scatter = self._scatter(unit)
        varying = np.flatnonzero(self.differs & (self.runs >= MIN_RUNS))
        fits = self._fitted(self.smooth[:1], unit, everything) + self._fitted(self.smooth[1:], unit, varying)
        self.forms = list(self.smooth)
        self._choose(fits, scatter)
        misfit = np.take_along_axis(self.error, self.chosen[None], axis=0)[0] > MISFIT
        if self.steep and (bent := np.flatnonzero(misfit & self.matters & ~self.accumulates)).size:
            fits += self._fitted(self.steep, unit, bent)
            self.forms += self.steep
            smooth = self.chosen
            self._choose(fits, scatter)
            self._drop_small_kinks(smooth, fits)
        means = np.array([fits[m][1][f] for f, m in enumerate(self.chosen)]).reshape(unit.shape)
        usable = self.used & (self.runs >= MIN_RUNS)[:, None]
        self.residual = np.where(usable, np.log(unit) - np.log(np.where(usable, means, 1.0)), np.nan)
        return self.residual

    def _drop_small_kinks(self, smooth: NDArray[np.intp], fits: Sequence[Fit]) -> None:
        """Go back to the best smooth form, (F,), where the one with a kink hardly differs from it, however costs scatter."""
        for f in np.flatnonzero(self.chosen != smooth).tolist():
            kinked, before = (fits[m][1][f][self.used[f]] for m in (self.chosen[f], smooth[f]))
            if self.forms[self.chosen[f]].kinked and np.abs(np.log(kinked / before)).mean() <= MISFIT:
                self.chosen[f] = smooth[f]

    def _calls_exponent(self, x: Array) -> Array:
        """Exponent by which the calls of each function grow with a feature (R,), 0 or more, (F,)."""
        runs = np.maximum(self.runs, 1)[:, None]
        log_x, log_calls = (np.where(self.used, np.log(one), 0.0) for one in (x, self.calls))
        log_x = np.where(self.used, log_x - log_x.sum(axis=1, keepdims=True) / runs, 0.0)
        slope = (log_x * log_calls).sum(axis=1) / np.maximum((log_x**2).sum(axis=1), 1e-300)
        return np.asarray(np.maximum(slope, 0.0))

    def _scatter(self, unit: Array) -> Array:
        """Mean absolute deviation of the logarithm of unit costs between runs of one size, (F,); 0 without such runs."""
        total, count = np.zeros(self.runs.size), np.zeros(self.runs.size)
        for size in np.unique(self.size):
            here = self.size == size
            used = self.used[:, here]
            runs = used.sum(axis=1)
            logs = np.where(used, np.log(unit[:, here]), 0.0)
            about = np.where(used, logs - (logs.sum(axis=1) / np.maximum(runs, 1))[:, None], 0.0)
            several = runs > 1
            # About the mean of a few runs they deviate less than about the true one.
            total += np.where(several, np.abs(about).sum(axis=1) * np.sqrt(runs / np.maximum(runs - 1, 1)), 0.0)
            count += np.where(several, runs, 0)
        self.repeats = np.where(count > 0, self.runs / np.maximum(self._sizes_used(), 1), 1.0)
        return np.asarray(total / np.maximum(count, 1))

    def _sizes_used(self) -> NDArray[np.intp]:
        """Number of sizes at which each function has a cost, (F,)."""
        sizes = np.array([np.unique(self.size[row]).size for row in self.patterns])
        return np.asarray(sizes[self.pattern])

    def _choose(self, fits: Sequence[Fit], scatter: Array) -> None:
        """Score all forms, and choose one for each function."""
        self.coefficients = [one[0] for one in fits]
        self.error, drift = np.array([one[2] for one in fits]), np.array([one[3] for one in fits])
        # Where even the best form misses the sizes by more than runs of one size differ, the misfit is that of the forms:
        # runs of one size then share their residual and are worth little more than a single one (Kish 1965, design effect).
        error = np.maximum(self.error, ACCURACY)
        shared = 1.0 - np.minimum(np.maximum(scatter, ACCURACY) / error.min(axis=0), 1.0) ** 2
        self.worth = np.maximum(self.runs, 1) / (1.0 + (self.repeats - 1.0) * shared)
        cost, parameters = (
            np.array([[getattr(one, name)] for one in self.forms], dtype=np.float64) for name in ("cost", "parameters")
        )
        self.scores = 2.0 * self.worth * np.log(error) + (drift / DRIFT) ** 2
        self.scores += cost + parameters * np.log(np.maximum(self.worth, 2.0))
        for name, grown in self.calls_exponent.items():
            steepest = np.array([[one.exponent(name)] for one in self.forms])
            beyond = np.maximum(steepest + grown - STEEPEST, 0.0)
            self.scores += 2.0 * STEEP * np.where(steepest > 0, np.minimum(beyond, grown), 0.0)
        grows = np.array([one.grows for one in self.forms])[:, None]
        self.chosen = (self.scores + np.where(grows, self.evidence, 0.0)).argmin(axis=0)

    def _fitted(self, forms: Sequence[Candidate], unit: Array, which: NDArray[np.intp]) -> list[Fit]:
        """Each form fitted to the functions named.

        Forms of as many parameters are fitted together, because on small arrays each operation costs about the same.
        """
        at_once = max(1, MAX_NUMBERS // max(which.size * unit.shape[1], 1))
        varying = [place for place, form in enumerate(forms) if form.grows or form.first_call or form.by_calls]
        fits = [self._constant(unit)] * len(forms)
        for size in {forms[place].parameters for place in varying}:
            alike = [place for place in varying if forms[place].parameters == size]
            for some in (alike[first : first + at_once] for first in range(0, len(alike), at_once)):
                columns = np.concatenate([self._columns(forms[place], which) for place in some])
                repeated = np.tile(which, len(some))
                coefficients, mean = self._absolute(unit[repeated], columns, self.used[repeated])
                each = zip(np.split(coefficients, len(some)), np.split(mean, len(some)), strict=True)
                for place, fit in zip(some, each, strict=True):
                    fits[place] = fit
        return [self._scored(form, unit, which, *fit) for form, fit in zip(forms, fits, strict=True)]

    def _columns(self, form: Candidate, which: NDArray[np.intp]) -> Array:
        """The columns of a form, (f, k, R)."""
        basis, _ = self._basis(form)
        columns = np.broadcast_to(basis, (which.size, *basis.shape))
        if form.by_calls:
            columns = np.concatenate([columns, self.made[which, None]], axis=1)
        if form.first_call:
            columns = np.concatenate([columns, 1.0 / self.calls[which, None]], axis=1)
        return columns

    def _with_squares(self, forms: list[Candidate]) -> list[Candidate]:
        """The forms whose terms have squares that are numbers: a factorial of large features has none."""
        return [form for form in forms if self._basis(form)[0].max() < LARGEST]

    def _basis(self, form: Candidate) -> tuple[Array, Array]:
        """Values of a form's terms in the runs, (k, R), and their number of different ones for each function, (F,)."""
        if id(form) not in self.bases:
            basis = values(list(form.terms), self.features, self.used.shape[1])
            different = np.unique(basis, axis=1, return_inverse=True)[1].reshape(-1, 1)
            found = self.patterns @ (different == np.arange(different.max() + 1))
            self.bases[id(form)] = basis, found.sum(axis=1)[self.pattern]
        return self.bases[id(form)]

    def _constant(self, unit: Array) -> tuple[Array, Array]:
        """The constant of each function and its mean: the median of the runs, weighted by the square root of their calls."""
        weights = np.where(self.used, np.sqrt(self.calls), 0.0)
        order = np.argsort(np.where(self.used, unit, np.inf), axis=1)
        cumulated = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        place = (cumulated < cumulated[:, -1:] / 2).sum(axis=1)
        middle = np.take_along_axis(order, np.minimum(place, unit.shape[1] - 1)[:, None], axis=1)
        median = np.take_along_axis(unit, middle, axis=1)[:, 0]
        a = np.where(self.runs >= MIN_RUNS, median, np.maximum(self.mean_unit, 0.0))
        return a[:, None], np.broadcast_to(a[:, None], unit.shape)

    def _scored(self, form: Candidate, unit: Array, which: NDArray[np.intp], coefficients: Array, mean: Array) -> Fit:
        """A fit to the functions named, as one to all functions: infinitely bad where the form is impossible or not tried."""
        count = self.runs.size
        runs, used = self.runs[which], self.used[which]
        possible = (runs >= MIN_RUNS) & (mean > 0).all(axis=1)
        if form.first_call:
            spread_calls = np.ptp(np.where(used, np.log(self.calls[which]), 0.0), axis=1)
            possible &= coefficients[:, 0] >= 0
            possible &= ((coefficients[:, 1] >= 0) & (spread_calls > 1.0)) | (
                self.accumulates[which] & (spread_calls > 0.3)
            )
        elif form.by_calls:
            possible &= (coefficients >= 0).all(axis=1) & ~self.accumulates[which] & self.loops[which]
        elif form.grows:
            basis, sizes = self._basis(form)
            possible &= (coefficients >= 0).all(axis=1) & ~self.accumulates[which] & (sizes[which] > form.parameters)
            if form.governs:
                last = coefficients[:, -1:] * basis[-1] / np.where(mean > 0, mean, 1.0)
                possible &= np.where(used, last, 0.0).max(axis=1) >= GOVERNING
        else:
            possible |= True
        mean = np.where(mean > 0, mean, 1.0)
        error, drift = self._without_drift(np.log(unit[which] / mean), used)
        out = np.zeros((count, form.parameters)), np.ones(unit.shape), np.full(count, np.inf), np.zeros(count)
        for whole, part in zip(out, (coefficients, mean, np.where(possible, error, np.inf), drift), strict=True):
            whole[which] = part
        return out

    def _without_drift(self, residual: Array, used: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Mean absolute residual (f,) about a drift with the features, and the exponent of that drift, (f,).

        Unit costs drift as data outgrow caches, whatever their law: a form is not better than another because it bends a
        little towards the drift. An exponent beyond that of a drift is misfit.
        """
        runs = np.maximum(used.sum(axis=1), 1)
        residual = np.where(used, residual, 0.0)
        error, drift = np.abs(residual).sum(axis=1) / runs, np.zeros(len(residual))
        for x in self.features.values():
            if x.min() <= 0:
                continue
            log_x = np.where(used, np.log(x), 0.0)
            log_x = np.where(used, log_x - log_x.sum(axis=1, keepdims=True) / runs[:, None], 0.0)
            slope = (log_x * residual).sum(axis=1) / np.maximum((log_x**2).sum(axis=1), 1e-300)
            slope = np.clip(slope, -DRIFT, DRIFT)
            straight = residual - slope[:, None] * log_x
            straight -= np.where(used, straight.sum(axis=1, keepdims=True) / runs[:, None], 0.0)
            about = np.abs(straight).sum(axis=1) / runs
            better = (
                2.0 * runs * np.log(np.maximum(about, ACCURACY) / np.maximum(error, ACCURACY)) + (slope / DRIFT) ** 2
                < 0
            )
            residual = np.where(better[:, None], straight, residual)
            error, drift = np.where(better, about, error), np.where(better, np.hypot(drift, slope), drift)
        return error, drift

    def _absolute(self, unit: Array, columns: Array, used: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Coefficients (f, k) that minimize Σ |u − Σ c·column| / u over columns (f, k, R), and the mean, (f, R)."""
        top = np.maximum(np.abs(columns).max(axis=2, keepdims=True), 1e-300)
        x = columns / top
        ridge = 1e-10 * np.eye(columns.shape[1])
        mean, coefficients = unit, np.zeros(columns.shape[:2])
        for _ in range(ITERATIONS):
            mean = np.clip(mean, 0.01 * unit, 100.0 * unit)  # an early step may be far off
            weight = np.where(used, 1.0 / (mean**2 * np.maximum(np.abs(np.log(unit / mean)), ACCURACY)), 0.0)
            weighted = x * weight[:, None]
            gram = weighted @ x.transpose(0, 2, 1)
            size = np.sqrt(np.maximum(np.einsum("fkk->fk", gram), 1e-300))
            scaled = gram / size[:, :, None] / size[:, None, :] + ridge
            right = (weighted @ unit[:, :, None])[:, :, 0] / size
            if columns.shape[1] == 2:
                (a, b), (c, d) = scaled.transpose(1, 2, 0)
                rotated = np.stack([d * right[:, 0] - b * right[:, 1], a * right[:, 1] - c * right[:, 0]], axis=1)
                coefficients = rotated / (a * d - b * c)[:, None] / size
            else:
                coefficients = np.linalg.solve(scaled, right[:, :, None])[:, :, 0] / size
            mean = (coefficients[:, None] @ x)[:, 0]
        return coefficients / top[:, :, 0], mean

    def law(self, f: int) -> UnitLaw:
        """The law of a function with the forms that the data leave open beside it."""
        chosen = int(self.chosen[f])
        if self.counted[f]:
            return UnitLaw((FittedForm.constant(float(self.coefficients[chosen][f, 0]), 0.0),), 0.0)
        # What is told needs evidence over all functions together; what is left open needs it for this one.
        needed = np.array([self.open_evidence[f] if one.grows else 0.0 for one in self.forms])
        distance = self.scores[:, f] + needed - self.scores[chosen, f] - needed[chosen]
        weights = np.where(np.isfinite(distance), np.exp(-np.maximum(distance, 0.0) / 2.0), 0.0)
        if not self.forms[chosen].grows:
            # Beside a constant, what is steep and still small at the largest size is rather a disturbed run, or a drift.
            for m in np.flatnonzero(weights > MIN_WEIGHT).tolist():
                weights[m] *= not self.forms[m].steep or self._last_share(f, m) >= OPEN_SHARE
        weights[chosen] = 1.0
        kept = [chosen, *(int(m) for m in np.flatnonzero(weights > MIN_WEIGHT) if m != chosen)]
        total = float(weights[kept].sum())
        forms = tuple(self._form(f, m, float(weights[m]) / total) for m in kept)
        spread = min(float(self.error[chosen, f]) * np.sqrt(2.0), MAX_SPREAD)
        # Exponent by which the residuals still grow over the larger half of the sizes, beyond noise: the median slope
        # between runs of different sizes (Theil 1950), so that a disturbed run makes no trend.
        trend = 0.0
        for x in self.features.values():
            large = np.isfinite(self.residual[f]) & (x >= np.median(x)) & (x > 0)
            if np.unique(x[large]).size >= MIN_TREND:
                log_x, residual = np.log(x[large]), self.residual[f][large]
                first, second = np.nonzero(log_x[:, None] < log_x)
                slope = np.median((residual[second] - residual[first]) / (log_x[second] - log_x[first]))
                error = spread / float(np.sqrt(((log_x - log_x.mean()) ** 2).sum()))
                trend = max(trend, abs(float(slope)) - 2.0 * error)
        return UnitLaw(forms, float(np.hypot(DRIFT, trend)))

    def _last_share(self, f: int, m: int) -> float:
        """Largest share of the cost that the last term of a form has in a run of a function."""
        columns = self._columns(self.forms[m], np.array([f]))[0][:, self.used[f]]
        coefficients = self.coefficients[m][f]
        return float((coefficients[-1] * columns[-1] / np.maximum(coefficients @ columns, 1e-300)).max(initial=0.0))

    def _form(self, f: int, m: int, weight: float) -> FittedForm:
        """A form of a function with the errors of its coefficients, from the scatter of the runs about it."""
        form, coefficients = self.forms[m], self.coefficients[m][f]
        spread = min(max(float(self.error[m, f]), ACCURACY) * np.sqrt(2.0 * self.runs[f] / self.worth[f]), MAX_SPREAD)
        if (form.parameters == 1 and not form.grows) or self.runs[f] < MIN_RUNS:
            deviations = np.diag(np.abs(coefficients)) * spread / np.sqrt(max(self.runs[f], 1))
            return FittedForm(weight, form, coefficients, deviations)
        columns = self._columns(form, np.array([f]))[0][:, self.used[f]]
        relative = columns / np.maximum(coefficients @ columns, 1e-300)
        size = np.maximum(np.sqrt((relative**2).sum(axis=1)), 1e-300)
        scaled = relative / size[:, None]
        values_, vectors = np.linalg.eigh(scaled @ scaled.T)
        deviations = spread * vectors / np.sqrt(np.maximum(values_, 1e-4)) / size[:, None]
        return FittedForm(weight, form, coefficients, deviations)
