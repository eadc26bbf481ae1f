"""The trend learner's front door (trend-prof §4): counts of locations over workloads in, ranked clusters with laws out.

Order of the work: given (check, find repeats) → clusters (greedy, §4.1) → costs and ranks → power laws (the paper's) →
laws (the law learner's) → overtaking points → nouns.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from perflaw.learn.laws.series import quiet
from perflaw.learn.trend.asked import Asked, Point, asked
from perflaw.learn.trend.clusters import Clustering, Group, clusters
from perflaw.learn.trend.given import Array, Given, given
from perflaw.learn.trend.laws import ClusterLaws, learn_laws
from perflaw.learn.trend.nouns import Found, nouns
from perflaw.learn.trend.options import COSTLY, TrendOptions
from perflaw.learn.trend.overtakes import Growing, overtakes
from perflaw.learn.trend.power import power_laws
from perflaw.learn.trend.predicted import predicted
from perflaw.types import Overtake, PowerLaw, Trends


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
