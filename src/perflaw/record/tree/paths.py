"""Durations by call path of a recorded process as tables of its run: paths by names, of functions that are hot.

Nodes of the call tree are calling contexts with their call sites; those of equal names are one call path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

import numpy as np

from perflaw.record.recorded import Recorded
from perflaw.record.records import ELSEWHERE, TIME_LANE, Definitions
from perflaw.record.tree.call_tree import costs_of_codes
from perflaw.record.tree.core_tables import CoreTree, Export
from perflaw.record.tree.path_twin import ON_CPU, WHOLE
from perflaw.store.columns import Array, Column, Table, Tables, group_sums, grouped, texts
from perflaw.store.paths import WHOLE as PATHS_WHOLE
from perflaw.store.paths import PathsAbout, about_table
from perflaw.types import CPU, TIME, Run
from perflaw.types.specifications import MOST_BUCKETS

# ---- Pieces of the C core's tables added up by call path, exactly: histograms of one path brought to one scale,
# batch sums.
#
# All in arrays: a recording may have a hundred thousand pieces and millions of buckets.


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
    scale, bucket_of, bucket, count = _path_sums_buckets(tree, parts, group, scale)
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


def _path_sums_buckets(tree: CoreTree, parts: Array, group: Array, scale: Array) -> tuple[Array, Array, Array, Array]:
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
    counts = group_sums(table["count"][places][order], starts) if len(starts) else np.empty(0, np.int64)
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
    exact = (group_sums(values[order], starts) for values in (table["batches"][places], sums, table["squares"][places]))
    batches, sum_b, sum_bb = exact
    return of[order][starts], level[order][starts], batches, sum_b, sum_bb


SAMPLE_NS = 10_000_000
"""A sampler that looked at the stack every 10 ms would find a hot function there."""
LEAST_SHARE = 0.005
"""A function is hot whose share of the samples is at least this, by the lower bound of Wilson's interval of 95 %."""
Z = 1.96
ALWAYS = 20
"""So many functions of most time are hot in any case: short runs have too few samples to tell."""
OTHER_CONTEXTS = "(elsewhere)"
"""Stands for the callers where there were more contexts than are kept apart."""
_CLOCKS = (TIME.name, CPU.name)


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of the time of all that was recorded."""

    own: dict[int, float]
    """Function → share of the time spent in itself."""
    hot: frozenset[int]
    """Functions that are hot, they or what they call."""


def path_tables(recorded: Recorded, run: Run, globs: Sequence[str], about: PathsAbout) -> Tables | None:
    """The tables of a process; None where nothing was collected. ``globs``: names of functions that are kept, hot or not."""
    tree, known = recorded.tree, recorded.definitions
    if not len(tree.tables[Export.PATH_CODES]):
        return None
    shares = shares_of(tree)
    codes = tree.tables[Export.PATH_CODES]
    kept = [
        code
        for code in codes["code"][codes["dropped"] == 0].tolist()
        if code in shares.hot or any(fnmatchcase(_name(known, code), glob) for glob in globs)
    ]
    paths, names = _paths(tree, known)
    pieces = summed_pieces(tree, np.array(kept, np.int64), paths)
    used = np.unique(pieces.path[pieces.path != PATHS_WHOLE])
    return {
        "path_about": about_table(about),
        "path_functions": _functions(kept, known, shares),
        "call_paths": _call_paths(used.tolist(), names),
        "path_observations": _observations(tree, kept, run, known),
        "path_histograms": _histograms(pieces),
        "path_buckets": _buckets(pieces),
        "path_batches": _batches(pieces),
    }


def dropped(tree: CoreTree) -> int:
    """Functions that there was no room for."""
    return int(tree.tables[Export.PATH_CODES]["dropped"].sum())


def shares_of(tree: CoreTree) -> Shares:
    """Which functions are hot: by themselves, or by what they call (a candidate whose callee has been dealt with)."""
    totals, selves = costs_of_codes(tree)
    own = {code: max(costs[TIME_LANE], 0) for code, costs in selves.items()}
    inclusive = {code: max(costs[TIME_LANE], own.get(code, 0)) for code, costs in totals.items()}
    whole = sum(own.values())
    if not whole:
        return Shares(dict.fromkeys(own, 0.0), frozenset(own))
    samples = max(whole / SAMPLE_NS, 1.0)
    hot = {code for code, cost in inclusive.items() if wilson(min(cost / whole, 1.0), samples) >= LEAST_SHARE}
    most = sorted(own, key=lambda code: (-own[code], code))[:ALWAYS]
    return Shares({code: cost / whole for code, cost in own.items()}, frozenset(hot | set(most)))


def wilson(share: float, n: float) -> float:
    """Lower bound of Wilson's interval of a share of n samples (Wilson, JASA 1927).

    >>> round(wilson(0.01, 1000), 4)
    0.0054
    """
    middle = share + Z * Z / (2 * n)
    return float((middle - Z * np.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))) / (1 + Z * Z / n))


def _name(known: Definitions, code: int) -> str:
    found = known.components.get(code)
    return found.name if found else "(unknown)"


def _paths(tree: CoreTree, known: Definitions) -> tuple[Array, list[tuple[str, ...]]]:
    """Number of the call path of each node, and the paths by number."""
    numbers: dict[tuple[int, str], int] = {}
    names: list[tuple[str, ...]] = [()]
    of_node = np.zeros(len(tree.nodes), np.int64)
    rows = zip(*(tree.nodes[field].tolist() for field in ("parent", "site", "code")), strict=True)
    for node, (parent, site, code) in enumerate(rows):
        if not node:
            continue
        name, above = _name(known, code), int(of_node[parent])
        before = (OTHER_CONTEXTS,) if site == ELSEWHERE and not parent else names[above]
        key = (-1 if site == ELSEWHERE and not parent else above, name)
        if key not in numbers:
            numbers[key] = len(names)
            names.append((*before, name))
        of_node[node] = numbers[key]
    return of_node, names


def _functions(kept: list[int], known: Definitions, shares: Shares) -> Table:
    share = np.array([shares.own.get(code, 0.0) for code in kept], np.float64)
    return Table(
        {"function": _ints(kept), "name": texts([_name(known, code) for code in kept]), "share": Column(share)}
    )


def _call_paths(used: list[int], names: list[tuple[str, ...]]) -> Table:
    rows = [(path, place, name) for path in used for place, name in enumerate(names[path])]
    path, place, name = zip(*rows, strict=True) if rows else ((), (), ())
    return Table({"path": _ints(path), "place": _ints(place), "name": texts(name)})


def _observations(tree: CoreTree, kept: list[int], run: Run, known: Definitions) -> Table:
    seen = tree.tables[Export.PATH_SEEN]
    seen = seen[np.isin(seen["code"], kept)]
    clock = known.started.clock if known.started else 0
    epoch = round(datetime.fromisoformat(run.started).timestamp() * 1e6) * 1000 - clock
    named = {"function": seen["code"], "observation": seen["observation"]}
    times = {"begin": seen["begin"] + epoch, "end": seen["end"] + epoch}
    return Table(
        {name: _ints(of) for name, of in {**named, **times, "calls": seen["points"], "nested": seen["nested"]}.items()}
    )


def _keys(pieces: Pieces, rows: Array) -> dict[str, Column]:
    return {
        "function": _ints(pieces.code[rows]),
        "observation": _ints(pieces.observation[rows]),
        "path": _ints(pieces.path[rows]),
        "metric": Column(pieces.clock[rows].astype(np.int32), words=_CLOCKS),
    }


def _of_paths(pieces: Pieces) -> Array:
    return np.flatnonzero(pieces.path != PATHS_WHOLE)


def _histograms(pieces: Pieces) -> Table:
    rows = _of_paths(pieces)
    return Table({**_keys(pieces, rows), "scale": _ints(pieces.scale[rows]), "zeros": _ints(pieces.zeros[rows])})


def _buckets(pieces: Pieces) -> Table:
    places = np.zeros(len(pieces.code), np.int64)
    rows = _of_paths(pieces)
    places[rows] = np.arange(len(rows))
    owner = places[pieces.bucket_of]
    return Table({"histogram": _ints(owner), "bucket": _ints(pieces.bucket), "count": _ints(pieces.count)})


def _batches(pieces: Pieces) -> Table:
    sums = {"level": _ints(pieces.level), "batches": _ints(pieces.batches)}
    return Table(
        {**_keys(pieces, pieces.level_of), **sums, "sum_b": Column(pieces.sum_b), "sum_bb": Column(pieces.sum_bb)}
    )


def _ints(values: Array | Sequence[int]) -> Column:
    return Column(np.asarray(values, dtype=np.int64))
