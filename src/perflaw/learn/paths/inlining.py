"""Functions that one build has on its call paths and another one has not: the compiler put them into their callers (RQ2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from perflaw.types import PathSpec
from perflaw.types.durations import CallPath


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
