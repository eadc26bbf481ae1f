"""Predictions beyond the data for a whole batch: the chosen law's mean, the union of all plausible laws' intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.band import Fitted
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Array
from perflaw.types import Prediction

FACTORS = np.array([2.0, 10.0])
"""Predictions are made at so many times the 95th percentile of every feature."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions of B series at P points, widened law by law."""

    names: Sequence[tuple[str, ...]]
    """Features of every series."""
    points: Array
    """Where, (B, F, P)."""
    limits: Array
    """Mean, its limits and those of a new row, (5, B, P)."""

    @classmethod
    def beyond(cls, rows: Sequence[Rows]) -> Answers:
        """Nothing said yet, at 2 and 10 times the 95th percentile of every feature."""
        top = np.array([[percentile95(x) for x in row.series.features.values()] or [0.0] for row in rows])
        limits = np.empty((5, len(rows), FACTORS.size))
        limits[1::2], limits[2::2], limits[0] = np.inf, -np.inf, 0.0
        return cls([row.names for row in rows], top[..., None] * FACTORS, limits)

    def widen(self, law: Fitted, cells: Sequence[tuple[int, int, float, bool]]) -> None:
        """Take in one law at (series, feature, score difference, is the chosen one)."""
        series, feature = np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
        band = law.band(self.points[series, feature])
        for place in (1, 3):
            np.minimum.at(self.limits[place], series, band[place])
            np.maximum.at(self.limits[place + 1], series, band[place + 1])
        chosen = np.array([cell[3] for cell in cells])
        self.limits[0, series[chosen]] = band[0][chosen]

    def of(self, b: int) -> list[Prediction]:
        """Predictions of one series."""
        where = self.points[b, : len(self.names[b])].T.tolist()
        limits = self.limits[:, b].T.tolist()
        named = (dict(zip(self.names[b], values, strict=True)) for values in where)
        return [Prediction(features, *five) for features, five in zip(named, limits, strict=True)]


def percentile95(x: Array) -> float:
    """95th percentile by linear interpolation (Hyndman & Fan 1996, definition 7).

    >>> round(percentile95(np.array([1.0, 2.0, 3.0])), 12)
    2.9
    """
    ordered = np.sort(x)
    place = 0.95 * (x.size - 1)
    below = int(place)
    above = min(below + 1, x.size - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))
