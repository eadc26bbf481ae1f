"""Edges that tell call paths apart, and the fewest of them that tell nearly all calls' groups (§3.5).

The paper separates every pair of call paths. A few rare paths with a wrong label then cost dozens of edges; so by default
a small part of the calls may be left with the wrong group (``exact``: none; see astar.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.atoms import edges_of
from perflaw.learn.paths.separation import Assessed, Found, Table, assessed, extended, table_of
from perflaw.types.durations import CallPath
from perflaw.types.specs import Edge

Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]
Array = NDArray[np.float64]

NARROWEST, WIDEST = 10, 64
"""Sets of edges of one size that are kept while searching, at least and at most."""
USUAL, FEWEST_KEPT = 4, 3
"""From that size on fewer sets are kept from size to size: few behaviours need so many edges, and cells become many."""
EFFORT = 6000
"""Sets kept × edges, about: wide search where there are few edges."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """E edges that some of P call paths have and others have not, the nearest to the function first."""

    edges: tuple[Edge, ...]
    """The calls."""
    rows: Bools
    """(P, E) whether the call lies on the path."""


def columns_of(paths: list[CallPath] | tuple[CallPath, ...]) -> Columns:
    """Edges worth asking for: of those on the same paths, or on exactly the others, the one nearest the function.

    >>> columns_of([("a", "b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")]).edges
    (('b', 'z'), ('a', 'c'), ('b', 'c'))
    """
    on: dict[Edge, set[int]] = defaultdict(set)
    steps: dict[Edge, list[int]] = defaultdict(list)
    for number, path in enumerate(paths):
        for away, edge in enumerate(reversed(edges_of(path))):
            on[edge].add(number)
            steps[edge].append(away)
    every = frozenset(range(len(paths)))
    nearest = sorted(on, key=lambda edge: (sum(steps[edge]) / len(steps[edge]), edge))
    kept: dict[frozenset[int], Edge] = {}
    for edge in nearest:
        here = frozenset(on[edge])
        if here != every and here not in kept and every - here not in kept:
            kept[here] = edge
    rows = np.zeros((len(paths), len(kept)), dtype=bool)
    for column, members in enumerate(kept):
        rows[list(members), column] = True
    return Columns(tuple(kept.values()), rows)


def soft_edges(rows: Bools, labels: Labels, calls: Array, left: float, most: int) -> Found:
    """Columns, as few as found, by which at most ``left`` of the calls that can be told apart go to a wrong group.

    ``rows`` (P, E), ``labels`` (P,) groups from 0, ``calls`` (P,). Every group that can be told must be, or, where ``most``
    columns do not suffice for that, every one that more than ``left`` of the calls come by; else the best so many. Sets
    grow by one column; the purest of each size are kept (beam search).

    >>> rows = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
    >>> soft_edges(rows, np.array([0, 0, 1, 0]), np.array([10.0, 10.0, 10.0, 0.1]), 0.02, 8)
    Found(chosen=(0,), enough=True)
    """
    table = table_of(rows, labels, calls)
    big = table.calls.sum(axis=0) > left * calls.sum()
    search = partial(_search, goal=table.lost + left * float(calls.sum()), most=most)
    found = search(table)
    if found.enough or not (table.needed & ~big).any():
        return found
    return search(replace(table, needed=table.needed & big))


def _search(table: Table, goal: float, most: int) -> Found:
    """Few columns by which at most ``goal`` calls go to a wrong group and every group that must be is told."""
    columns = table.rows.shape[1]
    width = int(np.clip(EFFORT // max(columns, 1), NARROWEST, WIDEST))
    best = _candidate(assessed(table, ()), 0, ())
    beam: list[tuple[int, ...]] = [()]
    while not best.reaches(goal) and len(beam[0]) < min(most, columns):
        grown = sorted(_grown(table, beam, width), key=lambda one: one.promise)
        best = min(best, *grown, key=lambda one: one.rank)
        beam = [one.chosen for one in grown[:width]]
        if len(beam[0]) >= USUAL:
            width = max(width // 2, FEWEST_KEPT)
    return Found(_without_idle(table, best, goal), True) if best.reaches(goal) else Found(best.chosen, False)


def _without_idle(table: Table, best: _Candidate, goal: float) -> tuple[int, ...]:
    """What is left of a set when columns that it does not need are left out, the farthest first."""
    for column in reversed(best.chosen):
        fewer = tuple(one for one in best.chosen if one != column)
        if (without := _candidate(assessed(table, fewer), 0, fewer)).reaches(goal):
            best = without
    return best.chosen


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A set of columns."""

    chosen: tuple[int, ...]
    """The columns, increasing."""
    untold: int
    """Groups that could be told and are not."""
    wrong: float
    """Calls that go to a wrong group."""
    impurity: float
    """What is left to tell."""

    def reaches(self, goal: float) -> bool:
        """Whether it tells enough."""
        return self.untold == 0 and self.wrong <= goal

    @property
    def rank(self) -> tuple[float, ...]:
        """The best first: what it tells, then fewer and nearer columns."""
        return (self.untold, self.wrong, len(self.chosen), *self.chosen)

    @property
    def promise(self) -> tuple[float, ...]:
        """Those first from which it is worth going on."""
        return (self.impurity, self.wrong, *self.chosen)


def _candidate(values: Assessed, place: int, chosen: tuple[int, ...]) -> _Candidate:
    """One of K sets."""
    return _Candidate(chosen, int(values.untold[place]), float(values.wrong[place]), float(values.impurity[place]))


def _grown(table: Table, beam: list[tuple[int, ...]], width: int) -> list[_Candidate]:
    """Sets of the beam with one column more, each once: of every one that many of the most promising, and the best."""
    found: dict[tuple[int, ...], _Candidate] = {}
    for chosen in beam:
        values = extended(table, chosen)
        places = np.arange(values.wrong.size)
        promising = np.lexsort((places, values.wrong, values.impurity))[:width]
        best = np.lexsort((places, values.wrong, values.untold))[:1]
        for column in {int(place) for place in (*promising, *best)}.difference(chosen):
            key = tuple(sorted((*chosen, column)))
            found[key] = _candidate(values, column, key)
    return list(found.values())
