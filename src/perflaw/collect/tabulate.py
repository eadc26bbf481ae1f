"""A finished call tree and its definitions to the tables of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from perflaw.collect.call_tree import CallTree
from perflaw.collect.core_tables import CoreTree, Export
from perflaw.collect.definitions import Definitions
from perflaw.collect.tabulate_samples import Lanes, add_samples, in_order
from perflaw.collect.tabulate_spans import add_spans
from perflaw.collect.tree_objects import columns, costs_of_codes
from perflaw.store.columns import Array, Column, Table, Tables, concatenated
from perflaw.store.merge import merge
from perflaw.store.rows import table_of
from perflaw.store.schema import COLUMNS, LOCAL
from perflaw.types import TIME, Component

WAITING = "(waiting)"
"""Pseudo-component: the time generators and coroutines were suspended. It lies outside their own time."""


def tabulate(run: str, tree: CoreTree | CallTree, definitions: Definitions) -> Tables:
    """Tables of one run in canonical order: the metrics that the definitions say were measured.

    Functions without a definition (a torn file) are called ``(unknown)``.
    """
    if isinstance(tree, CallTree):
        tree = columns(tree)
    lanes = [(lane, tree.metrics[lane]) for lane in sorted(definitions.metrics) if lane < len(tree.metrics)]
    tables: Tables = {}
    _add_components(tables, lanes, tree, definitions)
    _add_nodes(tables, lanes, tree, definitions)
    _add_waits(tables, tree)
    add_samples(tables, lanes, run, tree, definitions)
    add_spans(tables, lanes, run, tree)
    return merge([tables])


def _add_components(tables: Tables, lanes: Lanes, tree: CoreTree, definitions: Definitions) -> None:
    nodes = tree.nodes[1:]
    codes, at = np.unique(nodes["code"], return_inverse=True)
    calls, opened = np.zeros((2, len(codes)), np.int64)
    np.add.at(calls, at, nodes["n"])
    np.add.at(opened, at, nodes["open"])
    rows, costs = [], []
    totals, selves = costs_of_codes(tree)
    nothing = [0] * len(tree.metrics)
    for code, *counts in zip(codes.tolist(), calls.tolist(), opened.tolist(), strict=True):
        what = definitions.components.get(code, Component("(unknown)"))
        names = ",".join(what.parameters)
        rows.append((code, what.name, what.file, what.line, what.language, what.origin, names, *counts))
        total, own = totals.get(code, nothing), selves.get(code, nothing)
        costs += [(code, metric, total[lane], own[lane]) for lane, metric in lanes]
    tables["components"], tables["component_costs"] = table_of("components", rows), table_of("component_costs", costs)


def _add_nodes(tables: Tables, lanes: Lanes, tree: CoreTree, definitions: Definitions) -> None:
    nodes, links, histogram = tree.nodes, tree.tables[Export.LINKS], tree.tables[Export.HISTOGRAM]
    numbers = np.arange(len(nodes))
    given = {"node": numbers, "component": nodes["code"], "site_line": _site_lines(nodes, definitions)}
    tables["calltree"] = _table("calltree", nodes, given)
    moments = _by_lane("moments", lanes, nodes, tree.by_lane(Export.NODE_LANES), {"node": numbers})
    tables["moments"] = moments.take(np.arange(len(lanes), len(moments)))  # the root has none
    tables["pairs"] = _by_lane("pairs", lanes, tree.tables[Export.PAIRS], tree.by_lane(Export.PAIR_LANES))
    tables["links"] = _by_lane("links", lanes, links, tree.by_lane(Export.LINK_LANES))
    tables["histograms"] = _table("histograms", histogram)
    # A stratum is a power of two, which has four buckets: rows of equal stratum are added up.
    given = {"component": nodes["code"][histogram["node"]], "stratum": histogram["bucket"] // 4}
    tables["strata"] = _table("strata", histogram, given)


def _table(name: str, rows: Array, given: dict[str, Array] | None = None) -> Table:
    """Columns that are given, else of the rows."""
    arrays = given or {}
    return Table({of: Column(arrays[of] if of in arrays else rows[of]) for of in COLUMNS[name]})


def _by_lane(name: str, lanes: Lanes, rows: Array, costs: Array, given: dict[str, Array] | None = None) -> Table:
    """Each row once for each lane: with what the lanes share, the metric, and the lane's costs."""
    chosen = np.array([lane for lane, _ in lanes], dtype=np.int32)
    shared = np.repeat(np.arange(len(rows), dtype=np.int32), len(chosen))
    own = (np.arange(len(rows), dtype=np.int32)[:, None] * np.int32(costs.shape[1]) + chosen).ravel()
    codes = np.tile(np.arange(len(chosen), dtype=np.int32), len(rows))
    found = {"metric": Column(codes, words=tuple(metric for _, metric in lanes))}
    found |= {of: Column(array, shared) for of, array in (given or {}).items()}
    found |= {of: Column(rows[of], shared) for of in COLUMNS[name] if of in (rows.dtype.names or ())}
    found |= {of: Column(costs.ravel()[of], own) for of in costs.dtype.names or ()}
    return Table(in_order(name, found))


def _site_lines(nodes: Array, definitions: Definitions) -> Array:
    """Source line of each node's call site, 0 where unknown."""
    sites = np.empty(len(nodes), [("code", np.int64), ("site", np.int64)])
    sites["code"], sites["site"] = nodes["code"][nodes["parent"]], nodes["site"]
    sites["site"][:1] = -1  # the root was not called
    different, at = np.unique(sites, return_inverse=True)
    return np.array([definitions.line_at(*site) for site in different.tolist()], dtype=np.int64)[at]


def _add_waits(tables: Tables, tree: CoreTree) -> None:
    """Give every node whose invocations were suspended a pseudo-child with the moments of the waiting."""
    waits = tree.tables[Export.WAITS]
    pseudo = int(tree.nodes["code"].max(initial=0)) + 1
    rows: dict[str, list[tuple[Any, ...]]] = {"calltree": [], "moments": [], "pairs": []}
    total = calls = 0
    values = zip(*(Column(waits[name]).plain() for name in waits.dtype.names or ()), strict=True)
    for child, (node, n, waited, squares, least, most) in enumerate(values, len(tree.nodes)):
        rows["calltree"].append((child, node, pseudo, -1, 0, int(tree.nodes["depth"][node]) + 1))
        rows["moments"].append((child, TIME.name, n, waited, squares, least, most, 0))
        rows["pairs"].append((child, TIME.name, LOCAL, LOCAL, squares))
        total, calls = total + waited, calls + n
    if total or calls:
        rows["components"] = [(pseudo, WAITING, "", 0, "", "library", "", calls, 0)]
        rows["component_costs"] = [(pseudo, TIME.name, total, total)]
        tables.update({name: concatenated([tables[name], table_of(name, some)]) for name, some in rows.items()})
