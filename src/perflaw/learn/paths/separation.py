"""How well a set of edges tells groups of call paths apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]

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
