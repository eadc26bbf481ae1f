"""Two-part laws for responses with zeros: the probability that a row is not zero, times the law of the other rows.

The method is that of two-part models (Cragg 1971; Duan et al. 1983). The probability is a constant share of the rows,
or a logistic curve of log x if a likelihood ratio test favours it. Zeros that the law of the positive rows itself leads
to (3·(x − 1) at x = 1) need no probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.confidence import HIGH
from perflaw.laws.build import number
from perflaw.laws.tree import Binary, Expression, Name, Number
from perflaw.learn.series.law import distribution
from perflaw.learn.series.learnt import (
    Columns,
    Learnt,
    PredictionPoints,
    bands_at_once,
    column_or_zeros,
    default_points,
    named_predictions,
)
from perflaw.learn.series.model import Band
from perflaw.learn.series.series import Array, Options, Series, quiet
from perflaw.special import chdtrc, expit, ndtri
from perflaw.types import Noise

FEWEST_ZEROS, FEWEST_POSITIVE = 2, 6
"""Fewest rows that are zero, and that are not."""
JEFFREYS, RIDGE = 0.05, 1e-9
"""Damping of the slope of a logistic curve, and what keeps its normal matrix invertible."""
NEAR_ZERO = 0.5
"""A law explains a zero if it predicts less than this part of the smallest positive response."""
Learn = Callable[[Sequence[Series], PredictionPoints, Options], list[Learnt]]
"""The learner itself, which learns the law of the positive rows."""


@dataclass(frozen=True, slots=True)
class Probability:
    """Probability that a row is not zero, as a function of one feature at most."""

    feature: str
    """Feature it depends on; empty for a constant share."""
    intercept: float
    """Log odds at log x = 0, or everywhere."""
    slope: float
    """Change of the log odds with log x."""
    centre: float
    """Mean of log x."""
    errors: tuple[float, float]
    """Standard errors of the log odds at the centre, and of the slope."""

    @classmethod
    def share(cls, positive: Array) -> Probability:
        """The constant share of rows, (n,) of 0 and 1, that are not zero."""
        share = (positive.sum() + 0.5) / (positive.size + 1.0)
        error = float((positive.size * share * (1 - share)) ** -0.5)
        return cls("", float(np.log(share / (1 - share))), 0.0, 0.0, (error, 0.0))

    @classmethod
    def logistic(cls, name: str, log_x: Array, positive: Array) -> tuple[Probability, float]:
        """Logistic regression of positive (n,) of 0 and 1 on log x (n,), and p of its likelihood ratio.

        Newton's method, damped like Jeffreys' prior.
        """
        centre, count = float(log_x.mean()), positive.size
        away = log_x - centre
        squared, share = away * away, float(positive.mean())
        odds, slope = float(np.log(share / (1 - share))), 0.0
        for _ in range(30):
            p = expit(odds + slope * away)
            variance, rest = p * (1 - p), positive - p
            cross = float(variance @ away)
            hessian = float(variance.sum()) + RIDGE, float(variance @ squared) + JEFFREYS + RIDGE
            determinant = hessian[0] * hessian[1] - cross * cross
            gradient = float(rest.sum()), float(rest @ away) - JEFFREYS * slope
            step = (hessian[1] * gradient[0] - cross * gradient[1]) / determinant
            slope_step = (hessian[0] * gradient[1] - cross * gradient[0]) / determinant
            step, slope_step = (min(max(one, -2.0), 2.0) for one in (step, slope_step))
            odds, slope = odds + step, slope + slope_step
            if max(abs(step), abs(slope_step)) < 1e-10 * (1.0 + max(abs(odds), abs(slope))):
                break  # converges quadratically, so that what is left is rounding
        p = np.minimum(np.maximum(expit(odds + slope * away), 1e-12), 1 - 1e-12)
        fitted = float((positive * np.log(p) + (1 - positive) * np.log(1 - p)).sum())
        flat = count * (share * np.log(share) + (1 - share) * np.log(1 - share))
        errors = (hessian[1] / determinant) ** 0.5, (hessian[0] / determinant) ** 0.5
        curve = cls(name, odds - slope * centre, slope, centre, errors)
        return curve, float(chdtrc(1, max(2.0 * (fitted - flat), 0.0)))

    def at(self, columns: Columns, shift: float = 0.0) -> Array:
        """Probability at k points, (k,), ``shift`` standard errors away."""
        x = column_or_zeros(columns, self.feature)
        away = np.log(np.maximum(x, 1e-300)) - self.centre if self.feature else np.zeros_like(x)
        spread = np.hypot(self.errors[0], self.errors[1] * away)
        odds = self.intercept + self.slope * (away + self.centre if self.feature else 0.0)
        return np.asarray(expit(odds + shift * spread))

    @property
    def expression(self) -> Expression:
        """The probability as an expression: a number, or ``1/(1 + (a/x)^slope)`` with even odds at x = a."""
        if not self.feature:
            return number(float(expit(self.intercept)))
        x, even = Name(self.feature), number(float(np.exp(np.clip(-self.intercept / self.slope, -500.0, 500.0))))
        ratio = Binary("/", even, x) if self.slope > 0 else Binary("/", x, even)
        return Binary("/", Number(1.0), Binary("+", Number(1.0), Binary("^", ratio, number(abs(self.slope)))))


@dataclass(frozen=True, slots=True)
class TwoPart:
    """A probability times a law, as :class:`~perflaw.learn.series.learnt.Predictor`."""

    probability: Probability
    """Probability that a row is not zero."""
    positive: Learnt
    """Law of the rows that are not."""
    quantile: float
    """Quantile of the normal distribution for the confidence."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features of either part."""
        return tuple(dict.fromkeys([*self.positive.law.features, *filter(None, [self.probability.feature])]))

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        return self.probability.at(at) * self.positive.mean(at)

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each; a new row may be zero unless that is all but impossible."""
        return self.multiplied(at, self.positive.band(at))

    def multiplied(self, at: Columns, positive: Band) -> Band:
        """The band whose part of the positive rows is known."""
        mean, low, high, new_low, new_high = positive
        least, middle, most = (self.probability.at(at, shift) for shift in (-self.quantile, 0.0, self.quantile))
        low = least * low
        new_low = np.where(least > HIGH, np.minimum(new_low, low), 0.0)
        return middle * mean, low, most * high, new_low, np.maximum(new_high, most * high)


def two_parts(learnt: list[Learnt], learn: Learn, at: PredictionPoints, options: Options) -> list[Learnt]:
    """The laws, those of series that need two parts replaced; ``learn`` is the learner."""
    candidates = [i for i, one in enumerate(learnt) if _may_need_two_parts(one)]
    if not candidates:
        return learnt
    positive_series = []
    for series in (learnt[i].rows.series for i in candidates):
        keep = series.y > 0
        features = {name: x[keep] for name, x in series.features.items()}
        runs = None if series.runs is None else series.runs[keep]
        weights = None if series.weights is None else series.weights[keep]
        positive_series.append(replace(series, y=series.y[keep], features=features, runs=runs, weights=weights))
    positive = learn(positive_series, (), options)  # nobody asks the law of the positive rows alone
    with quiet():
        made = [(i, _two_part_law(learnt[i], law, options)) for i, law in zip(candidates, positive, strict=True)]
        laws = [(i, law, parts) for i, pair in made if pair for law, parts in [pair]]
        points = [default_points(law.rows.series) if at is None else at for _, law, _ in laws]
        columns = [law.columns(mine) for (_, law, _), mine in zip(laws, points, strict=True)]
        bands = bands_at_once([parts.positive for _, _, parts in laws], columns)
        out = list(learnt)
        for (i, law, parts), mine, where, band in zip(laws, points, columns, bands, strict=True):
            predictions = named_predictions(mine, parts.multiplied(where, band))
            out[i] = replace(law, law=replace(law.law, predictions=tuple(predictions)))
    return out


def _may_need_two_parts(learnt: Learnt) -> bool:
    """Enough zeros and positive rows, nothing negative, rows of their own, and no regimes that separate the zeros."""
    y = learnt.rows.series.y
    zeros = int((y == 0).sum())
    enough = zeros >= FEWEST_ZEROS and y.size - zeros >= FEWEST_POSITIVE and float(y.min()) >= 0
    independent = learnt.rows.clusters is None and learnt.rows.y.size == y.size
    if not (enough and independent and learnt.rows.names):
        return False
    if not learnt.law.breakpoints:
        return True
    x = learnt.rows.series.features[learnt.law.features[0]]
    regime = np.searchsorted(np.array([one.value for one in learnt.law.breakpoints]), x)
    share = np.bincount(regime, y == 0) / np.maximum(np.bincount(regime), 1)
    return not ((share == 0) | (share == 1)).all()


def _two_part_law(learnt: Learnt, positive: Learnt, options: Options) -> tuple[Learnt, TwoPart] | None:
    """The two-part law, which is not asked yet, and its function.

    None if nothing depends on a feature or the law of the positive rows explains the zeros of ``learnt``.

    Its family is that of the positive rows if the probability is a constant share, else it is a product.
    """
    series, part = learnt.rows.series, positive.law
    zero = series.y == 0
    positive_rows = (series.y > 0).astype(np.float64)
    probability, least = Probability.share(positive_rows), options.alpha / len(series.features)
    for name in dict.fromkeys([*part.features, *series.features]):
        x = series.features[name]
        if float(x.min()) > 0 and np.ptp(x) > 0:
            curve, p = Probability.logistic(name, np.log(x), positive_rows)
            if p < least:
                probability, least = curve, p
    at_zeros = positive.mean({name: x[zero] for name, x in series.features.items()})
    explained = at_zeros < NEAR_ZERO * float(series.y[~zero].min())
    if bool(explained.any()) or not (probability.feature or part.features):
        return None
    predictor = TwoPart(probability, positive, float(ndtri(0.5 + options.confidence / 2.0)))
    residual = series.y - predictor.mean(series.features)
    mean = Binary("*", probability.expression, part.mean)
    noise = Noise("normal", float(np.sqrt(np.mean(residual**2))))
    share = 1.0 if probability.feature else float(expit(probability.intercept))
    depends = probability.feature and part.verdict == "none"
    law = replace(
        part,
        family="product" if probability.feature else part.family,
        expression=distribution(mean, noise),
        mean=mean,
        features=predictor.features,
        slope={name: part.slope.get(name, 0.0) for name in predictor.features},
        slope_low={name: part.slope_low.get(name, 0.0) for name in predictor.features},
        slope_high={name: part.slope_high.get(name, 0.0) for name in predictor.features},
        noise=noise,
        n=learnt.law.n,
        runs=learnt.law.runs,
        coefficient=part.coefficient * share,
        intercept=None if part.intercept is None else part.intercept * share,
        range=learnt.law.range,
        alternatives=(),
        verdict="law" if depends else part.verdict,
        reason="" if depends else part.reason,
    )
    return Learnt(law, (predictor,), learnt.rows), predictor
