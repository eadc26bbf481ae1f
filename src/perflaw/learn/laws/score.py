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


def scores(fits: list[Fit], count: Array, information: Array, sizes: Array) -> tuple[Array, Array]:
    """Scores to choose by and to keep others by, (B, M) each, smaller is better, infinite where not available.

    count (B,) points; information (B,) independent points they are worth; sizes (B,) distinct values of x: a law
    with as many parameters as sizes would explain anything and is not available.
    """
    worth = np.maximum(information - BARTLETT, np.minimum(information, 1.0) * 0.5) / count
    out, open_ = (np.full((count.size, len(fits)), np.inf) for _ in range(2))
    for m, fit in enumerate(fits):
        spare = (len(fit.model.columns) < np.maximum(sizes, 2.0)) & np.isfinite(fit.deviance)
        least = np.log(np.maximum(information, 1.0)) + LEAST
        price = cost(fit, count / information * variance(fit, count), least)
        plain = (len(fit.model.columns) - 1) * np.log(np.maximum(information, 1.0))
        base = worth * fit.deviance + fit.model.term.surprise
        out[spare, m] = (base + price)[spare]
        open_[spare, m] = (base + plain)[spare]
    return out, open_


def cost(fit: Fit, variance_: Array, least: Array) -> Array:
    """Cost of the parameters beyond the first, (B,), each at least ``least``."""
    covariance = fit.covariance * variance_[:, None, None]
    if not fit.model.noise.log:
        size = np.maximum(np.abs(fit.theta[:, BOTTOM]), 1e-290)
        covariance[:, BOTTOM] /= size[:, None]
        covariance[:, :, BOTTOM] /= size[:, None]
    out = np.zeros(len(covariance))
    for place, width in ((BOTTOM, INTERCEPT_WIDTH), (EXPONENT, fit.model.term.width)):
        if place in fit.model.columns:
            spread = np.maximum(2.0 * np.pi * covariance[:, place, place], 1e-30)
            out += np.maximum(2.0 * np.log(width) - np.log(spread), least)
    return out
