"""Straight lines through logarithms, of all clusters at once, and what is certain of them (trend-prof §2.3).

The line is the paper's. Its intervals are not: runs of one workload repeat it, so that errors come from the workloads'
mean residuals (one for G workloads, G − 2 degrees of freedom), which for single runs are the textbook's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.learn.trend.inputs import CONFIDENCE, Array, TrendOptions
from perflaw.types import PowerLaw, Prediction


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines v = centre_v + b·(u − centre_u) through logarithms of C costs and one feature over R runs."""

    u: Array
    """log feature, (R,); 0 where it has none."""
    v: Array
    """log cost, (C, R); 0 where it has none."""
    used: NDArray[np.bool_]
    """Where both have one, (C, R)."""
    centre_u: Array
    """Means of the used u, (C,)."""
    centre_v: Array
    """Means of the used v, (C,)."""
    b: Array
    """Slopes, (C,); NaN where fewer than two u differ."""
    squares: Array
    """Σ (u − centre_u)², (C,)."""
    residual: Array
    """v − line, (C, R); 0 where not used."""

    @classmethod
    def through(cls, costs: Array, x: Array) -> Lines:
        """Fit all: costs (C, R), x (R,), not positive or NaN where there is no logarithm."""
        fine = x > 0
        used = (costs > 0) & fine
        u = np.log(np.where(fine, x, 1.0))
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
        """Log coefficient, (C,)."""
        return self.centre_v - self.b * self.centre_u

    @staticmethod
    def by_workload(values: NDArray[Any], workload: NDArray[np.intp]) -> Array:
        """Sums over the runs of each workload, (C, R) -> (C, G)."""
        belongs = np.zeros((workload.size, int(workload.max()) + 1))
        belongs[np.arange(workload.size), workload] = 1.0
        return np.asarray(values @ belongs)

    def r2(self) -> list[float | None]:
        """Share of the variance explained, (C,)."""
        rest = np.einsum("ij,ij->i", self.residual, self.residual)
        slope = np.where(np.isnan(self.b), 0.0, self.b)
        total = rest + slope**2 * self.squares
        # Costs that do not vary have no variance to explain, only rounding.
        varies = total > 1e-20 * np.maximum(self.centre_v**2, 1.0) * np.maximum(self.used.sum(axis=1), 1)
        return [float(1.0 - r / t) if some else None for r, t, some in zip(rest, total, varies, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Lower and upper limits of C power laws, on logarithms but for the exponent; NaN where unknown."""

    exponent: Array
    """(2, C)."""
    coefficient: Array
    """(2, C)."""
    mean: Array
    """At P points, (2, C, P)."""
    new: Array
    """The same for a new run, (2, C, P)."""


def textbook(lines: Lines, asked: Array, workload: NDArray[np.intp]) -> Limits:
    """Limits by Student's t from the spread of workloads about the line."""
    size = lines.by_workload(lines.used, workload)
    mean = lines.by_workload(lines.residual, workload) / np.maximum(size, 1.0)
    freedom = (size > 0).sum(axis=1) - 2
    known = (freedom > 0) & ~np.isnan(lines.b)
    degrees = np.maximum(freedom, 1)
    between = (size * mean**2).sum(axis=1) / degrees
    n = size.sum(axis=1)
    single = np.maximum((lines.residual**2).sum(axis=1) / np.maximum(n - 2, 1.0), between)
    t = np.where(known, stdtrit(degrees, 0.5 + CONFIDENCE / 2.0), np.nan)
    squares = np.where(lines.squares > 0, lines.squares, np.nan)
    away = np.concatenate([[0.0], asked])[None] - lines.centre_u[:, None]
    spread = between[:, None] * (1.0 / np.maximum(n, 1.0)[:, None] + away**2 / squares[:, None])
    middle = lines.centre_v[:, None] + lines.b[:, None] * away
    half, new = t[:, None] * np.sqrt(spread), t[:, None] * np.sqrt(spread + single[:, None])
    slope = t * np.sqrt(between / squares)
    return Limits(
        np.stack([lines.b - slope, lines.b + slope]),
        np.stack([middle - half, middle + half])[:, :, 0],
        np.stack([middle - half, middle + half])[:, :, 1:],
        np.stack([middle - new, middle + new])[:, :, 1:],
    )


# ---- The paper's intervals (trend-prof §4.2): percentiles of the fits of runs drawn with replacement.
#
# A resample of runs is a weight for each run, so that all resamples of all clusters are a few matrix products.

TOGETHER = 128
"""Clusters that are resampled at a time."""

SIDES = (50.0 * (1.0 - CONFIDENCE), 50.0 * (1.0 + CONFIDENCE))
"""Percentiles that are the limits."""


def resampled(lines: Lines, asked: Array, known: Limits, options: TrendOptions) -> Limits:
    """Limits from resamples, at log feature values ``asked`` (P,); those of a new run stay ``known``."""
    runs = lines.u.size
    weights = np.random.default_rng(options.seed).multinomial(runs, np.full(runs, 1.0 / runs), options.bootstraps)
    parts = [
        _percentiles(lines, asked, weights.astype(np.float64), slice(start, start + TOGETHER))
        for start in range(0, len(lines.v), TOGETHER)
    ]
    if not parts:
        return known
    exponent, line = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
    coefficient, mean = line[..., 0], line[..., 1:]
    new = np.stack([np.fmin(known.new[0], mean[0]), np.fmax(known.new[1], mean[1])])
    return Limits(exponent, coefficient, mean, new)


def _percentiles(lines: Lines, asked: Array, weights: Array, part: slice) -> tuple[Array, Array]:
    """Limits of exponents (2, k), and of lines at 0 and the points (2, k, 1 + P), of some clusters."""
    used = lines.used[part].astype(np.float64)
    u = lines.u - lines.u.mean()
    v = np.where(lines.used[part], lines.v[part] - lines.centre_v[part, None], 0.0)
    n = np.maximum(weights @ used.T, 1.0)
    mean_u, mean_v = weights @ (used * u).T / n, weights @ v.T / n
    squares = weights @ (used * u**2).T - n * mean_u**2
    products = weights @ (v * u).T - n * mean_u * mean_v
    # A resample of a single size has no slope.
    varies = squares > 1e-9 * n * np.maximum(mean_u**2, 1.0)
    b = np.where(varies, products / np.where(varies, squares, 1.0), np.nan)
    at = np.concatenate([[0.0], asked]) - lines.u.mean()
    line = lines.centre_v[part, None] + mean_v[..., None] + b[..., None] * (at - mean_u[..., None])
    return _limits(b), _limits(line)


def _limits(values: Array) -> Array:
    """Both percentiles over the resamples, (B, …) -> (2, …), those without a value left out."""
    known = ~np.isnan(values)
    if known.all():
        return np.asarray(np.percentile(values, SIDES, axis=0))
    some = known.any(axis=0)
    return np.where(some, np.nanpercentile(np.where(some, values, 0.0), SIDES, axis=0), np.nan)


# ---- The paper's power laws as nouns (trend-prof §4.2): all clusters against one feature.

FEWEST = 3
"""Workloads that a power law is fitted to, at least."""

LARGEST = 690.0
"""Logarithms of answers are cut there."""


def power_laws(
    costs: Array, x: Array, name: str, workload: NDArray[np.intp], points: Sequence[float], options: TrendOptions
) -> list[PowerLaw | None]:
    """Power law of each cluster's cost in one feature; None where fewer than three workloads have both, or one size.

    Two points lie on any power law, with R² of 1 and no interval.
    ``costs`` (C, R), ``x`` (R,), ``workload`` (R,), ``points`` values of the feature to predict at.
    """
    lines = Lines.through(costs, x)
    at = np.array(list(points), dtype=np.float64)
    asked = np.log(np.maximum(at, 1e-300))
    limits = textbook(lines, asked, workload)
    if options.paper:
        limits = resampled(lines, asked, limits, options)
    numbers = _Numbers.of(lines, limits, asked, _zeros(costs, x))
    where = [{name: value} for value in at.tolist()]
    loads = (lines.by_workload(lines.used, workload) > 0).sum(axis=1)
    fine = (loads >= FEWEST) & ~np.isnan(lines.b)
    return [numbers.law(c, where) if some else None for c, some in enumerate(fine.tolist())]


def _zeros(costs: Array, x: Array) -> Array:
    """Runs that say the feature but have no logarithm of it or of the cost, (C,)."""
    said = ~np.isnan(x)
    return np.asarray((((costs == 0) | (np.where(said, x, 1.0) <= 0)) & said).sum(axis=1))


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What nouns are made of, as lists: thousands of laws are made one by one."""

    coefficient: list[list[float]]
    """Coefficient and its limits, NaN where unknown; (C, 3)."""
    exponent: list[list[float]]
    """The same of the exponent."""
    answers: list[list[list[float]]]
    """Mean, its limits, those of a new run; (C, P, 5)."""
    r2: list[float | None]
    """(C,)."""
    used: list[int]
    """Runs fitted, (C,)."""
    zeros: list[int]
    """Runs left out, (C,)."""
    residual: list[list[float | None]]
    """None where left out, (C, R)."""

    @classmethod
    def of(cls, lines: Lines, limits: Limits, asked: Array, zeros: Array) -> _Numbers:
        """From logarithms of all clusters."""
        middle = lines.intercept[:, None] + lines.b[:, None] * asked
        answers = np.stack([middle, *limits.mean, *limits.new], axis=-1)
        # Where nothing is known of a limit anything is possible, which the smallest and the largest number say.
        answers = np.where(np.isnan(answers), [0.0, -np.inf, np.inf, -np.inf, np.inf], answers)
        # A table of objects has room for None.
        residual = np.where(lines.used, lines.residual, np.nan).astype(object)
        residual[~lines.used] = None
        return cls(
            _exp(np.stack([lines.intercept, *limits.coefficient], axis=-1)).tolist(),
            np.stack([lines.b, *limits.exponent], axis=-1).tolist(),
            _exp(answers).tolist(),
            lines.r2(),
            lines.used.sum(axis=1).tolist(),
            zeros.tolist(),
            residual.tolist(),
        )

    def law(self, c: int, where: Sequence[Mapping[str, float]]) -> PowerLaw:
        """One of them as a noun; ``where`` are the points asked."""
        coefficient, low, high = self.coefficient[c]
        exponent, flattest, steepest = self.exponent[c]
        return PowerLaw(
            coefficient=coefficient,
            coefficient_low=_known(low),
            coefficient_high=_known(high),
            exponent=exponent,
            exponent_low=_known(flattest),
            exponent_high=_known(steepest),
            r2=self.r2[c],
            n=self.used[c],
            zeros=self.zeros[c],
            predictions=tuple(Prediction(dict(x), *five) for x, five in zip(where, self.answers[c], strict=True)),
            residuals=tuple(self.residual[c]),
        )


def _exp(logarithms: Array) -> Array:
    """Answers as finite numbers; NaN stays."""
    return np.where(np.isneginf(logarithms), 0.0, np.exp(np.clip(logarithms, -LARGEST, LARGEST)))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
