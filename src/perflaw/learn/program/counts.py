"""Laws of exact call counts: how often each function is called in a run, as a law of the run's features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import LEVEL
from perflaw.laws.evaluation import evaluate
from perflaw.laws.tree import Call, Name
from perflaw.learn.program.exact import UNROUNDED, exact_laws
from perflaw.learn.program.forms import LEAST_GROWTH
from perflaw.learn.program.terms import ONE, Monomial, TermSum, in_plain_terms, monomial, restricted, terms_from, values
from perflaw.learn.program.units import MAX_SPREAD
from perflaw.learn.series import Learnt, Series, learn
from perflaw.types import Law, Prediction

Array = NDArray[np.float64]
Point = Mapping[str, float]

QUANTUM: Final = 1.0
"""Counts are whole numbers."""
MAX_EXPONENT: Final = 4.0
"""Calls grow no faster unless they follow a law exactly: a few counts that begin at the largest sizes look steeper."""
STEEPEST: Final = 3.0
"""Largest exponent that such counts are given."""
BEND: Final = 0.15
"""Standard deviation of the exponent of counts beyond the data where their law bends: few sizes tell the last piece of it."""
DRIFT: Final = 0.05
"""The same where no bend was seen: a law that fits counts and gives none of them exactly is near the truth, and drifts from it.

With it, and what the largest size changed, 90 % of the 95 % intervals of such laws hold at 5 to 10 times the data
(benchmarks/counts_ahead.py)."""
MOST_DRIFT: Final = 0.25
"""The same at most, where the largest size was foretold without it: laws that differ by more fit fewer sizes equally well.

As many intervals hold with it as without in the programs of benchmarks/counts_ahead.py."""
_STANDARD_ERRORS: Final = 1.96 if LEVEL == 0.95 else 2.0
"""Half of the width of a confidence interval in standard deviations."""
MIN_SIZES: Final = 4
"""Sizes of a feature from which a law is learnt without the largest of them, too."""
MISSED: Final = 0.03
"""Relative difference from which a law misses counts that are exact."""
MIN_EXPONENTIAL_SIZES: Final = 5
"""Sizes with calls that an exponential needs: counts that begin at the largest sizes grow as fast as any."""


@dataclass(frozen=True, slots=True, eq=False)
class Surprise:
    """What the largest value of a feature changed: the law that would be told without it, and how far it missed the counts.

    Counts have no noise, so what says how far a law may be trusted beyond the data is how it did when they ended earlier: the
    evaluation of forecasts at a rolling origin (Tashman 2000, International Journal of Forecasting 16).
    """

    feature: str
    """The feature."""
    top: float
    """Its largest value."""
    earlier: TermSum
    """The law of the counts at smaller values."""
    exponent: float
    """Power of the feature by which the counts at the largest value left that law, since the value before."""

    def spreads(self, law: TermSum, points: Sequence[Point]) -> list[float]:
        """Standard deviation of the logarithm of a law's count at points beyond, by this surprise; 0 within the data.

        A 95 % interval reaches as far as the counts would leave the law at the same power again, and as the growth that the
        earlier law tells.
        """
        far = [max(point[self.feature], self.top) for point in points]
        at = {name: np.array([point[name] for point in points] * 2, dtype=np.float64) for name in points[0]}
        at[self.feature] = np.array([self.top] * len(points) + far)
        both = (_logarithms(_values(terms, at, 2 * len(points))) for terms in (law, self.earlier))
        growth, earlier = ((one[len(points) :] - one[: len(points)]).tolist() for one in both)
        return [
            hypot(one - other, self.exponent * log(end / self.top)) / _STANDARD_ERRORS
            for one, other, end in zip(growth, earlier, far, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class CountLaw:
    """How often something happens in a run."""

    terms: TermSum
    """The expected count as a sum of monomials of the run's features."""
    learnt: Learnt | None
    """The law with its intervals; None where the count is given exactly."""
    begun: tuple[str, float] | None = None
    """Feature and its largest value, if there are calls at this size alone: how they and their costs grow is unknown."""
    rounding: float = 0.0
    """Relative error of a law that gives the counts exactly, but only when it is rounded."""
    surprises: tuple[Surprise, ...] = ()
    """What the largest value of each feature changed."""
    follows: tuple[CountLaw, TermSum] | None = None
    """Another law and the terms of it that grow, if this one follows from these: it has their relative error."""

    def values(self, features: Mapping[str, Array], count: int) -> Array:
        """The expected count at ``count`` points, (count,)."""
        return _values(self.terms, features, count)

    def spreads(self, points: Sequence[Point]) -> list[float]:
        """Standard deviation of the logarithm of the expected count at points with the same features; 0 where it is exact.

        From the only size with calls on, an unknown exponent has a standard deviation of one.
        """
        if not points:
            return []
        if self.follows is not None:
            law, growing = self.follows
            at = {name: np.array([point[name] for point in points], dtype=np.float64) for name in points[0]}
            whole, part = (_values(terms, at, len(points)).tolist() for terms in (law.terms, growing))
            ratios = [one / other if other > 0 else 1.0 for one, other in zip(whole, part, strict=True)]
            return [min(one * ratio, MAX_SPREAD) for one, ratio in zip(law.spreads(points), ratios, strict=True)]
        by_surprise = (one.spreads(self.terms, points) for one in self.surprises)
        return [min(hypot(*one), MAX_SPREAD) for one in zip(self._spreads_of_law(points), *by_surprise, strict=True)]

    def _spreads_of_law(self, points: Sequence[Point]) -> list[float]:
        if self.begun is not None:
            feature, size = self.begun
            return [min(max(log(max(point[feature], size) / size), 0.0), MAX_SPREAD) for point in points]
        if self.learnt is None:
            return [self.rounding] * len(points)
        law = self.learnt.law
        tops = {name: high for name, (_, high) in law.range.items() if name in points[0]}
        within = [{name: min(value, tops.get(name, value)) for name, value in point.items()} for point in points]
        of_points = [_spread_of(one) for one in self.learnt.predict([*points, *within])]
        spreads = []
        for point, spread, least in zip(points, of_points, of_points[len(points) :], strict=False):
            far = max([log(point[name] / high) for name, high in tops.items() if 0 < high < point[name]], default=0.0)
            most = hypot(least, MOST_DRIFT * far) if self.surprises else MAX_SPREAD
            spreads.append(min(hypot(spread, (BEND if law.segments else DRIFT) * far), most, MAX_SPREAD))
        return spreads


def _spread_of(prediction: Prediction) -> float:
    """Standard deviation of the logarithm of a count, by the interval of its mean."""
    low, mean, high = prediction.mean_low, prediction.mean, prediction.mean_high
    if high <= low:
        return 0.0
    if mean <= 0:
        return MAX_SPREAD
    return log(high / mean) / _STANDARD_ERRORS if low <= 0 else log(high / low) / (2.0 * _STANDARD_ERRORS)


def learn_counts(counts: Array, features: Mapping[str, Array]) -> tuple[list[CountLaw], NDArray[np.intp]]:
    """Laws of the distinct columns of counts (R, F) over features (R,), and the place of each column's law, (F,)."""
    if not counts.shape[1]:
        return [], np.zeros(0, dtype=np.intp)
    distinct, places = np.unique(counts, axis=1, return_inverse=True)
    laws = _laws(distinct, features)
    for name, x in features.items():
        sizes = np.unique(x)
        if sizes.size >= MIN_SIZES and sizes[-2] > 0:
            _add_surprises(laws, distinct, features, name, x < sizes[-1])
    return laws, places.reshape(-1)


def _add_surprises(
    laws: list[CountLaw], counts: Array, features: Mapping[str, Array], name: str, below: NDArray[np.bool_]
) -> None:
    """Tell laws of columns of counts (R, U) what the largest value of a feature changed; ``below`` (R,) are the other runs."""
    open_ = [k for k, law in enumerate(laws) if law.begun is None and np.ptp(counts[:, k]) > 0]
    at_top = {other: x[~below] for other, x in features.items()}
    top, before = float(features[name].max()), float(features[name][below].max())
    earlier = _laws(counts[below][:, open_], {other: x[below] for other, x in features.items()})
    for k, one in zip(open_, earlier, strict=True):
        true, told = counts[~below, k], one.values(at_top, len(at_top[name]))
        exponent = float(np.mean(_logarithms(true) - _logarithms(told))) / log(top / before)
        law = laws[k]
        laws[k] = replace(law, surprises=(*law.surprises, Surprise(name, top, one.terms, exponent)))


def _laws(distinct: Array, features: Mapping[str, Array]) -> list[CountLaw]:
    """The law of each column of counts (R, U) over features (R,)."""
    constant = np.ptp(distinct, axis=0) == 0
    varied = {name: x for name, x in features.items() if np.ptp(x) > 0}
    laws: list[CountLaw | None] = [CountLaw({ONE: float(y.mean())}, None) for y in distinct.T]
    if varied:
        exact = exact_laws(distinct, varied)
        laws = [
            law if same else None if terms is None else CountLaw(terms, None, rounding=_rounding(terms, y, features))
            for law, same, terms, y in zip(laws, constant, exact, distinct.T, strict=True)
        ]
    open_ = [place for place, law in enumerate(laws) if law is None]
    for place, learnt in zip(open_, _learnt([distinct[:, place] for place in open_], varied), strict=True):
        y, x = learnt.rows.series.y, learnt.rows.series.features
        laws[place] = _only_at_the_largest(y, x) or CountLaw(_through_the_largest(_terms(learnt, x), y, x), learnt)
    return [law for law in laws if law is not None]


def _values(terms: TermSum, features: Mapping[str, Array], count: int) -> Array:
    """A sum of monomials at ``count`` points, (count,)."""
    if terms.keys() == {ONE}:
        return np.full(count, terms[ONE])
    keys = list(terms)
    return np.asarray(np.array([terms[key] for key in keys]) @ values(keys, features, count))


def _logarithms(counts: Array) -> Array:
    """Logarithms of counts that may be 0."""
    return np.asarray(np.log(np.maximum(counts, 0.0) + QUANTUM / 2.0))


def _rounding(terms: TermSum, counts: Array, features: Mapping[str, Array]) -> float:
    """Relative error beyond the data of a law that gives counts (R,) exactly, if it does so only when it is rounded."""
    most = float(counts.max())
    misfit = float(np.abs(_values(terms, features, counts.size) - counts).max())
    return QUANTUM / 2.0 / most if misfit > UNROUNDED * most else 0.0


def _through_the_largest(terms: TermSum, counts: Array, features: Mapping[str, Array]) -> TermSum:
    """The law, which goes on beyond the data from what was counted at their end where it misses that: counts have no noise."""
    if len(features) != 1:
        return terms
    [(name, x)] = features.items()
    top = float(x.max())
    [told], true = _values(terms, {name: np.array([top])}, 1).tolist(), counts[x == top]
    if np.ptp(true) > 0 or told <= 0 or abs(true[0] - told) <= max(MISSED * told, QUANTUM):
        return terms
    beyond = {key: c * float(true[0]) / told for key, c in restricted(terms, name, ">", top).items()}
    return {**restricted(terms, name, "<=", top), **beyond}


def _learnt(columns: Sequence[Array], features: Mapping[str, Array]) -> list[Learnt]:
    """The laws of columns of counts, (R,) each, over features (R,).

    Where an exponential is given up, the law is learnt again from each point once, if its runs have the same count:
    repeated runs say nothing more of what a law misses of such counts.
    """
    if not columns:
        return []
    laws = learn([Series("calls", column, features, None, None, QUANTUM) for column in columns])
    _, first, place = np.unique(np.array(list(features.values())), axis=1, return_index=True, return_inverse=True)
    once = {name: x[first] for name, x in features.items()}
    weak = [
        i
        for i, (column, learnt) in enumerate(zip(columns, laws, strict=True))
        if _hardly_exponential(learnt, features) and (column[first][place.reshape(-1)] == column).all()
    ]
    again = [Series("calls", columns[i][first], once, None, None, QUANTUM) for i in weak]
    for i, learnt in zip(weak, learn(again) if again else [], strict=True):
        laws[i] = learnt
    return laws


def _hardly_exponential(learnt: Learnt, features: Mapping[str, Array]) -> bool:
    """Whether the law is an exponential of which little more than its first powers was seen."""
    if learnt.law.family != "exponential":
        return False
    x = features[learnt.law.features[0]]
    rates = [
        abs(float(evaluate(base.arguments[0], {learnt.law.features[0]: np.array([np.ptp(x)])})[0]))
        for key in terms_from(learnt.law.mean)
        for base, _ in key
        if isinstance(base, Call)
    ]
    return max(rates) < LEAST_GROWTH


def _only_at_the_largest(counts: Array, features: Mapping[str, Array]) -> CountLaw | None:
    """As many calls as there were at the largest value of a feature from there on, if there are none below it."""
    for name, x in features.items():
        sizes = np.unique(x)
        largest = x == sizes[-1]
        if sizes[-2] > 0 and (counts[largest] > 0).all() and not counts[~largest].any():
            count: TermSum = {ONE: float(counts[largest].mean())}
            limit = float(np.sqrt(sizes[-2] * sizes[-1]))
            return CountLaw(restricted(count, name, ">", limit), None, (name, float(sizes[-1])))
    return None


def _terms(learnt: Learnt, features: Mapping[str, Array]) -> TermSum:
    """The mean as monomials; those of a piecewise law hold between its breakpoints."""
    terms: dict[Monomial, float]
    law = learnt.law
    if not law.segments:
        terms = _plain_terms(law, features)
        steep = len(law.features) == 1 and _too_steep(terms, learnt, features)
        return _bounded(learnt, law.features[0], features) if steep else terms
    terms = {}
    for place, segment in enumerate(law.segments):
        piece: TermSum = _plain_terms(segment, features)
        for breakpoint_ in law.breakpoints[max(place - 1, 0) : place]:
            piece = restricted(piece, breakpoint_.feature, ">", breakpoint_.value)
        for breakpoint_ in law.breakpoints[place : place + 1]:
            piece = restricted(piece, breakpoint_.feature, "<=", breakpoint_.value)
        terms.update(piece)
    if len(law.features) == 1 and _too_steep(terms, learnt, features):
        return _bounded(learnt, law.features[0], features)
    return terms


def _too_steep(terms: TermSum, learnt: Learnt, features: Mapping[str, Array]) -> bool:
    """Whether a power of a feature grows faster than calls do, or counts do not establish an exponential.

    They do not where calls were made at few sizes, where the exponential hardly grew, or where other laws fit equally well.
    """
    sizes = np.unique(features[learnt.law.features[0]][learnt.rows.series.y > 0]).size
    few = sizes < MIN_EXPONENTIAL_SIZES
    open_ = few or learnt.law.verdict != "law" or _hardly_exponential(learnt, features)
    return any(
        power > MAX_EXPONENT if isinstance(base, Name) else isinstance(base, Call) and base.function == "exp" and open_
        for key in terms
        for base, power in key
    )


def _bounded(learnt: Learnt, feature: str, features: Mapping[str, Array]) -> dict[Monomial, float]:
    """A power of a feature through the mean at the largest size, with the exponent of all positive counts if it is small."""
    x, y = features[feature], learnt.rows.series.y
    top = x.max()
    used = (x > 0) & (y > 0)
    exponent = 0.0
    if np.unique(x[used]).size > 1:
        exponent = float(np.clip(np.polyfit(np.log(x[used]), np.log(y[used]), 1)[0], 0.0, STEEPEST))
    return {monomial(feature, round(exponent, 2)): float(y[x == top].mean() / top ** round(exponent, 2))}


def _plain_terms(law: Law, features: Mapping[str, Array]) -> dict[Monomial, float]:
    terms: TermSum = terms_from(law.mean)
    if len(law.features) == 1:
        [feature] = law.features
        terms = in_plain_terms(terms, feature, float(features[feature].min()), float(features[feature].max()))
    return dict(terms)


def proportional(counts: Array) -> NDArray[np.intp]:
    """Number of the group of each column of counts (R, C): columns of a group are multiples of each other, (C,).

    >>> proportional(np.array([[1.0, 2.0, 1.0], [3.0, 6.0, 1.0]])).tolist()
    [0, 0, 1]
    """
    total = counts.sum(axis=0)
    shares = np.round(counts / np.where(total > 0, total, 1.0), 9)
    groups: dict[bytes, int] = {}
    return np.array([groups.setdefault(column.tobytes(), len(groups)) for column in shares.T.copy()], dtype=np.intp)
