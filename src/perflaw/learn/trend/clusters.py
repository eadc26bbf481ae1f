"""The paper's greedy clusters (trend-prof §4.1): features represent first, then locations in descending variance.

R² of a linear fit is the squared cosine of the centred rows, so that all fits of a block of locations to all
representatives are one matrix product. Within a block new representatives are found one after the other, exactly as
if the locations had come one by one. The theorem of §4.1.1 bounds the angle between two members by twice the angle of
each to the representative, whatever their signs: R² > 1 − 4α(1 − α), 0.92 at α = 0.02.

The paper's R² ignores signs, but the sum of a rising and a falling location follows neither of them. Here members have
to rise with their representative, unless the paper's choices are asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.trend.data import Array, TrendData, TrendOptions

BLOCK = 512
"""Number of locations that are compared with all representatives at once."""
DIGITS = 9
"""Variances that agree in so many digits are equal (rounding alone separates n from n + 1)."""


@dataclass(slots=True)
class LocationCluster:
    """A cluster while it is built."""

    name: str
    """Name of the representative."""
    row: int | None
    """Row of the representative in the matrix; None for a feature that is no location."""
    features: list[str] = field(default_factory=list)
    """Features that fit the representative."""
    members: list[int] = field(default_factory=list)
    """Rows of the members."""
    fits: list[float] = field(default_factory=list)
    """R² of each member."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters in the order in which they were found, and the locations outside of them."""

    clusters: tuple[LocationCluster, ...]
    """Clusters with members; those that a feature represents come first."""
    constant: NDArray[np.intp]
    """Rows whose count varies less than sigma, without those of ``zero``."""
    zero: NDArray[np.intp]
    """Rows of locations that were never executed."""


def find_clusters(data: TrendData, options: TrendOptions) -> Clustering:
    """Cluster the locations whose counts vary enough."""
    deviation = data.counts.std(axis=1, ddof=1)
    executed = data.counts.any(axis=1)
    # Rounding alone may give a row of one value a deviation, which a sigma of 0 must not let pass.
    varies = (deviation >= options.sigma) & (np.ptp(data.counts, axis=1) > 0)
    # Rows in descending variance; equal ones by name, with numbers in names by value (line 9 before line 12).
    rows = np.flatnonzero(varies)
    size = np.floor(np.log10(np.maximum(deviation[rows], 1e-300)))
    unit = 10.0 ** (size - DIGITS + 1)
    rounded = np.rint(deviation[rows] / unit) * unit
    keys = []
    for value, row in zip(rounded, rows, strict=True):
        parts = re.split(r"(\d+)", data.names[row])
        name = tuple((text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True))
        keys.append((-float(value), name, int(row)))
    rows = np.array([row for _, _, row in sorted(keys)], dtype=np.intp)
    representatives = _Representatives.of_features(data, options)
    for start in range(0, rows.size, BLOCK):
        _assign(data, rows[start : start + BLOCK], representatives, options)
    clusters = [cluster for cluster in representatives.clusters if cluster.members]
    if not options.paper:
        # Clusters without those of a feature whose members are exactly the members of an earlier cluster.
        by_members: dict[tuple[int, ...], LocationCluster] = {}
        kept = []
        for cluster in clusters:
            first = by_members.setdefault(tuple(cluster.members), cluster)
            if first is cluster or not cluster.features:
                kept.append(cluster)
            else:
                first.features += [name for name in cluster.features if name not in first.features]
        clusters = kept
    return Clustering(tuple(clusters), np.flatnonzero(executed & ~varies), np.flatnonzero(~executed))


def unit_rows(rows: Array) -> Array:
    """Rows centred and of unit length, (k, R); their products are correlations."""
    # Centred twice, because the first mean leaves a rounding error; scaled, so that squares neither overflow nor vanish.
    centred: Array = rows - rows.mean(axis=-1, keepdims=True)
    centred -= centred.mean(axis=-1, keepdims=True)
    centred /= np.abs(centred).max(axis=-1, keepdims=True)
    centred /= np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None]
    return centred


@dataclass(slots=True)
class _Representatives:
    """The representatives found so far, in an array with room to grow."""

    clusters: list[LocationCluster]
    """Their clusters, (P,)."""
    table: Array
    """Their unit rows, (at least P, R)."""

    @classmethod
    def of_features(cls, data: TrendData, options: TrendOptions) -> _Representatives:
        """Features that every run has; unless the paper is followed, a feature that fits an earlier one joins it."""
        representatives = cls([], np.empty((64, data.counts.shape[1])))
        complete = data.complete
        rows = unit_rows(np.array(list(complete.values()))) if complete else representatives.rows
        for name, row in zip(complete, rows, strict=True):
            fit = fits(row[None] @ representatives.rows.T, options)[0]
            for place in np.flatnonzero(fit):
                representatives.clusters[place].features.append(name)
            if options.paper or not fit.any():
                representatives.add(LocationCluster(name, data.designated.get(name), [name]), row)
        return representatives

    @property
    def rows(self) -> Array:
        """Unit rows of the representatives, (P, R)."""
        return self.table[: len(self.clusters)]

    def add(self, cluster: LocationCluster, row: Array) -> None:
        """Add a representative with its unit row, (R,)."""
        if len(self.clusters) == len(self.table):
            self.table = np.concatenate([self.table, np.empty_like(self.table)])
        self.table[len(self.clusters)] = row
        self.clusters.append(cluster)


def fits(correlation: Array, options: TrendOptions) -> NDArray[np.bool_]:
    """Whether rows fit: R² > 1 − α, and they rise together unless the paper is followed."""
    close = np.asarray(correlation**2 > 1.0 - options.alpha)
    return close if options.paper else np.asarray(close & (correlation > 0))


def _assign(data: TrendData, rows: NDArray[np.intp], known: _Representatives, options: TrendOptions) -> None:
    """Put a block of rows, in descending variance, into all clusters that they fit, or into new clusters."""

    def join(cluster: LocationCluster, correlation: Array, fit: NDArray[np.bool_]) -> None:
        cluster.members += rows[fit].tolist()
        cluster.fits += np.minimum(correlation[fit] ** 2, 1.0).tolist()

    block = unit_rows(data.counts[rows])
    correlation = block @ known.rows.T
    fit = fits(correlation, options)
    for place in np.flatnonzero(fit.any(axis=0)):
        join(known.clusters[place], correlation[:, place], fit[:, place])
    unassigned = np.asarray(~fit.any(axis=1))
    if not unassigned.any():
        return
    within_block = block @ block[unassigned].T
    for column, i in enumerate(np.flatnonzero(unassigned)):
        if not unassigned[i]:
            continue
        known.add(LocationCluster(data.names[rows[i]], int(rows[i])), block[i])
        members: NDArray[np.bool_] = fits(within_block[:, column], options)
        members &= np.arange(rows.size) > i
        within_block[i, column], members[i] = 1.0, True
        join(known.clusters[-1], within_block[:, column], members)
        unassigned &= ~members
