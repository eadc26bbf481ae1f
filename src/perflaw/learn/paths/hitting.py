"""Smallest sets that hit every one of given sets, by A*: the search behind edges and behind expressions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.edges import Found, Table, cells, table_of

MOST_STATES = 3000
"""States of a search; beyond, the set is completed greedily and not proven to be the smallest."""


def hardest(pairs: Iterable[int]) -> list[int]:
    """Those sets of which no other is a part: hitting these hits all."""
    kept: list[int] = []
    for pair in sorted(pairs, key=lambda pair: (pair.bit_count(), pair)):
        if not any(pair & other == other for other in kept):
            kept.append(pair)
    return kept


@dataclass(frozen=True, slots=True, order=True)
class _State:
    """A node of the search; the order is that of the queue."""

    bound: int
    """Columns that any solution from here has at least."""
    unseparated: int
    """Pairs that are not separated yet, how many."""
    chosen: tuple[int, ...]
    """Columns so far."""
    pairs: int
    """The pairs, as bits."""
    open: int
    """Columns that may still be taken, as bits."""


def smallest(pairs: list[int], most_states: int) -> tuple[tuple[int, ...] | None, int]:
    """A smallest set of columns that hits every pair, and the states it took; None where these do not suffice.

    Sets of columns (pairs of paths are separated by one each) are bits of a number. The queue's order is that of the
    least size a solution can have, so the first state without pairs is a smallest one.

    >>> smallest([0b011, 0b110, 0b101], 100)[0]
    (0, 1)
    """
    hits = _hits(pairs)
    every = (1 << len(pairs)) - 1
    still = sum(1 << column for column in hits)
    queue = [_State(_bound(every, hits, pairs, still), len(pairs), (), every, still)]
    for used in range(most_states):
        state = heapq.heappop(queue)
        if state.pairs == 0:
            return tuple(sorted(state.chosen)), used + 1
        for after in _branches(state, hits, pairs):
            heapq.heappush(queue, after)
    return None, most_states


def _hits(pairs: list[int]) -> dict[int, int]:
    """Column → the pairs that it separates, as bits."""
    hits: dict[int, int] = {}
    for number, pair in enumerate(pairs):
        for column in _bits(pair):
            hits[column] = hits.get(column, 0) | 1 << number
    return dict(sorted(hits.items()))


def _bits(mask: int) -> list[int]:
    """Places of the bits, increasing."""
    return [place for place, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]


def _branches(state: _State, hits: dict[int, int], pairs: list[int]) -> Iterable[_State]:
    """The hardest pair is separated by one of its columns: by the first, or not by that but by the second, and so on."""
    hardest = min(_bits(state.pairs), key=lambda number: ((pairs[number] & state.open).bit_count(), number))
    still = state.open
    columns = _bits(pairs[hardest] & still)
    for column in sorted(columns, key=lambda one: (-(hits[one] & state.pairs).bit_count(), one)):
        still &= ~(1 << column)
        rest = state.pairs & ~hits[column]
        if all(pairs[number] & still for number in _bits(rest)):
            chosen = (*state.chosen, column)
            bound = len(chosen) + _bound(rest, hits, pairs, still)
            yield _State(max(bound, state.bound), rest.bit_count(), chosen, rest, still)


def _bound(rest: int, hits: dict[int, int], pairs: list[int], still: int) -> int:
    """Columns needed at least: pairs that share no column, and ⌈unseparated / most that one column separates⌉."""
    if rest == 0:
        return 0
    taken, apart, numbers = 0, 0, _bits(rest)
    for number in numbers:
        if not pairs[number] & still & taken:
            taken |= pairs[number] & still
            apart += 1
    best = max((hit & rest).bit_count() for column, hit in hits.items() if still >> column & 1)
    return max(apart, -(-len(numbers) // best))


def greedily(pairs: list[int]) -> tuple[int, ...]:
    """Columns that hit every pair, the one that hits most of what is left first."""
    hits = _hits(pairs)
    rest, chosen = (1 << len(pairs)) - 1, []
    while rest:
        column = max(hits, key=lambda one: ((hits[one] & rest).bit_count(), -one))
        chosen.append(column)
        rest &= ~hits[column]
    return tuple(sorted(chosen))


# ---- The fewest edges that tell every two call paths of different groups apart, by A* (Brünink & Rosenblum, §3.5).
#
# A pair of paths is separated by the edges that lie on one of them alone, so the task is to hit every such set of
# edges.
# The search starts from few pairs, the most alike ones, and adds those that a solution leaves together until it
# leaves none:
# the solution is then a smallest one for all pairs, and no matrix of all pairs is ever made.

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]

CHUNK = 256
"""Rows that are compared with all others at once."""


def exact_edges(rows: Bools, labels: Labels, calls: Array, most_states: int = MOST_STATES) -> Found:
    """Columns, as few as possible, by which no two paths of different groups stay together.

    ``rows`` (P, E), ``labels`` (P,) groups from 0, ``calls`` (P,). Of paths with equal rows in different groups, which
    nothing separates, the group of most calls counts. Not ``enough`` where it is not proven that fewer do not do.

    >>> rows = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0]], dtype=bool)
    >>> exact_edges(rows, np.array([0, 1, 1]), np.ones(3)).chosen
    (2,)
    """
    table = table_of(rows, labels, calls)
    group = table.calls.argmax(axis=1)
    pairs: set[int] = set()
    chosen: tuple[int, ...] = ()
    left, proven = most_states, True
    while fresh := _together(table, group, cells(table, chosen)) - pairs:
        pairs |= fresh
        found, used = smallest(hardest(pairs), left)
        left -= used
        proven = proven and found is not None
        chosen = found if found is not None else greedily(hardest(pairs))
    return Found(chosen, proven)


def _together(table: Table, group: Labels, place: Labels) -> set[int]:
    """Of every row that shares its cell with another group: the columns that separate it from the most alike such row."""
    found = set()
    for cell in range(int(place.max(initial=0)) + 1):
        members = np.flatnonzero(place == cell)
        if np.unique(group[members]).size < 2:
            continue
        rows = table.rows[members]
        for first in range(0, len(members), CHUNK):
            part = rows[first : first + CHUNK]
            apart = part.sum(axis=1)[:, None] + rows.sum(axis=1) - 2.0 * part @ rows.T
            apart[group[members[first : first + CHUNK]][:, None] == group[members]] = np.inf
            found |= {_mask(one != rows[int(other)]) for one, other in zip(part, apart.argmin(axis=1), strict=True)}
    return found


def _mask(columns: Bools) -> int:
    """Columns as bits."""
    return int.from_bytes(np.packbits(columns, bitorder="little").tobytes(), "little")
