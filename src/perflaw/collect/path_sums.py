"""Pieces of the C core's tables added up by call path, exactly: histograms of one path brought to one scale, batch sums.

All in arrays: a recording may have a hundred thousand pieces and millions of buckets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflaw.collect.core_tables import CoreTree, Export
from perflaw.collect.path_pieces import ON_CPU, WHOLE
from perflaw.store.columns import Array, added, grouped
from perflaw.types.durations import MOST_BUCKETS


@dataclass(frozen=True, slots=True)
class Pieces:
    """One row a function, observation, path and clock (P of them); buckets and levels in order of their piece."""

    code: Array
    """(P,) number of the function."""
    observation: Array
    """(P,) place among the function's."""
    path: Array
    """(P,) number of the call path, or ``WHOLE``."""
    clock: Array
    """(P,) ``WALL``, or ``ON_CPU`` where it differs."""
    scale: Array
    """(P,) of the histogram."""
    zeros: Array
    """(P,) calls without a duration."""
    bucket_of: Array
    """(B,) piece of each bucket."""
    bucket: Array
    """(B,) its index; increasing within a piece."""
    count: Array
    """(B,) calls in it."""
    level_of: Array
    """(L,) piece of each level."""
    level: Array
    """(L,) its number."""
    batches: Array
    """(L,) complete batches."""
    sum_b: Array
    """(L,) WIDE: ΣB."""
    sum_bb: Array
    """(L,) WIDE: ΣB²."""


def summed_pieces(tree: CoreTree, codes: Array, paths: Array) -> Pieces:
    """The pieces of these functions by call path. ``paths``: number of the path of each node."""
    rows = tree.tables[Export.PATH_PIECES]
    path = np.where(rows["node"] == WHOLE, WHOLE, paths[rows["node"]])
    parts, clock = _parts(rows, codes, path)
    keys = [rows["code"][parts], rows["observation"][parts], path[parts], clock]
    order, starts = grouped(keys) if len(parts) else (np.empty(0, np.intp), np.empty(0, np.intp))
    group = np.empty(len(parts), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    first = order[starts]
    zeros, scale = np.zeros(len(starts), np.int64), np.full(len(starts), 64)
    np.add.at(zeros, group, rows["zeros"][parts])
    np.minimum.at(scale, group, rows["scale"][parts])
    scale, bucket_of, bucket, count = _buckets(tree, parts, group, scale)
    levels = _levels(tree, parts, group)
    code, observation, of_path, by = (key[first] for key in keys)
    return Pieces(code, observation, of_path, by, scale, zeros, bucket_of, bucket, count, *levels)


def _parts(rows: Array, codes: Array, path: Array) -> tuple[Array, Array]:
    """Rows that are added up, and the clock that each counts for.

    Where one node of a path has CPU time apart from wall time, the others' CPU time is their wall time: those rows
    count for both.
    """
    chosen = np.flatnonzero(np.isin(rows["code"], codes))
    keys = [rows["code"], rows["observation"], path]
    _, at = np.unique(np.stack([key[chosen] for key in keys]), axis=1, return_inverse=True)
    at = np.asarray(at).reshape(-1)
    nodes = np.stack([rows["code"][chosen], rows["observation"][chosen], rows["node"][chosen]])
    _, own = np.unique(nodes, axis=1, return_inverse=True)
    own, on_cpu = np.asarray(own).reshape(-1), rows["clock"][chosen] == ON_CPU
    needed = np.isin(at, at[on_cpu]) & ~np.isin(own, own[on_cpu])
    clocks = [rows["clock"][chosen], np.full(np.count_nonzero(needed), ON_CPU)]
    return np.concatenate([chosen, chosen[needed]]), np.concatenate(clocks)


def _spread(lengths: Array, parts: Array) -> tuple[Array, Array]:
    """Places of what belongs to these rows in a table that follows in their order, and to which of them each belongs."""
    begins = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(parts)), lengths[parts])
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths[parts]) - lengths[parts], lengths[parts])
    return begins[parts][owner] + within, owner


def _buckets(tree: CoreTree, parts: Array, group: Array, scale: Array) -> tuple[Array, Array, Array, Array]:
    """Scale of each group's histogram, as fine as its bound on buckets allows; its buckets."""
    rows, table = tree.tables[Export.PATH_PIECES], tree.tables[Export.PATH_BUCKETS]
    places, owner = _spread(rows["buckets"], parts)
    of = group[owner]
    index = table["index"][places] >> (rows["scale"][parts][owner] - scale[of])
    low, high = np.full(len(scale), np.iinfo(np.int64).max), np.full(len(scale), np.iinfo(np.int64).min)
    np.minimum.at(low, of, index)
    np.maximum.at(high, of, index)
    steps, used = np.zeros(len(scale), np.int64), high >= low
    while len(wide := np.flatnonzero(used & ((high >> steps) - (low >> steps) >= MOST_BUCKETS))):
        steps[wide] += 1
    index >>= steps[of]
    order, starts = grouped([of, index]) if len(of) else (np.empty(0, np.intp), np.empty(0, np.intp))
    counts = added(table["count"][places][order], starts) if len(starts) else np.empty(0, np.int64)
    return scale - steps, of[order][starts], index[order][starts], counts


def _levels(tree: CoreTree, parts: Array, group: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Piece, number, batches and sums of each level."""
    rows, table = tree.tables[Export.PATH_PIECES], tree.tables[Export.PATH_BATCHES]
    places, owner = _spread(rows["levels"], parts)
    level = places - (np.cumsum(rows["levels"]) - rows["levels"])[parts][owner]
    of = group[owner]
    if not len(of):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing, table["squares"][:0], table["squares"][:0]
    order, starts = grouped([of, level])
    sums = np.zeros(len(places), table["squares"].dtype)
    sums["low"] = table["sum"][places].view(np.uint64)
    exact = (added(values[order], starts) for values in (table["batches"][places], sums, table["squares"][places]))
    batches, sum_b, sum_bb = exact
    return of[order][starts], level[order][starts], batches, sum_b, sum_bb
