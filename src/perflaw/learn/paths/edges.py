"""Edges that separate groups of call paths: the few that put nearly all calls into the right group (Brünink & Rosenblum, §3.5).

The paper separates every pair of call paths (``exact_columns``). A few rare paths with a wrong label then need dozens of
edges; so by default a small part of the calls may be left in the wrong group.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.types.specifications import CallPath, Edge, Term

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]

# ---- The calls that lie on a call path: what expressions consist of.

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
    on_path = set(edges_of(path))
    return any(all((edge in on_path) == wanted for edge, wanted in term) for term in expression)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTable:
    """E edges that some of P call paths have and others do not, the nearest to the function first."""

    edges: tuple[Edge, ...]
    """The calls."""
    rows: Bools
    """(P, E) whether the call lies on the path."""


def edge_table(paths: Sequence[CallPath]) -> EdgeTable:
    """Edges worth asking for: of those on the same paths, or on exactly the other paths, the one nearest the function.

    Where a path starts is not asked for: a recording that has more callers, or fewer of them, has other starts.

    >>> edge_table([("a", "b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")]).edges
    (('b', 'z'), ('a', 'c'), ('b', 'c'))
    """
    paths_with: dict[Edge, set[int]] = defaultdict(set)
    distances: dict[Edge, list[int]] = defaultdict(list)
    for number, path in enumerate(paths):
        for distance, edge in enumerate(reversed(edges_of(path)[1:])):
            paths_with[edge].add(number)
            distances[edge].append(distance)
    all_paths = frozenset(range(len(paths)))
    kept: dict[frozenset[int], Edge] = {}
    for edge in sorted(paths_with, key=lambda edge: (sum(distances[edge]) / len(distances[edge]), edge)):
        here = frozenset(paths_with[edge])
        if here != all_paths and here not in kept and all_paths - here not in kept:
            kept[here] = edge
    rows = np.zeros((len(paths), len(kept)), dtype=bool)
    for column, members in enumerate(kept):
        rows[list(members), column] = True
    return EdgeTable(tuple(kept.values()), rows)


# ---- How well a set of columns separates groups of call paths.

MIN_SHARE = 0.5
"""A group is separated if this fraction of its calls falls into its cells, and of the calls in its cells belongs to it."""
DIGITS = 9
"""Digits of impurities that count: the others depend on the order of sums."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """U distinct rows over E columns, with the calls of G groups that come by them."""

    rows: Array
    """(U, E) 1 if the call lies on the path, else 0."""
    calls: Array
    """(U, G) calls."""
    separable: Bools
    """(G,) groups that all columns together separate; only these must be separated."""
    lost: float
    """Calls that no columns can put into the right group."""


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """How well K sets of columns separate the groups."""

    wrong: Array
    """(K,) calls that fall into the cell of a wrong group."""
    unseparated: Labels
    """(K,) separable groups that are not separated."""
    impurity: Array
    """(K,) entropy of the group within the cells, half by calls, half with the same weight for every group."""


def table_of(rows: Bools, labels: Labels, calls: Array) -> Table:
    """The table of paths: rows (P, E), groups (P,) numbered from 0, calls (P,). Paths with equal rows are one."""
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    table = np.zeros((len(distinct), int(labels.max(initial=0)) + 1))
    np.add.at(table, (place.ravel(), labels), calls)
    lost = float((table.sum(axis=1) - table.max(axis=1)).sum())
    return Table(distinct.astype(np.float64), table, _separated(table[:, :, None])[:, 0], lost)


def cells(table: Table, chosen: tuple[int, ...]) -> Labels:
    """Number of the cell of every row, (U,): the chosen columns do not separate the rows of a cell."""
    place = np.zeros(len(table.rows), dtype=np.intp)
    for column in chosen:
        place = np.unique(2 * place + (table.rows[:, column] > 0), return_inverse=True)[1]
    return place


def assess(table: Table, chosen: tuple[int, ...]) -> Assessment:
    """The chosen columns alone, K = 1."""
    place = cells(table, chosen)
    sums = np.zeros((int(place.max(initial=0)) + 1, table.calls.shape[1]))
    np.add.at(sums, place, table.calls)
    return _assessment(table, sums[:, :, None])


def assess_extended(table: Table, chosen: tuple[int, ...]) -> Assessment:
    """The chosen columns with each other one, K = E."""
    place = cells(table, chosen)
    row, group = np.nonzero(table.calls)
    groups, count = table.calls.shape[1], int(place.max(initial=0)) + 1
    key, calls = place[row] * groups + group, table.calls[row, group]
    order = np.argsort(key, kind="stable")
    filled, first = np.unique(key[order], return_index=True)
    # Most rows have calls of few groups, so this is less work than the product of two matrices.
    inside = np.zeros((count * groups, table.rows.shape[1]))
    inside[filled] = np.add.reduceat(table.rows[row[order]] * calls[order, None], first, axis=0)
    whole = np.bincount(key, calls, count * groups)
    inside, whole = inside.reshape(count, groups, -1), whole.reshape(count, groups, 1)
    return _assessment(table, np.concatenate([inside, whole - inside]))


def _assessment(table: Table, sums: Array) -> Assessment:
    """From calls by cell, group and set, (cells, G, K)."""
    total = table.calls.sum(axis=0)
    factor = 1.0 / max(total.sum(), 1.0) + 1.0 / (total.size * np.maximum(total, 1.0))
    mass = sums * factor[:, None]
    cell_entropy, group_entropy = (x * np.log(np.where(x > 0, x, 1.0)) for x in (mass.sum(axis=1), mass))
    impurity = cell_entropy.sum(axis=0) - group_entropy.sum(axis=(0, 1))
    unseparated = (table.separable[:, None] & ~_separated(sums)).sum(axis=0)
    wrong = (sums.sum(axis=1) - sums.max(axis=1)).sum(axis=0)
    return Assessment(wrong, unseparated, np.round(impurity, DIGITS))


def _separated(sums: Array) -> Bools:
    """Whether each group is separated, (G, K), if every cell belongs to the group of most calls, (cells, G, K)."""
    winner = np.arange(sums.shape[1])[:, None] == sums.argmax(axis=1)[:, None, :]
    right = np.where(winner, sums, 0.0).sum(axis=0)
    taken = np.where(winner, sums.sum(axis=1, keepdims=True), 0.0).sum(axis=0)
    return np.asarray((right > 0) & (right >= MIN_SHARE * sums.sum(axis=0)) & (right >= MIN_SHARE * taken))


# ---- Soft separation: a beam search for few columns.

MIN_BEAM, MAX_BEAM = 10, 64
"""Smallest and largest number of sets of one size that are kept while searching."""
NARROWING_SIZE, MIN_NARROWED_BEAM = 4, 3
"""Size of the sets from which on fewer are kept: few behaviours need so many edges, and there are many cells."""
EFFORT = 6000
"""Number of sets kept times number of edges, roughly: the search is wide if there are few edges."""


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """Columns that separate groups."""

    chosen: tuple[int, ...]
    """The columns, increasing."""
    enough: bool
    """Whether they separate what they should (soft), or are proven to be the fewest (exact)."""


def soft_columns(rows: Bools, labels: Labels, calls: Array, left: float, most: int) -> ChosenColumns:
    """Columns, as few as are found, by which at most the fraction ``left`` of the calls falls into a wrong group needlessly.

    ``rows`` (P, E), ``labels`` (P,) groups from 0, ``calls`` (P,). Every separable group must be separated; if ``most``
    columns do not suffice for that, every one with more than the fraction ``left`` of the calls; else the best columns are
    returned. Sets grow by one column; the purest of each size are kept (beam search).

    >>> rows = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
    >>> soft_columns(rows, np.array([0, 0, 1, 0]), np.array([10.0, 10.0, 10.0, 0.1]), 0.02, 8)
    ChosenColumns(chosen=(0,), enough=True)
    """
    table = table_of(rows, labels, calls)
    large = table.calls.sum(axis=0) > left * calls.sum()
    goal = table.lost + left * float(calls.sum())
    found = _search(table, goal, most)
    if found.enough or not (table.separable & ~large).any():
        return found
    return _search(replace(table, separable=table.separable & large), goal, most)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A set of columns."""

    chosen: tuple[int, ...]
    """The columns, increasing."""
    unseparated: int
    """Separable groups that are not separated."""
    wrong: float
    """Calls that fall into the cell of a wrong group."""
    impurity: float
    """Entropy that is left."""

    @classmethod
    def of(cls, values: Assessment, place: int, chosen: tuple[int, ...]) -> _Candidate:
        """One of K assessed sets."""
        return cls(chosen, int(values.unseparated[place]), float(values.wrong[place]), float(values.impurity[place]))

    def reaches(self, goal: float) -> bool:
        """Whether it separates enough."""
        return self.unseparated == 0 and self.wrong <= goal

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key that puts the best first: by what it separates, then by fewer and nearer columns."""
        return (self.unseparated, self.wrong, len(self.chosen), *self.chosen)

    @property
    def promise(self) -> tuple[float, ...]:
        """Sort key that puts those first that are worth extending."""
        return (self.impurity, self.wrong, *self.chosen)


def _search(table: Table, goal: float, most: int) -> ChosenColumns:
    """Few columns by which at most ``goal`` calls fall into a wrong group and every separable group is separated."""
    columns = table.rows.shape[1]
    width = int(np.clip(EFFORT // max(columns, 1), MIN_BEAM, MAX_BEAM))
    best = _Candidate.of(assess(table, ()), 0, ())
    beam: list[tuple[int, ...]] = [()]
    while not best.reaches(goal) and len(beam[0]) < min(most, columns):
        # Each set with one column more: of every set many of the most promising, and the best.
        grown: dict[tuple[int, ...], _Candidate] = {}
        for chosen in beam:
            values = assess_extended(table, chosen)
            places = np.arange(values.wrong.size)
            promising = np.lexsort((places, values.wrong, values.impurity))[:width]
            separating = np.lexsort((places, values.wrong, values.unseparated))[:1]
            for column in {int(place) for place in (*promising, *separating)}.difference(chosen):
                key = tuple(sorted((*chosen, column)))
                grown[key] = _Candidate.of(values, column, key)
        candidates = sorted(grown.values(), key=lambda one: one.promise)
        best = min(best, *candidates, key=lambda one: one.rank)
        beam = [one.chosen for one in candidates[:width]]
        if len(beam[0]) >= NARROWING_SIZE:
            width = max(width // 2, MIN_NARROWED_BEAM)
    if not best.reaches(goal):
        return ChosenColumns(best.chosen, False)
    # Columns that are not needed are dropped, the farthest from the function first.
    for column in reversed(best.chosen):
        fewer = tuple(one for one in best.chosen if one != column)
        if (without := _Candidate.of(assess(table, fewer), 0, fewer)).reaches(goal):
            best = without
    return ChosenColumns(best.chosen, True)


# ---- Smallest sets that hit every one of given sets, by A*. Sets of columns are bits of a number.

MAX_STATES = 3000
"""Number of states of a search after which the set is completed greedily, and not proven to be the smallest."""


def hitting_set(sets: Iterable[int], max_states: int = MAX_STATES) -> tuple[tuple[int, ...], int, bool]:
    """Columns that hit every set, the states that the search took, and whether no fewer columns do.

    If ``max_states`` do not suffice, columns are chosen greedily, the one that hits most of the sets left first.
    """
    minimal = minimal_sets(sets)
    chosen, used = smallest_hitting_set(minimal, max_states)
    if chosen is not None:
        return chosen, used, True
    hits = _sets_hit(minimal)
    rest, greedy = (1 << len(minimal)) - 1, []
    while rest:
        column = max(hits, key=lambda one: ((hits[one] & rest).bit_count(), -one))
        greedy.append(column)
        rest &= ~hits[column]
    return tuple(sorted(greedy)), used, False


def minimal_sets(sets: Iterable[int]) -> list[int]:
    """The sets that contain no other: columns that hit these hit all."""
    kept: list[int] = []
    for one in sorted(sets, key=lambda one: (one.bit_count(), one)):
        if not any(one & other == other for other in kept):
            kept.append(one)
    return kept


@dataclass(frozen=True, slots=True, order=True)
class _State:
    """A node of the search; the order is that of the queue."""

    bound: int
    """Number of columns that any solution from here has at least."""
    unhit_count: int
    """Number of sets that are not hit yet."""
    chosen: tuple[int, ...]
    """Columns so far."""
    unhit: int
    """The sets that are not hit yet, as bits."""
    open: int
    """Columns that may still be taken, as bits."""


def smallest_hitting_set(sets: list[int], max_states: int) -> tuple[tuple[int, ...] | None, int]:
    """A smallest set of columns that hits every set, and the states it took; None if ``max_states`` do not suffice.

    The queue is ordered by the smallest size that a solution can have, so the first state that hits all sets is a smallest
    solution.

    >>> smallest_hitting_set([0b011, 0b110, 0b101], 100)[0]
    (0, 1)
    """
    hits = _sets_hit(sets)
    every = (1 << len(sets)) - 1
    columns = sum(1 << column for column in hits)
    queue = [_State(_bound(every, hits, sets, columns), len(sets), (), every, columns)]
    for used in range(max_states):
        state = heapq.heappop(queue)
        if state.unhit == 0:
            return tuple(sorted(state.chosen)), used + 1
        # The hardest set is hit by one of its columns: by the first, or not by the first but by the second, and so on.
        hardest = min(_bits(state.unhit), key=lambda number: ((sets[number] & state.open).bit_count(), number))
        still_open = state.open
        hitting = _bits(sets[hardest] & still_open)
        for column in sorted(hitting, key=lambda one: (-(hits[one] & state.unhit).bit_count(), one)):
            still_open &= ~(1 << column)
            rest = state.unhit & ~hits[column]
            if all(sets[number] & still_open for number in _bits(rest)):
                chosen = (*state.chosen, column)
                bound = max(len(chosen) + _bound(rest, hits, sets, still_open), state.bound)
                heapq.heappush(queue, _State(bound, rest.bit_count(), chosen, rest, still_open))
    return None, max_states


def _sets_hit(sets: list[int]) -> dict[int, int]:
    """Column → the sets that it hits, as bits; columns are in order."""
    hits: dict[int, int] = {}
    for number, one in enumerate(sets):
        for column in _bits(one):
            hits[column] = hits.get(column, 0) | 1 << number
    return dict(sorted(hits.items()))


def _bits(mask: int) -> list[int]:
    """Places of the bits, increasing."""
    return [place for place, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]


def _bound(rest: int, hits: dict[int, int], sets: list[int], still_open: int) -> int:
    """Number of columns needed at least: sets that share no column, and ⌈unhit sets / most that one column hits⌉."""
    if rest == 0:
        return 0
    taken, disjoint, numbers = 0, 0, _bits(rest)
    for number in numbers:
        if not sets[number] & still_open & taken:
            taken |= sets[number] & still_open
            disjoint += 1
    best = max((hit & rest).bit_count() for column, hit in hits.items() if still_open >> column & 1)
    return max(disjoint, -(-len(numbers) // best))


# ---- The fewest edges that separate every two call paths of different groups (Brünink & Rosenblum, §3.5).

CHUNK = 256
"""Number of rows that are compared with all others at once."""


def exact_columns(rows: Bools, labels: Labels, calls: Array, max_states: int = MAX_STATES) -> ChosenColumns:
    """Columns, as few as possible, that separate every two paths of different groups.

    ``rows`` (P, E), ``labels`` (P,) groups from 0, ``calls`` (P,). Of paths with equal rows in different groups, which
    nothing separates, the group of most calls counts. Not ``enough`` if fewer columns may do.

    A pair of paths is separated by the edges that lie on one of them alone, so every such set of edges must be hit. The
    search starts from few pairs, the most similar ones, and adds those that a solution does not separate until there are
    none: the solution is then a smallest one for all pairs, and no matrix of all pairs is ever made.

    >>> rows = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0]], dtype=bool)
    >>> exact_columns(rows, np.array([0, 1, 1]), np.ones(3)).chosen
    (2,)
    """
    table = table_of(rows, labels, calls)
    group = table.calls.argmax(axis=1)
    pairs: set[int] = set()
    chosen: tuple[int, ...] = ()
    left, proven = max_states, True
    while fresh := _unseparated_pairs(table, group, cells(table, chosen)) - pairs:
        pairs |= fresh
        chosen, used, smallest = hitting_set(pairs, left)
        left -= used
        proven = proven and smallest
    return ChosenColumns(chosen, proven)


def _unseparated_pairs(table: Table, group: Labels, cell: Labels) -> set[int]:
    """For every row whose cell has another group: the columns that separate it from the most similar row of another group."""
    found = set()
    for number in range(int(cell.max(initial=0)) + 1):
        members = np.flatnonzero(cell == number)
        if np.unique(group[members]).size < 2:
            continue
        rows = table.rows[members]
        for first in range(0, len(members), CHUNK):
            part = rows[first : first + CHUNK]
            distance = part.sum(axis=1)[:, None] + rows.sum(axis=1) - 2.0 * part @ rows.T
            distance[group[members[first : first + CHUNK]][:, None] == group[members]] = np.inf
            for row, other in zip(part, distance.argmin(axis=1), strict=True):
                bits = np.packbits(row != rows[int(other)], bitorder="little")
                found.add(int.from_bytes(bits.tobytes(), "little"))
    return found
