"""Laws of the clusters' costs, by the law learner, in each feature and in all at once; and where costs overtake others.

Clusters that are costly, or among the first by cost or predicted cost, are learnt in full. The many others, which
nobody may ever look at, get a smooth law for every feature: 1,500 clusters of 785 runs take a minute that way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import LEVEL
from perflaw.errors import DataError
from perflaw.learn.plausibility import run_feature_costs
from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series.collinear import collinear
from perflaw.learn.series.learnt import FACTORS, percentile95
from perflaw.learn.trend.data import Array, TrendData, TrendOptions
from perflaw.learn.trend.headline import Rivals, choose_headlines
from perflaw.types import Law, Overtake, PowerLaw, Prediction

FULL_COST = 5
"""Cost of learning a cluster in full, in those of its smooth laws; for progress."""
FULL_CLUSTERS = 1.5
"""Clusters that are learnt in full where there are many, in the number of the option."""
JOINT_COST = 2
"""Cost of laws in each feature and in all, in that of laws in each; for progress."""
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
                what = f"a prediction is asked for at a value of {name} that is not finite"
                raise DataError(what, "it is nan or infinite", f"--at {name}=1e6")
        if not point:
            raise DataError(
                "a prediction is asked for at a point without features", "a law depends on features", "--at n=1e6"
            )
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
    """Feature → law in this feature alone; features that too few runs with a count above 0 have are missing."""
    headline: Learnt | None
    """The law that stands for the cluster; None if no feature has a law."""
    full: bool
    """Breakpoints and laws in several features were looked for, and the headline predicts runs left out best."""

    def at(self, point: Point) -> Learnt | None:
        """The law that predicts at a point: the headline if the point has its features, else the best law in one."""
        if self.headline is None or set(self.headline.law.features) <= set(point):
            return self.headline
        return best({name: self.single[name] for name in point if name in self.single})

    def predict(self, point: Point) -> tuple[Prediction, Law] | None:
        """Cost at a point and the law that predicts it; None without a law."""
        learnt = self.at(point)
        if learnt is None:
            return None
        for known in reversed(learnt.law.predictions):
            if all(known.features[name] == point.get(name) for name in known.features):
                return replace(known, features=point), learnt.law
        return learnt.predict([point])[0], learnt.law


def best(laws: Mapping[str, Learnt]) -> Learnt | None:
    """The law with the strongest verdict, then with the largest R² less what its feature costs; the first of equals."""
    strength = {"law": 2, "inconclusive": 1, "none": 0}
    costs = run_feature_costs(laws)

    def unexplained(name: str) -> float:
        law = laws[name].law
        return law.n * float(np.log(max(1.0 - (law.r2 or 0.0), 1e-12))) + costs[name]

    first = max(laws, key=lambda name: (strength[laws[name].law.verdict], -unexplained(name)), default=None)
    return None if first is None else laws[first]


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
        return _learn(costs, names, data, points, options, full=True)
    quick = len(costs) / (len(costs) + FULL_COST * FULL_CLUSTERS * options.full)
    first = replace(options, progress=lambda part: options.progress(quick * part))
    laws = _learn(costs, names, data, points, first, full=False)
    predictions = [one.predict(points.rank) for one in laws]
    by_prediction = np.argsort([-one[0].mean if one else 0.0 for one in predictions], kind="stable")
    in_full = costly.copy()
    in_full[: options.full] = True
    in_full[by_prediction[: options.full // 2]] = True
    places = np.flatnonzero(in_full).tolist()
    rest = replace(options, progress=lambda part: options.progress(quick + (1.0 - quick) * part))
    again = _learn(costs[places], [names[c] for c in places], data, points, rest, full=True)
    for place, one in zip(places, again, strict=True):
        laws[place] = one
    return laws


def has_law(costs: Array, x: Array, options: TrendOptions) -> NDArray[np.bool_]:
    """Whether enough runs with the feature (R,) have a count above 0 for a law, for each of C clusters, (C, R) -> (C,)."""
    return np.asarray(((costs > 0) & ~np.isnan(x)).sum(axis=1) >= options.nonzero)


def _learn(
    costs: Array,
    names: Sequence[str],
    data: TrendData,
    points: PredictionPoints,
    trend_options: TrendOptions,
    *,
    full: bool,
) -> list[ClusterLaws]:
    options = law_options(data.workloads, full=full)
    single: list[dict[str, Learnt]] = [{} for _ in costs]
    stages = len(data.features) * (JOINT_COST if full and len(data.features) > 1 else 1)

    def telling(stage: int, series: int, weight: int = 1) -> Callable[[float], None]:
        return lambda done: trend_options.progress((stage + weight * done / max(series, 1)) / stages)

    for stage, (name, x) in enumerate(data.features.items()):
        # Without points the learner predicts all series at once at its own points, which are these.
        at = None if points.default else [{name: value} for value in points.single[name]]
        places = np.flatnonzero(has_law(costs, x, trend_options)).tolist()
        learnt = learn(
            _series(costs[places], [names[c] for c in places], {name: x}, data),
            at,
            options,
            telling(stage, len(places)),
        )
        for place, law in zip(places, learnt, strict=True):
            single[place][name] = law
    laws = [ClusterLaws(one, best(one), full) for one in single]
    # If too few runs have all features, the law in several is over the features that every run has.
    known = ~np.isnan(np.array(list(data.features.values()))).any(axis=0)
    together = data.features if known.sum() >= max(known.size / 2, 3) else data.complete
    places = [c for c, one in enumerate(single) if together.keys() <= one.keys()]
    if not full or len(together) < 2 or not places:
        return laws
    costs, names = costs[places], [names[c] for c in places]
    prior_costs = run_feature_costs(together)

    unknown = np.isnan(np.array(list(together.values()))).any(axis=0)

    def series(features: Sequence[str]) -> list[Series]:
        """Series in some of the features, all of the runs that have all of them."""
        some = _series(costs, names, {name: np.where(unknown, np.nan, together[name]) for name in features}, data)
        return [replace(one, costs=prior_costs) for one in some] if len(features) > 1 else some

    told = telling(len(data.features), len(places), len(data.features))
    joint = learn(series(tuple(together)), None if points.default else list(points.joint), options, told)
    rivals = [Rivals({name: single[c][name] for name in together}, law) for c, law in zip(places, joint, strict=True)]
    for place, headline in zip(places, choose_headlines(series, rivals, prior_costs, options), strict=True):
        laws[place] = replace(laws[place], headline=headline)
    return laws


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


# ---- Overtaking points (trend-prof §4.2): from which size on a cluster costs more than one that is ranked above it. The laws
# that rank the predicted costs are compared, and only if they are established. One size grows on a grid from its
# smallest to 100 times its largest value; features that say the same in the data grow with it, and others stay where
# predicted costs are ranked. A crossing counts if the order of the laws stays changed until the end of the grid. Its
# interval is where their bands could cross first and last.

HORIZON = 100.0
"""Laws are compared up to so many times the largest value of the feature; beyond it they are no forecast."""
MIN_LEAD = 1e-3
"""A smaller lead at the end of the grid is a tie: two clusters of the same locations, and rounding."""
GRID = 160
"""Values of the feature at which laws are compared; crossings between them are interpolated."""
Lines = tuple[Array, Array, Array]
"""Mean of a law on the grid, its lower and its upper limit."""


@dataclass(frozen=True, slots=True)
class PaperLaw:
    """The paper's power law of a cluster in one feature."""

    feature: str
    """The feature."""
    law: PowerLaw
    """The power law."""


RankingLaw = Learnt | PaperLaw
"""An established law that predicts the cost by which a cluster is ranked."""


def overtakes(
    laws: Sequence[RankingLaw | None],
    names: Sequence[str],
    costly: Sequence[bool],
    full: Sequence[bool],
    data: TrendData,
    points: PredictionPoints,
) -> list[list[Overtake]]:
    """For clusters in descending cost, (C,): the costly clusters above that each overtakes as a feature grows.

    ``laws`` are those that rank predicted costs, None where none is established. Only clusters that were learnt in
    ``full``, (C,), overtake.
    """
    found: list[list[Overtake]] = [[] for _ in laws]
    rivals = [j for j, is_costly in enumerate(costly) if is_costly and laws[j] is not None]
    complete = data.complete
    same = collinear(np.array(list(complete.values()))) if len(complete) > 1 else np.eye(len(complete), dtype=bool)
    for name, prior_cost in run_feature_costs(points.rank).items():
        if prior_cost > 0:
            continue  # sizes grow; of other numbers nobody knows how far
        x = data.features[name]
        positive = x[x > 0]
        if not positive.size or not rivals:
            continue
        grid = np.geomspace(positive.min(), max(HORIZON * positive.max(), *points.single[name]), GRID)
        columns = {other: np.full(GRID, value) for other, value in points.rank.items()} | {name: grid}
        if name in complete:
            row = same[list(complete).index(name)]
            for other, says_the_same in zip(complete, row, strict=True):
                if says_the_same and other != name and other in columns and points.rank[name] > 0:
                    columns[other] = grid * (points.rank[other] / points.rank[name])
        lines: dict[int, Lines] = {}
        for i, law in enumerate(laws):
            if not full[i] or law is None or name not in _features_of(law):
                continue
            for j in rivals:
                if j >= i:
                    continue
                for k in (i, j):
                    if k not in lines:
                        lines[k] = _lines_of(laws[k], columns)
                if lines[i][0][-1] > (1.0 + MIN_LEAD) * lines[j][0][-1]:
                    crossing = _crossing(grid, lines[i], lines[j])
                    if crossing:
                        found[i].append(Overtake(j + 1, names[j], name, *crossing))
    return found


def _features_of(law: RankingLaw) -> tuple[str, ...]:
    return (law.feature,) if isinstance(law, PaperLaw) else law.law.features


def _lines_of(law: RankingLaw | None, columns: Mapping[str, Array]) -> Lines:
    """Mean and limits of the mean at the values of the features, (k,) each.

    The limits of a power law turn about the point of its first prediction with the limits of the exponent.
    """
    assert law is not None
    if isinstance(law, Learnt):
        mean, low, high, _, _ = law.band(columns)
        return mean, low, high
    power, x = law.law, columns[law.feature]
    mean = np.asarray(power.coefficient * x**power.exponent)
    if power.exponent_low is None or power.exponent_high is None or not power.predictions:
        return mean, np.zeros_like(x), np.full_like(x, 1e300)
    pivot = power.predictions[0]
    distance = x / pivot.features[law.feature]
    limits = [mean * distance ** (exponent - power.exponent) for exponent in (power.exponent_low, power.exponent_high)]
    return (
        mean,
        np.minimum(*limits) * (pivot.mean_low / pivot.mean),
        np.maximum(*limits) * (pivot.mean_high / pivot.mean),
    )


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
