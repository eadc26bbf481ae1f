"""The trend learner's front door (trend-prof §4): counts of locations over workloads in, ranked clusters with laws out.

Order of the work: given (check, find repeats) → clusters (greedy, §4.1) → costs and ranks → power laws (the paper's) →
laws (the law learner's) → overtaking points → nouns.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from perflaw.learn.series.series import quiet
from perflaw.learn.trend.clusters import Clustering, Group, clusters
from perflaw.learn.trend.inputs import COSTLY, Array, Given, TrendOptions, given
from perflaw.learn.trend.laws import Asked, ClusterLaws, Point, asked, learn_laws, residuals
from perflaw.learn.trend.lines import power_laws
from perflaw.learn.trend.overtakes import Growing, overtakes
from perflaw.types import Cluster, Curve, Overtake, PowerLaw, Prediction, Trends

# ---- The predicted cost that clusters are ranked by: what the law says where it is one, else what the paper's power
# law says.
#
# A law that is inconclusive is one of several shapes, which a hundred times beyond the data are worlds apart; its
# mean is
# that of the shape that happened to score best. Of seven kinds of cost, 12 runs over two decades, asked at 300 times
# the data,
# the worst hundredth was wrong by a factor of 890; with the power law in place of inconclusive ones by 200.


def predicted(
    powers: Mapping[str, PowerLaw], laws: ClusterLaws, points: Asked, options: TrendOptions
) -> Prediction | None:
    """Cost of a cluster at the point that ranks, None where there is no law; in the paper's reading by its power law."""
    said = laws.predicted(points.rank)
    simple = _of_power(powers, points)
    if options.paper or said is None:
        return simple
    answer, law = said
    if law.verdict != "inconclusive" or simple is None:
        return answer
    return Prediction(
        answer.features,
        simple.mean,
        min(answer.mean_low, simple.mean_low),
        max(answer.mean_high, simple.mean_high),
        min(answer.new_low, simple.new_low),
        max(answer.new_high, simple.new_high),
    )


def _of_power(powers: Mapping[str, PowerLaw], points: Asked) -> Prediction | None:
    """What the power law that fits best expects there, runs without the cluster counted as well."""
    there = [one for name, one in powers.items() if name in points.rank]
    if not there:
        return None
    law = max(there, key=lambda one: one.r2 or 0.0)
    share = law.n / (law.n + law.zeros)
    answer = law.predictions[-1]
    return replace(answer, mean=share * answer.mean, mean_low=share * answer.mean_low, new_low=share * answer.new_low)


# ---- From what was found to the nouns people and reports read.


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """All that is known of a cluster."""

    group: Group
    """Representative and members."""
    costs: Array
    """Summed counts, (R,)."""
    largest: float
    """Largest part of a run's counts."""
    costly: bool
    """Whether that is much."""
    powers: Mapping[str, PowerLaw]
    """Feature → the paper's law."""
    laws: ClusterLaws
    """The learner's."""
    predicted: Prediction | None
    """Cost where predicted costs are ranked."""
    overtakes: tuple[Overtake, ...]
    """Whom it overtakes."""


def nouns(data: Given, clustering: Clustering, points: Asked, ranked: Sequence[Found], options: TrendOptions) -> Trends:
    """The whole result, of clusters in descending cost."""
    totals = data.counts.sum(axis=0)
    whole = float(totals.sum()) or 1.0
    expected = [one.predicted.mean if one.predicted else -1.0 for one in ranked]
    order = sorted(range(len(ranked)), key=lambda c: (-expected[c], c))
    places = {c: place for place, c in enumerate(order, 1)}
    clusters = [_cluster(c + 1, places[c], one, data, points, whole) for c, one in enumerate(ranked)]
    return Trends(
        clusters=tuple(clusters),
        by_prediction=tuple(c + 1 for c in order),
        features=tuple(data.features),
        values={name: _known(x) for name, x in data.features.items()},
        locations=data.names,
        runs=data.counts.shape[1],
        workloads=data.workloads,
        totals=tuple(totals.tolist()),
        constant=int(clustering.constant.size),
        constant_share=float(data.counts[clustering.constant].sum()) / whole,
        zero=int(clustering.zero.size),
        alpha=options.alpha,
        sigma=options.sigma,
        at=dict(points.rank),
        notes=data.notes,
    )


def _cluster(rank: int, predicted_rank: int, one: Found, data: Given, points: Asked, whole: float) -> Cluster:
    group, laws = one.group, one.laws
    return Cluster(
        rank=rank,
        predicted_rank=predicted_rank,
        representative=group.name,
        is_feature=bool(group.features) and group.name == group.features[0],
        row=group.row,
        features=tuple(group.features),
        members=tuple(group.members),
        fits=tuple(group.fits),
        costs=tuple(one.costs.tolist()),
        max_cost=float(one.costs.max()),
        share=float(one.costs.sum()) / whole,
        max_share=one.largest,
        costly=one.costly,
        law=laws.joint.law if laws.joint else None,
        laws={name: learnt.law for name, learnt in laws.single.items()},
        powers=dict(one.powers),
        predicted=one.predicted,
        overtakes=one.overtakes,
        curves=_curves(laws, data, points),
        residuals=_residuals(laws, one.costs, data),
    )


def _curves(laws: ClusterLaws, data: Given, points: Asked) -> dict[str, Curve]:
    """Laws drawn from the smallest positive value of a feature to its last prediction, for clusters learnt in full."""
    out = {}
    for name, learnt in laws.single.items() if laws.full else ():
        x = data.features[name]
        said = x[~np.isnan(x)]
        positive = said[said > 0]
        low = float(positive.min()) if positive.size else float(said.min())
        out[name] = learnt.curve(name, low, max(*points.single[name], float(said.max())))
    return out


def _residuals(laws: ClusterLaws, costs: Array, data: Given) -> dict[str, tuple[float | None, ...]]:
    """What the laws leave unexplained, for clusters learnt in full."""
    found = laws.single.items() if laws.full else ()
    return {name: residuals(learnt, costs, data.features[name], name) for name, learnt in found}


def _known(x: Array) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else value for value in x.tolist())


def trend(
    counts: ArrayLike,
    names: Sequence[str],
    features: Mapping[str, ArrayLike],
    at: Sequence[Point] | None = None,
    options: TrendOptions | None = None,
) -> Trends:
    """Cluster locations that vary together and learn how each cluster's cost grows; same input, same output.

    ``counts`` (L, R) are executions of L locations in R runs, ``features`` (R,) each with NaN where a run does not say
    it, ``at`` the points to predict at (without it 2 and 10 times the 95th percentile of every feature).
    Raises DataError where shapes do not match, counts are none, runs are fewer than three, or a point is strange.

    >>> n = np.array([10.0, 20, 40, 80, 160, 320])
    >>> found = trend([n**2, n**2 - n, 3 * n], ["f:1", "f:2", "f:3"], {"n": n})
    >>> [(one.representative, one.members, one.laws["n"].family) for one in found.clusters]
    [('f:1', (0, 1), 'quadratic'), ('n', (2,), 'linear')]
    """
    options = options or TrendOptions()
    data = given(counts, names, features, options)
    points = asked(data, at, options)
    found = clusters(data, options)
    with quiet(), _uncollected():
        return nouns(data, found, points, _ranked(data, found, points, options), options)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Spare the collector of cycles: a sixth of the time goes into looking through laws, and none is in a cycle."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _ranked(data: Given, found: Clustering, points: Asked, options: TrendOptions) -> list[Found]:
    """All that is known of the clusters, in descending largest cost; ties in the order they were found."""
    sums = np.array([data.counts[group.members].sum(axis=0) for group in found.groups])
    costs = sums.reshape(-1, data.counts.shape[1])
    order = np.argsort(-costs.max(axis=1, initial=0.0), kind="stable")
    groups, costs = [found.groups[i] for i in order], costs[order]
    totals = data.counts.sum(axis=0)
    largest = (costs / np.where(totals > 0, totals, 1.0)).max(axis=1, initial=0.0)
    costly = largest > COSTLY
    powers = _powers(costs, data, points, options)
    laws = learn_laws(costs, [group.name for group in groups], costly, data, points, options)
    passed = _overtakes(groups, powers, laws, costly.tolist(), data, points, options)
    expected = [predicted(*pair, points, options) for pair in zip(powers, laws, strict=True)]
    columns = zip(groups, costs, largest.tolist(), costly.tolist(), powers, laws, expected, passed, strict=True)
    return [Found(*column) for column in columns]


def _powers(costs: Array, data: Given, points: Asked, options: TrendOptions) -> list[dict[str, PowerLaw]]:
    """The paper's laws of each cluster, by feature."""
    out: list[dict[str, PowerLaw]] = [{} for _ in costs]
    for name, x in data.features.items():
        for mine, law in zip(out, power_laws(costs, x, name, data.workload, points.single[name], options), strict=True):
            if law:
                mine[name] = law
    return out


def _overtakes(
    groups: Sequence[Group],
    powers: Sequence[Mapping[str, PowerLaw]],
    laws: Sequence[ClusterLaws],
    costly: Sequence[bool],
    data: Given,
    points: Asked,
    options: TrendOptions,
) -> list[tuple[Overtake, ...]]:
    """Whom each cluster overtakes, nearest first."""
    growing = [
        {name: Growing(law, name) for name, law in (power if options.paper else one.grown).items()}
        for power, one in zip(powers, laws, strict=True)
    ]
    names, worth = [group.name for group in groups], [one.full for one in laws]
    out: list[list[Overtake]] = [[] for _ in groups]
    for name, x in data.features.items():
        found = overtakes(growing, names, costly, worth, x[~np.isnan(x)], name, max(points.single[name]))
        for mine, more in zip(out, found, strict=True):
            mine += more
    return [tuple(sorted(mine, key=lambda one: (one.feature, one.at, one.rank))) for mine in out]
