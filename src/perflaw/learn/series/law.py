"""How a law is made: the verdict on the evidence, and the noun from a mean, its noise and the series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perflaw.laws.build import lognormal, normal
from perflaw.laws.tree import Distribution, Expression
from perflaw.learn.series.series import Series
from perflaw.learn.ways import BY_RECORD, Ways
from perflaw.types import Law, Noise, Verdict

FEWEST_UNITS = 5
"""Fewest runs (or rows of a single run) that can reject independence: 1/120 is the smallest p of 5."""
FEWEST_SIZES = 3
"""Fewest distinct sizes that can show a shape."""
RELEVANT_GROWTH = 0.5
"""A constant is no finding if the data allow an exponent as large as this."""
OPEN_SHAPE = 0.75
"""Largest range of local exponents of the plausible laws for which the shape counts as known."""
Slopes = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""Local exponents by feature, their lower and their upper limits."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict rests on."""

    units: int
    """Number of runs, or of rows of a single run."""
    runs: int
    """Number of runs."""
    sizes: int
    """Number of distinct values of the feature (the most of any feature, for a constant)."""
    slopes: tuple[float, float]
    """Lowest and highest local exponent that the data allow."""
    feature: str
    """Feature to vary, for the advice; empty if there is none."""
    established: bool = True
    """The null control rejected independence."""
    varies: bool = True
    """The response varies."""
    ways: Ways = BY_RECORD
    """How a person gets more evidence, for the advice."""


def judge(evidence: Evidence) -> tuple[Verdict, str]:
    """Verdict and its reason; the reason of a law is empty except for "one run"."""
    vary, repeat = evidence.ways.vary.format(feature=evidence.feature or "n"), evidence.ways.repeat
    low, high = evidence.slopes
    start = f"add {vary} with 5 sizes over a 30-fold range and {evidence.ways.twice}"
    if evidence.sizes < 2:
        why = "no feature varies" if evidence.feature else "there is no feature"
        return ("none", f"{why}: add {vary}") if evidence.units > 1 else ("inconclusive", f"one point: {start}")
    if not evidence.varies and evidence.units >= FEWEST_UNITS:
        return "none", "the response does not vary"
    if evidence.sizes < FEWEST_SIZES:
        return "inconclusive", f"too few sizes ({evidence.sizes}): {start}"
    if evidence.units < FEWEST_UNITS:
        missing, advice = ("sizes", start) if evidence.sizes >= evidence.units else ("runs", f"add {repeat}")
        return "inconclusive", f"too few {missing} ({evidence.units}): {advice}"
    if not evidence.established:
        # A constant is a finding only if the data would have shown a growth.
        growth = max(high, -low)
        if not evidence.varies or growth < RELEVANT_GROWTH:
            return "none", "no dependence on the features found"
        why = f"no dependence found, but n^{growth:.1f} fits too"
        return "inconclusive", f"{why}: add {vary} over a wider range or {repeat}"
    if high - low > OPEN_SHAPE:
        why = f"several growth laws fit equally well, from n^{low:.1f} to n^{high:.1f}"
        return "inconclusive", f"{why}: add {vary} over a wider range"
    return "law", f"one run: add {repeat}" if evidence.runs == 1 and evidence.units > 1 else ""


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
    """The law of a series; ``verdict`` is the verdict with its reason, ``more`` are further fields.

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
        range=ranges(series),
        **more,
    )


def ranges(series: Series) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of every feature."""
    return {name: (float(x.min()), float(x.max())) for name, x in series.features.items()}


def distribution(mean: Expression, noise: Noise) -> Distribution:
    """The distribution of responses about a mean, under normal or lognormal noise.

    ``Norm(m, s)`` has mean m and standard deviation s; ``LogNorm(m, s)`` has mean m and standard deviation s of its
    logarithm.
    """
    return lognormal(mean, noise.scale) if noise.distribution == "lognormal" else normal(mean, noise.scale)
