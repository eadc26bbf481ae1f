"""The fewest edges that tell every two call paths of different groups apart, by A* (Brünink & Rosenblum, §3.5).

A pair of paths is separated by the edges that lie on one of them alone, so the task is to hit every such set of edges.
The search starts from few pairs, the most alike ones, and adds those that a solution leaves together until it leaves none:
the solution is then a smallest one for all pairs, and no matrix of all pairs is ever made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.hitting import MOST_STATES, greedily, hardest, smallest
from perflaw.learn.paths.separation import Found, Table, cells, table_of

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
