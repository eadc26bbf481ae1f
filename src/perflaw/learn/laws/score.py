"""One score for all laws: deviance, corrected for few points, plus what a law's extra parameters cost.

score = (n − 3)/n · deviance + Σ cost. The factor is Bartlett's correction for few points. The cost of an intercept
and of a free exponent is Laplace's approximation of the marginal likelihood (Kass & Raftery 1995, §4.1): twice the log
of prior width over √(2π)·posterior standard deviation, on scales without unit (log response at the lower end, or
that response over the largest; exponent). It grows with log n as BIC's does, but knows how well the design of x pins a
parameter down. Widths were calibrated by simulation (benchmarks/learner.py): at 5 % noise and n = 10 plain BIC finds
the right family in 65–90 % of series, this score in 95–100 %.

Prior widths make the choice, but a law that was not chosen is not thereby refuted: the second score, which says
what the data leave open beside the chosen law, charges a parameter what BIC does, log n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.fit import Fit
from perflaw.learn.laws.model import BOTTOM, EXPONENT
from perflaw.learn.laws.series import Array

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
    exponents = [model.term.width if EXPONENT in model.columns else np.nan for model in models]
    covariance, theta = np.stack([fit.covariance for fit in fits]), np.stack([fit.theta for fit in fits])
    multiplicative = np.array([model.noise.log for model in models])[:, None]
    return Numbers(
        _column([len(model.columns) for model in models]),
        _column([model.term.surprise for model in models]),
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
