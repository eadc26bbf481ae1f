"""Recordings merge by addition: threads, processes, runs and hosts, in any order, to the same bytes.

Everything additive is an exact integer sum; samples are bottom-k samples (Cohen & Kaplan, PODC'07) and merge by keeping
the smallest priorities again. Numbers of components and nodes are given anew in a canonical order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.store.columns import Array, Column, Table, Tables, added, changes, concatenated, grouped, vocabulary
from perflaw.store.schema import COLUMNS, LOCAL, OTHER, WORST, sample_sizes

# ---- Numbers of components and nodes: given anew, the same for the same recording whatever they were before.

_NODES: Final = {
    "calltree": ("node", "parent"),
    "moments": ("node",),
    "pairs": ("node", "i", "j"),
    "links": ("ancestor", "descendant"),
    "histograms": ("node",),
    "invocations": ("node",),
    "callees": ("node",),
    "worst": ("node",),
    "spans": ("node",),
}
"""Columns that hold numbers of nodes."""
_COMPONENTS: Final = ("components", "component_costs", "calltree", "strata", "invocations", "worst")
"""Tables with a column of components."""


def joined(recordings: Sequence[Tables]) -> Tables:
    """The rows of several recordings together, their nodes and components numbered on."""
    nodes = components = 0
    shifted: list[Tables] = []
    for tables in recordings:
        node, component = tables["calltree"]["node"], tables["components"]["component"]
        known, kinds = int(node.max(initial=0)) + 1, int(component.max(initial=0)) + 1
        shifted.append(renumbered(tables, _shift(components, kinds), _shift(nodes, known)))
        nodes, components = nodes + known, components + kinds
    return {name: concatenated([tables[name] for tables in shifted]) for name in recordings[0]}


def _shift(base: int, count: int) -> Array:
    return _lookup(np.arange(base, base + count))


def _lookup(numbers: Array) -> Array:
    """New numbers by the old one. What is negative stays: no component and no node (-1), LOCAL and OTHER."""
    return np.concatenate([numbers, [OTHER, LOCAL]])


def renumbered(tables: Tables, components: Array, nodes: Array) -> Tables:
    """The tables with other numbers: new ones by old."""
    result = dict(tables)
    for name in _COMPONENTS:
        result[name] = result[name].replaced({"component": result[name].columns["component"].mapped(components)})
    for name, columns in _NODES.items():
        table = result[name]
        result[name] = table.replaced({column: table.columns[column].mapped(nodes) for column in columns})
    return result


def component_numbers(components: Table) -> Array:
    """New number of each component by its old one: in the order of name, file, line and the rest."""
    known = {row[0]: row[1:7] for row in components}
    place = {what: number for number, what in enumerate(sorted(set(known.values())))}
    numbers = np.full(max(known, default=0) + 1, -1)
    for old, what in known.items():
        numbers[old] = place[what]
    return _lookup(numbers)


def node_numbers(calltree: Table, components: Array) -> Array:
    """New number of each node by its old one: by depth, then parent, component and site, so parents before children.

    Nodes of the same calling context get the same number.
    """
    node, parent, site, depth = (calltree[name] for name in ("node", "parent", "site", "depth"))
    component = components[calltree["component"]]
    numbers = _lookup(np.zeros(int(node.max(initial=0)) + 1, np.int64))
    by_depth, starts = grouped([depth])
    known = 0
    for level in np.split(by_depth, starts[1:]):
        order, starts = grouped([numbers[parent[level]], component[level], site[level]])
        first = np.zeros(len(level), np.int64)
        first[starts] = 1
        numbers[node[level[order]]] = known + np.cumsum(first) - 1
        known += len(starts)
    return numbers


_KEYS: Final = {
    "components": 1, "component_costs": 2, "calltree": 1, "moments": 2, "pairs": 4, "links": 3, "histograms": 2,
    "strata": 2, "invocations": 2, "features": 3, "invocation_costs": 3, "callees": 3, "worst": 2, "spans": 3,
}  # fmt: skip
"""Table → how many columns at its front tell its rows apart, as a rule; tables are sorted by them."""
_ADDED: Final = ("components", "component_costs", "moments", "pairs", "links", "histograms", "strata")
"""Tables whose rows of equal key are added up."""
_OF_SAMPLES: Final = ("features", "invocation_costs", "callees")
"""Tables whose rows go with a sampled invocation; two of them are one only if they are equal throughout."""
_OF_CALLS: Final = (*_OF_SAMPLES, "spans")
"""Those whose rows go with an invocation of any kind."""


def merge(recordings: Sequence[Tables]) -> Tables:
    """The tables of several recordings as one. Samples of equal run and sequence are one sample."""
    return canonical(recordings[0] if len(recordings) == 1 else joined(recordings))


def canonical(tables: Tables) -> Tables:
    """The same recording, numbered and sorted in a canonical order, its samples cut to size and weighted."""
    tables = _of_one_vocabulary(tables)
    components = component_numbers(tables["components"])
    apart = tables["pairs"]["i"] != tables["pairs"]["j"]
    tables = renumbered(tables, components, node_numbers(tables["calltree"], components))
    tables["pairs"] = _ordered(tables["pairs"], apart)
    result = {
        name: _summed(name, tables[name]) if name in _ADDED else _distinct(name, tables[name]) for name in COLUMNS
    }
    stay = _staying(result["invocations"], sample_sizes(len(np.unique(result["strata"]["component"]))))
    if not stay.all():
        result["invocations"] = result["invocations"].take(np.flatnonzero(stay))
        for name in _OF_SAMPLES:
            result[name] = _of(result["invocations"], result[name])
    result["invocations"] = _weighted(result["invocations"], result["strata"])
    longest = _least([result["worst"]["component"]], -result["worst"]["x"], WORST)
    result["worst"] = result["worst"].take(np.sort(longest))
    result["spans"] = _of(result["worst"], result["spans"])
    return result


def _of_one_vocabulary(tables: Tables) -> Tables:
    """Columns of texts that have the same name get the same codes, in the order of the texts."""
    columns: dict[str, list[Column]] = {}
    for table in tables.values():
        for name, column in table.columns.items():
            if column.words is not None:
                columns.setdefault(name, []).append(column)
    words = {name: vocabulary(found) for name, found in columns.items()}
    return {
        name: table.replaced({of: one.spoken(words[of]) for of, one in table.columns.items() if of in words})
        for name, table in tables.items()
    }


def _ordered(pairs: Table, apart: NDArray[np.bool_]) -> Table:
    """Pairs with i <= j. Where two callees, ``apart`` before, became one, their product stands twice in its square."""
    i, j = pairs.columns["i"], pairs.columns["j"]  # of the same rows
    twice = np.flatnonzero((i.array() == j.array()) & apart)
    least, greatest = np.minimum(i.values, j.values), np.maximum(i.values, j.values)
    pairs = pairs.replaced({"i": Column(least, i.rows), "j": Column(greatest, i.rows)})
    return concatenated([pairs, pairs.take(twice)]) if len(twice) else pairs


def _key(name: str, table: Table) -> list[Array]:
    return [table[column] for column in list(COLUMNS[name])[: _KEYS[name]]]


def _summed(name: str, table: Table) -> Table:
    """Rows of equal key added up, sorted; the least and greatest X of the moments are compared instead."""
    order, starts = grouped(_key(name, table))
    table = table.take(order)
    if len(starts) == len(order):
        return table
    keys = list(COLUMNS[name])[: _first_summed(name)]
    result = table.take(starts).replaced(
        {of: Column(added(table[of], starts)) for of in table.columns if of not in keys}
    )
    return result.replaced(_extremes(table, starts)) if name == "moments" else result


def _first_summed(name: str) -> int:
    return 7 if name == "components" else _KEYS[name]


def _extremes(moments: Table, starts: NDArray[np.intp]) -> dict[str, Column]:
    """Least and greatest X of groups of rows; an empty set has no least value."""
    some = moments["n"] > 0
    least = np.minimum.reduceat(np.where(some, moments["min_x"], np.iinfo(np.int64).max), starts)
    least[~np.logical_or.reduceat(some, starts)] = 0
    return {"min_x": Column(least), "max_x": Column(np.maximum.reduceat(moments["max_x"], starts))}


def _distinct(name: str, table: Table) -> Table:
    """Rows sorted, of equal ones the first. A node and a sample are told apart by their numbers alone."""
    order, starts = grouped(_key(name, table))
    if len(starts) < len(order):
        every = [table[column] for column in COLUMNS[name]]
        order, starts = grouped(every)
        if name not in _OF_CALLS:
            starts = np.flatnonzero(changes(_key(name, table), order))
        order = order[starts]
    return table.take(order)


def _staying(invocations: Table, sizes: tuple[int, int]) -> NDArray[np.bool_]:
    """Which samples stay: per component the smallest uniform priorities, and the smallest of each stratum."""
    in_uniform, in_stratum = sizes
    component, uniform_key = invocations["component"], invocations["uniform_key"]
    stay = np.zeros(len(invocations), np.bool_)
    uniform = np.flatnonzero(uniform_key >= 0)
    stay[uniform[_least([component[uniform]], uniform_key[uniform], in_uniform)]] = True
    stay[_least([component, invocations["stratum"]], invocations["stratum_key"], in_stratum)] = True
    return stay


def _least(groups: list[Array], priority: Array, most: int) -> NDArray[np.intp]:
    """Numbers of the rows with the least priorities of each group; of equal priorities the rows that stand first."""
    order, _ = grouped([*groups, priority])
    place = np.arange(len(order))
    start = np.maximum.accumulate(np.where(changes(groups, order), place, 0))
    return order[place - start < most]


def _sample(table: Table) -> Array:
    """One number a row for its run and sequence, in their order."""
    return (table["run"].astype(np.int64) << 40) + table["sequence"]


def _of(invocations: Table, table: Table) -> Table:
    """The rows that go with these invocations."""
    return table.take(np.flatnonzero(np.isin(_sample(table), _sample(invocations))))


def _weighted(invocations: Table, strata: Table) -> Table:
    """Samples with the number of invocations each stands for: those of its stratum over the samples of it."""
    stratum_of = (table["component"] << 8 | table["stratum"] for table in (invocations, strata))
    sampled, counted = stratum_of
    found, inverse, samples = np.unique(sampled, return_inverse=True, return_counts=True)
    counts = strata["count"][np.searchsorted(counted, found)]
    return invocations.replaced({"weight": Column((counts / samples)[inverse])})
