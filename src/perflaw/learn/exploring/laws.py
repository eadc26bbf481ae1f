"""The law of a metric over knobs and features of the workload: the law learner's, or a log-linear law.

A log-linear law says that the effects of knobs multiply: the logarithm of the response is a sum of terms, chosen by forward
selection and checked by cross-validation. The law learner's families have no settings without order and no bends of
products; the effects of a configuration are both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, normal_quantile
from perflaw.laws.build import combination, number
from perflaw.laws.tree import Binary, Call, Expression, Name, Number
from perflaw.learn.exploring.gaussian_process import one_thread
from perflaw.learn.exploring.observations import Array
from perflaw.learn.series import Series, learn
from perflaw.learn.series.law import new_law
from perflaw.learn.series.learnt import FACTORS, percentile95
from perflaw.special import stdtrit
from perflaw.types import Law, Noise, Prediction

STRONG_EVIDENCE = 6.0
"""Difference of the scores from which on the log-linear law replaces the law learner's (Kass and Raftery 1995: strong)."""
MIN_FORESEEN = 0.5
"""Share of the variance that a law must foresee in trials that are left out."""


@one_thread
def metric_law(
    name: str,
    y: Array,
    features: Mapping[str, Array],
    groups: Sequence[str] | NDArray[np.str_],
    depends: bool = True,
    at: Sequence[Mapping[str, float]] = (),
) -> Law:
    """Learn how responses ``y`` (n,) depend on ``features``, knobs and features of the workload, (n,) each.

    Rows of one configuration, by ``groups``, have its deviation from the law in common. Unless a test established that
    the metric ``depends`` on any knob, only the law learner's own evidence counts. Points ``at`` are predicted first.
    """
    varying = {feature: values for feature, values in features.items() if np.ptp(values) > 0}
    # Of two features that are each other's opposite (a knob of two settings without order) the second is kept.
    opposite = {first for first, second in combinations(sorted(varying), 2)
                if "=" in first and np.array_equal(varying[first], 1 - varying[second])}  # fmt: skip
    varying = {feature: values for feature, values in varying.items() if feature not in opposite}
    tops = {feature: float(percentile95(values)) for feature, values in features.items()}
    beyond = [{feature: float(factor) * top for feature, top in tops.items()} for factor in FACTORS] if tops else []
    points = [*at, *beyond]
    labels = np.unique(np.asarray(groups), return_inverse=True)[1]
    learnt = learn([Series(name, y, varying, labels)], points or None)[0]
    reason, more_data, _ = learnt.law.reason.partition(": add ")
    own_law = replace(learnt.law, reason=f"{reason}: try more configurations") if more_data else learnt.law
    if not depends or not varying or (y <= 0).any():
        return own_law
    loglinear = fit_loglinear(varying, np.log(y))
    if loglinear is None:
        return own_law
    # −2 log likelihood, without its constants, and the cost of the law's parameters; both laws on the scale of y.
    jacobian, residuals = 2 * float(np.log(y).sum()), learnt.residuals()
    variance = max(float(residuals @ residuals) / y.size, 1e-12)
    parameters = 2 * len(own_law.features) + (own_law.verdict == "law")
    own_jacobian = 0.0 if own_law.noise.distribution == "normal" else jacobian
    own_score = float(y.size * np.log(variance) + own_jacobian + parameters * np.log(y.size))
    if loglinear.score + jacobian > own_score - STRONG_EVIDENCE:
        return own_law
    return _as_law(loglinear, name, y, varying, labels, points)


def _as_law(
    found: LogLinear,
    name: str,
    y: Array,
    features: Mapping[str, Array],
    groups: NDArray[np.intp],
    points: Sequence[Mapping[str, float]],
) -> Law:
    """The log-linear law with its verdict, slopes and predictions."""
    log_y = np.log(y)
    residuals = log_y - _design(found.terms, features, y.size) @ found.coefficients
    r2 = float(1 - (residuals @ residuals) / max(float(((log_y - log_y.mean()) ** 2).sum()), 1e-300))
    foreseen = foreseen_share(features, log_y, groups)
    doubt = ""
    if foreseen < MIN_FORESEEN:
        seen = f"of those it was learnt from {r2 * 100:.0f} %"
        share = f"of trials left out it foresees {max(foreseen, 0) * 100:.0f} % of the variance"
        doubt = f"{share}, {seen}: try more configurations"

    # Local exponents d log y / d log x at the upper end of the data, and the ends of their intervals.
    top = {feature: float(values.max()) for feature, values in features.items()}
    reach = normal_quantile(2)
    slope, low, high = {}, {}, {}
    for feature in found.features:
        gradient = np.zeros(len(found.coefficients))
        for place, term in enumerate(found.terms, 1):
            for factor in term:
                if factor.feature == feature:
                    others = [one.value(np.array([top[one.feature]]))[0] for one in term if one is not factor]
                    gradient[place] += factor.slope(top[feature]) * float(np.prod(others))
        value, error = float(gradient @ found.coefficients), float(np.sqrt(gradient @ found.covariance @ gradient))
        slope[feature], low[feature], high[feature] = value, value - reach * error, value + reach * error

    predictions: tuple[Prediction, ...] = ()
    if known := [point for point in points if all(feature in point for feature in found.features)]:
        columns = {feature: np.array([point[feature] for point in known]) for feature in found.features}
        rows = zip(*(np.clip(each, 0, 1e300).tolist() for each in found.limits(columns, len(known))), strict=True)
        predictions = tuple(Prediction(dict(point), *row) for point, row in zip(known, rows, strict=True))
    return new_law(
        Series(name, y, features),
        int(np.unique(groups).size),
        family="loglinear",
        mean=found.expression(),
        noise=Noise("lognormal", found.scale),
        slopes=(slope, low, high),
        features=found.features,
        verdict=("inconclusive" if doubt else "law", doubt),
        r2=r2,
        coefficient=float(np.exp(found.coefficients[0] + found.scale**2 / 2)),
        predictions=predictions,
    )


# ---- Terms of the logarithm of a response: logarithms of numbers, bends in them, settings without order, and products of
# two.

MIN_RATIO = 1e-12
"""Ratio of the least and the greatest value of a feature from which on its logarithm is used; below, the value itself."""
MAX_BENDS = 6
"""Number of bends that are tried along a feature."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One column: ``log(x/at)``, ``max(0, log(x/at))``, or ``x/at`` (for values 0 and 1, or if 0 is among the values)."""

    feature: str
    """Its feature."""
    kind: str
    """``log``, ``bend`` or ``plain``."""
    at: float = 1.0
    """Value at which a logarithm is 0."""

    def value(self, x: Array) -> Array:
        """The column at values of the feature, (n,)."""
        if self.kind == "plain":
            return x / self.at
        logarithms = np.log(np.maximum(x, 1e-300) / self.at)
        return np.maximum(0.0, logarithms) if self.kind == "bend" else logarithms

    @property
    def expression(self) -> Expression:
        """The column as an expression."""
        feature = Name(self.feature)
        relative = feature if self.at == 1 else Binary("/", feature, number(self.at))
        if self.kind == "plain":
            return relative
        logarithm = Call("log", (relative,))
        return Call("max", (Number(0.0), logarithm)) if self.kind == "bend" else logarithm

    def slope(self, x: float) -> float:
        """Derivative by log x."""
        if self.kind == "plain":
            return x / self.at
        return 1.0 if self.kind == "log" or x > self.at else 0.0


Term = tuple[Factor, ...]
"""A product of one or two factors."""


def column(term: Term, features: Mapping[str, Array]) -> Array:
    """The term at values of the features, (n,)."""
    found = term[0].value(features[term[0].feature])
    for factor in term[1:]:
        found = found * factor.value(features[factor.feature])
    return np.asarray(found)


def _design(terms: Sequence[Term], features: Mapping[str, Array], count: int) -> Array:
    """A constant column and those of the terms, (count, 1 + terms)."""
    return np.stack([np.ones(count), *(column(term, features) for term in terms)], axis=1)


def candidate_terms(features: Mapping[str, Array]) -> list[Term]:
    """Terms that vary: straight in the logarithm of one feature, then bends, then products of two terms.

    Products are of different features; two settings of one knob without order exclude each other.
    """
    straight: list[Term] = []
    bends: list[Term] = []
    for feature, values in features.items():
        levels = np.unique(values)
        if levels.size < 2:
            continue
        if levels[0] <= MIN_RATIO * levels[-1]:
            straight.append((Factor(feature, "plain", 1.0 if levels[-1] <= 1 else float(levels[-1])),))
            continue
        straight.append((Factor(feature, "log", float(levels[0])),))
        places = levels[1:-1]
        if places.size > MAX_BENDS:
            places = np.unique(np.quantile(places, np.linspace(0.1, 0.9, MAX_BENDS), method="nearest"))
        bends += [(Factor(feature, "bend", float(at)),) for at in places]

    def knob(term: Term) -> str:
        return term[0].feature.partition("=")[0]

    single = straight + bends
    products = [(*a, *b) for a, b in combinations(single, 2) if a[0].feature != b[0].feature and knob(a) != knob(b)]
    return [*single, *products]


# ---- The choice of terms.

MAX_TERMS = 10
"""Largest number of terms."""
MAX_LOGARITHM = 700.0
"""Largest logarithm of a response whose exponential is computed."""
MIN_PER_TERM = 4
"""Number of responses that are needed for each term."""
FOLDS = 5
"""Number of folds of the cross-validation."""
CANDIDATES_COST = 0.7
"""Cost of a term, in logarithms of the number of candidates (extended BIC, Chen and Chen 2008)."""


@dataclass(frozen=True, slots=True, eq=False)
class LogLinear:
    """log y = c + Σ bᵢ·termᵢ, with normal noise."""

    terms: tuple[Term, ...]
    """The terms."""
    coefficients: Array
    """(1 + terms,) the constant first."""
    covariance: Array
    """(1 + terms, 1 + terms) of the coefficients, noise included."""
    scale: float
    """Standard deviation of log y about the sum."""
    freedom: int
    """Degrees of freedom of the scale."""
    score: float
    """Extended BIC; smaller is better."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features in it, in the order of the terms."""
        return tuple(dict.fromkeys(factor.feature for term in self.terms for factor in term))

    def expression(self) -> Expression:
        """The mean as an expression: ``exp(3.2 + 0.5*log(n))``."""
        coefficients = self.coefficients.tolist()
        terms = [
            (b, [factor.expression for factor in term]) for b, term in zip(coefficients[1:], self.terms, strict=True)
        ]
        return Call("exp", (combination([(coefficients[0] + self.scale**2 / 2, []), *terms]),))

    def limits(self, features: Mapping[str, Array], count: int) -> tuple[Array, ...]:
        """Mean, the ends of its confidence interval, and those of the interval of a new run, (count,) each."""
        design = _design(self.terms, features, count)
        centre = design @ self.coefficients + self.scale**2 / 2
        variance = np.einsum("ij,jk,ik->i", design, self.covariance, design)
        quantile = float(stdtrit(max(self.freedom, 1), HIGH))
        mean_reach, run_reach = quantile * np.sqrt(variance), quantile * np.sqrt(variance + self.scale**2)
        median = centre - self.scale**2 / 2
        ends = (centre, centre - mean_reach, centre + mean_reach, median - run_reach, median + run_reach)
        return tuple(np.exp(np.minimum(end, MAX_LOGARITHM)) for end in ends)


def fit_loglinear(features: Mapping[str, Array], log_y: Array) -> LogLinear | None:
    """The law of logarithms (n,) in features (n,) each; None if there are too few, or if no term explains them."""
    if log_y.size < 2 * MIN_PER_TERM or np.ptp(log_y) <= 0:
        return None
    candidates = candidate_terms(features)
    terms = _choose_terms(candidates, features, log_y)
    if not terms:
        return None
    design = _design(terms, features, log_y.size)
    inverse = np.linalg.pinv(design.T @ design)
    solution = inverse @ design.T @ log_y
    residuals = log_y - design @ solution
    freedom = max(log_y.size - len(terms) - 1, 1)
    scale = float(np.sqrt(residuals @ residuals / freedom))
    score = _score(residuals, len(terms), len(candidates))
    return LogLinear(terms, np.asarray(solution), np.asarray(inverse * scale**2), scale, freedom, score)


def foreseen_share(features: Mapping[str, Array], log_y: Array, groups: NDArray[np.intp]) -> float:
    """Share of the variance that is foreseen in folds left out, with terms chosen anew for each; may be negative."""
    folds = groups % FOLDS
    errors = np.zeros(log_y.size)
    for fold in np.unique(folds):
        inside, outside = folds != fold, folds == fold
        part = {name: values[inside] for name, values in features.items()}
        terms = _choose_terms(candidate_terms(part), part, log_y[inside])
        design = _design(terms, features, log_y.size)
        solution = np.linalg.lstsq(design[inside], log_y[inside], rcond=None)[0]
        errors[outside] = log_y[outside] - design[outside] @ solution
    return float(1 - np.sum(errors**2) / max(np.sum((log_y - log_y.mean()) ** 2), 1e-300))


def _choose_terms(candidates: Sequence[Term], features: Mapping[str, Array], y: Array) -> tuple[Term, ...]:
    """Terms that are added while the score falls, and dropped again if it falls without them."""
    if not candidates:
        return ()
    columns = np.stack([column(term, features) for term in candidates])

    def score(places: list[int]) -> float:
        design = np.vstack([np.ones(y.size), columns[places]]).T
        residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return _score(residuals, len(places), len(candidates))

    # Places of the columns (P, n) that explain most of the residuals, each made orthogonal to those before.
    unexplained = y - y.mean()
    rest = columns - columns.mean(axis=1, keepdims=True)
    size = np.maximum((rest**2).sum(axis=1), 1e-300)
    chosen: list[int] = []
    best, kept = _score(unexplained, 0, len(columns)), list[int]()
    for count in range(1, min(MAX_TERMS, y.size // MIN_PER_TERM) + 1):
        norm = (rest**2).sum(axis=1)
        gain = np.where(norm > 1e-8 * size, (rest @ unexplained) ** 2 / np.maximum(norm, 1e-300), -1.0)
        place = int(np.argmax(gain))
        if gain[place] <= 1e-12 * float(y @ y):
            break
        axis = rest[place] / np.sqrt(norm[place])
        unexplained = unexplained - axis * (axis @ unexplained)
        rest = rest - np.outer(rest @ axis, axis)
        chosen.append(place)
        now = _score(unexplained, count, len(columns))
        if now < best - 1e-9:
            best, kept = now, list(chosen)
        elif count > len(kept) + 2:  # a term may pay off only together with another
            break
    chosen = kept
    best = score(chosen)
    while len(chosen) > 1:
        least, dropped = min((score([one for one in chosen if one != place]), place) for place in chosen)
        if least > best:
            break
        best, chosen = least, [one for one in chosen if one != dropped]
    return tuple(candidates[place] for place in chosen)


def _score(residuals: Array, terms: int, candidates: int) -> float:
    """Extended BIC."""
    n = residuals.size
    variance = max(float(residuals @ residuals) / n, 1e-12)
    return float(n * np.log(variance) + terms * (np.log(n) + 2 * CANDIDATES_COST * np.log(max(candidates, 2))))
