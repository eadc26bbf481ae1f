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

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]

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
        raise DataError(f"{a.component} ({a.metric}) and {b.component} ({b.metric})", "models of one function compare")
    names = inlined_functions([a, b])
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
    rows, columns = linear_sum_assignment(table, maximize=True)
    match = np.full(len(table), QUARANTINED - 1)
    match[rows] = columns
    return np.asarray(inside & (match[one] == other))


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


# ---- Functions that are on the call paths of one build and not on those of another, which inlined them into their callers
# (RQ2).


def inlined_functions(specs: Sequence[PathSpec]) -> frozenset[str]:
    """Names to leave out of all paths: a specification lacks them, and has the other's paths without them.

    A name stays if it is missing only because no call came that way: then the other specification has no such path
    without it. Specifications of the same builds are not compared.
    """

    def functions(paths: Iterable[CallPath]) -> set[str]:
        return {name for path in paths for name in path[:-1]}

    found: set[str] = set()
    for one, other in permutations(specs, 2):
        here, there = ({platform.build for platform in spec.platforms} for spec in (one, other))
        if here == there and here and "" not in here:
            continue
        missing = frozenset(functions(one.paths) - functions(other.paths))
        extra = frozenset(functions(other.paths) - functions(one.paths))
        bare = {without_functions(path, extra) for path in other.paths}
        for path in one.paths:
            names = missing.intersection(path[:-1])
            if names and (short := without_functions(path, missing)) in bare and short not in one.paths:
                found |= names
    return frozenset(found)


def without_functions(path: CallPath, names: frozenset[str]) -> CallPath:
    """The path without some functions, with recursion folded; the function itself stays.

    >>> without_functions(("main", "helper", "main", "work"), frozenset({"helper"}))
    ('main', 'work')
    """
    kept: list[str] = []
    for name in path[:-1]:
        if name not in names and kept[-1:] != [name]:
            kept.append(name)
    return (*kept, path[-1])
