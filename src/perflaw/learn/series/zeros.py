"""Two-part laws for responses with zeros: does it run at all, times how often (Cragg 1971; Duan et al. 1983).

The first part is a share of rows, or a logistic curve of log x where a likelihood ratio test says so; the second is the
law of the positive rows. Zeros that the second part itself leads to (3·(x − 1) at x = 1) need no first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, expit, ndtri

from perflaw.confidence import HIGH
from perflaw.laws.build import number
from perflaw.laws.tree import Binary, Call, Expression, Name, Number
from perflaw.learn.series.band import Band
from perflaw.learn.series.law import distribution
from perflaw.learn.series.learnt import Columns, Learnt, points
from perflaw.learn.series.regimes import default_points
from perflaw.learn.series.series import Array, Options, Series, quiet
from perflaw.types import Law, Noise

FEWEST_ZEROS, FEWEST_POSITIVE = 2, 6
"""Fewest rows of either part."""

NEAR_ZERO = 0.5
"""A law that predicts less than this part of the smallest positive response explains a zero."""

Learn = Callable[[Sequence[Series], None, Options], list[Learnt]]
"""What learns the positive part: the learner itself."""


@dataclass(frozen=True, slots=True)
class Chance:
    """How probable a row is not to be zero, as a function of one feature at most."""

    feature: str
    """Feature it depends on; empty where it is a share."""
    intercept: float
    """Log odds at log x = 0, or everywhere."""
    slope: float
    """Change of the log odds with log x."""
    centre: float
    """Mean of log x."""
    errors: tuple[float, float]
    """Standard errors of the log odds at the centre, and of the slope."""

    def at(self, x: Array, shift: float = 0.0) -> Array:
        """Probability at x, (k,), ``shift`` standard errors away."""
        away = np.log(np.maximum(x, 1e-300)) - self.centre if self.feature else np.zeros_like(x)
        spread = np.hypot(self.errors[0], self.errors[1] * away)
        odds = self.intercept + self.slope * (away + self.centre if self.feature else 0.0)
        return np.asarray(expit(odds + shift * spread))

    @property
    def expression(self) -> Expression:
        """The probability as an expression: a number, or ``1/(1 + exp(-intercept - slope*log(x)))``."""
        if not self.feature:
            return number(float(expit(self.intercept)))
        term = Binary("*", number(self.slope), Call("log", (Name(self.feature),)))
        odds = Call("exp", (Binary("-", number(-self.intercept), term),))
        return Binary("/", Number(1.0), Binary("+", Number(1.0), odds))


@dataclass(frozen=True, slots=True)
class TwoPart:
    """A chance times a law, as :class:`~perflaw.learn.series.learnt.Asked`."""

    chance: Chance
    """Of not being zero."""
    positive: Learnt
    """Law of the rows that are not."""
    normal: float
    """Quantile of the normal distribution for the confidence."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features of either part."""
        return tuple(dict.fromkeys([*self.positive.law.features, *filter(None, [self.chance.feature])]))

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        return self._chance(at, 0.0) * self.positive.mean(at)

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each; a new row may be zero unless that is all but impossible."""
        mean, low, high, new_low, new_high = self.positive.band(at)
        few, share, many = (self._chance(at, shift) for shift in (-self.normal, 0.0, self.normal))
        low = few * low
        new_low = np.where(few > HIGH, np.minimum(new_low, low), 0.0)
        return share * mean, low, many * high, new_low, np.maximum(new_high, many * high)

    def _chance(self, at: Columns, shift: float) -> Array:
        return self.chance.at(at[self.chance.feature] if self.chance.feature else points(at), shift)


def two_parts(
    learnt: list[Learnt], learn: Learn, at: Sequence[Mapping[str, float]] | None, options: Options
) -> list[Learnt]:
    """Laws with those of series that need two parts replaced."""
    some = [i for i, one in enumerate(learnt) if _possible(one)]
    if not some:
        return learnt
    positive = learn([_positive(learnt[i].rows.series) for i in some], None, options)
    out = list(learnt)
    for i, part in zip(some, positive, strict=True):
        with quiet():
            out[i] = _joined(learnt[i], part, at, options)
    return out


def _possible(learnt: Learnt) -> bool:
    """Zeros and positive rows enough, nothing negative, rows of their own, and no regimes that tell the zeros."""
    y = learnt.rows.series.y
    zeros = int((y == 0).sum())
    enough = zeros >= FEWEST_ZEROS and y.size - zeros >= FEWEST_POSITIVE and float(y.min()) >= 0
    alone = learnt.rows.clusters is None and learnt.rows.y.size == y.size
    return bool(enough and alone and learnt.rows.names and not _told(learnt))


def _told(learnt: Learnt) -> bool:
    """Every regime of a piecewise law is all zeros or has none."""
    law, series = learnt.law, learnt.rows.series
    if not law.breakpoints:
        return False
    x = series.features[law.features[0]]
    regime = np.searchsorted(np.array([one.value for one in law.breakpoints]), x)
    share = np.bincount(regime, series.y == 0) / np.maximum(np.bincount(regime), 1)
    return bool(((share == 0) | (share == 1)).all())


def _positive(series: Series) -> Series:
    keep = series.y > 0
    features = {name: x[keep] for name, x in series.features.items()}
    runs = None if series.runs is None else series.runs[keep]
    weights = None if series.weights is None else series.weights[keep]
    return Series(series.name, series.y[keep], features, runs, weights, series.quantum)


def _joined(learnt: Learnt, part: Learnt, at: Sequence[Mapping[str, float]] | None, options: Options) -> Learnt:
    """The two-part law, or what was learnt where nothing depends on anything or the second part explains the zeros."""
    row, zero = learnt.rows, learnt.rows.series.y == 0
    chance = _chance(row.series, part.law.features, options)
    asked = {name: x[zero] for name, x in row.series.features.items()}
    explained = part.mean(asked) < NEAR_ZERO * float(row.series.y[~zero].min())
    if bool(explained.any()) or not (chance.feature or part.law.features):
        return learnt
    two = TwoPart(chance, part, float(ndtri(0.5 + options.confidence / 2.0)))
    residual = row.series.y - two.mean(row.series.features)
    law = _law(learnt.law, part.law, two, float(np.sqrt(np.mean(residual**2))))
    out = Learnt(law, (two,), row)
    predictions = out.predict(at if at is not None else default_points(row))
    return replace(out, law=replace(law, predictions=tuple(predictions)))


def _law(whole: Law, part: Law, two: TwoPart, scale: float) -> Law:
    """The claim: of the second part's family where the first is a share, else a product of both."""
    share = not two.chance.feature
    mean, noise = Binary("*", two.chance.expression, part.mean), Noise("normal", scale)
    factor = float(expit(two.chance.intercept)) if share else 1.0
    return replace(
        part,
        family=part.family if share else "product",
        expression=distribution(mean, noise),
        mean=mean,
        features=two.features,
        slope={name: part.slope.get(name, 0.0) for name in two.features},
        slope_low={name: part.slope_low.get(name, 0.0) for name in two.features},
        slope_high={name: part.slope_high.get(name, 0.0) for name in two.features},
        noise=noise,
        n=whole.n,
        runs=whole.runs,
        coefficient=part.coefficient * factor,
        intercept=None if part.intercept is None else part.intercept * factor,
        range=whole.range,
        alternatives=(),
        verdict="law" if two.chance.feature and part.verdict == "none" else part.verdict,
        reason="" if two.chance.feature and part.verdict == "none" else part.reason,
    )


def _chance(series: Series, preferred: Sequence[str], options: Options) -> Chance:
    """A share, or the logistic curve of the feature that explains the zeros best where its test says so."""
    run = (series.y > 0).astype(np.float64)
    share = (run.sum() + 0.5) / (run.size + 1.0)
    flat = Chance(
        "", float(np.log(share / (1 - share))), 0.0, 0.0, (float((run.size * share * (1 - share)) ** -0.5), 0.0)
    )
    best, least = flat, options.alpha / len(series.features)
    for name in (*preferred, *(name for name in series.features if name not in preferred)):
        x = series.features[name]
        if float(x.min()) <= 0 or np.ptp(x) == 0:
            continue
        curve, p = _logistic(name, np.log(x), run)
        if p < least:
            best, least = curve, p
    return best


def _logistic(name: str, log_x: Array, run: Array) -> tuple[Chance, float]:
    """Logistic regression by Newton's method with Jeffreys-like damping, and p of its likelihood ratio."""
    centre = float(log_x.mean())
    design = np.column_stack([np.ones_like(log_x), log_x - centre])
    share = float(run.mean())
    beta = np.array([np.log(share / (1 - share)), 0.0])
    ridge = np.diag([0.0, 0.05])
    for _ in range(30):
        p = expit(design @ beta)
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + ridge + 1e-9 * np.eye(2)
        step = np.clip(np.linalg.solve(hessian, design.T @ (run - p) - ridge @ beta), -2.0, 2.0)
        beta = beta + step
        if np.abs(step).max() < 1e-10 * (1.0 + np.abs(beta).max()):
            break  # converged: quadratically, so that what is left is rounding
    p = np.clip(expit(design @ beta), 1e-12, 1 - 1e-12)
    fitted = float((run * np.log(p) + (1 - run) * np.log(1 - p)).sum())
    flat = run.size * (share * np.log(share) + (1 - share) * np.log(1 - share))
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    curve = Chance(
        name, float(beta[0] - beta[1] * centre), float(beta[1]), centre, (float(errors[0]), float(errors[1]))
    )
    return curve, float(chdtrc(1, max(2.0 * (fitted - flat), 0.0)))
