"""Recordings merge by addition: threads, processes, runs and hosts, in any order, to the same bytes.

All sums are exact integers. Samples are bottom-k samples (Cohen & Kaplan, PODC'07) and merge by keeping the smallest
priorities again. Components and nodes are renumbered in a canonical order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.store.columns import Array, Column, Table, Tables, concatenated, group_sums, grouped, is_first, vocabulary
from perflaw.store.schema import COLUMNS, LOCAL, OTHER, WORST, sample_sizes

_NODE_COLUMNS: Final = {
    "calltree": ("node", "parent"), "moments": ("node",), "pairs": ("node", "i", "j"),
    "links": ("ancestor", "descendant"), "histograms": ("node",), "counted": ("node",), "queued": ("node",),
    "invocations": ("node",), "callees": ("node",), "parts": ("node",), "worst": ("node",), "spans": ("node",),
}  # fmt: skip
"""Table → columns with numbers of nodes."""
_COMPONENT_TABLES: Final = ("components", "component_costs", "calltree", "strata", "invocations", "worst")
"""Tables with a column of components."""
_KEY_COLUMNS: Final = {
    "components": 1, "component_costs": 2, "calltree": 1, "moments": 2, "pairs": 4, "links": 3, "counted": 1, "queued": 1,
    "histograms": 2, "strata": 2, "invocations": 2, "features": 3, "invocation_costs": 3, "callees": 3, "parts": 3,
    "worst": 2, "spans": 3,
}  # fmt: skip
"""Table → number of columns, from the first, that identify a row; tables are sorted by them."""
_SUMMED: Final = (
    "components", "component_costs", "moments", "pairs", "links", "counted", "queued", "histograms", "strata",
)  # fmt: skip
"""Tables in which rows of equal key are added up."""
_COMPONENT_IDENTITY: Final = 7
"""Columns of ``components``, from the first, that are not added up."""
_OF_SAMPLES: Final = ("features", "invocation_costs", "callees", "parts")
"""Tables whose rows belong to a sampled invocation."""
_OF_INVOCATIONS: Final = (*_OF_SAMPLES, "spans")
"""Tables whose rows belong to an invocation; rows of equal key are one row only if they are equal throughout."""


def merge(recordings: Sequence[Tables]) -> Tables:
    """The tables of several recordings as one. Samples of equal run and sequence are one sample."""
    if len(recordings) == 1:
        return canonical(recordings[0])
    # Nodes and components of each recording are numbered after those before it.
    nodes = components = 0
    shifted: list[Tables] = []
    for tables in recordings:
        node_count = int(tables["calltree"]["node"].max(initial=0)) + 1
        component_count = int(tables["components"]["component"].max(initial=0)) + 1
        new_components = _lookup(np.arange(components, components + component_count))
        shifted.append(_renumbered(tables, new_components, _lookup(np.arange(nodes, nodes + node_count))))
        nodes, components = nodes + node_count, components + component_count
    return canonical({name: concatenated([tables[name] for tables in shifted]) for name in recordings[0]})


def canonical(tables: Tables) -> Tables:
    """The same recording, numbered and sorted in a canonical order, its samples cut to size and weighted."""
    # Give text columns of the same name the same codes, in the order of the texts.
    columns: dict[str, list[Column]] = {}
    for table in tables.values():
        for name, column in table.columns.items():
            if column.words is not None:
                columns.setdefault(name, []).append(column)
    words = {name: vocabulary(same_name) for name, same_name in columns.items()}
    tables = {
        table_name: table.replaced(
            {name: column.encoded(words[name]) for name, column in table.columns.items() if name in words}
        )
        for table_name, table in tables.items()
    }
    # New number of each component by its old one: in the order of name, file, line and its other columns.
    identities = {row[0]: row[1:_COMPONENT_IDENTITY] for row in tables["components"]}
    places = {identity: place for place, identity in enumerate(sorted(set(identities.values())))}
    numbers = np.full(max(identities, default=0) + 1, -1)
    for old, identity in identities.items():
        numbers[old] = places[identity]
    components = _lookup(numbers)
    distinct_before = tables["pairs"]["i"] != tables["pairs"]["j"]
    tables = _renumbered(tables, components, _node_numbers(tables["calltree"], components))
    # Pairs with i <= j; where two distinct callees became one node, their product counts twice in its square.
    pairs = tables["pairs"]
    i, j = pairs.columns["i"], pairs.columns["j"]  # of the same rows
    twice = np.flatnonzero((i.array() == j.array()) & distinct_before)
    smaller, larger = np.minimum(i.values, j.values), np.maximum(i.values, j.values)
    pairs = pairs.replaced({"i": Column(smaller, i.rows), "j": Column(larger, i.rows)})
    tables["pairs"] = concatenated([pairs, pairs.take(twice)]) if len(twice) else pairs
    merged = {name: _merged_rows(name, tables[name]) for name in COLUMNS}
    # Which samples are kept.
    invocations = merged["invocations"]
    uniform_size, stratum_size = sample_sizes(len(set(merged["strata"]["component"].tolist())))
    component, uniform_key = invocations["component"], invocations["uniform_key"]
    kept = np.zeros(len(invocations), np.bool_)
    uniform = np.flatnonzero(uniform_key >= 0)
    kept[uniform[_smallest([component[uniform]], uniform_key[uniform], uniform_size)]] = True
    kept[_smallest([component, invocations["stratum"]], invocations["stratum_key"], stratum_size)] = True
    if not kept.all():
        merged["invocations"] = merged["invocations"].take(np.flatnonzero(kept))
        for name in _OF_SAMPLES:
            merged[name] = _rows_of(merged["invocations"], merged[name])
    # The weight of a sample: the invocations of its stratum divided by the samples of it.
    sampled, counted = (
        table["component"] << 8 | table["stratum"] for table in (merged["invocations"], merged["strata"])
    )
    present, inverse, samples = np.unique(sampled, return_inverse=True, return_counts=True)
    counts = merged["strata"]["count"][np.searchsorted(counted, present)]
    merged["invocations"] = merged["invocations"].replaced({"weight": Column((counts / samples)[inverse])})
    longest = _smallest([merged["worst"]["component"]], -merged["worst"]["x"], WORST)
    merged["worst"] = merged["worst"].take(np.sort(longest))
    merged["spans"] = _rows_of(merged["worst"], merged["spans"])
    return merged


def _lookup(numbers: Array) -> Array:
    """New number by old number. Negative numbers stay: no component and no node (-1), LOCAL and OTHER."""
    return np.concatenate([numbers, [OTHER, LOCAL]])


def _renumbered(tables: Tables, components: Array, nodes: Array) -> Tables:
    """The tables with new numbers of components and nodes, given by old number."""
    result = dict(tables)
    for name in _COMPONENT_TABLES:
        result[name] = result[name].replaced({"component": result[name].columns["component"].mapped(components)})
    for name, columns in _NODE_COLUMNS.items():
        table = result[name]
        result[name] = table.replaced({column: table.columns[column].mapped(nodes) for column in columns})
    return result


def _node_numbers(calltree: Table, components: Array) -> Array:
    """New number of each node by its old one: by depth, then parent, component and site, so parents come before children.

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


def _keys(name: str, table: Table) -> list[Array]:
    return [table[column] for column in list(COLUMNS[name])[: _KEY_COLUMNS[name]]]


def _merged_rows(name: str, table: Table) -> Table:
    """Rows sorted, those of equal key as one: added up, or in tables without sums the first of them.

    The least and greatest X of moments are compared instead. Nodes and samples are identified by their keys alone.
    """
    order, starts = grouped(_keys(name, table))
    if len(starts) == len(order):
        return table.take(order)
    if name not in _SUMMED:
        order, starts = grouped([table[column] for column in COLUMNS[name]])
        if name not in _OF_INVOCATIONS:
            starts = np.flatnonzero(is_first(_keys(name, table), order))
        return table.take(order[starts])
    table = table.take(order)
    kept = _COMPONENT_IDENTITY if name == "components" else _KEY_COLUMNS[name]
    summed = list(COLUMNS[name])[kept:]
    result = table.take(starts).replaced({column: Column(group_sums(table[column], starts)) for column in summed})
    if name != "moments":
        return result
    called = table["n"] > 0  # a node without completed invocations has no least X
    least = np.minimum.reduceat(np.where(called, table["min_x"], np.iinfo(np.int64).max), starts)
    least[~np.logical_or.reduceat(called, starts)] = 0
    greatest = np.maximum.reduceat(table["max_x"], starts)
    return result.replaced({"min_x": Column(least), "max_x": Column(greatest)})


def _smallest(groups: list[Array], priority: Array, size: int) -> NDArray[np.intp]:
    """Rows with the smallest priorities of each group; of equal priorities the first rows."""
    order, _ = grouped([*groups, priority])
    place = np.arange(len(order))
    start = np.maximum.accumulate(np.where(is_first(groups, order), place, 0))
    return order[place - start < size]


def _rows_of(invocations: Table, table: Table) -> Table:
    """The rows of a table that belong to these invocations."""
    own, wanted = ((one["run"].astype(np.int64) << 40) + one["sequence"] for one in (table, invocations))
    if not len(wanted):
        return table.take(np.array([], dtype=np.int64))
    wanted = np.sort(wanted)
    at = np.minimum(np.searchsorted(wanted, own), len(wanted) - 1)
    return table.take(np.flatnonzero(wanted[at] == own))
