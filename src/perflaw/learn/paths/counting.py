"""Calls of every call path in every cluster, and how many independent ones they are worth (§3.4, count)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.batches import time_within
from perflaw.learn.paths.histograms import clusters
from perflaw.learn.paths.stable import Stable
from perflaw.types import Batches, Observed
from perflaw.types.specifications import CallPath

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """P call paths, C clusters of durations, in the order of the paths' names."""

    paths: tuple[CallPath, ...]
    """The call paths that calls came by."""
    counts: Ints
    """(P, C) calls."""
    effective: Array
    """(P,) independent calls that these are worth."""
    platforms: dict[int, Ints]
    """Platform → (P, C) calls there."""


def counted(observed: Observed, stable: Stable) -> Counted:
    """Calls by call path and cluster; on each platform by its own borders."""
    names = sorted({observed.paths[place] for one in observed.observations for place in one.paths})
    place = {name: number for number, name in enumerate(names)}
    shape = (len(names), len(stable.borders) + 1)
    every = [
        (one.platform, place[observed.paths[path]], clusters(h, _borders(stable, one.platform)))
        for one in observed.observations
        for path, h in one.paths.items()
    ]
    sums = {platform: np.zeros(shape) for platform in sorted({one.platform for one in observed.observations})}
    for platform, path, calls in every:
        sums[platform][path] += calls
    whole = {platform: _rounded(table) for platform, table in sums.items()}
    counts = sum(whole.values(), np.zeros(shape, np.int64))
    tables = np.array([table for _, _, table in every]).reshape(len(every), shape[1])
    rows = np.array([path for _, path, _ in every], dtype=np.int64)
    worth = _worth(observed, place, counts.sum(axis=1))
    return Counted(tuple(names), counts, worth / _unsteadiness(tables, rows, worth, counts), whole)


def _borders(stable: Stable, platform: int) -> tuple[float, ...]:
    """Those of the platform."""
    return stable.borders if stable.platform_borders is None else stable.platform_borders[platform]


def _rounded(table: Array) -> Ints:
    """Whole calls of the same sums, (P, C): a bucket that a border cuts is divided."""
    below = np.rint(np.cumsum(table, axis=1)).astype(np.int64)
    return np.diff(below, axis=1, prepend=0)


def _worth(observed: Observed, place: dict[CallPath, int], calls: Ints) -> Array:
    """Independent calls by the batches of every path's calls within observations, (P,)."""
    batches: list[list[Batches]] = [[] for _ in place]
    for one in observed.observations:
        for path, some in one.path_batches.items():
            if path in one.paths:
                batches[place[observed.paths[path]]].append(some)
    return np.array([n / time_within(some) for n, some in zip(calls, batches, strict=True)], dtype=np.float64)


def _unsteadiness(tables: Array, rows: Ints, worth: Array, counts: Ints) -> float:
    """By how much paths' shares vary more from one observation to the next than independent calls would, ≥ 1.

    Pearson's statistic over its degrees of freedom, all paths together: its mean is 1 however few the calls are
    (McCullagh & Nelder 1989, §4.5, overdispersion). Batches within an observation cannot see it.
    """
    calls = counts.sum(axis=1)
    share = counts / np.maximum(calls, 1)[:, None]
    here = tables.sum(axis=1)
    expected = here[:, None] * share[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.where(expected > 0, (tables - expected) ** 2 / expected, 0.0).sum(axis=1)
    statistic = float((cells * (worth / np.maximum(calls, 1))[rows]).sum())
    seen = np.bincount(rows[here > 0], minlength=calls.size)
    freedom = float(((np.count_nonzero(counts, axis=1) - 1) * np.maximum(seen - 1, 0)).sum())
    return max(statistic / freedom, 1.0) if freedom > 0 else 1.0


def whole(table: Ints) -> tuple[tuple[int, ...], ...]:
    """Calls (P, C) as a specification keeps them."""
    return tuple(tuple(int(calls) for calls in row) for row in table)


def whole_counts(data: Counted) -> dict[int, tuple[tuple[int, ...], ...]] | None:
    """Those of every platform; None on one."""
    return {place: whole(table) for place, table in data.platforms.items()} if len(data.platforms) > 1 else None
