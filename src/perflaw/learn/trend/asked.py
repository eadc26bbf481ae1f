"""Where laws are asked: for each feature, for all at once, and the one point that predicted costs are ranked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.errors import DataError
from perflaw.learn.laws.answers import FACTORS, percentile95
from perflaw.learn.trend.given import Array, Given
from perflaw.learn.trend.options import TrendOptions

Point = Mapping[str, float]
"""Feature → value."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Points of the predictions."""

    single: Mapping[str, tuple[float, ...]]
    """Feature → values of it that its laws are asked at."""
    joint: tuple[Point, ...]
    """Points that say all features: where the law over all of them is asked."""
    rank: Point
    """Where predicted costs are ranked; it may say some features only."""
    usual: bool = False
    """These are the points that the law learner takes by itself."""


def asked(data: Given, at: Sequence[Point] | None, options: TrendOptions) -> Asked:
    """2 and 10 times the 95th percentile of each feature where the person does not say (§4.2); DataError on strangers."""
    tops = {name: top(x[~np.isnan(x)], options) for name, x in data.features.items()}
    usual = tuple({name: float(factor) * value for name, value in tops.items()} for factor in FACTORS)
    if not at:
        single = {name: tuple(point[name] for point in usual) for name in tops}
        said = data.workloads == data.counts.shape[1] and len(data.complete) == len(tops)
        return Asked(single, usual, usual[-1], said and not options.paper)
    points = [_known(point, tops) for point in at]
    single = {name: tuple(point[name] for point in points if name in point) for name in tops}
    single = {name: values or tuple(point[name] for point in usual) for name, values in single.items()}
    return Asked(single, tuple(point for point in points if len(point) == len(tops)) or usual, points[-1])


def top(x: Array, options: TrendOptions) -> float:
    """95th percentile of a feature: linear interpolation, in the paper's reading the 950th of 1000 ("largest")."""
    if options.paper:
        return float(np.sort(x)[int(np.ceil(0.95 * x.size)) - 1])
    return percentile95(x)


def _known(point: Point, tops: Mapping[str, float]) -> dict[str, float]:
    """A point of features there are."""
    for name, value in point.items():
        if name not in tops:
            there = ", ".join(tops) or "none that varies"
            example = f"--at {next(iter(tops))}=1e6" if tops else "perflaw feature NAME=VALUE RUN"
            raise DataError(f"no law is of {name!r}", f"features of these runs are {there}", example)
        if not np.isfinite(value):
            raise DataError(f"{name} is not a finite number where laws are asked")
    if not point:
        raise DataError("a point laws are asked at says no feature", "", "--at n=1e6")
    return {name: float(value) for name, value in point.items()}
