"""Edges that tell call paths apart, and the fewest of them that tell nearly all calls' groups (§3.5).

The paper separates every pair of call paths. A few rare paths with a wrong label then cost dozens of edges; so by default
a small part of the calls may be left with the wrong group (``exact``: none; see astar.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from perflaw.types.specifications import CallPath, Edge, Term

# ---- How well a set of edges tells groups of call paths apart.

MOSTLY = 0.5
"""A group is told where such a part of its calls goes to its cells, and such a part of what goes there is its own."""
DIGITS = 9
"""Impurities that agree so far are equal: their last digits depend on the order of sums."""


@dataclass(frozen=True, slots=True)
class Found:
    """Columns that tell groups apart."""

    chosen: tuple[int, ...]
    """The columns, increasing."""
    enough: bool
    """Whether they do what was asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """U distinct rows over E columns, with the calls of G groups that come by them."""

    rows: Array
    """(U, E) 1 where the call lies on the path, else 0."""
    calls: Array
    """(U, G)."""
    needed: Bools
    """(G,) groups that all columns together tell."""
    lost: float
    """Calls that no columns can give to the right group."""


@dataclass(frozen=True, slots=True, eq=False)
class Assessed:
    """K sets of columns."""

    wrong: Array
    """(K,) calls that go to a wrong group."""
    untold: Labels
    """(K,) groups that could be told and are not."""
    impurity: Array
    """(K,) entropy of the group within the cells, half by calls, half with every group alike."""


def table_of(rows: Bools, labels: Labels, calls: Array) -> Table:
    """From paths: rows (P, E), groups (P,) numbered from 0, calls (P,). Paths of equal rows are one."""
    each, place = np.unique(rows, axis=0, return_inverse=True)
    table = np.zeros((len(each), int(labels.max(initial=0)) + 1))
    np.add.at(table, (place.ravel(), labels), calls)
    told = _told(table[:, :, None])[:, 0]
    return Table(each.astype(np.float64), table, told, float((table.sum(axis=1) - table.max(axis=1)).sum()))


def cells(table: Table, chosen: tuple[int, ...]) -> Labels:
    """Number of the cell of every row, (U,): rows that the chosen columns do not tell apart."""
    place = np.zeros(len(table.rows), dtype=np.intp)
    for column in chosen:
        place = np.unique(2 * place + (table.rows[:, column] > 0), return_inverse=True)[1]
    return place


def extended(table: Table, chosen: tuple[int, ...]) -> Assessed:
    """The chosen columns with each other one, K = E."""
    place = cells(table, chosen)
    row, group = np.nonzero(table.calls)
    groups, count = table.calls.shape[1], int(place.max(initial=0)) + 1
    # A sparse product: threads of a dense one cost more than they save at this size.
    by_cell = csr_matrix((table.calls[row, group], (place[row] * groups + group, row)), (count * groups, len(place)))
    inside = (by_cell @ table.rows).reshape(count, groups, -1)
    whole = np.asarray(by_cell.sum(axis=1)).reshape(count, groups, 1)
    return _assessed(table, np.concatenate([inside, whole - inside]))


def assessed(table: Table, chosen: tuple[int, ...]) -> Assessed:
    """The chosen columns alone, K = 1."""
    place = cells(table, chosen)
    sums = np.zeros((int(place.max(initial=0)) + 1, table.calls.shape[1]))
    np.add.at(sums, place, table.calls)
    return _assessed(table, sums[:, :, None])


def _assessed(table: Table, sums: Array) -> Assessed:
    """Of calls by cell, group and set, (cells, G, K)."""
    total = table.calls.sum(axis=0)
    factor = 1.0 / max(total.sum(), 1.0) + 1.0 / (total.size * np.maximum(total, 1.0))
    mass = sums * factor[:, None]
    parts = mass.sum(axis=1)
    impurity = _xlogx(parts).sum(axis=0) - _xlogx(mass).sum(axis=(0, 1))
    untold = (table.needed[:, None] & ~_told(sums)).sum(axis=0)
    wrong = (sums.sum(axis=1) - sums.max(axis=1)).sum(axis=0)
    return Assessed(wrong, untold, np.round(impurity, DIGITS))


def _told(sums: Array) -> Bools:
    """Whether each group is told, (G, K), where every cell goes to the group of most of its calls, (cells, G, K)."""
    winner = np.arange(sums.shape[1])[:, None] == sums.argmax(axis=1)[:, None, :]
    right = np.where(winner, sums, 0.0).sum(axis=0)
    taken = np.where(winner, sums.sum(axis=1, keepdims=True), 0.0).sum(axis=0)
    return np.asarray((right > 0) & (right >= MOSTLY * sums.sum(axis=0)) & (right >= MOSTLY * taken))


def _xlogx(x: Array) -> Array:
    """x·ln x, 0 at 0."""
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))


# ---- The calls that lie on a call path: what expressions are made of (§3.5).

START: Final = "(start)"
"""Caller of a program's first function."""


def edges_of(path: CallPath) -> tuple[Edge, ...]:
    """Calls from the start of the program to the function itself, in order.

    >>> edges_of(("main", "run", "work"))
    (('(start)', 'main'), ('main', 'run'), ('run', 'work'))
    """
    return tuple(pairwise((START, *path)))


def holds(expression: tuple[Term, ...], path: CallPath) -> bool:
    """Whether any conjunction of the expression is true of the path.

    >>> holds((((("a", "b"), True), (("b", "c"), False)),), ("a", "b", "d"))
    True
    """
    on = set(edges_of(path))
    return any(all((edge in on) == wanted for edge, wanted in term) for term in expression)


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
