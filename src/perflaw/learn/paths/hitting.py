"""Smallest sets that hit every one of given sets, by A*: the search behind edges and behind expressions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

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
