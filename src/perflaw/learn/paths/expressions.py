"""The shortest expressions over chosen edges that are true of one group of call paths and of no other (§3.5).

Disjunctive normal form. Combinations of edges that no path shows are don't-cares: they make expressions short, and what an
unseen path of such a combination is expected to do is told by no group, or by several; then it is unknown (``classify``).
"""

from __future__ import annotations

from itertools import combinations

from perflaw.learn.paths.atoms import holds
from perflaw.learn.paths.hitting import MOST_STATES, greedily, hardest, smallest
from perflaw.types import PathSpec
from perflaw.types.durations import CallPath
from perflaw.types.specs import Edge, Term

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
