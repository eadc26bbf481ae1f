"""Durations by call path as tables of a run: paths by the names of their functions, of functions that are hot.

Nodes of the call tree are calling contexts with their call sites; nodes whose functions have equal names all the way up
are one call path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

import numpy as np

from perflaw.record.reader import RecordedProcess
from perflaw.record.tree.call_tree import costs_of_codes
from perflaw.record.tree.core import Export, TreeTables
from perflaw.record.tree.path_builder import ON_CPU
from perflaw.record.tree.records import ELSEWHERE, TIME_LANE, Definitions
from perflaw.store.columns import Array, Column, Table, Tables, group_sums, grouped, texts
from perflaw.store.paths import PathsAbout, about_table
from perflaw.store.schema import WHOLE
from perflaw.types import CPU, TIME, Run
from perflaw.types.specifications import MOST_BUCKETS

SAMPLE_NS = 10_000_000
"""Period of the sampler that is imagined to decide which functions are hot."""
LEAST_SHARE = 0.005
"""A function is hot if its share of the samples is at least this, by the lower bound of Wilson's interval of 95 %."""
Z = 1.96
ALWAYS = 20
"""This many functions of most time are hot in any case: short runs have too few samples to tell."""
OTHER_CONTEXTS = "(elsewhere)"
"""Stands for the callers once there are more contexts than are kept apart."""
_CLOCKS = (TIME.name, CPU.name)


@dataclass(frozen=True, slots=True)
class TimeShares:
    """Shares of the time of everything that was recorded."""

    own: dict[int, float]
    """Function → share of its own time."""
    hot: frozenset[int]
    """Functions that are hot themselves or by what they call."""


def path_tables(
    recorded: RecordedProcess, run: Run, globs: Sequence[str], about: PathsAbout, only_globs: bool = False
) -> Tables | None:
    """The tables of a process; None if nothing was collected. ``globs``: names of functions that are kept, hot or not.

    With ``only_globs`` no other functions are kept.
    """
    tree, known = recorded.tree, recorded.definitions
    codes = tree.tables[Export.PATH_CODES]
    if not len(codes):
        return None
    shares = shares_of(tree)
    kept = [
        code
        for code in codes["code"][codes["dropped"] == 0].tolist()
        if (code in shares.hot and not only_globs) or any(fnmatchcase(_name(known, code), glob) for glob in globs)
    ]
    share = np.array([shares.own.get(code, 0.0) for code in kept], np.float64)
    functions = {"function": _ints(kept), "name": texts([_name(known, code) for code in kept]), "share": Column(share)}

    # Number of the call path of each node, and the names on each path by number.
    numbers: dict[tuple[int, bool, str], int] = {}
    names: list[tuple[str, ...]] = [()]
    paths = np.zeros(len(tree.nodes), np.int64)
    rows = zip(*(tree.nodes[field].tolist() for field in ("parent", "site", "code")), strict=True)
    for node, (parent, site, code) in enumerate(rows):
        if node:
            elsewhere = site == ELSEWHERE
            key = (int(paths[parent]), elsewhere, _name(known, code))
            if key not in numbers:
                numbers[key] = len(names)
                names.append((*names[key[0]], *((OTHER_CONTEXTS,) if elsewhere else ()), key[2]))
            paths[node] = numbers[key]

    pieces = summed_pieces(tree, np.array(kept, np.int64), paths)
    used = np.unique(pieces.path[pieces.path != WHOLE]).tolist()
    steps = [(path, place, name) for path in used for place, name in enumerate(names[path])]
    path, place, name = zip(*steps, strict=True) if steps else ((), (), ())
    seen = tree.tables[Export.PATH_SEEN]
    seen = seen[np.isin(seen["code"], kept)]
    clock = known.started.clock if known.started else 0
    epoch = round(datetime.fromisoformat(run.started).timestamp() * 1e6) * 1000 - clock
    return {
        "path_about": about_table(about),
        "path_functions": Table(functions),
        "call_paths": Table({"path": _ints(path), "place": _ints(place), "name": texts(name)}),
        "path_observations": Table(
            {
                "function": _ints(seen["code"]),
                "observation": _ints(seen["observation"]),
                "begin": _ints(seen["begin"] + epoch),
                "end": _ints(seen["end"] + epoch),
                "calls": _ints(seen["points"]),
                "nested": _ints(seen["nested"]),
            }
        ),
        **pieces.tables(),
    }


def dropped(tree: TreeTables) -> int:
    """Number of functions for whose durations there was no room."""
    return int(tree.tables[Export.PATH_CODES]["dropped"].sum())


def shares_of(tree: TreeTables) -> TimeShares:
    """Which functions are hot: by themselves, or by what they call (a candidate once its callee has been dealt with)."""
    totals, selves = costs_of_codes(tree)
    own = {code: max(costs[TIME_LANE], 0) for code, costs in selves.items()}
    inclusive = {code: max(costs[TIME_LANE], own.get(code, 0)) for code, costs in totals.items()}
    whole = sum(own.values())
    if not whole:
        return TimeShares(dict.fromkeys(own, 0.0), frozenset(own))
    samples = max(whole / SAMPLE_NS, 1.0)
    hot = {code for code, cost in inclusive.items() if wilson(min(cost / whole, 1.0), samples) >= LEAST_SHARE}
    most = sorted(own, key=lambda code: (-own[code], code))[:ALWAYS]
    return TimeShares({code: cost / whole for code, cost in own.items()}, frozenset(hot | set(most)))


def wilson(share: float, n: float) -> float:
    """Lower bound of Wilson's interval of a share of n samples (Wilson, JASA 1927).

    >>> round(wilson(0.01, 1000), 4)
    0.0054
    """
    middle = share + Z * Z / (2 * n)
    return float((middle - Z * np.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))) / (1 + Z * Z / n))


def _name(known: Definitions, code: int) -> str:
    component = known.components.get(code)
    return component.name if component else "(unknown)"


def _ints(values: Array | Sequence[int]) -> Column:
    return Column(np.asarray(values, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class SummedPieces:
    """Durations by call path: P pieces, one a function, observation, path and clock; B buckets and L levels by piece."""

    code: Array
    """(P,) number of the function."""
    observation: Array
    """(P,) index among the function's observations."""
    path: Array
    """(P,) number of the call path, or ``WHOLE``."""
    clock: Array
    """(P,) ``WALL``, or ``ON_CPU`` where it differs."""
    scale: Array
    """(P,) scale of the histogram."""
    zeros: Array
    """(P,) calls that took no time."""
    bucket_of: Array
    """(B,) piece of each bucket."""
    bucket: Array
    """(B,) index of the bucket; increasing within a piece."""
    count: Array
    """(B,) calls in the bucket."""
    level_of: Array
    """(L,) piece of each level."""
    level: Array
    """(L,) number of the level."""
    batches: Array
    """(L,) complete batches."""
    sum_b: Array
    """(L,) WIDE: ΣB."""
    sum_bb: Array
    """(L,) WIDE: ΣB²."""

    def tables(self) -> Tables:
        """The tables of histograms, which the paths have, and of batches, which the whole functions have too."""
        paths = np.flatnonzero(self.path != WHOLE)
        histogram = np.zeros(len(self.code), np.int64)
        histogram[paths] = np.arange(len(paths))
        buckets = {"histogram": histogram[self.bucket_of], "bucket": self.bucket, "count": self.count}
        sums = {"sum_b": Column(self.sum_b), "sum_bb": Column(self.sum_bb)}
        batches = {"level": _ints(self.level), "batches": _ints(self.batches), **sums}
        histograms = {"scale": _ints(self.scale[paths]), "zeros": _ints(self.zeros[paths])}
        return {
            "path_histograms": Table({**self._keys(paths), **histograms}),
            "path_buckets": Table({name: _ints(values) for name, values in buckets.items()}),
            "path_batches": Table({**self._keys(self.level_of), **batches}),
        }

    def _keys(self, rows: Array) -> dict[str, Column]:
        return {
            "function": _ints(self.code[rows]),
            "observation": _ints(self.observation[rows]),
            "path": _ints(self.path[rows]),
            "metric": Column(self.clock[rows].astype(np.int32), words=_CLOCKS),
        }


def summed_pieces(tree: TreeTables, codes: Array, paths: Array) -> SummedPieces:
    """The pieces of these functions added up by call path, exactly. ``paths``: number of the path of each node.

    Everything is done in arrays, because a recording may have a hundred thousand pieces and millions of buckets.
    """
    rows = tree.tables[Export.PATH_PIECES]
    path = np.where(rows["node"] == WHOLE, WHOLE, paths[rows["node"]])
    parts, clock = _summands(rows, codes, path)
    keys = [rows["code"][parts], rows["observation"][parts], path[parts], clock]
    order, starts = grouped(keys)
    group = np.empty(len(parts), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    first = order[starts]
    zeros, scale = np.zeros(len(starts), np.int64), np.full(len(starts), 64)
    np.add.at(zeros, group, rows["zeros"][parts])
    np.minimum.at(scale, group, rows["scale"][parts])
    scale, bucket_of, bucket, count = _summed_buckets(tree, parts, group, scale)
    code, observation, of_path, by_clock = (key[first] for key in keys)
    table = tree.tables[Export.PATH_BATCHES]
    places, owner = _members(rows["levels"], parts)
    level = places - (np.cumsum(rows["levels"]) - rows["levels"])[parts][owner]
    of = group[owner]
    order, starts = grouped([of, level])
    sums = np.zeros(len(places), table["squares"].dtype)
    sums["low"] = table["sum"][places].view(np.uint64)
    values = (table["batches"][places], sums, table["squares"][places])
    batches, sum_b, sum_bb = (group_sums(value[order], starts) for value in values)
    levels = of[order][starts], level[order][starts], batches, sum_b, sum_bb
    return SummedPieces(code, observation, of_path, by_clock, scale, zeros, bucket_of, bucket, count, *levels)


def _summands(rows: Array, codes: Array, path: Array) -> tuple[Array, Array]:
    """Rows that are added up, and the clock that each counts for.

    If one node of a path has CPU time apart from wall time, the CPU time of the others is their wall time: those rows
    count for both clocks.
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


def _members(lengths: Array, parts: Array) -> tuple[Array, Array]:
    """Rows, in a table that holds ``lengths`` rows for each piece in order, of these pieces; and the part of each row."""
    begins = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(parts)), lengths[parts])
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths[parts]) - lengths[parts], lengths[parts])
    return begins[parts][owner] + within, owner


def _summed_buckets(tree: TreeTables, parts: Array, group: Array, scale: Array) -> tuple[Array, Array, Array, Array]:
    """Scale of each group's histogram, as fine as the bound on buckets allows; group, index and count of its buckets."""
    rows, table = tree.tables[Export.PATH_PIECES], tree.tables[Export.PATH_BUCKETS]
    places, owner = _members(rows["buckets"], parts)
    of = group[owner]
    index = table["index"][places] >> (rows["scale"][parts][owner] - scale[of])
    low, high = np.full(len(scale), np.iinfo(np.int64).max), np.full(len(scale), np.iinfo(np.int64).min)
    np.minimum.at(low, of, index)
    np.maximum.at(high, of, index)
    steps, used = np.zeros(len(scale), np.int64), high >= low
    while len(wide := np.flatnonzero(used & ((high >> steps) - (low >> steps) >= MOST_BUCKETS))):
        steps[wide] += 1
    index >>= steps[of]
    order, starts = grouped([of, index])
    counts = group_sums(table["count"][places][order], starts)
    return scale - steps, of[order][starts], index[order][starts], counts
