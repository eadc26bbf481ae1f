"""One way to make a law: from its mean as an expression, its noise, and the series it was learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.laws.build import combination, lognormal, normal
from perflaw.laws.catalogue import CONSTANT
from perflaw.laws.tree import Distribution, Expression, Name
from perflaw.learn.series.model import Model
from perflaw.learn.series.series import Series
from perflaw.types import Law, Noise, Verdict

Slopes = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""Local exponents by feature, their lower and their upper limits."""


def new_law(
    series: Series,
    runs: int,
    *,
    family: str,
    mean: Expression,
    noise: Noise,
    slopes: Slopes,
    verdict: tuple[Verdict, str],
    r2: float | None,
    coefficient: float,
    intercept: float | None = None,
    exponents: tuple[float | None, float | None] = (None, None),
    **more: Any,
) -> Law:
    """A law of a series; ``verdict`` is the verdict with its reason, ``more`` are further fields.

    Its features are those of ``slopes`` unless ``more`` says otherwise.
    """
    slope, low, high = slopes
    return Law(
        family=family,
        expression=distribution(mean, noise),
        mean=mean,
        features=more.pop("features", tuple(slope)),
        slope=slope,
        slope_low=low,
        slope_high=high,
        noise=noise,
        n=series.y.size,
        runs=runs,
        r2=r2,
        verdict=verdict[0],
        reason=verdict[1],
        exponent=exponents[0],
        log_exponent=exponents[1],
        coefficient=coefficient,
        intercept=intercept,
        range={name: (float(x.min()), float(x.max())) for name, x in series.features.items()},
        **more,
    )


def distribution(mean: Expression, noise: Noise) -> Distribution:
    """The distribution of responses about a mean, under normal or lognormal noise.

    ``Norm(m, s)`` has mean m and standard deviation s; ``LogNorm(m, s)`` has mean m and standard deviation s of its
    logarithm.
    """
    return lognormal(mean, noise.scale) if noise.distribution == "lognormal" else normal(mean, noise.scale)


def mean_of(model: Model, feature: str, intercept: float, coefficient: float, parameter: float) -> Expression:
    """Mean of a law of one feature such as ``53350.3 - 2.1*s + 0.12*s*log(s)``.

    ``parameter`` is the learnt parameter of the family as it is printed.
    """
    if model.family is CONSTANT:
        return combination([(coefficient, ())])
    term = (coefficient, model.family.factors(Name(feature), parameter))
    return combination([(intercept, ()), term] if model.intercept else [term])
