"""Groups of call paths with the expressions that tell them apart (§3.5)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.counting import Counted
from perflaw.learn.paths.edges import columns_of, edges_of, holds, soft_edges
from perflaw.learn.paths.hitting import MOST_STATES, exact_edges, greedily, hardest, smallest
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import PathGroup, PathSpec
from perflaw.types.specifications import CallPath, Edge, Standing, Term

# ---- The shortest expressions over chosen edges that are true of one group of call paths and of no other (§3.5).
#
# Disjunctive normal form. Combinations of edges that no path shows are don't-cares: they make expressions short, and
# what an
# unseen path of such a combination is expected to do is told by no group, or by several; then it is unknown
# (``classify``).

Pattern = tuple[bool, ...]
"""Which of the chosen edges lie on a path."""
Cube = tuple[tuple[int, bool], ...]
"""A conjunction of literals over places in a pattern."""

ALL_CUBES = 8
"""Edges up to which all shortest conjunctions are tried; beyond, one for each pattern."""


def expression_of(own: list[Pattern], others: list[Pattern], edges: tuple[Edge, ...]) -> tuple[Term, ...]:
    """Fewest conjunctions, then fewest literals, that hold for all of ``own`` patterns and none of ``others``.

    The empty conjunction where there are no others. No pattern is both an own and another one.

    >>> e1, e2 = ("a", "b"), ("b", "c")
    >>> expression_of([(True, False)], [(False, True), (False, False)], (e1, e2))
    (((('a', 'b'), True),),)
    >>> expression_of([(False, False)], [(False, True), (True, False)], (e1, e2))
    (((('a', 'b'), False), (('b', 'c'), False)),)
    """
    cubes = sorted({cube for one in own for cube in _cubes(one, others)}, key=_length)
    covering = [sum(1 << place for place, cube in enumerate(cubes) if _covers(cube, one)) for one in own]
    needed = hardest(covering)
    chosen = smallest(needed, MOST_STATES)[0] or greedily(needed)
    return tuple(tuple((edges[place], value) for place, value in cubes[cube]) for cube in chosen)


def _length(cube: Cube) -> tuple[int, int, Cube]:
    """The shortest first, then those that say what lies on a path rather than what does not."""
    return len(cube), sum(not value for _, value in cube), cube


def _covers(cube: Cube, pattern: Pattern) -> bool:
    """Whether the conjunction holds for the pattern."""
    return all(pattern[place] == value for place, value in cube)


def _cubes(one: Pattern, others: list[Pattern]) -> list[Cube]:
    """Shortest conjunctions that hold for the pattern and for no other: they hit every set of places that differ."""
    apart = {sum(1 << place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b) for other in others}
    sets = hardest(apart)
    if len(one) > ALL_CUBES:
        chosen = smallest(sets, MOST_STATES)[0] or greedily(sets)
        return [tuple((place, one[place]) for place in chosen)]
    found: list[int] = []
    for size in range(len(one) + 1):
        for places in combinations(range(len(one)), size):
            mask = sum(1 << place for place in places)
            if all(mask & needed for needed in sets) and not any(mask & shorter == shorter for shorter in found):
                found.append(mask)
    return [tuple((place, one[place]) for place in range(len(one)) if mask >> place & 1) for mask in found]


def classify(spec: PathSpec, path: CallPath) -> str | None:
    """Id of the group that a call path belongs to; None where it is unknown.

    A path that the specification has seen is where it was seen; another one where exactly one expression holds.
    """
    for group in spec.groups:
        if any(spec.paths[place] == path for place in group.paths):
            return None if group.standing == "quarantined" else group.id
    return matching(spec, path)


def matching(spec: PathSpec, path: CallPath) -> str | None:
    """Id of the only group whose expression holds for a call path; None where there is none or several."""
    found = [group.id for group in spec.groups if not group.standing and holds(group.expression, path)]
    return found[0] if len(found) == 1 else None


Array = NDArray[np.float64]
Labels = NDArray[np.intp]

PURE = 0.8
"""Part of the calls by a group's expression that are its own; with less it is not told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Groups with expressions."""

    groups: tuple[PathGroup, ...]
    """That of most calls first."""
    atoms: tuple[Edge, ...]
    """Edges that the expressions use."""
    unknown: tuple[int, ...]
    """Paths of no group."""
    enough: bool
    """Whether the edges tell as much apart as was asked for."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said of one group."""

    expression: tuple[Term, ...]
    standing: Standing
    mislabelled: float


def explained(name: str, data: Counted, labels: Labels, options: MiningOptions, apart: Labels) -> Explained:
    """Groups by their labels (P,), numbered from 0, -1 unknown: these join a group where one expression holds for them.

    ``name`` makes ids differ from function to function. Paths ``apart`` (k,) are conflicting ones: no group is told of them.
    """
    known = np.setdiff1d(np.flatnonzero(labels >= 0), apart)
    every = np.full(labels.size, -1, dtype=np.intp)
    every[known] = np.unique(labels[known], return_inverse=True)[1]
    edges, told, enough = _separated(data, known, every[known], options)
    joined = _joined(data, every, told, apart)
    groups = [_group(name, data, np.flatnonzero(joined == number), one) for number, one in enumerate(told)]
    if apart.size:
        groups.append(_group(name, data, apart, _Told((), "quarantined", 0.0)))
    used = {edge for group in groups for term in group.expression for edge, _ in term}
    return Explained(
        groups=tuple(sorted(groups, key=lambda group: (group.standing == "quarantined", -sum(group.counts), group.id))),
        atoms=tuple(edge for edge in edges if edge in used),
        unknown=tuple(int(path) for path in np.setdiff1d(np.flatnonzero(joined < 0), apart)),
        enough=enough,
    )


def _separated(
    data: Counted, known: Labels, label: Labels, options: MiningOptions
) -> tuple[tuple[Edge, ...], list[_Told], bool]:
    """Edges that tell the groups of ``known`` paths (k,), what to say of each group, and whether the edges suffice."""
    columns = columns_of([data.paths[path] for path in known])
    calls = data.counts[known].sum(axis=1).astype(np.float64)
    if options.exact:
        found = exact_edges(columns.rows, label, calls)
    else:
        found = soft_edges(columns.rows, label, calls, options.left, options.most_atoms)
    edges = tuple(columns.edges[column] for column in found.chosen)
    return edges, _told(columns.rows[:, list(found.chosen)], label, calls, edges), found.enough


def _told(rows: NDArray[np.bool_], label: Labels, calls: Array, edges: tuple[Edge, ...]) -> list[_Told]:
    """What to say of each group, from patterns over the chosen edges (P, k), groups (P,) and calls (P,)."""
    patterns = [tuple(bool(on) for on in row) for row in rows]
    weight: dict[tuple[bool, ...], Array] = {}
    for pattern, group, n in zip(patterns, label, calls, strict=True):
        weight.setdefault(pattern, np.zeros(int(label.max()) + 1))[group] += n
    winner = {pattern: int(share.argmax()) for pattern, share in weight.items()}
    told = []
    for group in range(int(label.max(initial=-1)) + 1):
        own = sorted(pattern for pattern, best in winner.items() if best == group)
        taken, right = sum(weight[one].sum() for one in own), sum(weight[one][group] for one in own)
        whole = max(float(calls[label == group].sum()), 1.0)
        if not own or right < PURE * taken:
            told.append(_Told((), "inseparable", 0.0))
        else:
            others = sorted(pattern for pattern, best in winner.items() if best != group)
            told.append(_Told(expression_of(own, others, edges), "", float(1.0 - right / whole)))
    return told


def _joined(data: Counted, labels: Labels, told: list[_Told], apart: Labels) -> Labels:
    """The same with paths of no group put where exactly one expression holds."""
    out = labels.copy()
    for path in np.setdiff1d(np.flatnonzero(labels < 0), apart):
        found = [
            number for number, one in enumerate(told) if not one.standing and holds(one.expression, data.paths[path])
        ]
        if len(found) == 1:
            out[path] = found[0]
    return out


def _group(name: str, data: Counted, members: Labels, told: _Told) -> PathGroup:
    """One group."""
    counts = data.counts[members].sum(axis=0)
    return PathGroup(
        id=digest(name, told.expression or [edges_of(data.paths[path]) for path in members]),
        paths=tuple(int(path) for path in members),
        distribution=_shares(counts),
        counts=tuple(int(calls) for calls in counts),
        effective=float(data.effective[members].sum()),
        expression=told.expression,
        standing=told.standing,
        mislabelled=told.mislabelled,
        behaviours=_behaviours(data, members),
    )


def _shares(counts: NDArray[np.int64]) -> tuple[float, ...]:
    """Share of each cluster."""
    return tuple(float(share) for share in counts / max(int(counts.sum()), 1))


def _behaviours(data: Counted, members: Labels) -> dict[int, tuple[float, ...]] | None:
    """Platform → shares there, of those where the group was seen; None on one platform."""
    if len(data.platforms) < 2:
        return None
    sums = {platform: table[members].sum(axis=0) for platform, table in data.platforms.items()}
    return {platform: _shares(counts) for platform, counts in sums.items() if counts.sum()}


def digest(name: str, what: object) -> str:
    """Eight letters that stand for what a group is."""
    return hashlib.sha256(json.dumps([name, what]).encode()).hexdigest()[:8]
