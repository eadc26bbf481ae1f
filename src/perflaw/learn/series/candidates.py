"""All laws of a batch of series: fitted, scored, and which of them the data cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.laws.catalogue import CONSTANT, smooth_families
from perflaw.learn.series.band import Fitted, cluster_covariance, moulton
from perflaw.learn.series.fit import Fit, fit
from perflaw.learn.series.model import BOTTOM, EXPONENT, LOGNORMAL, NORMAL, Model
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Array
from perflaw.learn.series.stacks import Batch

# ---- One score for all laws: deviance, corrected for few points, plus what a law's extra parameters cost.
#
# score = (n − 3)/n · deviance + Σ cost. The factor is Bartlett's correction for few points. The cost of an intercept
# and of a free exponent is Laplace's approximation of the marginal likelihood (Kass & Raftery 1995, §4.1): twice the
# log
# of prior width over √(2π)·posterior standard deviation, on scales without unit (log response at the lower end, or
# that response over the largest; exponent). It grows with log n as BIC's does, but knows how well the design of x
# pins a
# parameter down. Widths were calibrated by simulation (benchmarks/learner.py): at 5 % noise and n = 10 plain BIC
# finds
# the right family in 65–90 % of series, this score in 95–100 %.
#
# Prior widths make the choice, but a law that was not chosen is not thereby refuted: the second score, which says
# what the data leave open beside the chosen law, charges a parameter what BIC does, log n.

INTERCEPT_WIDTH = 8.0
"""Prior width of an intercept, see the module."""

BARTLETT = 3.0
"""Points that estimating costs."""

LEAST = 2.0
"""An extra parameter costs at least so much more than BIC's log n: one that the data leave open is no free gift."""


def degrees(fit: Fit, count: Array) -> Array:
    """Degrees of freedom left, at least 1; count (B,) -> (B,)."""
    return np.maximum(count - len(fit.model.columns), 1.0)


def variance(fit: Fit, count: Array) -> Array:
    """Unbiased σ² on the noise's scale, not below its floor; (B,)."""
    return np.maximum(fit.rss / degrees(fit, count), fit.floor**2)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """What scores are made of: M laws fitted to B series."""

    parameters: Array
    """How many a law has, (M, 1)."""
    surprise: Array
    """What it costs to be of its family, (M, 1)."""
    widths: tuple[Array, Array]
    """Prior widths of the intercept and of the exponent, (M, 1); NaN for a law without one."""
    rss: Array
    """(M, B)."""
    floor: Array
    """(M, B)."""
    deviance: Array
    """(M, B)."""
    spreads: tuple[Array, Array]
    """Variance of the intercept on a scale without unit and of the exponent, over σ²; (M, B)."""
    sizes: Array
    """What intercepts are relative to, (M, B)."""

    def of(self, cell: int) -> Numbers:
        """Those of one series."""
        at = slice(cell, cell + 1)
        own = (self.rss[:, at], self.floor[:, at], self.deviance[:, at])
        spreads = (self.spreads[0][:, at], self.spreads[1][:, at])
        return Numbers(self.parameters, self.surprise, self.widths, *own, spreads, self.sizes[:, at])


def numbers(fits: Sequence[Fit]) -> Numbers:
    """Numbers of the fits of all laws to a batch."""
    models = [fit.model for fit in fits]
    intercepts = [INTERCEPT_WIDTH if BOTTOM in model.columns else np.nan for model in models]
    exponents = [model.family.width if EXPONENT in model.columns else np.nan for model in models]
    covariance, theta = np.stack([fit.covariance for fit in fits]), np.stack([fit.theta for fit in fits])
    multiplicative = np.array([model.noise.log for model in models])[:, None]
    return Numbers(
        _column([len(model.columns) for model in models]),
        _column([model.family.surprise for model in models]),
        (_column(intercepts), _column(exponents)),
        np.stack([fit.rss for fit in fits]),
        np.stack([fit.floor for fit in fits]),
        np.stack([fit.deviance for fit in fits]),
        (covariance[:, :, BOTTOM, BOTTOM], covariance[:, :, EXPONENT, EXPONENT]),
        np.where(multiplicative, 1.0, np.maximum(np.abs(theta[:, :, BOTTOM]), 1e-290)),
    )


def _column(values: Sequence[float]) -> Array:
    return np.array(values, dtype=np.float64)[:, None]


def scores(of: Numbers, count: Array, information: Array, sizes: Array) -> tuple[Array, Array]:
    """Scores to choose by and to keep others by, (B, M) each, smaller is better, infinite where not available.

    count (B,) points; information (B,) independent points they are worth; sizes (B,) distinct values of x: a law
    with as many parameters as sizes would explain anything and is not available.
    """
    worth = np.maximum(information - BARTLETT, np.minimum(information, 1.0) * 0.5) / count
    spare = (of.parameters < np.maximum(sizes, 2.0)) & np.isfinite(of.deviance)
    independent = np.log(np.maximum(information, 1.0))
    variance_ = np.maximum(of.rss / np.maximum(count - of.parameters, 1.0), of.floor**2)
    price = _cost(of, count / information * variance_, independent + LEAST)
    base = worth * of.deviance + of.surprise
    found = np.where(spare, base + price, np.inf)
    open_ = np.where(spare, base + (of.parameters - 1.0) * independent, np.inf)
    return np.ascontiguousarray(found.T), np.ascontiguousarray(open_.T)


def _cost(of: Numbers, variance_: Array, least: Array) -> Array:
    """Cost of the parameters beyond the first, (M, B), each at least ``least`` (B,)."""
    relative = (of.spreads[0] * variance_ / of.sizes / of.sizes, of.spreads[1] * variance_)
    out = np.zeros(variance_.shape)
    for spread, width in zip(relative, of.widths, strict=True):
        wide = np.maximum(2.0 * np.pi * spread, 1e-30)
        out += np.where(np.isnan(width), 0.0, np.maximum(2.0 * np.log(width) - np.log(wide), least))
    return out


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
"""How many of them are constant."""


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
    """Distinct values of x, (B, F)."""
    scores: Array
    """Scores to choose by, (B, F, M)."""
    plain_scores: Array
    """The same with all rows taken for independent, (B, F, M): features compare by these."""
    open_scores: Array
    """Scores by which others stay beside the chosen law, (B, F, M)."""

    @property
    def features(self) -> int:
        """F."""
        return int(self.scores.shape[1])

    def perfect(self, b: int, f: int, m: int) -> bool:
        """Residuals of a law are within the floor of σ: rounding, not noise."""
        fit_, cell = self.fits[m], b * self.features + f
        return bool(fit_.rss[cell] <= self.rows[b].y.size * fit_.floor[cell] ** 2)

    def fitted(self, series: NDArray[np.intp], feature: NDArray[np.intp], m: int, confidence: float) -> Fitted:
        """Model m of some cells with its uncertainty; series and feature (k,)."""
        cells = series * self.features + feature
        fit_ = self.fits[m]
        part = replace(
            fit_,
            theta=fit_.theta[cells],
            covariance=fit_.covariance[cells],
            rss=fit_.rss[cells],
            floor=fit_.floor[cells],
        )
        count = np.array([self.rows[b].y.size for b in series], dtype=np.float64)
        freedom, sigma2 = degrees(part, count), variance(part, count)
        hidden = np.array([self.rows[b].within[part.model.noise.log] for b in series])
        worth = np.array([self.rows[b].information for b in series])
        covariance = part.covariance * (sigma2 * count / worth)[:, None, None]
        clustered = [i for i, b in enumerate(series) if self.rows[b].clusters is not None]
        for i in clustered:
            covariance[i] = _between(self.rows[series[i]], int(feature[i]), part, i, self.ends[cells[i]])
            freedom[i] = self.rows[series[i]].runs - 1
        quantile = stdtrit(freedom, 0.5 + confidence / 2.0)
        error = 2.0 * sigma2**2 / degrees(part, count)
        return Fitted(part.model, part.theta, covariance, self.ends[cells], sigma2 + hidden, error, quantile)


def candidates(rows: Sequence[Rows]) -> Candidates:
    """Fit and score all laws of series with equally many features (at least one) and similar length."""
    batch = _batch(rows)
    fits = fit(MODELS, batch)
    features = len(rows[0].x)
    sizes = np.array([[np.unique(x).size for x in r.x] for r in rows]).reshape(-1, features)
    information = np.repeat([r.information for r in rows], features)
    count = batch.w.sum(axis=-1)
    of = numbers(fits)
    found, open_ = scores(of, count, information, sizes.reshape(-1).astype(np.float64))
    ends = np.stack([batch.x.min(axis=-1), batch.x.max(axis=-1)], axis=-1)
    shape = (len(rows), features, len(fits))
    out = Candidates(rows, fits, ends, sizes, found.reshape(shape), found.reshape(shape).copy(), open_.reshape(shape))
    for b, r in enumerate(rows):
        if r.clusters is not None:
            _discount(out, of, b, sizes[b].astype(np.float64))
    return out


def _batch(rows: Sequence[Rows]) -> Batch:
    """One cell a series and feature, padded to the longest with weight 0."""
    features, length = len(rows[0].x), max(r.y.size for r in rows)
    shape = (len(rows), features, length)
    x, y, log_y, w = np.empty(shape), np.empty(shape), np.empty(shape), np.zeros(shape)
    for b, r in enumerate(rows):
        n = r.y.size
        for target, source in ((x, r.x), (y, r.y), (log_y, r.log_y)):
            target[b, :, :n] = source
            target[b, :, n:] = source[..., :1]
        w[b, :, :n] = r.w
    flat = (shape[0] * features, length)
    quantum = np.repeat([r.series.quantum for r in rows], features).astype(np.float64)
    positive = np.repeat([r.positive for r in rows], features)
    return Batch(x.reshape(flat), y.reshape(flat), log_y.reshape(flat), w.reshape(flat), quantum, positive)


def _discount(found: Candidates, of: Numbers, b: int, sizes: Array) -> None:
    """Score rows that share runs by what they are worth; in place, one series."""
    row = found.rows[b]
    assert row.clusters is not None
    for f in range(found.features):
        cell = b * found.features + f
        best = int(found.scores[b, f].argmin())
        model = found.fits[best].model
        residual, _ = residual_of(model, (row.x[f], row.y, row.log_y), found.fits[best].theta[cell], found.ends[cell])
        worth = max(row.information / moulton(residual, np.asarray(row.x[f]), row.clusters), 1.0)
        count = np.array([float(row.y.size)])
        chosen, open_ = scores(of.of(cell), count, np.array([worth]), sizes[f : f + 1])
        found.scores[b, f], found.open_scores[b, f] = chosen[0], open_[0]


def residual_of(model: Model, data: tuple[Array, Array, Array], theta: Array, ends: Array) -> tuple[Array, Array]:
    """Residuals (n,) on the noise's scale and the gradient (p, n) of a law; ``data`` are x, y and log y."""
    x, y, log_y = data
    law = Fitted(model, theta, np.zeros((3, 3)), ends, np.zeros(()), np.zeros(()), np.zeros(()))
    mean, gradient = model.mean(law.parameters, law.range, x)
    if not model.noise.log:
        return y - mean, np.stack(gradient)
    mean = np.maximum(mean, 1e-300)
    return log_y - np.log(mean), np.stack(model.scaled(law.parameters, mean, gradient))


def _between(row: Rows, f: int, part: Fit, i: int, ends: Array) -> Array:
    """Covariance (3, 3) of one law's parameters from the spread between runs."""
    assert row.clusters is not None
    residual, gradient = residual_of(part.model, (row.x[f], row.y, row.log_y), part.theta[i], ends)
    out = np.zeros((3, 3))
    places = np.array(part.model.columns)
    out[np.ix_(places, places)] = cluster_covariance(gradient, row.w, residual, row.clusters)
    # Never below what independent rows at the floor of σ would give: a perfect fit keeps a width.
    out[places, places] += part.covariance[i][places, places] * part.floor[i] ** 2
    return out
