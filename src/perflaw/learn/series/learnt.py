"""A learnt law: the claim, and the functions behind it that give means and intervals anywhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from perflaw.errors import DataError
from perflaw.learn.series.model import Band, FittedModel, widest
from perflaw.learn.series.series import Array, Rows, Series, quiet
from perflaw.types import Curve, Law, Prediction

Columns = Mapping[str, Array]
"""Values of features by name, (k,) each; at least one column, from which laws without features take k."""
PredictionPoints = Sequence[Mapping[str, float]] | None
"""Points with values of features; None: the default points of a series."""
FACTORS = np.array([2.0, 10.0])
"""Predictions are made at these multiples of the 95th percentile of every feature."""


class Predictor(Protocol):
    """A law as a function: its mean and its intervals at k points."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features it depends on; empty for a constant."""

    def mean(self, at: Columns) -> Array:
        """Expected response, (k,), never negative; ``at`` has (at least) its features."""

    def band(self, at: Columns) -> Band:
        """Mean, its lower and upper limit, those of a new row; (k,) each, finite, none negative."""


def column_or_zeros(at: Columns, feature: str) -> Array:
    """Values of a feature, or zeros, (k,), for a law without one (``feature`` is empty)."""
    return at[feature] if feature else np.zeros_like(next(iter(at.values())))


@dataclass(frozen=True, slots=True)
class SingleFeatureLaw:
    """A law of one feature at most, as :class:`Predictor`."""

    feature: str
    """Feature it depends on; empty for a constant."""
    batch: FittedModel
    """Its model fitted to several series."""
    index: int
    """Place of the law's series there."""

    @property
    def fitted(self) -> FittedModel:
        """The fit of this law."""
        return self.batch.row(self.index)

    @property
    def features(self) -> tuple[str, ...]:
        """Its feature, if it has one."""
        return (self.feature,) if self.feature else ()

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        return self.fitted.mean(column_or_zeros(at, self.feature))

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each."""
        return self.fitted.band(column_or_zeros(at, self.feature))


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A law with what is needed to predict from it."""

    law: Law
    """The claim."""
    plausible: tuple[Predictor, ...]
    """The chosen law first, then those that fit equally well: intervals are their union."""
    rows: Rows
    """The data it was learnt from."""

    def predict(self, points: Sequence[Mapping[str, float]]) -> list[Prediction]:
        """Predictions at points, each of which has a value for (at least) the law's features.

        Raises DataError if a feature of the law is missing or not a finite number.
        """
        if not points:
            return []
        return named_predictions(points, self.band(self.columns(points)))

    def columns(self, points: Sequence[Mapping[str, float]]) -> Columns:
        """Values of features at points, as bands need them; raises DataError as :meth:`predict`."""
        columns: dict[str, Array] = {}
        for name in self.rows.names:
            if all(name in point for point in points):
                columns[name] = np.array([float(point[name]) for point in points])
                if not np.isfinite(columns[name]).all():
                    what = f"{name} is not a finite number where the law is asked"
                    raise DataError(what, "it is nan or infinite", f"--at {name}=1e6")
            elif name in self.law.features:
                raise DataError(
                    f"the law of {self.rows.series.name!r} depends on {name!r}, the point asked for does not say it",
                    "every point needs a value for each feature of the law",
                    f"--at {name}=1e6",
                )
        return columns or {"": np.zeros(len(points))}

    def with_predictions(self, points: PredictionPoints) -> Learnt:
        """The law with its predictions at points; None: at the default points of its series."""
        predictions = self.predict(default_points(self.rows.series) if points is None else points)
        return replace(self, law=replace(self.law, predictions=tuple(predictions)))

    def widened(self, others: Sequence[Predictor]) -> Learnt:
        """The law with further laws that fit equally well; the limits of its predictions are widened to theirs.

        The points of its predictions have a value for each of their features.
        """
        predictions = list(self.law.predictions)
        if predictions and others:
            features = {feature for law in others for feature in law.features} or {*predictions[0].features}
            columns = {name: np.array([one.features[name] for one in predictions]) for name in features}
            with quiet():
                bands = [law.band(columns) for law in others]
            middle = np.array([one.mean for one in predictions])
            limits = np.array([[one.mean_low, one.mean_high, one.new_low, one.new_high] for one in predictions]).T
            points = [one.features for one in predictions]
            predictions = named_predictions(points, widest([(middle, *limits), *bands]))
        law = replace(self.law, predictions=tuple(predictions))
        return Learnt(law, (*self.plausible, *others), self.rows)

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

    def band(self, at: Columns) -> Band:
        """Mean and limits over all plausible laws at k points, (k,) each; ``at`` has at least one column.

        Plausible laws of features that ``at`` lacks stay out.
        """
        chosen, *others = self.plausible
        with quiet():
            return widest([chosen.band(at), *(law.band(at) for law in others if set(law.features) <= at.keys())])

    def curve(self, feature: str, low: float, high: float, count: int = 60) -> Curve:
        """The law over a grid of one feature, others at their medians; DataError if it does not depend on the feature.

        The grid is geometric if both ends are positive.
        """
        if self.law.features and feature not in self.law.features:
            why = f"it depends on {', '.join(self.law.features)}"
            what = f"the law of {self.rows.series.name!r} does not depend on {feature!r}"
            raise DataError(what, why, f"ask for its curve over {self.law.features[0]}")
        grid = np.geomspace(low, high, count) if 0 < low < high else np.linspace(low, high, count)
        others = (name for name in self.law.features if name != feature)
        medians = {name: np.full(count, np.median(self.rows.series.features[name])) for name in others}
        band = self.band({feature: grid, **medians})
        return Curve(feature, tuple(grid.tolist()), *(tuple(limit.tolist()) for limit in band))

    def residuals(self) -> Array:
        """Residuals of the rows as they were given, (n,): y − mean, or log y − log mean under lognormal noise."""
        series = self.rows.series
        mean = self.mean(series.features or {"": np.zeros(series.y.size)})
        if self.law.noise.distribution == "normal":
            return series.y - mean
        return np.asarray(np.log(series.y) - np.log(np.maximum(mean, 1e-300)))


def named_predictions(points: Sequence[Mapping[str, float]], band: Band) -> list[Prediction]:
    """Predictions at k points whose means and limits are a band's."""
    limits = zip(*(limit.tolist() for limit in band), strict=True)
    return [Prediction(dict(point), *five) for point, five in zip(points, limits, strict=True)]


def bands_at_once(laws: Sequence[Learnt], at: Sequence[Columns]) -> list[Band]:
    """The band of every law at as many points of its own, as :meth:`Learnt.band`: one call per model, not per law."""
    cells: dict[int, list[tuple[int, int, SingleFeatureLaw]]] = defaultdict(list)
    bands: list[dict[int, Band]] = [{} for _ in laws]
    with quiet():
        for i, (learnt, columns) in enumerate(zip(laws, at, strict=True)):
            for place, law in enumerate(learnt.plausible):
                if isinstance(law, SingleFeatureLaw):
                    if not law.feature or law.feature in columns:
                        cells[id(law.batch)].append((i, place, law))
                elif place == 0 or set(law.features) <= at[i].keys():
                    bands[i][place] = law.band(columns)
        for members in cells.values():
            x = np.array([column_or_zeros(at[i], law.feature) for i, _, law in members])
            limits = np.array(members[0][2].batch.row(np.array([law.index for _, _, law in members])).band(x))
            for j, (i, place, _) in enumerate(members):
                mean, low, high, new_low, new_high = limits[:, j]
                bands[i][place] = mean, low, high, new_low, new_high
        return [widest([mine[place] for place in sorted(mine)]) for mine in bands]


@dataclass(frozen=True, slots=True)
class BatchPredictions:
    """Predictions of B series at the default points, widened law by law: one call per model, not per series."""

    names: Sequence[tuple[str, ...]]
    """Features of every series."""
    points: Array
    """Values of the features at the default points, (B, F, P)."""
    limits: Array
    """Mean, its limits and those of a new row, (5, B, P)."""

    @classmethod
    def empty(cls, rows: Sequence[Rows]) -> BatchPredictions:
        """Predictions before any law is known."""
        top = np.array([[percentile95(x) for x in row.series.features.values()] or [0.0] for row in rows])
        limits = np.empty((5, len(rows), FACTORS.size))
        limits[1::2], limits[2::2], limits[0] = np.inf, -np.inf, 0.0
        return cls([row.names for row in rows], top[..., None] * FACTORS, limits)

    def widen(self, law: FittedModel, cells: Sequence[tuple[int, int, float, bool]]) -> None:
        """Include one model fitted to cells (series, feature, score difference, whether it is the chosen law)."""
        series, feature = np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
        band = law.band(self.points[series, feature])
        for place in (1, 3):
            np.minimum.at(self.limits[place], series, band[place])
            np.maximum.at(self.limits[place + 1], series, band[place + 1])
        chosen = np.array([cell[3] for cell in cells])
        self.limits[0, series[chosen]] = band[0][chosen]

    def of(self, b: int) -> list[Prediction]:
        """Predictions of one series."""
        names = self.names[b]
        values, limits = self.points[b, : len(names)].T.tolist(), self.limits[:, b].T.tolist()
        named = (dict(zip(names, point, strict=True)) for point in values)
        return [Prediction(features, *five) for features, five in zip(named, limits, strict=True)]


def default_points(series: Series) -> list[dict[str, float]]:
    """Points of the predictions nobody asked for: multiples of the 95th percentile of every feature."""
    tops = {name: percentile95(x) for name, x in series.features.items()}
    return [{name: factor * top for name, top in tops.items()} for factor in FACTORS.tolist()]


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
