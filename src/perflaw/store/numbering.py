"""Numbers of components and nodes: given anew, the same for the same recording whatever they were before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from perflaw.store.columns import Array, Table, Tables, concatenated, grouped
from perflaw.store.schema import LOCAL, OTHER

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
