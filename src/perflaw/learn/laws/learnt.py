"""A law that can be asked: the claim, and the functions behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from perflaw.errors import DataError
from perflaw.learn.laws.band import Band, Fitted
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Array, quiet
from perflaw.types import Curve, Law, Prediction


@dataclass(frozen=True, slots=True)
class Plausible:
    """A law that the data cannot tell from the chosen one, or that one itself."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A law with what is needed to ask it anywhere."""

    law: Law
    """The claim."""
    plausible: tuple[Plausible, ...]
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
        """Expected response at values of the law's feature, (k,) -> (k,); never negative.

        ``x`` maps features to values, or is the values of the law's only feature.
        """
        chosen = self.plausible[0]
        if isinstance(x, Mapping):
            x = x[chosen.feature] if chosen.feature else next(iter(x.values()), np.zeros(1))
        with quiet():
            return chosen.law.mean(np.atleast_1d(np.asarray(x, dtype=np.float64)))

    def curve(self, feature: str, low: float, high: float, count: int = 60) -> Curve:
        """The law over a grid of its feature, geometric where both ends are positive; DataError for another one."""
        if self.law.features and feature not in self.law.features:
            raise DataError(
                f"the law of {self.rows.series.name!r} does not depend on {feature!r}",
                f"it depends on {', '.join(self.law.features)}",
            )
        geometric = 0 < low < high
        grid = np.geomspace(low, high, count) if geometric else np.linspace(low, high, count)
        band = self._band({feature: grid}, count)
        return Curve(feature, tuple(grid.tolist()), *(tuple(limit.tolist()) for limit in band))

    def residuals(self) -> Array:
        """Rows as the person gave them about the law, (n,): y − mean, or log y − log mean under lognormal noise."""
        series, chosen = self.rows.series, self.plausible[0]
        x = series.features[chosen.feature] if chosen.feature else np.zeros(series.y.size)
        mean = self.mean(x)
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

    def _band(self, asked: Mapping[str, Array], count: int) -> Band:
        """Union of the bands of all laws not told apart; laws of features that were not asked stay out."""
        with quiet():
            return self._union(asked, count)

    def _union(self, asked: Mapping[str, Array], count: int) -> Band:
        mean, low, high, new_low, new_high = self.plausible[0].law.band(self._at(self.plausible[0], asked, count))
        for other in self.plausible[1:]:
            if other.feature and other.feature not in asked:
                continue
            _, *limits = other.law.band(self._at(other, asked, count))
            low, high = np.minimum(low, limits[0]), np.maximum(high, limits[1])
            new_low, new_high = np.minimum(new_low, limits[2]), np.maximum(new_high, limits[3])
        return mean, low, high, new_low, new_high

    @staticmethod
    def _at(law: Plausible, asked: Mapping[str, Array], count: int) -> Array:
        return asked[law.feature] if law.feature else np.zeros(count)
