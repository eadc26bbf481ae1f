"""Smallest sets that hit every one of given sets, by A*, and the fewest edges that separate all groups of call paths.

Sets of columns are bits of a number.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from perflaw.learn.paths.edges import Array, Bools, ChosenColumns, Labels, Table, cells, table_of

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
        for after in _branches(state, hits, sets):
            heapq.heappush(queue, after)
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


def _branches(state: _State, hits: dict[int, int], sets: list[int]) -> Iterator[_State]:
    """The hardest set is hit by one of its columns: by the first, or not by the first but by the second, and so on."""
    hardest = min(_bits(state.unhit), key=lambda number: ((sets[number] & state.open).bit_count(), number))
    still_open = state.open
    columns = _bits(sets[hardest] & still_open)
    for column in sorted(columns, key=lambda one: (-(hits[one] & state.unhit).bit_count(), one)):
        still_open &= ~(1 << column)
        rest = state.unhit & ~hits[column]
        if all(sets[number] & still_open for number in _bits(rest)):
            chosen = (*state.chosen, column)
            bound = len(chosen) + _bound(rest, hits, sets, still_open)
            yield _State(max(bound, state.bound), rest.bit_count(), chosen, rest, still_open)


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
