"""A finished call tree and its definitions to the tables of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perflaw.record.records import CPU_LANE, EVENTS_LANE, TIME_LANE, Definitions
from perflaw.record.tree.call_tree import CallTree, columns, costs_of_codes
from perflaw.record.tree.core_tables import CoreTree, Export
from perflaw.store.columns import NULL, Array, Column, Table, Tables, concatenated, texts
from perflaw.store.merge import merge
from perflaw.store.schema import COLUMNS, LOCAL, table_of
from perflaw.types import TIME, Component

# ---- The sampled invocations of a call tree as tables: costs, callees and features.

Lanes = list[tuple[int, str]]
"""Number and name of the lanes that were measured."""
_POWERS = 1 << np.arange(63)


def add_samples(tables: Tables, lanes: Lanes, run: str, tree: CoreTree, definitions: Definitions) -> None:
    """Add the tables of samples."""
    samples, costs = tree.tables[Export.SAMPLES], tree.by_lane(Export.COSTS)["cost"]
    with_cpu = CPU_LANE in dict(lanes)
    found = {name: samples[name] for name in ("sequence", "node", "uniform_key", "stratum_key")}
    found |= {"component": samples["code"], "started": samples["started"] - (tree.first or 0)}
    found |= {"x": costs[:, TIME_LANE], "x_events": costs[:, EVENTS_LANE]}
    found |= {"x_cpu": _where(with_cpu, costs[:, CPU_LANE]), "weight": np.ones(len(samples))}
    found["stratum"] = np.searchsorted(_POWERS, np.abs(found["x"]), side="right")  # bits of the time
    tables["invocations"] = _tabulate_samples_table("invocations", run, found)
    tables["invocation_costs"] = _other_costs(lanes, run, samples["sequence"], costs)
    tables["callees"] = _callees(run, tree, with_cpu)
    tables["features"] = _features(run, tree, definitions)


def _where(measured: bool, values: Array) -> Array:
    return values if measured else np.full(len(values), NULL)


def _tabulate_samples_table(name: str, run: str, found: Mapping[str, Array | Column]) -> Table:
    columns = {of: values if isinstance(values, Column) else Column(values) for of, values in found.items()}
    some = next(iter(columns.values()))
    columns["run"] = Column(np.zeros(len(some), np.int32), words=(run,))
    return Table(in_order(name, columns))


def in_order(name: str, columns: dict[str, Column]) -> dict[str, Column]:
    """The columns in the order of the table of that name."""
    return {of: columns[of] for of in COLUMNS[name]}


def _other_costs(lanes: Lanes, run: str, sequence: Array, costs: Array) -> Table:
    """Costs in what was measured beside time, cpu and events, where there are any."""
    others = [(lane, metric) for lane, metric in lanes if lane > EVENTS_LANE]
    chosen = costs[:, [lane for lane, _ in others]]
    sample, metric = np.nonzero(chosen)
    named = Column(metric.astype(np.int32), words=tuple(name for _, name in others))
    return _tabulate_samples_table(
        "invocation_costs", run, {"sequence": sequence[sample], "metric": named, "x": chosen[sample, metric]}
    )


def _callees(run: str, tree: CoreTree, with_cpu: bool) -> Table:
    callees = tree.tables[Export.CALLEES]
    found = {"node": callees["node"], "k": callees["calls"], "y": callees["time"]}
    found["y_cpu"] = _where(with_cpu, callees["cpu"])
    return _tabulate_samples_table("callees", run, {"sequence": _sequence(tree, "callees"), **found})


def _sequence(tree: CoreTree, what: str) -> Column:
    """Which invocation each of the callees or features belongs to."""
    samples = tree.tables[Export.SAMPLES]
    return Column(samples["sequence"], np.repeat(np.arange(len(samples), dtype=np.int32), samples[what]))


def _features(run: str, tree: CoreTree, definitions: Definitions) -> Table:
    """Features by name; the value of a dynamic type is its number, which becomes its name."""
    features = tree.tables[Export.FEATURES]
    numbers, at = np.unique(features["number"], return_inverse=True)
    names = [definitions.features.get(number, "(unknown)") for number in numbers.tolist()]
    typed = np.array([name.endswith(".type") for name in names], np.bool_)[at]
    named, text = texts(names), np.full(len(features), -1, np.int32)
    types, which = np.unique(features["value"][typed], return_inverse=True)
    known = texts([definitions.types.get(int(number), "?") for number in types.tolist()])
    text[typed] = known.values[which]
    found = {
        "sequence": _sequence(tree, "features"),
        "feature": Column(named.values[at], words=named.words),
        "value": Column(np.where(typed, np.nan, features["value"])),
        "text": Column(text, words=known.words),
    }
    return _tabulate_samples_table("features", run, found)


# ---- The worst invocations of a call tree and the nested spans within them as tables.


def add_spans(tables: Tables, lanes: Lanes, run: str, tree: CoreTree) -> None:
    """Add the tables of worst invocations and of their spans, which are numbered within each."""
    worst, spans = tree.tables[Export.WORST], tree.tables[Export.SPANS]
    cpu = worst["cpu"] if CPU_LANE in dict(lanes) else np.full(len(worst), NULL)
    found = {"sequence": worst["sequence"], "component": worst["code"], "node": worst["node"]}
    found |= {"started": worst["started"] - (tree.first or 0), "x": worst["time"], "x_cpu": cpu}
    tables["worst"] = _tabulate_spans_table("worst", run, {**found, "x_events": worst["events"]})
    counts = worst["spans"]
    number = np.arange(len(spans)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = {"sequence": np.repeat(worst["sequence"], counts), "span": number, "y": spans["time"]}
    tables["spans"] = _tabulate_spans_table(
        "spans", run, {**found, **{of: spans[of] for of in ("parent", "node", "started")}}
    )


def _tabulate_spans_table(name: str, run: str, found: dict[str, Array]) -> Table:
    columns = {of: Column(values) for of, values in found.items()}
    columns["run"] = Column(np.zeros(len(found["sequence"]), np.int32), words=(run,))
    return Table({of: columns[of] for of in COLUMNS[name]})


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
