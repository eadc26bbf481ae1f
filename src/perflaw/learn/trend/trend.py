"""The trend learner (trend-prof §4): from counts of locations over workloads to ranked clusters with laws.

The order of the work: check the data and find repeated workloads → greedy clusters (§4.1) → costs and ranks → the
paper's power laws → laws of the law learner → overtaking points → the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from perflaw.learn.series.series import quiet, without_garbage_collection
from perflaw.learn.trend.clusters import Clustering, LocationCluster, find_clusters
from perflaw.learn.trend.data import COSTLY, Array, TrendData, TrendOptions, check_data
from perflaw.learn.trend.laws import (
    ClusterLaws,
    PaperLaw,
    Point,
    PredictionPoints,
    RankingLaw,
    has_law,
    learn_laws,
    log_residuals,
    overtakes,
    prediction_points,
)
from perflaw.learn.trend.power_laws import disagreement, power_laws
from perflaw.types import Cluster, Overtake, PowerLaw, Prediction, Trends


def trend(
    counts: ArrayLike,
    names: Sequence[str],
    features: Mapping[str, ArrayLike],
    at: Sequence[Point] | None = None,
    options: TrendOptions | None = None,
) -> Trends:
    """Cluster locations that vary together and learn how each cluster's cost grows; the result is deterministic.

    ``counts`` (L, R) are executions of L locations in R runs, ``features`` (R,) each with NaN for a run without the
    feature, ``at`` the points to predict at (without it 2 and 10 times the 95th percentile of every feature).
    Raises DataError for wrong shapes, invalid counts, fewer than three runs, or an invalid point.

    >>> n = np.array([10.0, 20, 40, 80, 160, 320])
    >>> trends = trend([n**2, n**2 - n, 3 * n], ["f:1", "f:2", "f:3"], {"n": n})
    >>> [(one.representative, one.members, one.laws["n"].family) for one in trends.clusters]
    [('f:1', (0, 1), 'quadratic'), ('n', (2,), 'linear')]
    """
    options = options or TrendOptions()
    data = check_data(counts, names, features, options)
    points = prediction_points(data, at, options)
    clustering = find_clusters(data, options)
    with quiet(), without_garbage_collection():
        ranked = _rank_clusters(data, clustering, points, options)
        totals = data.counts.sum(axis=0)
        whole = float(totals.sum()) or 1.0
        predicted = [one.predicted.mean if one.predicted else -1.0 for one in ranked]
        by_prediction = sorted(range(len(ranked)), key=lambda c: (-predicted[c], c))
        predicted_rank = {c: rank for rank, c in enumerate(by_prediction, 1)}
        return Trends(
            clusters=tuple(
                _cluster(c + 1, predicted_rank[c], one, data, points, whole) for c, one in enumerate(ranked)
            ),
            by_prediction=tuple(c + 1 for c in by_prediction),
            features=tuple(data.features),
            values={
                name: tuple(None if np.isnan(value) else value for value in x.tolist())
                for name, x in data.features.items()
            },
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


@dataclass(frozen=True, slots=True, eq=False)
class RankedCluster:
    """A cluster with its cost and laws."""

    cluster: LocationCluster
    """Representative and members."""
    costs: Array
    """Summed counts in each run, (R,)."""
    max_share: float
    """Largest share in the counts of a run."""
    costly: bool
    """Whether the largest share exceeds ``COSTLY``."""
    powers: Mapping[str, PowerLaw]
    """Feature → the paper's power law."""
    laws: ClusterLaws
    """The laws of the law learner."""
    predicted: Prediction | None
    """Cost at the point that ranks predicted costs."""
    overtakes: tuple[Overtake, ...]
    """The clusters that it overtakes."""


def _rank_clusters(
    data: TrendData, clustering: Clustering, points: PredictionPoints, options: TrendOptions
) -> list[RankedCluster]:
    """The clusters in descending largest cost; equal ones in the order in which they were found."""
    sums = np.array([data.counts[cluster.members].sum(axis=0) for cluster in clustering.clusters])
    costs = sums.reshape(-1, data.counts.shape[1])
    order = np.argsort(-costs.max(axis=1, initial=0.0), kind="stable")
    clusters, costs = [clustering.clusters[i] for i in order], costs[order]
    names = [cluster.name for cluster in clusters]
    totals = data.counts.sum(axis=0)
    max_share = (costs / np.where(totals > 0, totals, 1.0)).max(axis=1, initial=0.0)
    costly = max_share > COSTLY
    powers: list[dict[str, PowerLaw]] = [{} for _ in clusters]
    for name, x in data.features.items():
        found = power_laws(costs, x, name, data.workload, points.single[name], options)
        for by_feature, law, enough in zip(powers, found, has_law(costs, x, options), strict=True):
            if law and enough:
                by_feature[name] = law
    laws = learn_laws(costs, names, costly, data, points, options)
    predicted = [predict_cost(power, one, points, options) for power, one in zip(powers, laws, strict=True)]
    ranking = [law for _, law in predicted]
    overtaken = overtakes(ranking, names, costly.tolist(), [one.full for one in laws], data, points)
    return [
        RankedCluster(
            cluster,
            costs[c],
            float(max_share[c]),
            bool(costly[c]),
            powers[c],
            laws[c],
            predicted[c][0],
            tuple(sorted(overtaken[c], key=lambda one: (one.feature, one.at, one.rank))),
        )
        for c, cluster in enumerate(clusters)
    ]


def predict_cost(
    powers: Mapping[str, PowerLaw], laws: ClusterLaws, points: PredictionPoints, options: TrendOptions
) -> tuple[Prediction | None, RankingLaw | None]:
    """Cost of a cluster at the point that ranks, and the law that says so, each None where there is none.

    The law is None if it is not established. An inconclusive law is one of several shapes, which differ by orders of
    magnitude a hundred times beyond the data; its mean is that of the shape that happened to score best. There the mean
    of the power law is taken, as with ``paper`` it always is. Of seven kinds of cost, 12 runs over two decades,
    predicted at 300 times the data, the worst hundredth of the predictions was wrong by a factor of 890; with the power
    law in place of inconclusive laws by 200.
    """
    learnt, by_law = laws.at(points.rank), laws.predict(points.rank)
    by_power = feature = None
    candidates = [name for name in powers if name in points.rank]
    if candidates:  # the power law that fits best; runs that did not execute the cluster lower its mean
        feature = max(candidates, key=lambda name: powers[name].r2 or 0.0)
        one = powers[feature]
        share, last = one.n / (one.n + one.zeros), one.predictions[-1]
        by_power = replace(last, mean=share * last.mean, mean_low=share * last.mean_low, new_low=share * last.new_low)
    if options.paper or by_law is None or learnt is None:
        return by_power, PaperLaw(feature, powers[feature]) if feature is not None else None
    prediction, law = by_law
    if law.verdict != "inconclusive" or by_power is None:
        return prediction, learnt if law.verdict == "law" else None
    wide = Prediction(
        prediction.features,
        by_power.mean,
        min(prediction.mean_low, by_power.mean_low),
        max(prediction.mean_high, by_power.mean_high),
        min(prediction.new_low, by_power.new_low),
        max(prediction.new_high, by_power.new_high),
    )
    return wide, None


def _cluster(
    rank: int, predicted_rank: int, ranked: RankedCluster, data: TrendData, points: PredictionPoints, whole: float
) -> Cluster:
    """A cluster of the result; curves and residuals are those of clusters learnt in full."""
    cluster, laws = ranked.cluster, ranked.laws
    drawn = laws.single if laws.full else {}
    curves = {}
    for name, learnt in drawn.items():
        # The law from the smallest positive value of its feature (R,) to its last prediction.
        x = data.features[name]
        known = x[~np.isnan(x)]
        positive = known[known > 0]
        low = float(positive.min()) if positive.size else float(known.min())
        curves[name] = learnt.curve(name, low, max(*points.single[name], float(known.max())))
    return Cluster(
        rank=rank,
        predicted_rank=predicted_rank,
        representative=cluster.name,
        is_feature=bool(cluster.features) and cluster.name == cluster.features[0],
        row=cluster.row,
        features=tuple(cluster.features),
        members=tuple(cluster.members),
        fits=tuple(cluster.fits),
        costs=tuple(ranked.costs.tolist()),
        max_cost=float(ranked.costs.max()),
        share=float(ranked.costs.sum()) / whole,
        max_share=ranked.max_share,
        costly=ranked.costly,
        law=laws.headline.law if laws.headline else None,
        laws={name: learnt.law for name, learnt in laws.single.items()},
        powers=dict(ranked.powers),
        disagreements={
            name: found
            for name, learnt in drawn.items()
            if name in ranked.powers
            and (found := disagreement(learnt, ranked.powers[name], ranked.costs, data.features[name], name))
        },
        predicted=ranked.predicted,
        overtakes=ranked.overtakes,
        curves=curves,
        residuals={
            name: log_residuals(learnt, ranked.costs, data.features[name], name) for name, learnt in drawn.items()
        },
    )
