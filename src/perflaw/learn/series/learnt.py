"""A law that can be asked: the claim, and the functions behind it (:class:`~perflaw.learn.series.learnt.Asked`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from perflaw.errors import DataError
from perflaw.learn.series.band import Band, Fitted
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Array, quiet
from perflaw.types import Curve, Law, Prediction

# ---- What every plausible law answers, whatever its kind: one feature, several, or segments of them.

Columns = Mapping[str, Array]
"""Values of features by name, (k,) each; at least one column, for laws without features take their k from it."""


class Asked(Protocol):
    """A law that can be asked for its mean and its intervals at k points."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features it depends on; empty for a constant."""

    def mean(self, at: Columns) -> Array:
        """Expected response, (k,), never negative; ``at`` has (at least) its features."""

    def band(self, at: Columns) -> Band:
        """Mean, its lower and upper limit, those of a new row; (k,) each, finite, none negative."""


def points(at: Columns) -> Array:
    """Zeros, one a point: what a law without features is asked at."""
    return np.zeros_like(next(iter(at.values())))


@dataclass(frozen=True, slots=True)
class Plausible:
    """A law of one feature at most, as :class:`~perflaw.learn.series.learnt.Asked`."""

    feature: str
    """Feature it depends on; empty for a constant."""
    several: Fitted
    """It and its like in other series."""
    index: int
    """Its place there."""

    @property
    def law(self) -> Fitted:
        """The law itself."""
        return self.several.row(self.index)

    @property
    def features(self) -> tuple[str, ...]:
        """Its feature, if it has one."""
        return (self.feature,) if self.feature else ()

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        return self.law.mean(self._x(at))

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each."""
        return self.law.band(self._x(at))

    def _x(self, at: Columns) -> Array:
        return at[self.feature] if self.feature else points(at)


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A law with what is needed to ask it anywhere."""

    law: Law
    """The claim."""
    plausible: tuple[Asked, ...]
    """The chosen law first, then those not told apart: intervals are their union."""
    rows: Rows
    """What it was learnt from."""

    def predict(self, points: Sequence[Mapping[str, float]]) -> list[Prediction]:
        """Answers at points, each a value for (at least) the law's features.

        Raises DataError where a feature of the law is missing or not a finite number.
        """
        if not points:
            return []
        asked = {name: self._column(points, name) for name in self.rows.names}
        band = self._band({name: values for name, values in asked.items() if values is not None}, len(points))
        columns = zip(*(limit.tolist() for limit in band), strict=True)
        return [Prediction(dict(point), *limits) for point, limits in zip(points, columns, strict=True)]

    def mean(self, x: Mapping[str, ArrayLike] | ArrayLike) -> Array:
        """Expected response at values of the law's features, (k,) -> (k,); never negative.

        ``x`` maps features to values, or is the values of the law's only feature.
        """
        chosen = self.plausible[0]
        if not isinstance(x, Mapping):
            x = {chosen.features[0] if chosen.features else "": x}
        columns = {name: np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in x.items()}
        with quiet():
            return chosen.mean(columns or {"": np.zeros(1)})

    def curve(self, feature: str, low: float, high: float, count: int = 60) -> Curve:
        """The law over a grid of one feature, others at their medians; DataError for one it does not depend on.

        The grid is geometric where both ends are positive.
        """
        if self.law.features and feature not in self.law.features:
            raise DataError(
                f"the law of {self.rows.series.name!r} does not depend on {feature!r}",
                f"it depends on {', '.join(self.law.features)}",
            )
        geometric = 0 < low < high
        grid = np.geomspace(low, high, count) if geometric else np.linspace(low, high, count)
        others = (name for name in self.law.features if name != feature)
        medians = {name: np.full(count, np.median(self.rows.series.features[name])) for name in others}
        band = self._band({feature: grid, **medians}, count)
        return Curve(feature, tuple(grid.tolist()), *(tuple(limit.tolist()) for limit in band))

    def residuals(self) -> Array:
        """Rows as the person gave them about the law, (n,): y − mean, or log y − log mean under lognormal noise."""
        series = self.rows.series
        mean = self.mean(series.features or {"": np.zeros(series.y.size)})
        if self.law.noise.distribution == "normal":
            return series.y - mean
        return np.asarray(np.log(series.y) - np.log(np.maximum(mean, 1e-300)))

    def _column(self, points: Sequence[Mapping[str, float]], name: str) -> Array | None:
        """Values of a feature at the points; None where they do not all say and the law does not need it."""
        if not all(name in point for point in points):
            if name in self.law.features:
                raise DataError(
                    f"the law of {self.rows.series.name!r} depends on {name!r}, the point asked for does not say it",
                    "every point needs a value for each feature of the law",
                    f"--at {name}=1e6",
                )
            return None
        values = np.array([float(point[name]) for point in points])
        if not np.isfinite(values).all():
            raise DataError(f"{name} is not a finite number where the law is asked")
        return values

    def band(self, at: Columns) -> Band:
        """Mean and limits over all plausible laws at k points, (k,) each; ``at`` has at least one column."""
        return self._band(at, 0)

    def _band(self, asked: Columns, count: int) -> Band:
        """Union of the bands of all laws not told apart; laws of features that were not asked stay out."""
        with quiet():
            return self._union(asked or {"": np.zeros(count)})

    def _union(self, asked: Columns) -> Band:
        mean, low, high, new_low, new_high = self.plausible[0].band(asked)
        for other in self.plausible[1:]:
            if not set(other.features) <= set(asked):
                continue
            _, *limits = other.band(asked)
            low, high = np.minimum(low, limits[0]), np.maximum(high, limits[1])
            new_low, new_high = np.minimum(new_low, limits[2]), np.maximum(new_high, limits[3])
        return mean, low, high, new_low, new_high


# ---- Predictions beyond the data for a whole batch: the chosen law's mean, the union of all plausible laws'
# intervals.

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
