"""The paper's power laws as nouns (trend-prof §4.2): all clusters against one feature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.trend.bootstrap import resampled
from perflaw.learn.trend.given import Array
from perflaw.learn.trend.lines import Limits, Lines, textbook
from perflaw.learn.trend.options import TrendOptions
from perflaw.types import PowerLaw, Prediction

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
