"""Specifications of one function from several runs, builds and machines: as one, and compared (Brünink & Rosenblum).

Counts are added, platform by platform, over the borders that all have and the call paths without inlined functions; groups
and expressions are found again in the sums. A path is quarantined if models put it into groups that do not match and its
calls differ between the models: nothing is claimed of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Final

import numpy as np

from perflaw.errors import DataError
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.edges import Bools
from perflaw.learn.paths.grouping import Array, Ints, Labels, PathCounts, differ, group_paths, table_rows
from perflaw.learn.paths.mine import group_and_explain
from perflaw.learn.paths.selection import FEWER_CALLERS, Pool, best_pool, callers_on, is_recorded, without_functions
from perflaw.types import Consistency, PathGroup, PathSpec, Platform
from perflaw.types.specifications import CallPath


def merge(specs: Sequence[PathSpec], options: MiningOptions | None = None) -> PathSpec:
    """One specification from several of one function; their order does not matter. DataError for different functions.

    Quarantined call paths are in a group of that standing. Specifications without calls (perturbed, too few) add only their
    notes, and so do those without borders if others have some: they are no models (§3.4).
    """
    if len({(spec.component, spec.metric, spec.unit) for spec in specs}) != 1:
        names = ", ".join(sorted({f"{spec.component} ({spec.metric})" for spec in specs})) or "nothing"
        why = "models of one function by one clock merge"
        raise DataError(f"{names}: cannot be merged", why, "perflaw mine --merge")

    def content(spec: PathSpec) -> tuple[object, ...]:
        platforms = tuple((one.host, one.build, one.tick) for one in spec.platforms)
        return platforms, spec.points, spec.borders, spec.paths, spec.path_counts, spec.utility, spec.notes

    ordered = sorted(specs, key=content)
    usable = [spec for spec in ordered if spec.paths]
    models = [spec for spec in usable if spec.borders] or usable
    notes = tuple(dict.fromkeys(note for spec in ordered for note in spec.notes))
    if len(models) < len(usable):
        notes = (*notes, f"{len(usable) - len(models)} of {len(usable)} found no borders: their calls are left out")
    if len(models) < 2:
        return replace((models or ordered)[0], notes=notes)
    options = options or MiningOptions()
    pool = _with_like_callers(models, options)
    if len(pool.parts) < len(models):
        notes = (*notes, f"{len(models) - len(pool.parts)} of {len(models)} {FEWER_CALLERS}")
    return _merge_models(pool.parts, notes, options, pool.left_out)


def _with_like_callers(models: Sequence[PathSpec], options: MiningOptions) -> Pool[PathSpec]:
    """The models that have call paths in common."""
    return best_pool(
        models,
        lambda one: (one.selected, one.paths),
        lambda pool, names: _merge_models(pool, (), options, names),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Models:
    """Specifications over common paths and clusters."""

    specs: Sequence[PathSpec]
    """The specifications."""
    names: frozenset[str]
    """Inlined functions, which are left out of paths."""
    counts: Ints
    """(specifications, P, C) calls."""
    effective: Array
    """(specifications, P) independent calls."""
    total: PathCounts
    """All together."""


def _merge_models(
    specs: Sequence[PathSpec], notes: tuple[str, ...], options: MiningOptions, left_out: frozenset[str]
) -> PathSpec:
    """One specification from some that have calls, without the functions ``left_out``, which some did not record."""
    aligned = aligned_borders(specs, options.epsilon)
    # A host and a build are one platform; ``places`` are those of each specification's platforms among all, by name.
    ticks: dict[tuple[str, str], float] = {}
    for spec in specs:
        for one in spec.platforms:
            ticks[one.host, one.build] = max(ticks.get((one.host, one.build), 0.0), one.tick)
    names = sorted(ticks)
    places = [{k: names.index((one.host, one.build)) for k, one in enumerate(spec.platforms)} for spec in specs]
    platforms = tuple(Platform(*name, ticks[name]) for name in names)
    models = _models(specs, aligned, places, left_out)
    data = models.total
    name = f"{specs[0].component} {specs[0].metric}"
    found, group_notes = group_and_explain(name, data, options, _conflicting_paths(models, options))
    borders = _common_borders(specs, aligned, places)
    calls = data.counts.sum(axis=0)
    main = max(borders, key=lambda place: (int(data.platforms[place].sum()), -place))
    notes += group_notes
    if any(len(spec.borders) > len(aligned) for spec in specs):
        numbers = ", ".join(str(one) for one in sorted({len(spec.borders) for spec in specs}))
        in_common = f"models merged have {numbers} borders, {len(aligned)} in common"
        notes += (f"{in_common}: others divide the calls elsewhere",)
    if inlined := models.names - left_out:
        notes += (f"left out of call paths, being absent from one build: {', '.join(sorted(inlined))}",)
    if left_out:
        notes += (f"left out of call paths, as some did not record them: {', '.join(sorted(left_out))}",)
    shares = [(spec.share, spec.points) for spec in specs if spec.share is not None]
    points = sum(points for _, points in shares)
    return replace(
        specs[0],
        borders=borders[main],
        quantiles=tuple(float(share) for share in np.cumsum(calls)[:-1] / max(int(calls.sum()), 1)),
        groups=tuple(_with_durations(group, data.paths, models) for group in found.groups),
        paths=data.paths,
        path_counts=table_rows(data.counts),
        unknown=found.unknown,
        stable=all(spec.stable for spec in specs),
        observations=sum(spec.observations for spec in specs),
        points=sum(spec.points for spec in specs),
        utility=max(spec.utility for spec in specs),
        platforms=platforms,
        platform_borders=borders if len(platforms) > 1 else None,
        platform_counts=data.by_platform(),
        atoms=found.atoms,
        share=sum(share * n for share, n in shares) / points if points else None,
        notes=tuple(dict.fromkeys(notes)),
        selected=tuple(sorted({text for spec in specs for text in spec.selected})),
    )


def _models(
    specs: Sequence[PathSpec],
    aligned: Sequence[tuple[int, ...]],
    places: Sequence[Mapping[int, int]],
    left_out: frozenset[str],
) -> _Models:
    """The specifications' calls over common paths and clusters."""
    names = _left_out(specs, left_out)
    paths = tuple(sorted({without_functions(path, names) for spec in specs for path in spec.paths}))
    row = {path: number for number, path in enumerate(paths)}
    counts = np.zeros((len(specs), len(paths), len(aligned) + 1), dtype=np.int64)
    effective = np.zeros((len(specs), len(paths)))
    platforms = {place: np.zeros(counts.shape[1:], dtype=np.int64) for local in places for place in local.values()}
    for number, spec in enumerate(specs):
        rows = [row[without_functions(path, names)] for path in spec.paths]
        # Calls by the clusters that the aligned borders leave.
        firsts = [0, *(one[number] + 1 for one in aligned)]
        for local, table in _calls_by_platform(spec).items():
            np.add.at(platforms[places[number][local]], rows, np.add.reduceat(table, firsts, axis=1))
        table = np.array(spec.path_counts, dtype=np.int64).reshape(len(rows), -1)
        np.add.at(counts[number], rows, np.add.reduceat(table, firsts, axis=1))
        # A call is worth as many independent ones as in its group; in no group, as few as in any.
        worth = [group.effective / max(sum(group.counts), 1) for group in spec.groups]
        worth_of_path = np.full(len(spec.paths), min((one for one in worth if one > 0), default=1.0))
        for group, one in zip(spec.groups, worth, strict=True):
            worth_of_path[list(group.paths)] = one
        np.add.at(effective[number], rows, worth_of_path * table.sum(axis=1))
    total = PathCounts(paths, counts.sum(axis=0), effective.sum(axis=0), platforms)
    return _Models(specs, names, counts, effective, total)


def _with_durations(group: PathGroup, paths: Sequence[CallPath], models: _Models) -> PathGroup:
    """The group with the durations of the specifications' groups that it is made of, weighted by the calls of its paths."""
    own = {paths[place] for place in group.paths}
    sources = []
    for spec in models.specs:
        for one in spec.groups:
            common = [path for path in one.paths if without_functions(spec.paths[path], models.names) in own]
            calls = sum(sum(spec.path_counts[path]) for path in common)
            if one.durations and calls:
                sources.append((one, float(calls)))
    if not sources:
        return group
    weights = np.array([calls for _, calls in sources])

    def mean(rows: list[tuple[float, ...]]) -> tuple[float, ...]:
        """Geometric mean, which is the same in every order of the specifications."""
        logarithms = sorted(zip(np.log(np.maximum(rows, 1e-3)).tolist(), weights.tolist(), strict=True))
        return tuple(np.exp(sum(w * np.array(row) for row, w in logarithms) / weights.sum()).tolist())

    medians = [time for one, _ in sources for time in one.path_medians]
    spreads = [one.duration_spread for one, _ in sources if one.duration_spread is not None]
    return replace(
        group,
        durations=mean([one.durations for one, _ in sources]),
        cpu_durations=mean([one.cpu_durations or one.durations for one, _ in sources])
        if any(one.cpu_durations for one, _ in sources)
        else (),
        path_medians=(min(medians), max(medians)) if medians else (),
        duration_spread=max(spreads, default=None),
    )


def _conflicting_paths(models: _Models, options: MiningOptions) -> Labels:
    """Paths (k,) that a model groups differently than all together do, and on which its calls differ from the others'.

    Paths that were quarantined before stay so.
    """
    data = models.total
    row = {path: number for number, path in enumerate(data.paths)}
    together = group_paths(data.counts, data.effective, options)
    calls = data.counts.sum(axis=1).astype(np.float64)
    independent = models.counts * (models.effective / np.maximum(models.counts.sum(axis=2), 1))[:, :, None]
    found: set[int] = set()
    for number, spec in enumerate(models.specs):
        label = np.full(len(data.paths), QUARANTINED - 1, dtype=np.intp)
        for path, (group, _) in group_of_paths(spec, models.names).items():
            label[row[path]] = group
        found |= {int(place) for place in np.flatnonzero(label == QUARANTINED)}
        both = np.flatnonzero((label >= 0) & (together >= 0))
        for place in both[~agreeing(label[both], together[both], calls[both])]:
            mine = independent[number, place]
            if differ(mine, independent[:, place].sum(axis=0) - mine, len(data.paths), options):
                found.add(int(place))
    return np.array(sorted(found), dtype=np.intp)


# ---- Borders that specifications have in common, and the platforms of all.

MAX_BORDER_RATIO = 2.0
"""Ratio of two borders on one platform up to which they match: where they lie in a valley is chance."""


def aligned_borders(specs: Sequence[PathSpec], epsilon: float) -> list[tuple[int, ...]]:
    """Borders that all specifications have, in order: of each, its place in every specification.

    Borders match if the shares of the calls below them do (Definition 1): on other platforms durations differ. On one
    platform durations may match instead, because the mix of calls may have changed. Of all ways to match borders in their
    order the one with most matches counts, and of these the one with the least distances; a border that one specification
    lacks is left out.
    """
    first = min(range(len(specs)), key=lambda number: len(specs[number].borders))
    matches = [_in_order(specs[first], spec, epsilon) for spec in specs]
    columns = (tuple(one[border] for one in matches) for border in range(len(specs[first].borders)))
    return [places for places in columns if min(places) >= 0]


def _in_order(one: PathSpec, other: PathSpec, epsilon: float) -> list[int]:
    """For each border of one specification its match in the other, or -1; matches keep the order."""
    if one is other:
        return list(range(len(one.borders)))
    # Best (matches missing, distance, places) of the first borders of the one among the first of the other.
    best: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())] * (len(other.borders) + 1)
    for i in range(len(one.borders)):
        without = [(missing + 1, distance, (*places, -1)) for missing, distance, places in best]
        row = [without[0]]
        for k in range(len(other.borders)):
            missing, before, places = best[k]
            distance = _distance(one, i, other, k, epsilon)
            matched = [(missing, before + distance, (*places, k))] if distance < math.inf else []
            row.append(min([row[k], without[k + 1], *matched], key=lambda way: way[:2]))
        best = row
    return list(best[-1][2])


def _distance(one: PathSpec, i: int, other: PathSpec, k: int, epsilon: float) -> float:
    """Distance of two borders: below 1 by shares, from 1 on by durations on one platform, infinite if they do not match."""
    share = abs(one.quantiles[i] - other.quantiles[k])
    if share < epsilon:
        return share
    ratios = []
    for a, here in enumerate(one.platforms):
        for b, there in enumerate(other.platforms):
            mine, others = _borders_on(one, a)[i], _borders_on(other, b)[k]
            if (here.host, here.build) == (there.host, there.build) and mine > 0 and others > 0:
                ratios.append(abs(math.log(mine / others)))
    return 1.0 + min(ratios) if ratios and min(ratios) < math.log(MAX_BORDER_RATIO) else math.inf


def _borders_on(spec: PathSpec, platform: int) -> tuple[float, ...]:
    return (spec.platform_borders or {}).get(platform, spec.borders)


def _common_borders(
    specs: Sequence[PathSpec], aligned: Sequence[tuple[int, ...]], places: Sequence[Mapping[int, int]]
) -> dict[int, tuple[float, ...]]:
    """Platform → borders there: the geometric mean over the specifications, weighted by their calls there."""
    sums: dict[int, tuple[Array, float]] = {}
    for number, spec in enumerate(specs):
        tables = _calls_by_platform(spec)
        for local, platform in places[number].items():
            weight = float(tables[local].sum()) if local in tables else 0.0
            borders = _borders_on(spec, local)
            logarithms = np.log([max(borders[one[number]], 1e-300) for one in aligned])
            total, total_weight = sums.get(platform, (np.zeros(len(aligned)), 0.0))
            sums[platform] = (total + weight * logarithms, total_weight + weight)
    return {
        platform: tuple(float(x) for x in np.exp(total / max(weight, 1e-300)))
        for platform, (total, weight) in sorted(sums.items())
    }


def _calls_by_platform(spec: PathSpec) -> dict[int, Ints]:
    """Platform → calls (P, C) there.

    If a file has lost them, every platform gets as many calls, divided by each group's behaviour there.
    """
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


# ---- How far two specifications of a function agree on which call paths behave alike (RQ1, RQ2).

PERMUTATIONS: Final = 200
"""Number of random groupings by which chance is simulated, with a fixed seed."""
QUARANTINED: Final = -1
"""Group of a quarantined path, which agrees with nothing."""


def consistency(a: PathSpec, b: PathSpec) -> Consistency:
    """Share of the call paths on which two specifications agree, and of the calls that came by these paths.

    Only paths that both have in a group count. Groups of the one are matched with groups of the other so that as many
    calls as possible come by paths of matched groups; on those paths they agree. Chance is the mean over random groupings
    of the same sizes (simulated, fixed seed). Functions that either build inlined are left out first. DataError for
    different functions.
    """
    if (a.component, a.metric) != (b.component, b.metric):
        what = f"{a.component} ({a.metric}) and {b.component} ({b.metric})"
        raise DataError(what, "models of one function compare", "give two models of the same function and metric")
    names = _left_out([a, b], unrecorded([a, b]))
    first, second = group_of_paths(a, names), group_of_paths(b, names)
    common = sorted(first.keys() & second.keys())
    if not common:
        return Consistency(a.component, 1.0, 1.0, 1.0, 1.0, 0)
    one = np.array([first[path][0] for path in common], dtype=np.intp)
    other = np.array([second[path][0] for path in common], dtype=np.intp)
    calls = np.array([first[path][1] + second[path][1] for path in common], dtype=np.float64)

    def shares(other: Labels) -> tuple[float, float]:
        agree = agreeing(one, other, calls)
        return float(agree.mean()), float(calls[agree].sum() / max(calls.sum(), 1e-300))

    rng = np.random.default_rng(0)
    chance = np.mean([shares(rng.permutation(other)) for _ in range(PERMUTATIONS)], axis=0)
    return Consistency(a.component, *shares(other), float(chance[0]), float(chance[1]), len(common))


def agreeing(one: Labels, other: Labels, calls: Array) -> Bools:
    """Whether each path (P,) is in groups that are matched: maximum-weight matching on the contingency table.

    The weight is calls, then paths; groups below 0 are not matched.

    >>> agreeing(np.array([0, 0, 1]), np.array([1, 0, 0]), np.array([9.0, 1.0, 5.0])).tolist()
    [True, False, True]
    """
    inside = (one >= 0) & (other >= 0)
    if not inside.any():
        return np.zeros(one.size, dtype=bool)
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one[inside], other[inside]), calls[inside] + 0.5 / one.size)
    return np.asarray(inside & (matching(table)[one] == other))


def matching(weights: Array) -> Labels:
    """The column of each row (R,) of ``weights`` (R, C) in a matching of the largest weight; below 0 where it has none.

    Each row in turn is matched along a shortest augmenting path (Jonker and Volgenant 1987, as in Crouse 2016).

    >>> matching(np.array([[9.0, 8.0], [7.0, 1.0], [0.0, 0.0]])).tolist()
    [1, 0, -2]
    """
    if weights.shape[0] > weights.shape[1]:
        found = np.full(len(weights), QUARANTINED - 1, dtype=np.intp)
        columns = matching(weights.T)
        found[columns] = np.arange(columns.size)
        return found
    costs, columns = (-weights).tolist(), weights.shape[1]
    duals, column_duals = [0.0] * len(costs), [0.0] * columns
    row_of, column_of = [-1] * columns, [-1] * len(costs)
    for start in range(len(costs)):
        distance, came_from = [math.inf] * columns, [-1] * columns
        left, passed, row, length = [*reversed(range(columns))], [], start, 0.0
        while row >= 0:
            passed.append(row)
            nearest, least = 0, math.inf
            for place, column in enumerate(left):
                through = length + costs[row][column] - duals[row] - column_duals[column]
                if through < distance[column]:
                    distance[column], came_from[column] = through, row
                # Of columns that are equally near, a free one ends the search.
                if distance[column] < least or (distance[column] == least and row_of[column] < 0):
                    nearest, least = place, distance[column]
            column, left[nearest] = left[nearest], left[-1]
            left.pop()
            row, length = row_of[column], distance[column]
        for row in passed:
            duals[row] += length - (distance[column_of[row]] if row != start else 0.0)
        for other in set(range(columns)).difference(left):
            column_duals[other] -= length - distance[other]
        row = -1
        while row != start:
            row = row_of[column] = came_from[column]
            column_of[row], column = column, column_of[row]
    return np.array(column_of, dtype=np.intp)


def group_of_paths(spec: PathSpec, names: frozenset[str] = frozenset()) -> dict[CallPath, tuple[int, int]]:
    """Call path without the functions ``names`` → its group and its calls; unknown paths are missing.

    If several paths become one, its group is that of most of its calls.
    """
    calls: dict[CallPath, dict[int, int]] = {}
    for number, group in enumerate(spec.groups):
        label = QUARANTINED if group.standing == "quarantined" else number
        for place in group.paths:
            here = calls.setdefault(without_functions(spec.paths[place], names), {})
            here[label] = here.get(label, 0) + sum(spec.path_counts[place])
    return {
        path: (max(sorted(here), key=lambda label: here[label]), sum(here.values())) for path, here in calls.items()
    }


# ---- Functions that are on the call paths of one specification and not on those of another: a build inlined them into their
# callers (RQ2), or they were not recorded.


def unrecorded(specs: Sequence[PathSpec]) -> frozenset[str]:
    """Functions on call paths that not all specifications were recorded with."""
    names = callers_on(path for spec in specs for path in spec.paths)
    return frozenset(name for name in names if not all(is_recorded(name, spec.selected) for spec in specs))


def is_comparable(a: PathSpec, b: PathSpec, options: MiningOptions | None = None) -> bool:
    """Whether both were recorded with callers that can be compared, so that both count where they are merged."""
    if not (a.paths and b.paths):  # too short or distorted: there is nothing to compare, and nothing that contradicts
        return True
    return len(_with_like_callers([a, b], options or MiningOptions()).parts) == 2


def _left_out(specs: Sequence[PathSpec], names: frozenset[str]) -> frozenset[str]:
    """These functions, and those that are inlined where these are left out."""
    short = [replace(one, paths=tuple(without_functions(path, names) for path in one.paths)) for one in specs]
    return names | inlined_functions(short if names else specs)


def inlined_functions(specs: Sequence[PathSpec]) -> frozenset[str]:
    """Names to leave out of all paths: a specification lacks them, and has the other's paths without them.

    A name stays if it is missing only because no call came that way: then the other specification has no such path
    without it. Of one build only one of two specifications can lack a function on a path, by what was recorded: two paths
    that differ by a function each are two ways.
    """

    def functions(paths: Iterable[CallPath]) -> set[str]:
        return {name for path in paths for name in path[:-1]}

    found: set[str] = set()
    for one, other in permutations(specs, 2):
        here, there = ({platform.build for platform in spec.platforms} for spec in (one, other))
        is_one_build = here == there and here and "" not in here
        missing = frozenset(functions(one.paths) - functions(other.paths))
        extra = frozenset(functions(other.paths) - functions(one.paths))
        bare = {without_functions(path, frozenset() if is_one_build else extra) for path in other.paths}
        for path in one.paths:
            names = missing.intersection(path[:-1])
            if names and (short := without_functions(path, missing)) in bare and short not in one.paths:
                found |= names
    return frozenset(found)
