"""Specifications of one function from several runs, builds and machines as one (Brünink & Rosenblum, RQ1, RQ2).

Counts are added, platform by platform, over the borders that all have and the call paths without functions that one build
lacks; groups and expressions are found again in the sums. A path that models put into groups which do not match, and
whose calls differ from the one to the others, is quarantined: nothing is claimed of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError
from perflaw.learn.paths.compare import OUTSIDE, agreeing, inlined, labelled, without
from perflaw.learn.paths.counting import Counted, whole, whole_counts
from perflaw.learn.paths.grouping import differ, group_paths
from perflaw.learn.paths.mine import grouped
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import PathSpec, Platform
from perflaw.types.specifications import CallPath

# ---- Borders of several specifications of a function that are the same ones, and calls by the clusters they leave.

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


Ints = NDArray[np.int64]
Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def merge(specs: Sequence[PathSpec], options: MiningOptions | None = None) -> PathSpec:
    """One specification from several of one function; their order does not matter. DataError for different functions.

    Quarantined call paths are in a group of that standing. Those without calls (perturbed, too few) add their notes alone,
    and those without borders, where others have some: they are no models (§3.4).
    """
    if len({(spec.component, spec.metric, spec.unit) for spec in specs}) != 1:
        names = ", ".join(sorted({f"{spec.component} ({spec.metric})" for spec in specs})) or "nothing"
        raise DataError(
            f"{names}: cannot be merged", "models of one function by one clock merge", "perflaw mine --merge"
        )
    ordered = sorted(specs, key=_key)
    usable = [spec for spec in ordered if spec.paths]
    models = [spec for spec in usable if spec.borders] or usable
    notes = tuple(dict.fromkeys(note for spec in ordered for note in spec.notes))
    if len(models) < len(usable):
        notes = (*notes, f"{len(usable) - len(models)} of {len(usable)} found no borders: their calls are left out")
        usable = models
    if len(usable) < 2:
        return replace((usable or ordered)[0], notes=notes)
    return _merged(usable, notes, options or MiningOptions())


def _key(spec: PathSpec) -> tuple[object, ...]:
    """An order of specifications that depends on what is in them alone."""
    names = tuple((one.host, one.build, one.tick) for one in spec.platforms)
    return names, spec.points, spec.borders, spec.paths, spec.path_counts, spec.utility, spec.notes


@dataclass(frozen=True, slots=True, eq=False)
class _Models:
    """What was merged, over common paths and clusters."""

    specs: Sequence[PathSpec]
    """The specifications."""
    names: frozenset[str]
    """Functions left out of paths."""
    paths: tuple[CallPath, ...]
    """All paths."""
    counts: Ints
    """(specifications, P, C) calls."""
    effective: Array
    """(specifications, P) independent ones."""
    platforms: dict[int, Ints]
    """Platform → (P, C)."""

    def counted(self) -> Counted:
        """All together."""
        return Counted(self.paths, self.counts.sum(axis=0), self.effective.sum(axis=0), self.platforms)


def _merged(specs: Sequence[PathSpec], notes: tuple[str, ...], options: MiningOptions) -> PathSpec:
    """Several that have calls."""
    kept = aligned(specs, options.epsilon)
    platforms, places = common_platforms(specs)
    models = _models(specs, kept, places)
    data = models.counted()
    name = f"{specs[0].component} {specs[0].metric}"
    found, more = grouped(name, data, options, _conflicting(models, options))
    borders = common_borders(specs, kept, places)
    calls = data.counts.sum(axis=0)
    main = max(borders, key=lambda place: (int(models.platforms[place].sum()), -place))
    return replace(
        specs[0],
        borders=borders[main],
        quantiles=tuple(float(share) for share in np.cumsum(calls)[:-1] / max(int(calls.sum()), 1)),
        groups=found.groups,
        paths=data.paths,
        path_counts=whole(data.counts),
        unknown=found.unknown,
        stable=all(spec.stable for spec in specs),
        observations=sum(spec.observations for spec in specs),
        points=sum(spec.points for spec in specs),
        utility=max(spec.utility for spec in specs),
        platforms=platforms,
        platform_borders=borders if len(platforms) > 1 else None,
        platform_counts=whole_counts(data),
        atoms=found.atoms,
        share=_share(specs),
        notes=tuple(dict.fromkeys((*notes, *more, *_left_out(models, len(kept))))),
    )


def _models(specs: Sequence[PathSpec], kept: list[tuple[int, ...]], places: list[dict[int, int]]) -> _Models:
    """Their calls over common paths and clusters."""
    names = inlined(specs)
    paths = tuple(sorted({without(path, names) for spec in specs for path in spec.paths}))
    row = {path: number for number, path in enumerate(paths)}
    counts = np.zeros((len(specs), len(paths), len(kept) + 1), dtype=np.int64)
    effective = np.zeros((len(specs), len(paths)))
    platforms = {place: np.zeros(counts.shape[1:], dtype=np.int64) for local in places for place in local.values()}
    for number, spec in enumerate(specs):
        rows = [row[without(path, names)] for path in spec.paths]
        borders = [one[number] for one in kept]
        for local, table in by_platform(spec).items():
            np.add.at(platforms[places[number][local]], rows, coarser(table, borders))
        whole_table = np.array(spec.path_counts, dtype=np.int64).reshape(len(rows), -1)
        np.add.at(counts[number], rows, coarser(whole_table, borders))
        np.add.at(effective[number], rows, _worth(spec) * whole_table.sum(axis=1))
    return _Models(specs, names, paths, counts, effective, platforms)


def _worth(spec: PathSpec) -> Array:
    """Independent calls that one call of each path is worth, (P,): as its group's, or as the least of any group's."""
    each = [group.effective / max(sum(group.counts), 1) for group in spec.groups]
    out = np.full(len(spec.paths), min((one for one in each if one > 0), default=1.0))
    for group, one in zip(spec.groups, each, strict=True):
        out[list(group.paths)] = one
    return out


def _conflicting(models: _Models, options: MiningOptions) -> Labels:
    """Paths (k,) that some model puts elsewhere than all together do, and on which its calls differ from the others'.

    Those that were quarantined before stay so.
    """
    data = models.counted()
    together = group_paths(data.counts, data.effective, options)
    calls = data.counts.sum(axis=1).astype(np.float64)
    independent = models.counts * (models.effective / np.maximum(models.counts.sum(axis=2), 1))[:, :, None]
    apart: set[int] = set()
    for number, label in enumerate(_labels(models)):
        apart |= {int(path) for path in np.flatnonzero(label == OUTSIDE)}
        both = np.flatnonzero((label >= 0) & (together >= 0))
        for path in both[~agreeing(label[both], together[both], calls[both])]:
            mine = independent[number, path]
            if differ(mine, independent[:, path].sum(axis=0) - mine, len(models.paths), options):
                apart.add(int(path))
    return np.array(sorted(apart), dtype=np.intp)


def _labels(models: _Models) -> list[Labels]:
    """Group of each path in every model, (P,): OUTSIDE for quarantined ones, below that for those of no group."""
    row = {path: number for number, path in enumerate(models.paths)}
    every = []
    for spec in models.specs:
        label = np.full(len(models.paths), OUTSIDE - 1, dtype=np.intp)
        for path, (group, _) in labelled(spec, models.names).items():
            label[row[path]] = group
        every.append(label)
    return every


def _share(specs: Sequence[PathSpec]) -> float | None:
    """Part of the programs' time, by calls."""
    known = [(spec.share, spec.points) for spec in specs if spec.share is not None]
    calls = sum(points for _, points in known)
    return sum(share * points for share, points in known) / calls if calls else None


def _left_out(models: _Models, kept: int) -> list[str]:
    """What a reader should know of the merging."""
    notes = []
    if any(len(spec.borders) > kept for spec in models.specs):
        each = ", ".join(str(one) for one in sorted({len(spec.borders) for spec in models.specs}))
        notes.append(f"models merged have {each} borders, {kept} in common: others divide the calls elsewhere")
    if models.names:
        notes.append(f"left out of call paths, being absent from one build: {', '.join(sorted(models.names))}")
    return notes
