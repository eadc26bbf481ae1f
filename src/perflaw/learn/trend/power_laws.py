"""The paper's power laws (trend-prof §2.3, §4.2): lines through logarithms, fitted to all clusters at once.

The line is the paper's. Its intervals are not: runs of one workload repeat it, so that errors come from the mean
residuals of the workloads (G workloads give G − 2 degrees of freedom), which for single runs are the textbook's own.
With ``--paper`` the intervals are bootstrap percentiles over runs.

A constant, a logarithm or a regime of small sizes bends the counts away from a line through logarithms, and runs of 0 have
no logarithm. Then its exponent is a mean over the data, and not the growth that larger inputs meet. Whether the law or the
line follows the counts is seen where growth shows, in the larger half of the runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import LEVEL
from perflaw.learn.series import Learnt
from perflaw.learn.series.series import quiet
from perflaw.learn.trend.data import Array, TrendOptions
from perflaw.special import stdtrit
from perflaw.types import Disagreement, PowerLaw, Prediction

MIN_WORKLOADS = 3
"""Smallest number of workloads that a power law is fitted to."""
MAX_LOGARITHM = 690.0
"""Logarithms of predictions are cut there."""
BATCH = 128
"""Number of clusters that are resampled at a time."""
PERCENTILES = (50.0 * (1.0 - LEVEL), 50.0 * (1.0 + LEVEL))
"""Percentiles of the resamples that are the limits."""
AHEAD: Final = np.array([100.0, 1000.0])
"""The law's growth is that between these multiples of the largest size, where its leading term governs."""
LEAST: Final = 0.05
"""Smallest difference of exponents that a reader sees."""
STEEP: Final = 50.0
"""Growths beyond are told as this exponent: an exponential has none."""
ENDLESS: Final = 1e200
"""From this count on a growth is an exponential's: it may have no larger number."""


def power_laws(
    costs: Array, x: Array, name: str, workload: NDArray[np.intp], points: Sequence[float], options: TrendOptions
) -> list[PowerLaw | None]:
    """Power law of each cluster's cost in one feature; None if there are fewer than three workloads or only one size.

    Two points lie on any power law, with R² of 1 and no interval.
    ``costs`` (C, R), ``x`` (R,), ``workload`` (R,), ``points`` values of the feature to predict at.
    """
    lines = LogLines.through(costs, x)
    at = np.array(list(points), dtype=np.float64)
    log_points = np.log(np.maximum(at, 1e-300))
    limits = student_limits(lines, log_points, workload)
    if options.paper:
        limits = bootstrap_limits(lines, log_points, limits, options)
    known = ~np.isnan(x)
    zeros = (((costs == 0) | (np.where(known, x, 1.0) <= 0)) & known).sum(axis=1).tolist()
    workloads = (lines.by_workload(lines.used, workload) > 0).sum(axis=1)
    fitted = ((workloads >= MIN_WORKLOADS) & ~np.isnan(lines.b)).tolist()

    # Lists of numbers: thousands of laws are made one by one.
    middle = lines.intercept[:, None] + lines.b[:, None] * log_points
    predictions = np.stack([middle, *limits.mean, *limits.new], axis=-1)
    # An unknown limit may be anything, which the smallest and the largest number express.
    predictions = np.where(np.isnan(predictions), [0.0, -np.inf, np.inf, -np.inf, np.inf], predictions)
    predicted = _exp(predictions).tolist()
    coefficient = _exp(np.stack([lines.intercept, *limits.coefficient], axis=-1)).tolist()
    exponent = np.stack([lines.b, *limits.exponent], axis=-1).tolist()
    residual = np.where(lines.used, lines.residual, np.nan).astype(object)
    residual[~lines.used] = None
    residuals, r2, used = residual.tolist(), lines.r2(), lines.used.sum(axis=1).tolist()
    where = [{name: value} for value in at.tolist()]
    return [
        PowerLaw(
            coefficient=coefficient[c][0],
            coefficient_low=_finite(coefficient[c][1]),
            coefficient_high=_finite(coefficient[c][2]),
            exponent=exponent[c][0],
            exponent_low=_finite(exponent[c][1]),
            exponent_high=_finite(exponent[c][2]),
            r2=r2[c],
            n=used[c],
            zeros=zeros[c],
            predictions=tuple(Prediction(dict(x), *limits) for x, limits in zip(where, predicted[c], strict=True)),
            residuals=tuple(residuals[c]),
        )
        if fitted[c]
        else None
        for c in range(len(costs))
    ]


def _exp(logarithms: Array) -> Array:
    """Exponentials as finite numbers; NaN stays."""
    return np.where(np.isneginf(logarithms), 0.0, np.exp(np.clip(logarithms, -MAX_LOGARITHM, MAX_LOGARITHM)))


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True, slots=True, eq=False)
class LogLines:
    """Lines v = centre_v + b·(u − centre_u) through logarithms of C costs and one feature over R runs."""

    u: Array
    """Log of the feature, (R,); 0 where it has no logarithm."""
    v: Array
    """Log of the costs, (C, R); 0 where they have no logarithm."""
    used: NDArray[np.bool_]
    """Where both have a logarithm, (C, R)."""
    centre_u: Array
    """Means of the used u, (C,)."""
    centre_v: Array
    """Means of the used v, (C,)."""
    b: Array
    """Slopes, (C,); NaN if fewer than two u differ."""
    squares: Array
    """Σ (u − centre_u)², (C,)."""
    residual: Array
    """v − line, (C, R); 0 where not used."""

    @classmethod
    def through(cls, costs: Array, x: Array) -> LogLines:
        """Fit a line to each row of ``costs`` (C, R) over ``x`` (R,); values that are not positive are not used."""
        positive = x > 0
        used = (costs > 0) & positive
        u = np.log(np.where(positive, x, 1.0))
        v = np.log(np.where(used, costs, 1.0))
        n = np.maximum(used.sum(axis=1), 1)
        centre_u, centre_v = used @ u / n, v.sum(axis=1) / n
        from_u = np.where(used, u - centre_u[:, None], 0.0)
        from_v = np.where(used, v - centre_v[:, None], 0.0)
        squares = np.einsum("ij,ij->i", from_u, from_u)
        varies = squares > 1e-18 * n * np.maximum(centre_u**2, 1.0)
        b = np.where(varies, np.einsum("ij,ij->i", from_u, from_v) / np.where(varies, squares, 1.0), np.nan)
        return cls(u, v, used, centre_u, centre_v, b, squares, from_v - np.where(varies, b, 0.0)[:, None] * from_u)

    @property
    def intercept(self) -> Array:
        """Log of the coefficient, (C,)."""
        return self.centre_v - self.b * self.centre_u

    @staticmethod
    def by_workload(values: NDArray[Any], workload: NDArray[np.intp]) -> Array:
        """Sums over the runs of each workload, (C, R) -> (C, G)."""
        belongs = np.zeros((workload.size, int(workload.max()) + 1))
        belongs[np.arange(workload.size), workload] = 1.0
        return np.asarray(values @ belongs)

    def r2(self) -> list[float | None]:
        """Share of the variance that each line explains, (C,); None for costs that do not vary."""
        rest = np.einsum("ij,ij->i", self.residual, self.residual)
        slope = np.where(np.isnan(self.b), 0.0, self.b)
        total = rest + slope**2 * self.squares
        # Costs that do not vary have no variance to explain, only rounding.
        varies = total > 1e-20 * np.maximum(self.centre_v**2, 1.0) * np.maximum(self.used.sum(axis=1), 1)
        return [float(1.0 - r / t) if some else None for r, t, some in zip(rest, total, varies, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class LineLimits:
    """Lower and upper limits of C power laws, of logarithms except for the exponent; NaN where unknown."""

    exponent: Array
    """(2, C)."""
    coefficient: Array
    """(2, C)."""
    mean: Array
    """Limits of the mean at P points, (2, C, P)."""
    new: Array
    """Limits of a new run at P points, (2, C, P)."""


def student_limits(lines: LogLines, log_points: Array, workload: NDArray[np.intp]) -> LineLimits:
    """Limits by Student's t from the scatter of workloads about the line, at log values of the feature (P,)."""
    size = lines.by_workload(lines.used, workload)
    mean = lines.by_workload(lines.residual, workload) / np.maximum(size, 1.0)
    freedom = (size > 0).sum(axis=1) - 2
    known = (freedom > 0) & ~np.isnan(lines.b)
    degrees = np.maximum(freedom, 1)
    between = (size * mean**2).sum(axis=1) / degrees
    n = size.sum(axis=1)
    single = np.maximum((lines.residual**2).sum(axis=1) / np.maximum(n - 2, 1.0), between)
    t = np.where(known, stdtrit(degrees, 0.5 + LEVEL / 2.0), np.nan)
    squares = np.where(lines.squares > 0, lines.squares, np.nan)
    distance = np.concatenate([[0.0], log_points])[None] - lines.centre_u[:, None]
    variance = between[:, None] * (1.0 / np.maximum(n, 1.0)[:, None] + distance**2 / squares[:, None])
    middle = lines.centre_v[:, None] + lines.b[:, None] * distance
    half, half_new = t[:, None] * np.sqrt(variance), t[:, None] * np.sqrt(variance + single[:, None])
    half_slope = t * np.sqrt(between / squares)
    line = np.stack([middle - half, middle + half])
    return LineLimits(
        np.stack([lines.b - half_slope, lines.b + half_slope]),
        line[:, :, 0],
        line[:, :, 1:],
        np.stack([middle - half_new, middle + half_new])[:, :, 1:],
    )


def bootstrap_limits(lines: LogLines, log_points: Array, student: LineLimits, options: TrendOptions) -> LineLimits:
    """The paper's limits (§4.2): percentiles of the fits to runs drawn with replacement, at log values (P,).

    A resample of runs is a weight for each run, so that all resamples of all clusters are a few matrix products. The
    limits of a new run are those of ``student``, widened to contain the limits of the mean.
    """
    runs = lines.u.size
    drawn = np.random.default_rng(options.seed).multinomial(runs, np.full(runs, 1.0 / runs), options.bootstraps)
    weights = drawn.astype(np.float64)
    batches = []  # limits of exponents (2, k), and of lines at 0 and the points (2, k, 1 + P), of k clusters each
    for start in range(0, len(lines.v), BATCH):
        batch = slice(start, start + BATCH)
        used = lines.used[batch].astype(np.float64)
        u = lines.u - lines.u.mean()
        v = np.where(lines.used[batch], lines.v[batch] - lines.centre_v[batch, None], 0.0)
        n = np.maximum(weights @ used.T, 1.0)
        mean_u, mean_v = weights @ (used * u).T / n, weights @ v.T / n
        squares = weights @ (used * u**2).T - n * mean_u**2
        products = weights @ (v * u).T - n * mean_u * mean_v
        # A resample of runs of one size has no slope.
        varies = squares > 1e-9 * n * np.maximum(mean_u**2, 1.0)
        b = np.where(varies, products / np.where(varies, squares, 1.0), np.nan)
        at = np.concatenate([[0.0], log_points]) - lines.u.mean()
        drawn_lines = lines.centre_v[batch, None] + mean_v[..., None] + b[..., None] * (at - mean_u[..., None])
        batches.append((_percentiles(b), _percentiles(drawn_lines)))
    if not batches:
        return student
    exponent, line = (np.concatenate(limits, axis=1) for limits in zip(*batches, strict=True))
    coefficient, mean = line[..., 0], line[..., 1:]
    new = np.stack([np.fmin(student.new[0], mean[0]), np.fmax(student.new[1], mean[1])])
    return LineLimits(exponent, coefficient, mean, new)


def _percentiles(values: Array) -> Array:
    """Both limits over the resamples, (B, …) -> (2, …); resamples without a value do not count."""
    known = ~np.isnan(values)
    if known.all():
        return np.asarray(np.percentile(values, PERCENTILES, axis=0))
    some = known.any(axis=0)
    return np.where(some, np.nanpercentile(np.where(some, values, 0.0), PERCENTILES, axis=0), np.nan)


def disagreement(learnt: Learnt, power: PowerLaw, costs: Array, x: Array, name: str) -> Disagreement | None:
    """What separates a law and the paper's power law of one feature, with counts and feature (R,); None if they agree."""
    known = ~np.isnan(x)
    top = float(x[known].max())
    if not learnt.law.features or top <= 0 or power.exponent_low is None or power.exponent_high is None:
        return None
    with quiet():
        near, far = learnt.mean({name: AHEAD * top}).tolist()
    if near <= 0:
        return None
    growth = float(np.clip(np.log(max(far, 1e-300) / near) / np.log(AHEAD[1] / AHEAD[0]), -STEEP, STEEP))
    growth = STEEP if far > ENDLESS else growth
    # They agree if either interval covers the other: exponents at the largest size, over all laws not told apart.
    covers = power.exponent_low <= growth <= power.exponent_high
    is_covered = learnt.law.slope_low[name] <= power.exponent <= learnt.law.slope_high[name]
    if abs(growth - power.exponent) < LEAST or covers or is_covered:
        return None
    larger = known & (costs > 0) & (x > 0)
    larger &= x >= np.median(x[larger])
    y, sizes = costs[larger], x[larger]

    def error(mean: Array) -> float:
        return float(np.expm1(np.median(np.abs(np.log(y) - np.log(np.maximum(mean, 1e-300))))))

    by_law, by_power = error(learnt.mean({name: sizes})), error(power.coefficient * sizes**power.exponent)
    established = learnt.law.verdict == "law"
    return Disagreement("law" if established and by_law <= by_power else "power law", growth, by_law, by_power)
