"""From what was found to the nouns people and reports read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.trend.asked import Asked
from perflaw.learn.trend.clusters import Clustering, Group
from perflaw.learn.trend.given import Array, Given
from perflaw.learn.trend.laws import ClusterLaws, residuals
from perflaw.learn.trend.options import TrendOptions
from perflaw.types import Cluster, Curve, Overtake, PowerLaw, Prediction, Trends


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
