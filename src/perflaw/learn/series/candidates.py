"""All laws of one feature for a batch of series: fitted, scored, the best one chosen, and which others stay plausible.

Every law has one score, the deviance, corrected for few points, plus the cost of its extra parameters:
score = (n − 3)/n · deviance + Σ cost. The factor is Bartlett's correction for few points. The cost of an intercept or of
a free exponent is Laplace's approximation of the marginal likelihood (Kass & Raftery 1995, §4.1): twice the log of the
prior width over √(2π)·posterior standard deviation, on scales without unit (log response at the lower end, or that
response over the largest; exponent). It grows with log n like BIC's, but takes into account how well the design of x
determines a parameter. The widths are calibrated by simulation (benchmarks/learner.py): at 5 % noise and n = 10 plain
BIC finds the right family in 65–90 % of series, this score in 95–100 %.

Prior widths decide the choice, but a law that is not chosen is not thereby refuted. The second score, which decides
what stays plausible beside the chosen law, therefore charges log n for a parameter, as BIC does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, POWER, smooth_families
from perflaw.learn.series.fit import Fit, fit
from perflaw.learn.series.independence import logs_if_positive, ranks, standardised
from perflaw.learn.series.law import FEWEST_UNITS
from perflaw.learn.series.model import (
    BOTTOM,
    EXPONENT,
    LOGNORMAL,
    NORMAL,
    STEEP_COST,
    USUAL_EXPONENTS,
    FittedModel,
    Model,
    covariance_between_runs,
    moulton,
    residual_and_gradient,
)
from perflaw.learn.series.series import Array, Options, Rows
from perflaw.learn.series.stacks import Batch
from perflaw.special import stdtrit

INTERCEPT_WIDTH = 8.0
"""Prior width of an intercept, see the module."""
BARTLETT = 3.0
"""Number of points in Bartlett's correction."""
EXTRA_COST = 2.0
"""An extra parameter costs at least this much more than BIC's log n: one that the data leave open is no free gift."""
SAME_STORY = 0.9
"""Features whose logs or ranks have this correlation tell the same story: the one given first tells it."""
GUESS, GUESS_CLUSTERED = 6.0, 30.0
"""Score by which a law must beat the constant to be the best guess if no permutation can reject independence.

The second number is for rows that share few runs: what a handful of runs are worth is itself known badly.
"""
SLACK, SLACK_FEW, MOST_SLACK = 0.4, 140.0, 2.0
"""Benefit of the doubt, ``SLACK + SLACK_FEW / n²`` (at most ``MOST_SLACK``), of a law beside the chosen one.

It is calibrated for coverage (benchmarks/learner.py): choosing among laws costs most if points are few.
"""
MODELS: tuple[Model, ...] = (
    *(Model(CONSTANT, False, noise) for noise in (LOGNORMAL, NORMAL)),
    *(
        Model(family, intercept, noise)
        for family in smooth_families()
        for intercept in (False, True)
        for noise in (LOGNORMAL, NORMAL)
    ),
)
"""Every law that is tried, constants first."""
CONSTANTS = 2
"""Number of constants among them."""
PARAMETERS = np.array([len(model.places) for model in MODELS])
"""Number of parameters of every law that is tried, (M,)."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The laws of B series with F features each; a cell is a series with one of its features."""

    rows: Sequence[Rows]
    """The series, B of them."""
    fits: Sequence[Fit]
    """Fits of all models to all B·F cells, cell = series·F + feature."""
    ends: Array
    """Smallest and largest x of a cell, (B·F, 2)."""
    sizes: NDArray[np.intp]
    """Number of distinct values of x, (B, F)."""
    scores: Array
    """Scores to choose by, (B, F, M)."""
    plain_scores: Array
    """Scores as if all rows were independent, (B, F, M): features are compared by these."""
    plausible_scores: Array
    """Scores by which other laws stay plausible beside the chosen one, (B, F, M)."""

    @property
    def features(self) -> int:
        """Number of features F."""
        return int(self.scores.shape[1])

    def perfect(self, b: int, f: int, m: int) -> bool:
        """Whether the residuals of a law are within the floor of σ: rounding, not noise."""
        fitted, cell = self.fits[m], b * self.features + f
        return bool(fitted.rss[cell] <= self.rows[b].y.size * fitted.floor[cell] ** 2)

    def residual(self, b: int, f: int, m: int) -> Array:
        """Residuals (n,) of a law on the noise's scale."""
        row, cell = self.rows[b], b * self.features + f
        data = row.x[f], row.y, row.log_y
        return residual_and_gradient(self.fits[m].model, data, self.fits[m].theta[cell], self.ends[cell])[0]

    def relative_residual(self, b: int, f: int, m: int) -> Array:
        """Residuals (n,) of a law relative to its mean, or to themselves if they are larger."""
        residual = self.residual(b, f, m)
        if self.fits[m].model.noise.log:
            return residual
        return np.asarray(residual / np.maximum(np.abs(self.rows[b].y - residual), np.abs(residual)))

    def plausible(
        self, b: int, allowed: NDArray[np.bool_], chosen: tuple[int, int], delta: float
    ) -> tuple[tuple[int, int, float], ...]:
        """Laws among those allowed (F, M) that the data cannot tell from the chosen one, that one first.

        Each is its feature, its model, and how much worse its score is, less than ``delta``.
        """
        if np.ptp(self.rows[b].y) == 0:
            # Responses that do not vary leave nothing open: what a law could hide is below the clock's tick.
            return ((*chosen, 0.0),)
        score = np.where(allowed, self.scores[b], np.inf)
        plausible = np.where(np.isfinite(score), self.plausible_scores[b], np.inf)
        difference = np.minimum(score - score[chosen], plausible - plausible[chosen])
        difference -= slack(self.rows[b].y.size)
        difference[chosen] = 0.0
        if self.perfect(b, *chosen):
            # Laws with more parameters fit as perfectly: that is no doubt.
            difference[:, PARAMETERS[chosen[1]] < PARAMETERS] = np.inf
        places = np.nonzero(difference < delta)
        worse = np.maximum(difference[places], 0.0)
        near = list(zip(*(column.tolist() for column in (*places, worse)), strict=True))
        return tuple(sorted(near, key=lambda law: (law[:2] != chosen, law[2])))

    def fitted(self, series: NDArray[np.intp], feature: NDArray[np.intp], m: int, confidence: float) -> FittedModel:
        """Model m of some cells with its uncertainty; series and feature (k,)."""
        cells = series * self.features + feature
        found, model, rows = self.fits[m], self.fits[m].model, [self.rows[b] for b in series]
        count = np.array([row.y.size for row in rows], dtype=np.float64)
        freedom = np.maximum(count - len(model.places), 1.0)
        variance = np.maximum(found.rss[cells] / freedom, found.floor[cells] ** 2)
        variance_error = 2.0 * variance**2 / freedom
        effective = np.array([row.effective for row in rows])
        covariance = found.covariance[cells] * (variance * count / effective)[:, None, None]
        for i, (row, f, cell) in enumerate(zip(rows, feature, cells, strict=True)):
            if row.clusters is not None:
                data, places = (row.x[f], row.y, row.log_y), np.array(model.places)
                theta, ends = found.theta[cell], self.ends[cell]
                covariance[i] = covariance_between_runs(model, data, theta, ends, row.w, row.clusters)
                # Never below that of independent rows at the floor of σ: the law of a perfect fit keeps a width.
                covariance[i, places, places] += found.covariance[cell][places, places] * found.floor[cell] ** 2
                freedom[i] = row.runs - 1
        hidden = np.array([row.within[model.noise.log] for row in rows])
        quantile = stdtrit(freedom, 0.5 + confidence / 2.0)
        return FittedModel(
            model, found.theta[cells], covariance, self.ends[cells], variance + hidden, variance_error, quantile
        )


def fit_candidates(rows: Sequence[Rows]) -> Candidates:
    """Fit and score all laws of series with equally many features (at least one) and similar length."""
    features, length = len(rows[0].x), max(row.y.size for row in rows)
    batch = padded_batch([(row, f, np.arange(row.y.size)) for row in rows for f in range(features)], length)
    fits = fit(MODELS, batch)
    sizes = np.array([[np.unique(x).size for x in row.x] for row in rows]).reshape(-1, features)
    effective = np.repeat([row.effective for row in rows], features)
    flat = _scores(fits, batch.w.sum(axis=-1), effective, sizes.reshape(-1).astype(np.float64))
    scores, plausible = (one.reshape(len(rows), features, len(fits)) for one in flat)
    ends = np.stack([batch.x.min(axis=-1), batch.x.max(axis=-1)], axis=-1)
    out = Candidates(rows, fits, ends, sizes, scores, scores.copy(), plausible)
    for b, row in enumerate(rows):
        if row.clusters is None:
            continue
        count = np.array([float(row.y.size)])
        for f in range(features):
            # Rows that share runs are discounted by Moulton's factor of the best law.
            residual = out.residual(b, f, int(scores[b, f].argmin()))
            discounted = max(row.effective / moulton(residual, np.asarray(row.x[f]), row.clusters), 1.0)
            cell = slice(b * features + f, b * features + f + 1)
            again = _scores(fits, count, np.array([discounted]), sizes[b, f : f + 1].astype(np.float64), cell)
            scores[b, f], plausible[b, f] = again[0][0], again[1][0]
    for b, row in enumerate(rows):
        if row.series.costs and row.names:
            costs = row.series.costs_of(row.names, row.effective)[:, None]
            for each in (scores, plausible, out.plain_scores):
                each[b, :, CONSTANTS:] += costs
    return out


def padded_batch(cells: Sequence[tuple[Rows, int, NDArray[np.intp]]], length: int) -> Batch:
    """Some rows of a feature of a series per cell, padded to a length with the first of them at weight 0."""
    x, y, log_y, w = (np.zeros((len(cells), length)) for _ in range(4))
    for i, (row, f, places) in enumerate(cells):
        padded = np.concatenate([places, np.full(length - places.size, places[0])])
        x[i], y[i], log_y[i] = row.x[f][padded], row.y[padded], row.log_y[padded]
        w[i, : places.size] = row.w[places]
    quantum = np.array([row.series.quantum for row, _, _ in cells])
    return Batch(x, y, log_y, w, quantum, np.array([row.positive for row, _, _ in cells]))


def _scores(
    fits: Sequence[Fit], count: Array, effective: Array, sizes: Array, cells: slice = slice(None)
) -> tuple[Array, Array]:
    """Scores to choose by and to stay plausible by, (B, M) each; smaller is better, infinite if not available.

    count (B,) points; effective (B,) number of independent points; sizes (B,) distinct values of x: a law with as many
    parameters as sizes would explain anything and is not available.
    """

    def per_model(values: Sequence[float]) -> Array:
        return np.array(values, dtype=np.float64)[:, None]

    models = [fit.model for fit in fits]
    parameters = per_model([len(model.places) for model in models])
    rss, floor, deviance = (
        np.stack([getattr(fit, name)[cells] for fit in fits]) for name in ("rss", "floor", "deviance")
    )
    bottom = np.abs(np.stack([fit.theta[cells, BOTTOM] for fit in fits]))
    response = np.where(per_model([model.noise.log for model in models]), 1.0, np.maximum(bottom, 1e-290))
    variance = count / effective * np.maximum(rss / np.maximum(count - parameters, 1.0), floor**2)
    of_intercept, of_exponent = (
        np.stack([fit.covariance[cells, place, place] for fit in fits]) * variance for place in (BOTTOM, EXPONENT)
    )
    widths = (
        per_model([INTERCEPT_WIDTH if model.intercept else np.nan for model in models]),
        per_model([model.family.width if model.family.free else np.nan for model in models]),
    )
    bic = np.log(np.maximum(effective, 1.0))
    cost = np.zeros(variance.shape)
    for spread, width in zip((of_intercept / response / response, of_exponent), widths, strict=True):
        laplace = 2.0 * np.log(width) - np.log(np.maximum(2.0 * np.pi * spread, 1e-30))
        cost += np.where(np.isnan(width), 0.0, np.maximum(laplace, bic + EXTRA_COST))
    exponent = np.stack([fit.theta[cells, EXPONENT] for fit in fits])
    unusual = (exponent < USUAL_EXPONENTS[0]) | (exponent > USUAL_EXPONENTS[1])
    cost += np.where(unusual & per_model([model.family is POWER for model in models]).astype(bool), STEEP_COST, 0.0)
    worth = np.maximum(effective - BARTLETT, np.minimum(effective, 1.0) * 0.5) / count
    base = worth * deviance + per_model([model.family.surprise for model in models])
    available = (parameters < np.maximum(sizes, 2.0)) & np.isfinite(deviance)
    scores = np.where(available, base + cost, np.inf)
    plausible = np.where(available, base + (parameters - 1.0) * bic, np.inf)
    return np.ascontiguousarray(scores.T), np.ascontiguousarray(plausible.T)


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen law of a series and the others, as places in its candidates."""

    feature: int
    """Feature of the chosen law."""
    model: int
    """Model of the chosen law."""
    established: bool
    """The null control rejected independence."""
    plausible: tuple[tuple[int, int, float], ...]
    """(feature, model, score difference) of every law that the intervals cover, the chosen one first."""


def choose(candidates: Candidates, b: int, established: NDArray[np.bool_], options: Options) -> Choice:
    """Choose a law for series b; established (F,) are the features for which the null control rejected."""
    row, scores = candidates.rows[b], candidates.scores[b]
    few = row.y.size < FEWEST_UNITS
    if row.clusters is not None:
        few = not established.any() and row.runs < FEWEST_UNITS
    if few:  # No permutation could have rejected: a law far better than the constant is the best guess.
        margin = GUESS if row.clusters is None else GUESS_CLUSTERED
        established = scores[:, CONSTANTS:].min(axis=-1) < scores[:, :CONSTANTS].min(axis=-1) - margin
    if row.series.costs and row.names:
        # A feature of a prior cost must explain more than that, whatever the permutations say.
        dear = row.series.costs_of(row.names, row.effective) > 0
        established = established & (~dear | (scores[:, CONSTANTS:].min(axis=-1) < scores[:, :CONSTANTS].min(axis=-1)))
    allowed = np.zeros(scores.shape, dtype=bool)
    allowed[established, CONSTANTS:] = np.isfinite(scores[established, CONSTANTS:])
    if not allowed.any():  # Constants are the same law for all features.
        allowed[0, :CONSTANTS] = np.isfinite(scores[0, :CONSTANTS])

    best = np.where(allowed, candidates.plain_scores[b], np.inf).min(axis=-1)
    f = int(best.argmin())
    if f:
        rank, log = standardised(ranks(row.x)), standardised(logs_if_positive(row.x))
        same = (np.abs(rank @ rank.T) >= SAME_STORY) | (np.abs(log @ log.T) >= SAME_STORY)
        same[f, f] = True
        f = int(np.flatnonzero(same[f] & (best < best[f] + options.delta))[0])
    if row.clusters is not None:
        # The effective number of rows differs from feature to feature, so scores of different features do not compare.
        allowed &= np.arange(len(allowed))[:, None] == f
    m = int(np.where(allowed, scores, np.inf)[f].argmin())
    if m < CONSTANTS:
        # A dependence that is not established is not refuted: what fits as well stays for the verdict to judge.
        allowed |= np.isfinite(scores) & (np.arange(scores.shape[1]) >= CONSTANTS)
    return Choice(f, m, m >= CONSTANTS and not few, candidates.plausible(b, allowed, (f, m), options.delta))


def slack(n: int) -> float:
    """Benefit of the doubt of a law beside the one chosen from n points."""
    return min(SLACK + SLACK_FEW / n**2, MOST_SLACK)
