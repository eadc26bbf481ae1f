"""Laws as Freud §3.2 prints them, for ``--paper``: multiple regressions of four classes, the least BIC above an R².

Classes: constant, x, x log x, x². Of each, features of weak p are dropped one by one. Intervals: bootstrap percentiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from perflaw.confidence import HIGH, LOW, normal_quantile
from perflaw.laws.build import combination
from perflaw.laws.catalogue import CONSTANT, FAMILIES, Family
from perflaw.laws.tree import Name
from perflaw.learn.cells import Array
from perflaw.learn.series import Learnt, Series
from perflaw.learn.series.band import Band
from perflaw.learn.series.law import new_law
from perflaw.learn.series.prepare import prepare
from perflaw.types import Law, Noise

CLASSES = tuple(one for one in FAMILIES if one.paper)
"""Classes besides the constant."""
WEAK = 0.01
"""A feature whose coefficient's p is larger leaves the regression."""
ALIKE = 0.9
"""Correlation from which features form an equivalence class with one representative."""
REPEATS = 200
"""Bootstrap samples."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A linear regression on one class of functions of some features, as a law that can be asked."""

    family: Family
    """Class."""
    features: tuple[str, ...]
    """Features in it."""
    coefficients: Array
    """Intercept, then one a feature; (1 + F,)."""
    repeats: Array
    """The same of bootstrap samples, (REPEATS, 1 + F)."""
    scale: float
    """Standard deviation of the residuals."""

    def mean(self, at: Mapping[str, Array]) -> Array:
        """Expected response, (k,), never negative."""
        return np.maximum(self.design(at) @ self.coefficients, 0.0)

    def band(self, at: Mapping[str, Array]) -> Band:
        """Mean, percentiles of its bootstrap distribution, and those with the residuals' scatter; (k,) each."""
        means = self.design(at) @ self.repeats.T
        low, high = np.percentile(means, [100 * LOW, 100 * HIGH], axis=1)
        reach = normal_quantile(2) * self.scale
        mean = self.mean(at)
        limits = (low, high, low - reach, high + reach)
        return (mean, *(np.maximum(limit, 0.0) for limit in limits))

    def design(self, at: Mapping[str, Array]) -> Array:
        """Columns of the regression, (k, 1 + F)."""
        count = len(next(iter(at.values())))
        return np.column_stack([np.ones(count), *(self.family.shape.value(at[name]) for name in self.features)])


def learn_paper(series: Sequence[Series], good_r2: float) -> list[Learnt]:
    """The law of each series; a constant where no regression reaches the R²."""
    return [_learn(one, good_r2) for one in series]


def _learn(series: Series, good_r2: float) -> Learnt:
    names = _representatives(series)
    found = [one for one in (_eliminated(series, family, names) for family in CLASSES) if one.features]
    rated = [(one, _r2(series, one)) for one in found]
    good = [(one, r2) for one, r2 in rated if r2 >= good_r2]
    constant = _fitted(series, CONSTANT, ())
    chosen, r2 = min(good, key=lambda pair: _bic(series, pair[0]), default=(constant, 0.0))
    rows = prepare(series)
    law = _law(series, chosen, r2, rows.runs)
    points = [{name: k * float(np.percentile(x, 95)) for name, x in series.features.items()} for k in (2, 10)]
    predictions = Learnt(law, (chosen,), rows).predict(points)
    return Learnt(replace(law, predictions=tuple(predictions)), (chosen,), rows)


def _representatives(series: Series) -> tuple[str, ...]:
    """One feature of each equivalence class: the shallowest, then the shortest name."""
    kept: list[str] = []
    for name in sorted(series.features, key=lambda name: (name.count("."), len(name))):
        x = series.features[name]
        if np.ptp(x) > 0 and not any(abs(np.corrcoef(x, series.features[other])[0, 1]) >= ALIKE for other in kept):
            kept.append(name)
    return tuple(kept)


def _eliminated(series: Series, family: Family, names: tuple[str, ...]) -> Regression:
    """The regression of a class when every feature left has a small p."""
    while names:
        p = _p_values(series, family, names)
        if max(p) <= WEAK:
            break
        names = tuple(name for i, name in enumerate(names) if i != int(np.argmax(p)))
    return _fitted(series, family if names else CONSTANT, names)


def _design(series: Series, family: Family, names: tuple[str, ...]) -> Array:
    return np.column_stack([np.ones(series.y.size), *(family.shape.value(series.features[name]) for name in names)])


def _sizes(design: Array) -> Array:
    size = np.abs(design).max(axis=0)
    return np.where(size > 0, size, 1.0)


def _p_values(series: Series, family: Family, names: tuple[str, ...]) -> list[float]:
    """Two-sided p of each coefficient (t test)."""
    design = _design(series, family, names)
    freedom = series.y.size - design.shape[1]
    if freedom <= 0:
        return [1.0] * len(names)
    size = _sizes(design)
    beta, *_ = np.linalg.lstsq(design / size, series.y, rcond=None)
    rest = series.y - design / size @ beta
    variance = max(float(rest @ rest) / freedom, series.quantum**2 / 12.0, 1e-300)
    error = np.sqrt(variance * np.diag(np.linalg.pinv((design / size).T @ (design / size))))
    t = np.abs(beta) / np.maximum(error, 1e-300)
    return [float(2.0 * stdtr(freedom, -value)) for value in t[1:]]


def _fitted(series: Series, family: Family, names: tuple[str, ...]) -> Regression:
    """Least squares with its bootstrap (seeded by the shape of the data alone)."""
    design, n = _design(series, family, names), series.y.size
    size = _sizes(design)
    beta, *_ = np.linalg.lstsq(design / size, series.y, rcond=None)
    rest = series.y - design / size @ beta
    drawn = np.random.default_rng([n, len(names)]).integers(0, n, (REPEATS, n))
    x, y = (design / size)[drawn], series.y[drawn]
    gram = np.einsum("rni,rnj->rij", x, x)
    repeats = np.einsum("rij,rnj,rn->ri", np.linalg.pinv(gram), x, y)
    scale = float(np.sqrt(max(float(rest @ rest) / max(n - design.shape[1], 1), series.quantum**2 / 12.0)))
    return Regression(family, names, beta / size, repeats / size, scale)


def _r2(series: Series, law: Regression) -> float:
    rest = series.y - law.design(series.features) @ law.coefficients
    total = float(((series.y - series.y.mean()) ** 2).sum())
    return 1.0 - float(rest @ rest) / total if total > 0 else 0.0


def _bic(series: Series, law: Regression) -> float:
    n = series.y.size
    return float(2.0 * n * np.log(law.scale) + law.coefficients.size * np.log(n))


def _law(series: Series, law: Regression, r2: float, runs: int) -> Law:
    intercept, *others = law.coefficients.tolist()
    terms = [(c, law.family.factors(Name(name), 0.0)) for c, name in zip(others, law.features, strict=True)]
    ends = {name: np.array([float(x.max()) * (1 - 1e-6), float(x.max())]) for name, x in series.features.items()}
    slope = {name: _slope(law, ends, name) for name in law.features}
    several = len(law.features) > 1
    return new_law(
        series,
        runs,
        family="sum" if several else law.family.name,
        mean=combination([(intercept, []), *terms]),
        noise=Noise("normal", law.scale),
        slopes=(slope, slope, slope),
        verdict=("law", "") if law.features else ("none", "no regression explains enough of the variance"),
        r2=r2 if law.features else 0.0,
        coefficient=others[0] if others else intercept,
        intercept=intercept if law.features else None,
        exponents=(None, None) if several else law.family.exponents(0.0),
    )


def _slope(law: Regression, ends: Mapping[str, Array], name: str) -> float:
    """Local exponent at the largest values."""
    at = {other: np.full(2, x[1]) for other, x in ends.items()} | {name: ends[name]}
    y = law.mean(at)
    if y.min() <= 0 or ends[name][0] <= 0:
        return 0.0
    return float(np.log(y[1] / y[0]) / np.log(ends[name][1] / ends[name][0]))
