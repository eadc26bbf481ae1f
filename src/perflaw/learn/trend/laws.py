"""Laws of the clusters' costs, by the law learner: each feature by itself, and all of them at once.

Clusters that are costly, or among the first by cost or predicted cost, are learnt in full. The many others, which no
one may ever look at, get a smooth law for every feature: 1,500 clusters of 785 runs are a matter of a minute that way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError
from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series.learnt import FACTORS, percentile95
from perflaw.learn.trend.inputs import CONFIDENCE, Array, Given, TrendOptions
from perflaw.types import Law, Prediction

# ---- Where laws are asked: for each feature, for all at once, and the one point that predicted costs are ranked at.

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


def law_options(workloads: int, *, full: bool) -> LawOptions:
    """How the learner is asked about costs over so many workloads.

    Exponents of real programs over real workloads are not round (1.21, 1.13, 0.76 in the paper), while the learner
    leaves a line without a rival once a power law is 2 worse, which costs log n for its free exponent. With the
    usual limit 77–86 % of intervals at 2 and 10 times the 95th percentile covered bytes^b of an odd b, with log n 95.
    """
    delta = max(2.0, float(np.log(workloads)))
    return LawOptions(confidence=CONFIDENCE, delta=delta, regimes=full, several=full)


@dataclass(frozen=True, slots=True)
class ClusterLaws:
    """What was learnt of one cluster's cost."""

    single: Mapping[str, Learnt]
    """Feature → law of it alone."""
    joint: Learnt | None
    """Law over all features; None where there is none."""
    full: bool
    """Breakpoints and the joint law were looked for; else ``joint`` is the best of ``single``."""

    @property
    def grown(self) -> Mapping[str, Learnt]:
        """Laws that say how the cost grows: not those that only stand in for one (a mean of what is inconclusive)."""
        return {name: one for name, one in self.single.items() if one.law.features or one.law.verdict != "inconclusive"}

    def predicted(self, point: Point) -> tuple[Prediction, Law] | None:
        """Cost at a point and the law that says it; None where there is none.

        That is the joint law where the point says what it depends on, else the best one of a feature that it says.
        """
        if self.joint is None:
            return None
        needed = set(self.joint.law.features)
        law = self.joint if needed <= set(point) else best({name: self.single[name] for name in point})
        return _answered(law.law, point) or law.predict([point])[0], law.law


def _answered(law: Law, point: Point) -> Prediction | None:
    """The answer a law has already given at a point, None where it was not asked there."""
    for one in reversed(law.predictions):
        if all(one.features[name] == point.get(name) for name in one.features):
            return replace(one, features=point)
    return None


def learn_laws(
    costs: Array, names: Sequence[str], first: NDArray[np.bool_], data: Given, asked: Asked, options: TrendOptions
) -> list[ClusterLaws]:
    """Laws of C clusters in descending cost, (C, R); those that are ``first`` (C,) are learnt in full whatever else."""
    if not data.features:
        return [ClusterLaws({}, None, True)] * len(costs)
    if len(costs) <= options.full:
        return _learn(costs, names, data, asked, full=True)
    out = _learn(costs, names, data, asked, full=False)
    answers = [laws.predicted(asked.rank) for laws in out]
    expected = np.argsort([-answer[0].mean if answer else 0.0 for answer in answers], kind="stable")
    chosen = first.copy()
    chosen[: options.full] = True
    chosen[expected[: options.full // 2]] = True
    places = np.flatnonzero(chosen).tolist()
    again = _learn(costs[places], [names[c] for c in places], data, asked, full=True)
    for place, one in zip(places, again, strict=True):
        out[place] = one
    return out


def best(laws: Mapping[str, Learnt]) -> Learnt:
    """The law that claims most: of a dependence before others, then by R²; the first of equals."""
    return max(laws.values(), key=lambda one: (_claim(one.law), one.law.r2 or 0.0))


def _claim(law: Law) -> int:
    return {"law": 2, "inconclusive": 1, "none": 0}[law.verdict]


def _learn(costs: Array, names: Sequence[str], data: Given, asked: Asked, *, full: bool) -> list[ClusterLaws]:
    """All of them the same way."""
    options = law_options(data.workloads, full=full)
    single: list[dict[str, Learnt]] = [{} for _ in costs]
    for name, x in data.features.items():
        # Where nothing was asked the learner answers all series at once at the points that are usual.
        points = None if asked.usual else [{name: value} for value in asked.single[name]]
        found = learn(_series(costs, names, {name: x}, data), points, options)
        for laws, one in zip(single, found, strict=True):
            laws[name] = one
    together = _together(data)
    if not full or len(together) < 2:
        return [ClusterLaws(laws, best(laws), full) for laws in single]
    joint = learn(_series(costs, names, together, data), None if asked.usual else list(asked.joint), options)
    return [ClusterLaws(laws, one, full) for laws, one in zip(single, joint, strict=True)]


def _together(data: Given) -> Mapping[str, Array]:
    """Features for the joint law: all, or where too few runs say them all those that every run says."""
    said = ~np.isnan(np.array(list(data.features.values()))).any(axis=0)
    return data.features if said.sum() >= max(said.size / 2, 3) else data.complete


def _series(costs: Array, names: Sequence[str], features: Mapping[str, Array], data: Given) -> list[Series]:
    """A series a cluster: of the runs that say the features.

    Counts of a deterministic program repeat exactly where a workload repeats: one run of each tells all. Where
    they differ the learner is told which runs belong together.
    """
    said = ~np.isnan(np.array(list(features.values()))).any(axis=0)
    workload = data.workload[said]
    y, x = costs[:, said], {name: values[said] for name, values in features.items()}
    _, begin, inverse = np.unique(workload, return_index=True, return_inverse=True)
    keep, back = np.sort(begin), begin[inverse]
    repeats = keep.size < workload.size
    steady = all(np.array_equal(values, values[back]) for values in x.values())
    alike = (y == y[:, back]).all(axis=1) & (repeats and steady)
    first = {name: values[keep] for name, values in x.items()}
    # Counts are whole numbers; a matrix of something else has no tick that we know.
    quantum = 1.0 if bool((costs == np.rint(costs)).all()) else 0.0
    return [
        Series(name, row[keep], first, None, None, quantum)
        if one
        else Series(name, row, x, workload if repeats else None, None, quantum)
        for name, row, one in zip(names, y, alike, strict=True)
    ]


def residuals(learnt: Learnt, costs: Array, x: Array, name: str) -> tuple[float | None, ...]:
    """Log cost − log law in each run, (R,); None where either has no logarithm or the run does not say the feature."""
    said = ~np.isnan(x)
    mean = np.zeros(x.size)
    mean[said] = learnt.mean({name: x[said]})
    fine = (mean > 0) & (costs > 0)
    values = np.log(np.where(fine, costs, 1.0)) - np.log(np.where(fine, mean, 1.0))
    return tuple(value if some else None for value, some in zip(values.tolist(), fine.tolist(), strict=True))
