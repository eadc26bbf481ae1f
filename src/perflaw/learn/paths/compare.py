"""How far two specifications of a function agree on which call paths behave alike (Brünink & Rosenblum, RQ1, RQ2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from perflaw.errors import DataError
from perflaw.types import Consistency, PathSpec
from perflaw.types.specifications import CallPath

# ---- Functions that one build has on its call paths and another one has not: the compiler put them into their
# callers (RQ2).


def inlined(specs: Sequence[PathSpec]) -> frozenset[str]:
    """Names to leave out of all paths: absent from one specification, whose paths look like another's without them.

    A name that is absent only because nobody came that way stays: then no path without it is new to the other one.
    """
    return frozenset(
        name
        for one, other in permutations(specs, 2)
        if _differ(one, other)
        for name in _absent(set(one.paths), set(other.paths))
    )


def without(path: CallPath, names: frozenset[str]) -> CallPath:
    """The path with these left out and recursion folded; the function itself stays.

    >>> without(("main", "helper", "main", "work"), frozenset({"helper"}))
    ('main', 'work')
    """
    kept: list[str] = []
    for name in path[:-1]:
        if name not in names and kept[-1:] != [name]:
            kept.append(name)
    return (*kept, path[-1])


def _differ(one: PathSpec, other: PathSpec) -> bool:
    """Whether the two may come from different builds."""
    here, there = ({platform.build for platform in spec.platforms} for spec in (one, other))
    return here != there or "" in here or not here


def _absent(mine: set[CallPath], theirs: set[CallPath]) -> set[str]:
    """Names of mine that are absent from theirs, on paths that without them are theirs and not yet mine."""
    foreign = _names(mine) - _names(theirs)
    alone = _names(theirs) - _names(mine)
    bare = {without(path, frozenset(alone)) for path in theirs}
    found: set[str] = set()
    for path in mine:
        here = frozenset(path[:-1]) & foreign
        if here and (short := without(path, frozenset(foreign))) in bare and short not in mine:
            found |= here
    return found


def _names(paths: Iterable[CallPath]) -> set[str]:
    """Functions on these paths, but for the last."""
    return {name for path in paths for name in path[:-1]}


Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]

DRAWS: Final = 200
"""Random groupings by which the level of chance is told; always the same ones."""
OUTSIDE: Final = -1
"""Group of a path that is quarantined: it agrees with nothing."""


def consistency(a: PathSpec, b: PathSpec) -> Consistency:
    """Share of the call paths, of those that both have in a group, on which they agree, and of the calls that came by them.

    Groups of the one are matched with groups of the other so that as many calls as can be come by paths of matched
    groups; those paths agree. Chance is the mean over random groupings of the same sizes (simulated, fixed seed).
    Functions that are missing from either build are left out first. DataError for different functions.
    """
    if (a.component, a.metric) != (b.component, b.metric):
        raise DataError(f"{a.component} ({a.metric}) and {b.component} ({b.metric})", "models of one function compare")
    names = inlined([a, b])
    mine, others = labelled(a, names), labelled(b, names)
    common = sorted(mine.keys() & others.keys())
    one = np.array([mine[path][0] for path in common], dtype=np.intp)
    other = np.array([others[path][0] for path in common], dtype=np.intp)
    calls = np.array([mine[path][1] + others[path][1] for path in common], dtype=np.float64)
    if not common:
        return Consistency(a.component, 1.0, 1.0, 1.0, 1.0, 0)
    paths, points = _shares(agreeing(one, other, calls), calls)
    chance = _chance(one, other, calls)
    return Consistency(a.component, paths, points, *chance, len(common))


def labelled(spec: PathSpec, names: frozenset[str] = frozenset()) -> dict[CallPath, tuple[int, int]]:
    """Call path without those names → its group and its calls; unknown paths are not there.

    Where several paths become one, the group that most of its calls come by.
    """
    calls: dict[CallPath, dict[int, int]] = {}
    for number, group in enumerate(spec.groups):
        label = OUTSIDE if group.standing == "quarantined" else number
        for place in group.paths:
            here = calls.setdefault(without(spec.paths[place], names), {})
            here[label] = here.get(label, 0) + sum(spec.path_counts[place])
    return {
        path: (max(sorted(here), key=lambda label: here[label]), sum(here.values())) for path, here in calls.items()
    }


def agreeing(one: Labels, other: Labels, calls: Array) -> Bools:
    """Whether each path (P,) is in groups that are matched: maximum-weight matching on the contingency table.

    The weight is calls, then paths; groups below 0 are matched with nothing.

    >>> agreeing(np.array([0, 0, 1]), np.array([1, 0, 0]), np.array([9.0, 1.0, 5.0])).tolist()
    [True, False, True]
    """
    inside = (one >= 0) & (other >= 0)
    if not inside.any():
        return np.zeros(one.size, dtype=bool)
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one[inside], other[inside]), calls[inside] + 0.5 / one.size)
    rows, columns = linear_sum_assignment(table, maximize=True)
    match = np.full(len(table), OUTSIDE - 1)
    match[rows] = columns
    return np.asarray(inside & (match[one] == other))


def _shares(agree: Bools, calls: Array) -> tuple[float, float]:
    """Of the paths, and of the calls."""
    return float(agree.mean()), float(calls[agree].sum() / max(calls.sum(), 1e-300))


def _chance(one: Labels, other: Labels, calls: Array) -> tuple[float, float]:
    """What groups of the same numbers of paths reach that are drawn at random."""
    rng = np.random.default_rng(0)
    drawn = [_shares(agreeing(one, rng.permutation(other), calls), calls) for _ in range(DRAWS)]
    paths, points = np.mean(drawn, axis=0)
    return float(paths), float(points)
