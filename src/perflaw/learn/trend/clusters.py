"""The paper's greedy clusters (trend-prof §4.1): features represent first, then locations in descending variance.

R² of a linear fit is the squared cosine of centred rows, so that all fits of a block of locations to all
representatives are one matrix product. Within a block new representatives are found one after the other, exactly as
if locations had come singly. The theorem of §4.1.1 bounds the angle between two members by twice the angle of each to
the representative, whatever their signs: R² > 1 − 4α(1 − α), 0.92 at α = 0.02.

The paper's R² does not know signs, but a sum of a location that rises and one that falls has no trend that is either's.
Members have to rise with their representative here, unless the paper's own reading is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.trend.inputs import Array, Given, TrendOptions

BLOCK = 512
"""Locations that are held against all representatives at once."""

DIGITS = 9
"""Variances that agree in so many digits are a tie (rounding alone parts n and n + 1)."""


@dataclass(slots=True)
class Group:
    """A cluster while it is built."""

    name: str
    """Of the representative."""
    row: int | None
    """Its row in the matrix; None for a feature that is no location."""
    features: list[str] = field(default_factory=list)
    """Features that fit it."""
    members: list[int] = field(default_factory=list)
    """Rows of the matrix."""
    fits: list[float] = field(default_factory=list)
    """R² of each."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters in the order they were found, and what is in none."""

    groups: tuple[Group, ...]
    """Features' first; none without members."""
    constant: NDArray[np.intp]
    """Rows whose count varies less than sigma, those never run left out."""
    zero: NDArray[np.intp]
    """Rows that never ran."""


def clusters(data: Given, options: TrendOptions) -> Clustering:
    """Cluster the rows that vary enough."""
    deviation = data.counts.std(axis=1, ddof=1)
    ran = data.counts.any(axis=1)
    # A row of one value can have a deviation of rounding, which no sigma of 0 should let pass.
    varies = (deviation >= options.sigma) & (np.ptp(data.counts, axis=1) > 0)
    rows = _order(np.flatnonzero(varies), deviation, data.names)
    heads = _Heads.of_features(data, options)
    for start in range(0, rows.size, BLOCK):
        _take_in(data, rows[start : start + BLOCK], heads, options)
    groups = [group for group in heads.groups if group.members]
    return Clustering(
        tuple(groups if options.paper else _distinct(groups)), np.flatnonzero(ran & ~varies), np.flatnonzero(~ran)
    )


def _distinct(groups: list[Group]) -> list[Group]:
    """Clusters without those of features that have all members of an earlier one and no other."""
    seen: dict[tuple[int, ...], Group] = {}
    out = []
    for group in groups:
        first = seen.setdefault(tuple(group.members), group)
        if first is group or not group.features:
            out.append(group)
        else:
            first.features += [name for name in group.features if name not in first.features]
    return out


def standard(rows: Array) -> Array:
    """Rows centred and of unit length, (k, R); their products are correlations."""
    # Twice, for what the first mean left by rounding; and scaled, so that squares neither overflow nor vanish.
    centred: Array = rows - rows.mean(axis=-1, keepdims=True)
    centred -= centred.mean(axis=-1, keepdims=True)
    centred /= np.abs(centred).max(axis=-1, keepdims=True)
    centred /= np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None]
    return centred


@dataclass(slots=True)
class _Heads:
    """Representatives so far, in an array with room to grow."""

    groups: list[Group]
    """Their clusters, (P,)."""
    table: Array
    """Standard rows, (at least P, R)."""

    @classmethod
    def of_features(cls, data: Given, options: TrendOptions) -> _Heads:
        """Every feature that all runs say; one that fits an earlier one joins it, but in the paper's reading."""
        heads = cls([], np.empty((64, data.counts.shape[1])))
        complete = data.complete
        rows = standard(np.array(list(complete.values()))) if complete else heads.table[:0]
        for name, row in zip(complete, rows, strict=True):
            fits = fitting(row[None] @ heads.rows.T, options)[0]
            for place in np.flatnonzero(fits):
                heads.groups[place].features.append(name)
            if options.paper or not fits.any():
                heads.add(Group(name, data.designated.get(name), [name]), row)
        return heads

    @property
    def rows(self) -> Array:
        """Standard rows of the representatives, (P, R)."""
        return self.table[: len(self.groups)]

    def add(self, group: Group, row: Array) -> None:
        """One more."""
        if len(self.groups) == len(self.table):
            self.table = np.concatenate([self.table, np.empty_like(self.table)])
        self.table[len(self.groups)] = row
        self.groups.append(group)


def fitting(correlation: Array, options: TrendOptions) -> NDArray[np.bool_]:
    """Whether rows fit: R² > 1 − α, and rising together unless the paper is read by the letter."""
    fits = np.asarray(correlation**2 > 1.0 - options.alpha)
    return fits if options.paper else np.asarray(fits & (correlation > 0))


def _take_in(data: Given, rows: NDArray[np.intp], heads: _Heads, options: TrendOptions) -> None:
    """Put a block of rows, in descending variance, into all clusters they fit, or into new ones."""
    block = standard(data.counts[rows])
    known = block @ heads.rows.T
    fits = fitting(known, options)
    for place in np.flatnonzero(fits.any(axis=0)):
        _join(heads.groups[place], rows, known[:, place], fits[:, place])
    alone = np.asarray(~fits.any(axis=1))
    if not alone.any():
        return
    among = block @ block[alone].T
    for column, i in enumerate(np.flatnonzero(alone)):
        if not alone[i]:
            continue
        heads.add(Group(data.names[rows[i]], int(rows[i])), block[i])
        later: NDArray[np.bool_] = fitting(among[:, column], options)
        later &= np.arange(rows.size) > i
        among[i, column], later[i] = 1.0, True
        _join(heads.groups[-1], rows, among[:, column], later)
        alone &= ~later


def _join(group: Group, rows: NDArray[np.intp], correlation: Array, fits: NDArray[np.bool_]) -> None:
    group.members += rows[fits].tolist()
    group.fits += np.minimum(correlation[fits] ** 2, 1.0).tolist()


def _order(rows: NDArray[np.intp], deviation: Array, names: Sequence[str]) -> NDArray[np.intp]:
    """Rows in descending variance; ties by name, numbers in names by their value (line 9 before line 12)."""
    size = np.floor(np.log10(np.maximum(deviation[rows], 1e-300)))
    unit = 10.0 ** (size - DIGITS + 1)
    rounded = np.rint(deviation[rows] / unit) * unit
    keyed = sorted((-float(value), _natural(names[row]), int(row)) for value, row in zip(rounded, rows, strict=True))
    return np.array([row for _, _, row in keyed], dtype=np.intp)


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """A name to sort by.

    >>> sorted(["b.c:12", "b.c:9", "a"], key=_natural)
    ['a', 'b.c:9', 'b.c:12']
    """
    parts = re.split(r"(\d+)", name)
    return tuple((text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True))
