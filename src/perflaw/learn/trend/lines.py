"""Straight lines through logarithms, of all clusters at once, and what is certain of them (trend-prof §2.3).

The line is the paper's. Its intervals are not: runs of one workload repeat it, so that errors come from the workloads'
mean residuals (one for G workloads, G − 2 degrees of freedom), which for single runs are the textbook's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.learn.trend.given import Array
from perflaw.learn.trend.options import CONFIDENCE


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
