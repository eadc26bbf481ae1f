"""Laws as Freud §3.2 prints them, for ``--paper``: multiple regressions of four classes; the least BIC above an R² wins.

The classes are constant, x, x log x and x². Of each, features with a large p are dropped one by one. Intervals are
bootstrap percentiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.confidence import HIGH, LOW, normal_quantile
from perflaw.laws.build import combination
from perflaw.laws.catalogue import CONSTANT, FAMILIES, Family
from perflaw.laws.tree import Name
from perflaw.learn.cells import Array
from perflaw.learn.series import Learnt, Series
from perflaw.learn.series.law import new_law
from perflaw.learn.series.model import Band
from perflaw.learn.series.series import prepare
from perflaw.special import stdtr
from perflaw.types import Law, Noise

CLASSES = tuple(family for family in FAMILIES if family.paper)
"""The classes besides the constant."""
MAX_P = 0.01
"""A feature whose coefficient has a larger p is dropped."""
EQUIVALENT = 0.9
"""Features of a larger correlation form an equivalence class with one representative."""
REPEATS = 200
"""Number of bootstrap samples."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A linear regression on one class of functions of some features, as a law that predicts."""

    family: Family
    """The class."""
    features: tuple[str, ...]
    """Its features."""
    coefficients: Array
    """Intercept, then one for each feature; (1 + F,)."""
    repeats: Array
    """Coefficients of the bootstrap samples, (REPEATS, 1 + F)."""
    scale: float
    """Standard deviation of the residuals."""

    def mean(self, at: Mapping[str, Array]) -> Array:
        """Expected response, (k,), never negative."""
        return np.maximum(design(self.family, self.features, at) @ self.coefficients, 0.0)

    def band(self, at: Mapping[str, Array]) -> Band:
        """Mean, percentiles of its bootstrap distribution, and those with the residuals' scatter; (k,) each."""
        means = design(self.family, self.features, at) @ self.repeats.T
        low, high = np.percentile(means, [100 * LOW, 100 * HIGH], axis=1)
        reach = normal_quantile(2) * self.scale
        mean = self.mean(at)
        limits = (low, high, low - reach, high + reach)
        return (mean, *(np.maximum(limit, 0.0) for limit in limits))


def design(family: Family, names: Sequence[str], at: Mapping[str, Array]) -> Array:
    """Columns of a regression, (k, 1 + F): ones, then the class's function of each feature."""
    count = len(next(iter(at.values())))
    return np.column_stack([np.ones(count), *(family.shape.value(at[name]) for name in names)])


def learn_paper(series: Sequence[Series], good_r2: float) -> list[Learnt]:
    """The law of each series; a constant if no regression reaches the R²."""
    return [_learn(one, good_r2) for one in series]


def _learn(series: Series, good_r2: float) -> Learnt:
    # One feature of each equivalence class.
    kept: list[str] = []
    for name in sorted(series.features, key=lambda name: (name.count("."), len(name))):
        x = series.features[name]
        known = (series.features[other] for other in kept)
        if np.ptp(x) > 0 and not any(abs(np.corrcoef(x, other)[0, 1]) >= EQUIVALENT for other in known):
            kept.append(name)
    names = tuple(kept)
    total = float(((series.y - series.y.mean()) ** 2).sum())

    def r2(law: Regression) -> float:
        residual = series.y - design(law.family, law.features, series.features) @ law.coefficients
        return 1.0 - float(residual @ residual) / total if total > 0 else 0.0

    def bic(law: Regression) -> float:
        n = series.y.size
        return float(2.0 * n * np.log(law.scale) + law.coefficients.size * np.log(n))

    candidates = [_eliminate(series, family, names) for family in CLASSES]
    good = [law for law in candidates if law.features and r2(law) >= good_r2]
    chosen = min(good, key=bic) if good else _fit(series, CONSTANT, ())
    rows = prepare(series)
    law = _law(series, chosen, r2(chosen) if good else 0.0, rows.runs)
    return Learnt(law, (chosen,), rows).with_predictions(None)


def _eliminate(series: Series, family: Family, names: tuple[str, ...]) -> Regression:
    """The regression of a class without the features of a large p."""
    while names:
        # Two-sided p of each coefficient, by t tests.
        x, _ = _scaled_design(series, family, names)
        freedom = series.y.size - x.shape[1]
        if freedom <= 0:
            p = [1.0] * len(names)
        else:
            beta, *_ = np.linalg.lstsq(x, series.y, rcond=None)
            residual = series.y - x @ beta
            variance = max(float(residual @ residual) / freedom, series.quantum**2 / 12.0, 1e-300)
            error = np.sqrt(variance * np.diag(np.linalg.pinv(x.T @ x)))
            t = np.abs(beta) / np.maximum(error, 1e-300)
            p = [float(2.0 * stdtr(freedom, -value)) for value in t[1:]]
        if max(p) <= MAX_P:
            return _fit(series, family, names)
        names = tuple(name for i, name in enumerate(names) if i != int(np.argmax(p)))
    return _fit(series, CONSTANT, ())


def _scaled_design(series: Series, family: Family, names: Sequence[str]) -> tuple[Array, Array]:
    """Columns of a regression divided by their sizes, (n, 1 + F), and these, (1 + F,)."""
    columns = np.column_stack([np.ones(series.y.size), *(family.shape.value(series.features[name]) for name in names)])
    size = np.abs(columns).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    return columns / size, size


def _fit(series: Series, family: Family, names: tuple[str, ...]) -> Regression:
    """Least squares with its bootstrap, whose seed is the shape of the data."""
    (x, size), n = _scaled_design(series, family, names), series.y.size
    beta, *_ = np.linalg.lstsq(x, series.y, rcond=None)
    residual = series.y - x @ beta
    drawn = np.random.default_rng([n, len(names)]).integers(0, n, (REPEATS, n))
    gram = np.einsum("rni,rnj->rij", x[drawn], x[drawn])
    repeats = np.einsum("rij,rnj,rn->ri", np.linalg.pinv(gram), x[drawn], series.y[drawn])
    variance = float(residual @ residual) / max(n - x.shape[1], 1)
    scale = float(np.sqrt(max(variance, series.quantum**2 / 12.0)))
    return Regression(family, names, beta / size, repeats / size, scale)


def _law(series: Series, regression: Regression, r2: float, runs: int) -> Law:
    intercept, *others = regression.coefficients.tolist()
    family, names = regression.family, regression.features
    terms = [(c, family.factors(Name(name), 0.0)) for c, name in zip(others, names, strict=True)]
    # Local exponents at the largest values.
    ends = {name: np.array([float(x.max()) * (1 - 1e-6), float(x.max())]) for name, x in series.features.items()}
    slope = {}
    for name in names:
        y = regression.mean({other: np.full(2, x[1]) for other, x in ends.items()} | {name: ends[name]})
        positive = y.min() > 0 and ends[name][0] > 0
        slope[name] = float(np.log(y[1] / y[0]) / np.log(ends[name][1] / ends[name][0])) if positive else 0.0
    several = len(names) > 1
    return new_law(
        series,
        runs,
        family="sum" if several else family.name,
        mean=combination([(intercept, []), *terms]),
        noise=Noise("normal", regression.scale),
        slopes=(slope, slope, slope),
        verdict=("law", "") if names else ("none", "no regression explains enough of the variance"),
        r2=r2,
        coefficient=others[0] if others else intercept,
        intercept=intercept if names else None,
        exponents=(None, None) if several else family.exponents(0.0),
    )
