"""Durations by call path of a recorded process as tables of its run: paths by names, of functions that are hot.

Nodes of the call tree are calling contexts with their call sites; those of equal names are one call path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

import numpy as np

from perflaw.collect.core_tables import CoreTree, Export
from perflaw.collect.definitions import Definitions
from perflaw.collect.layout import ELSEWHERE, TIME_LANE
from perflaw.collect.path_sums import Pieces, summed_pieces
from perflaw.collect.recorded import Recorded
from perflaw.collect.tree_objects import costs_of_codes
from perflaw.store.columns import Array, Column, Table, Tables, texts
from perflaw.store.path_tables import WHOLE, PathsAbout, about_table
from perflaw.types import CPU, TIME, Run

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
    used = np.unique(pieces.path[pieces.path != WHOLE])
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
    return np.flatnonzero(pieces.path != WHOLE)


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
