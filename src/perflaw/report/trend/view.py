"""What a report of trends shows, and the words that its table and its page share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perflaw.report.law_words import features_text
from perflaw.report.quantity import counted, number, percent, quantity
from perflaw.report.trend.places import named, places_of, within
from perflaw.types import Cluster, CountMatrix, Overtake, PowerLaw, Trends

COSTLY = 0.02
"""Part of a run's cost from which on a cluster is listed (Figure 4 of the paper)."""


@dataclass(frozen=True, slots=True, eq=False)
class TrendView:
    """Clusters with the counts that they were found in, and the sources that they lie in."""

    trends: Trends
    """The clusters with their laws."""
    matrix: CountMatrix
    """The counts; members of clusters are its rows."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → its text; empty where none was kept."""
    left_out: tuple[str, ...] = ()
    """What was left out before learning, a sentence each."""
    asked: bool = False
    """The person asked for the point where costs are predicted; else it is ten times the 95th percentiles."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is."""
    paper: bool = False
    """Costs are predicted by the power laws, as in the paper."""

    @property
    def noun(self) -> str:
        """What the locations are: ``lines`` (with their blocks), ``functions``, or else ``locations``."""
        kinds = {location.kind for location in self.matrix.locations}
        if "line" in kinds and kinds <= {"line", "block"}:
            return "lines"
        return "functions" if kinds == {"function"} else "locations"

    def size(self, cluster: Cluster) -> int:
        """Number of lines, functions or locations in a cluster; outcomes of a line's branches belong to the line."""
        if self.noun != "lines":
            return len(cluster.members)
        members = [self.matrix.locations[row] for row in cluster.members]
        return len({(location.file, location.line) for location in members})

    @property
    def costliest(self) -> int:
        """Column of the run with the largest sum of all counts; the first of several."""
        return int(np.argmax(self.trends.totals)) if self.trends.totals else 0

    @property
    def peak(self) -> list[float]:
        """(L,) counts in the costliest run: the weights by which locations are put in order."""
        counts = self.matrix.counts
        return [float(value) for value in counts[:, self.costliest]] if counts.size else [0.0] * len(counts)


def power_text(power: PowerLaw, feature: str) -> str:
    """The paper's law, such as ``1.4 · n^2.01 (1.99–2.02)``; the interval is the exponent's.

    >>> power_text(PowerLaw(77.0, 70.0, 80.0, 1.012, 1.004, 1.021, 0.99, 30, 0), "bytes")
    '77 · bytes^1.01 (1.00–1.02)'
    """
    low, high = power.exponent_low, power.exponent_high
    interval = f" ({low:.2f}–{high:.2f})" if low is not None and high is not None else ""
    return f"{quantity(power.coefficient, '')} · {feature}^{power.exponent:.2f}{interval}"


def zeros_text(power: PowerLaw) -> str:
    """The runs that a power law leaves out because their count is 0; empty where there are none."""
    return f"without {counted(power.zeros, 'run')} of 0" if power.zeros else ""


def overtake_text(overtake: Overtake) -> str:
    """The cluster that is overtaken, and where: ``overtakes 1 at n = 22,000 (19,000–31,000)``."""
    high = "…" if overtake.high is None else number(overtake.high)
    place = f"{overtake.feature} = {number(overtake.at)} ({number(overtake.low)}–{high})"
    return f"overtakes {overtake.rank} at {place}"


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
    """The feature of the cluster's best law, else the one whose own law explains most."""
    if cluster.law is not None and cluster.law.features:
        return cluster.law.features[0]
    return max(cluster.laws, key=lambda name: cluster.laws[name].r2 or 0.0, default=None)


def summary(view: TrendView) -> str:
    """How many runs and locations there are, and how many of these vary."""
    trends, locations = view.trends, len(view.matrix.locations)
    varying = locations - trends.constant - trends.zero
    parts = [
        counted(trends.runs, "run"),
        f"{varying:,} of {locations:,} {view.noun} vary in {counted(len(trends.clusters), 'cluster')}",
    ]
    if trends.constant:
        verb = "varies" if trends.constant == 1 else "vary"
        share = f"σ < {number(trends.sigma)}, {percent(trends.constant_share)} of all counts"
        parts.append(f"{trends.constant:,} hardly {verb} ({share})")
    if trends.zero:
        parts.append(f"{trends.zero:,} never ran")
    return " · ".join(parts)


def point_text(view: TrendView) -> str:
    """The point where costs are predicted, at most four of its features: ``n = 40,000 (10x)``."""
    point = features_text(dict(list(view.trends.at.items())[:4]))
    return point if view.asked or not point else f"{point} (10x)"


def dominates(view: TrendView) -> str:
    """The cluster that costs most at the predicted point, in one sentence; empty where nothing can be predicted."""
    costs = {one.rank: one.predicted.mean for one in view.trends.clusters if one.predicted is not None}
    whole = sum(costs.values())
    if not view.trends.at or whole <= 0:
        return ""
    first = view.trends.clusters[max(costs, key=lambda rank: costs[rank]) - 1]
    places = places_of(view.matrix.locations).texts(first.members, view.peak)
    more = f" and {counted(len(places) - 1, 'more place')}" if len(places) > 1 else ""
    part = f"with {percent(costs[first.rank] / whole)} of the cost (now {percent(first.share)})"
    place = places[0] if places else first.representative
    return f"At {point_text(view)} cluster {first.rank} dominates {part}: {place}{more}."
