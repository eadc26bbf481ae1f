"""Borders of several specifications of a function that are the same ones, and calls by the clusters they leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.types import PathSpec, Platform

Ints = NDArray[np.int64]
Array = NDArray[np.float64]

FACTOR = 2.0
"""Borders on one platform match within this factor: where they lie in a valley is chance."""


def aligned(specs: Sequence[PathSpec], epsilon: float) -> list[tuple[int, ...]]:
    """Borders that all have: of each, its place in every specification; in order.

    Borders match where the shares of the calls below them do (Definition 1): durations need not, on other platforms. On
    one platform durations may match instead: the mix of calls may have changed. From the left, the nearest that is still
    free; a border that one specification lacks is left out.
    """
    first = min(range(len(specs)), key=lambda number: len(specs[number].borders))
    found: list[tuple[int, ...]] = []
    for border in range(len(specs[first].borders)):
        places = []
        for number, spec in enumerate(specs):
            free = range(found[-1][number] + 1 if found else 0, len(spec.borders))
            near = [(_distance(specs[first], border, spec, k, epsilon), k) for k in free]
            places.append(min(near)[1] if near and min(near)[0] < math.inf else -1)
        if min(places) >= 0:
            found.append(tuple(places))
    return found


def _distance(one: PathSpec, i: int, other: PathSpec, k: int, epsilon: float) -> float:
    """How far apart two borders are: below 1 by shares, from 1 on by durations on one platform, infinite for no match."""
    share = abs(one.quantiles[i] - other.quantiles[k])
    if share < epsilon:
        return share
    ratios = [abs(math.log(a / b)) for a, b in _same_place(one, i, other, k) if a > 0 and b > 0]
    return 1.0 + min(ratios) if ratios and min(ratios) < math.log(FACTOR) else math.inf


def _same_place(one: PathSpec, i: int, other: PathSpec, k: int) -> list[tuple[float, float]]:
    """The two borders on every platform that both have."""
    return [
        ((one.platform_borders or {}).get(a, one.borders)[i], (other.platform_borders or {}).get(b, other.borders)[k])
        for a, here in enumerate(one.platforms)
        for b, there in enumerate(other.platforms)
        if (here.host, here.build) == (there.host, there.build)
    ]


def coarser(table: Ints, kept: Sequence[int]) -> Ints:
    """Calls (P, C) by the clusters that the kept borders leave, (P, len(kept) + 1).

    >>> coarser(np.array([[1, 2, 4]]), [1])
    array([[3, 4]])
    """
    if table.shape[0] == 0:
        return np.zeros((0, len(kept) + 1), dtype=np.int64)
    return np.add.reduceat(table, [0, *(place + 1 for place in kept)], axis=1)


def by_platform(spec: PathSpec) -> dict[int, Ints]:
    """Platform → calls (P, C) there. Where a file has lost them, as many everywhere, divided as each group was there."""
    counts = np.array(spec.path_counts, dtype=np.int64).reshape(len(spec.paths), len(spec.borders) + 1)
    if spec.platform_counts is not None:
        return {place: np.array(table, dtype=np.int64) for place, table in spec.platform_counts.items()}
    if len(spec.platforms) < 2:
        return {0: counts}
    tables = {place: counts // len(spec.platforms) for place in range(len(spec.platforms))}
    for group in spec.groups:
        for place, shares in (group.behaviours or {}).items():
            for path in group.paths:
                calls = float(counts[path].sum()) / len(spec.platforms)
                below = np.rint(calls * np.cumsum(shares)).astype(np.int64)
                tables[place][path] = np.diff(below, prepend=0)
    return tables


def common_platforms(specs: Sequence[PathSpec]) -> tuple[tuple[Platform, ...], list[dict[int, int]]]:
    """All platforms, by name, and where each specification's are among them. One host and build is one platform."""
    ticks: dict[tuple[str, str], float] = {}
    for spec in specs:
        for one in spec.platforms:
            ticks[one.host, one.build] = max(ticks.get((one.host, one.build), 0.0), one.tick)
    names = sorted(ticks)
    places = [{k: names.index((one.host, one.build)) for k, one in enumerate(spec.platforms)} for spec in specs]
    return tuple(Platform(host, build, ticks[host, build]) for host, build in names), places


def common_borders(
    specs: Sequence[PathSpec], kept: Sequence[tuple[int, ...]], places: Sequence[Mapping[int, int]]
) -> dict[int, tuple[float, ...]]:
    """Platform → borders there: the geometric mean of what specifications say, weighted by their calls there."""
    sums: dict[int, tuple[Array, float]] = {}
    for number, spec in enumerate(specs):
        tables = by_platform(spec)
        for local, platform in places[number].items():
            weight = float(tables[local].sum()) if local in tables else 0.0
            borders = (spec.platform_borders or {}).get(local, spec.borders)
            logs = np.log([max(borders[one[number]], 1e-300) for one in kept])
            before = sums.get(platform, (np.zeros(len(kept)), 0.0))
            sums[platform] = (before[0] + weight * logs, before[1] + weight)
    return {
        platform: tuple(float(x) for x in np.exp(total / max(weight, 1e-300)))
        for platform, (total, weight) in sorted(sums.items())
    }
