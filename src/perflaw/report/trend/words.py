"""Clusters and their growth in words: what the terminal's table and the page both print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perflaw.report.law_words import features_text
from perflaw.report.quantity import number, percent, quantity
from perflaw.report.trend.places import named, places_of, within
from perflaw.types import Cluster, CountMatrix, Overtake, PowerLaw, Trends

# ---- What a report of trends is made from.


@dataclass(frozen=True, slots=True, eq=False)
class TrendView:
    """Clusters with the counts they were found in, and the sources they lie in."""

    trends: Trends
    """What was learnt."""
    matrix: CountMatrix
    """The counts; clusters' members are its rows."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → its text; empty where none was kept."""
    left_out: tuple[str, ...] = ()
    """What was left out before learning, a sentence each."""
    asked: bool = False
    """The person asked for the point where costs are predicted; else it is ten times the 95th percentile."""

    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is."""

    paper: bool = False
    """Costs were predicted by the power laws, as the paper does."""

    @property
    def noun(self) -> str:
        """What the locations are: ``lines`` where all are lines and their blocks, else ``functions``, or ``locations``."""
        kinds = {location.kind for location in self.matrix.locations}
        if "line" in kinds and kinds <= {"line", "block"}:
            return "lines"
        return "functions" if kinds == {"function"} else "locations"

    def places(self, cluster: Cluster) -> int:
        """How many of the nouns a cluster is; outcomes of a line's branches belong to the line."""
        if self.noun != "lines":
            return len(cluster.members)
        members = [self.matrix.locations[row] for row in cluster.members]
        return len({(one.file, one.line) for one in members})

    @property
    def costliest(self) -> int:
        """Column of the run with the largest sum of all counts; the first of several."""
        return int(np.argmax(self.trends.totals)) if self.trends.totals else 0

    @property
    def peak(self) -> list[float]:
        """(L,) counts of that run: how much locations weigh when they are told."""
        counts = self.matrix.counts
        return [float(value) for value in counts[:, self.costliest]] if counts.size else [0.0] * len(counts)


COSTLY = 0.02
"""Part of a run's cost from which on a cluster is listed: the paper's (Figure 4)."""


def power_text(power: PowerLaw, feature: str) -> str:
    """The paper's law, such as ``1.4 · n^2.01 (1.99–2.02)``: the interval is the exponent's.

    >>> power_text(PowerLaw(77.0, 70.0, 80.0, 1.012, 1.004, 1.021, 0.99, 30, 0), "bytes")
    '77 · bytes^1.01 (1.00–1.02)'
    """
    ends = power.exponent_low, power.exponent_high
    interval = f" ({ends[0]:.2f}–{ends[1]:.2f})" if ends[0] is not None and ends[1] is not None else ""
    return f"{quantity(power.coefficient, '')} · {feature}^{power.exponent:.2f}{interval}"


def zeros_text(power: PowerLaw) -> str:
    """Runs that the power law leaves out; empty where there are none."""
    return f"without {power.zeros} run{'s' * (power.zeros > 1)} of 0" if power.zeros else ""


def overtake_text(one: Overtake) -> str:
    """Such as ``overtakes 1 at n = 22,000 (19,000–31,000)``."""
    high = "…" if one.high is None else number(one.high)
    return f"overtakes {one.rank} at {one.feature} = {number(one.at)} ({number(one.low)}–{high})"


def title(cluster: Cluster, view: TrendView) -> str:
    """The representative and where it is: ``bubble.py:14 in bubble_sort()``, ``n (feature)``."""
    if cluster.is_feature or cluster.row is None:
        same = [name for name in cluster.features if name != cluster.representative]
        place = view.counted.get(cluster.representative)
        kind = f"count of {place}" if place else "feature"
        return f"{cluster.representative} ({', '.join([kind, *same[:3]])})"
    location = view.matrix.locations[cluster.row]
    if location.kind in ("line", "block"):
        return f"{cluster.representative} {within(location)}".strip()
    return named(location)


def best_feature(cluster: Cluster) -> str | None:
    """The feature a cluster is told by first: that of its best law, else the one whose own law explains most."""
    if cluster.law is not None and cluster.law.features:
        return cluster.law.features[0]
    return max(cluster.laws, key=lambda name: cluster.laws[name].r2 or 0.0, default=None)


def summary(view: TrendView) -> str:
    """One line: how much was looked at, how much varies."""
    trends, noun = view.trends, view.noun
    varying = len(view.matrix.locations) - trends.constant - trends.zero
    parts = [
        f"{trends.runs} runs",
        f"{varying:,} of {len(view.matrix.locations):,} {noun} vary in {_clusters(trends.clusters)}",
    ]
    if trends.constant:
        verb = "varies" if trends.constant == 1 else "vary"
        share = f"σ < {number(trends.sigma)}, {percent(trends.constant_share)} of all counts"
        parts.append(f"{trends.constant:,} hardly {verb} ({share})")
    parts += [f"{trends.zero:,} never ran"] * bool(trends.zero)
    return " · ".join(parts)


def _clusters(clusters: tuple[Cluster, ...]) -> str:
    return f"{len(clusters):,} cluster{'s' * (len(clusters) != 1)}"


def where(view: TrendView) -> str:
    """The point where costs are predicted: ``n = 40,000 (10x)``."""
    at = features_text(_shown(view.trends.at))
    return at if view.asked or not at else f"{at} (10x)"


def _shown(at: Mapping[str, float]) -> dict[str, float]:
    """At most four features, so that a sentence stays one."""
    return dict(list(at.items())[:4])


def dominates(view: TrendView) -> str:
    """What costs most at the predicted point, in one sentence; empty where nothing can be predicted."""
    costs = {one.rank: one.predicted.mean for one in view.trends.clusters if one.predicted is not None}
    whole = sum(costs.values())
    if not view.trends.at or whole <= 0:
        return ""
    first = view.trends.clusters[max(costs, key=lambda rank: costs[rank]) - 1]
    told = places_of(view.matrix.locations).texts(first.members, view.peak)
    more = f" and {len(told) - 1} more place{'s' * (len(told) > 2)}" if len(told) > 1 else ""
    head = f"At {where(view)} cluster {first.rank} dominates with {percent(costs[first.rank] / whole)} of the cost"
    return f"{head} (now {percent(first.share)}): {told[0] if told else first.representative}{more}."
