"""Laws of the clusters' costs, by the law learner, in each feature and in all at once; and where costs overtake others.

Clusters that are costly, or among the first by cost or predicted cost, are learnt in full. The many others, which
nobody may ever look at, get a smooth law for every feature: 1,500 clusters of 785 runs take a minute that way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import LEVEL
from perflaw.errors import DataError
from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series.learnt import FACTORS, percentile95
from perflaw.learn.trend.data import Array, TrendData, TrendOptions
from perflaw.types import Law, Overtake, PowerLaw, Prediction

Point = Mapping[str, float]
"""Feature → value."""


@dataclass(frozen=True, slots=True)
class PredictionPoints:
    """The points at which laws predict."""

    single: Mapping[str, tuple[float, ...]]
    """Feature → values at which the laws of this feature alone predict."""
    joint: tuple[Point, ...]
    """Points with a value for every feature, at which laws over all features predict."""
    rank: Point
    """Point whose predicted costs rank the clusters; it may have only some of the features."""
    default: bool = False
    """These are the points that the law learner takes by itself."""


def prediction_points(data: TrendData, at: Sequence[Point] | None, options: TrendOptions) -> PredictionPoints:
    """The points ``at``; without them 2 and 10 times the 95th percentile of each feature (§4.2).

    Raises DataError for a point with an unknown feature, without features, or with a value that is not finite.
    """
    read = {name: x[~np.isnan(x)] for name, x in data.features.items()}
    tops = {
        # The paper takes the order statistic (950th of 1000), others the percentile by linear interpolation.
        name: float(np.sort(x)[int(np.ceil(0.95 * x.size)) - 1]) if options.paper else percentile95(x)
        for name, x in read.items()
    }
    usual = tuple({name: float(factor) * value for name, value in tops.items()} for factor in FACTORS)
    if not at:
        single = {name: tuple(point[name] for point in usual) for name in tops}
        distinct = data.workloads == data.counts.shape[1] and len(data.complete) == len(tops)
        return PredictionPoints(single, usual, usual[-1], distinct and not options.paper)
    points = []
    for point in at:
        for name, value in point.items():
            if name not in tops:
                known = ", ".join(tops) or "none that varies"
                example = f"--at {next(iter(tops))}=1e6" if tops else "perflaw feature NAME=VALUE RUN"
                raise DataError(f"no law depends on {name!r}", f"the features of these runs are: {known}", example)
            if not np.isfinite(value):
                raise DataError(f"a prediction is asked for at a value of {name} that is not finite")
        if not point:
            raise DataError("a prediction is asked for at a point without features", "", "--at n=1e6")
        points.append({name: float(value) for name, value in point.items()})
    single = {name: tuple(point[name] for point in points if name in point) for name in tops}
    single = {name: values or tuple(point[name] for point in usual) for name, values in single.items()}
    return PredictionPoints(single, tuple(point for point in points if len(point) == len(tops)) or usual, points[-1])


def law_options(workloads: int, *, full: bool) -> LawOptions:
    """Options of the law learner for costs over so many workloads.

    Exponents of real programs over real workloads are not round (1.21, 1.13, 0.76 in the paper), while the learner
    leaves a line without a rival once a power law is 2 worse, which costs log n for its free exponent. With the
    usual limit 77–86 % of intervals at 2 and 10 times the 95th percentile covered bytes^b of an odd b, with log n 95.
    """
    delta = max(2.0, float(np.log(workloads)))
    return LawOptions(confidence=LEVEL, delta=delta, regimes=full, several=full)


@dataclass(frozen=True, slots=True)
class ClusterLaws:
    """The laws of one cluster's cost."""

    single: Mapping[str, Learnt]
    """Feature → law in this feature alone."""
    joint: Learnt | None
    """Law over all features; None if there are no features."""
    full: bool
    """Breakpoints and the joint law were looked for; otherwise ``joint`` is the best of ``single``."""

    @property
    def growth(self) -> Mapping[str, Learnt]:
        """Laws that state how the cost grows, without the constants that stand in for an inconclusive dependence."""
        return {name: one for name, one in self.single.items() if one.law.features or one.law.verdict != "inconclusive"}

    def predict(self, point: Point) -> tuple[Prediction, Law] | None:
        """Cost at a point and the law that predicts it; None without a law.

        The joint law predicts if the point has its features, otherwise the best law in a feature of the point.
        """
        if self.joint is None:
            return None
        needed = set(self.joint.law.features)
        learnt = self.joint if needed <= set(point) else best({name: self.single[name] for name in point})
        for known in reversed(learnt.law.predictions):
            if all(known.features[name] == point.get(name) for name in known.features):
                return replace(known, features=point), learnt.law
        return learnt.predict([point])[0], learnt.law


def best(laws: Mapping[str, Learnt]) -> Learnt:
    """The law with the strongest verdict, then with the largest R²; the first of equals."""
    strength = {"law": 2, "inconclusive": 1, "none": 0}
    return max(laws.values(), key=lambda learnt: (strength[learnt.law.verdict], learnt.law.r2 or 0.0))


def learn_laws(
    costs: Array,
    names: Sequence[str],
    costly: NDArray[np.bool_],
    data: TrendData,
    points: PredictionPoints,
    options: TrendOptions,
) -> list[ClusterLaws]:
    """Laws of C clusters in descending cost, (C, R); ``costly`` clusters, (C,), are always learnt in full."""
    if not data.features:
        return [ClusterLaws({}, None, True)] * len(costs)
    if len(costs) <= options.full:
        return _learn(costs, names, data, points, full=True)
    laws = _learn(costs, names, data, points, full=False)
    predictions = [one.predict(points.rank) for one in laws]
    by_prediction = np.argsort([-one[0].mean if one else 0.0 for one in predictions], kind="stable")
    in_full = costly.copy()
    in_full[: options.full] = True
    in_full[by_prediction[: options.full // 2]] = True
    places = np.flatnonzero(in_full).tolist()
    again = _learn(costs[places], [names[c] for c in places], data, points, full=True)
    for place, one in zip(places, again, strict=True):
        laws[place] = one
    return laws


def _learn(
    costs: Array, names: Sequence[str], data: TrendData, points: PredictionPoints, *, full: bool
) -> list[ClusterLaws]:
    options = law_options(data.workloads, full=full)
    single: list[dict[str, Learnt]] = [{} for _ in costs]
    for name, x in data.features.items():
        # Without points the learner predicts all series at once at its own points, which are these.
        at = None if points.default else [{name: value} for value in points.single[name]]
        learnt = learn(_series(costs, names, {name: x}, data), at, options)
        for laws, law in zip(single, learnt, strict=True):
            laws[name] = law
    # If too few runs have all features, the joint law is over the features that every run has.
    known = ~np.isnan(np.array(list(data.features.values()))).any(axis=0)
    together = data.features if known.sum() >= max(known.size / 2, 3) else data.complete
    if not full or len(together) < 2:
        return [ClusterLaws(laws, best(laws), full) for laws in single]
    joint = learn(_series(costs, names, together, data), None if points.default else list(points.joint), options)
    return [ClusterLaws(laws, law, full) for laws, law in zip(single, joint, strict=True)]


def _series(costs: Array, names: Sequence[str], features: Mapping[str, Array], data: TrendData) -> list[Series]:
    """A series for each cluster, of the runs that have the features.

    Counts of a deterministic program repeat exactly if a workload repeats: one run of each workload suffices. If they
    differ, the learner is told which runs belong together.
    """
    known = ~np.isnan(np.array(list(features.values()))).any(axis=0)
    workload = data.workload[known]
    y, x = costs[:, known], {name: values[known] for name, values in features.items()}
    _, begin, inverse = np.unique(workload, return_index=True, return_inverse=True)
    first_runs, first_of_run = np.sort(begin), begin[inverse]
    repeats = first_runs.size < workload.size
    same_features = all(np.array_equal(values, values[first_of_run]) for values in x.values())
    exact = (y == y[:, first_of_run]).all(axis=1) & (repeats and same_features)
    x_first = {name: values[first_runs] for name, values in x.items()}
    # Counts are whole numbers; a matrix of something else has an unknown step.
    quantum = 1.0 if bool((costs == np.rint(costs)).all()) else 0.0
    return [
        Series(name, row[first_runs], x_first, None, None, quantum)
        if is_exact
        else Series(name, row, x, workload if repeats else None, None, quantum)
        for name, row, is_exact in zip(names, y, exact, strict=True)
    ]


def log_residuals(learnt: Learnt, costs: Array, x: Array, name: str) -> tuple[float | None, ...]:
    """Log cost − log law in each run, (R,); None without a logarithm of either, or in a run without the feature."""
    known = ~np.isnan(x)
    mean = np.zeros(x.size)
    mean[known] = learnt.mean({name: x[known]})
    positive = (mean > 0) & (costs > 0)
    values = np.log(np.where(positive, costs, 1.0)) - np.log(np.where(positive, mean, 1.0))
    return tuple(value if some else None for value, some in zip(values.tolist(), positive.tolist(), strict=True))


# ---- Overtaking points (trend-prof §4.2): from which size on a cluster costs more than one that is ranked above it. Laws are
# compared on a grid from the smallest to 100 times the largest value of a feature. A crossing counts if the order of the laws
# stays changed until the end of the grid. Its interval is where their bands could cross first and last.

HORIZON = 100.0
"""Laws are compared up to so many times the largest value of the feature; beyond it they are no forecast."""
MIN_LEAD = 1e-3
"""A smaller lead at the end of the grid is a tie: two clusters of the same locations, and rounding."""
GRID = 160
"""Values of the feature at which laws are compared; crossings between them are interpolated."""
GrowthLaw = Learnt | PowerLaw
"""A law of the learner, or one of the paper."""
Lines = tuple[Array, Array, Array]
"""Mean of a law on the grid, its lower and its upper limit."""


def overtakes(
    laws: Sequence[Mapping[str, GrowthLaw]],
    names: Sequence[str],
    costly: Sequence[bool],
    full: Sequence[bool],
    x: Array,
    feature: str,
    largest: float,
) -> list[list[Overtake]]:
    """For clusters in descending cost, (C,): the costly clusters above that each overtakes as one feature grows.

    Only clusters that were learnt in ``full``, (C,), overtake. ``x`` are the feature's values in the runs, ``largest``
    is the largest value that predictions were asked for.
    """
    found: list[list[Overtake]] = [[] for _ in laws]
    positive = x[x > 0]
    rivals = [j for j, is_costly in enumerate(costly) if is_costly and feature in laws[j]]
    if not positive.size or not rivals:
        return found
    grid = np.geomspace(positive.min(), max(HORIZON * positive.max(), largest), GRID)
    lines: dict[int, Lines] = {}

    def lines_of(i: int) -> Lines:
        if i not in lines:
            lines[i] = (mean_of(laws[i][feature], feature, grid), *band_of(laws[i][feature], feature, grid))
        return lines[i]

    last = {
        i: float(mean_of(one[feature], feature, grid[-1:])[0])
        for i, one in enumerate(laws)
        if full[i] and feature in one
    }
    for i, mean in last.items():
        for j in rivals:
            if j >= i or mean <= (1.0 + MIN_LEAD) * last[j]:
                continue
            crossing = _crossing(grid, lines_of(i), lines_of(j))
            if crossing:
                found[i].append(Overtake(j + 1, names[j], feature, *crossing))
    return found


def mean_of(law: GrowthLaw, feature: str, x: Array) -> Array:
    """Expected cost at values of the feature, (k,)."""
    if isinstance(law, PowerLaw):
        return np.asarray(law.coefficient * x**law.exponent)
    return law.mean({feature: x})


def band_of(law: GrowthLaw, feature: str, x: Array) -> tuple[Array, Array]:
    """Limits of the mean, (k,) each.

    The limits of a power law turn about the point of its first prediction with the limits of the exponent.
    """
    if not isinstance(law, PowerLaw):
        _, low, high, _, _ = law.band({feature: x})
        return low, high
    if law.exponent_low is None or law.exponent_high is None or not law.predictions:
        return np.zeros_like(x), np.full_like(x, 1e300)
    mean, pivot = mean_of(law, feature, x), law.predictions[0]
    distance = x / pivot.features[feature]
    limits = [mean * distance ** (exponent - law.exponent) for exponent in (law.exponent_low, law.exponent_high)]
    return np.minimum(*limits) * (pivot.mean_low / pivot.mean), np.maximum(*limits) * (pivot.mean_high / pivot.mean)


def _crossing(grid: Array, lines: Lines, rival: Lines) -> tuple[float, float, float | None] | None:
    """Where a law passes its rival for good, with the earliest and latest value that the bands allow; None if never."""
    (mean, low, high), (rival_mean, rival_low, rival_high) = lines, rival
    at = _stays_above(grid, mean, rival_mean)
    if at is None or at <= grid[0]:
        return None  # above from the start: the largest cost, not growth, ranks the rival first
    earliest = _stays_above(grid, high, rival_low)
    latest = _stays_above(grid, low, rival_high)
    return at, min(earliest or at, at), None if latest is None else max(latest, at)


def _stays_above(grid: Array, line: Array, other: Array) -> float | None:
    """Value from which on a line is above the other until the end of the grid; None if it is not at the end."""
    lead = np.log(np.maximum(line, 1e-300)) - np.log(np.maximum(other, 1e-300))
    if lead[-1] <= 0:
        return None
    below = np.flatnonzero(lead <= 0)
    if not below.size:
        return float(grid[0])
    i = int(below[-1])
    # On logarithms laws are nearly straight between two values of the grid.
    part = -lead[i] / (lead[i + 1] - lead[i])
    return float(grid[i] * (grid[i + 1] / grid[i]) ** part)
