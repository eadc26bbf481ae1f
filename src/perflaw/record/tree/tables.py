"""A finished call tree and its definitions to the tables of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perflaw.record.tree.call_tree import RecordedTree, costs_of_codes, to_tables
from perflaw.record.tree.core import Export, TreeTables, rows_of
from perflaw.record.tree.records import CPU_LANE, EVENTS_LANE, TIME_LANE, Definitions
from perflaw.store.columns import NULL, Array, Column, Table, Tables, concatenated, texts
from perflaw.store.merge import merge
from perflaw.store.schema import COLUMNS, LOCAL, table_of
from perflaw.types import TIME, Component
from perflaw.types.call_trees import AWAIT, MARK, QUEUED, RESUMES
from perflaw.types.recordings import WAITING

Lanes = list[tuple[int, str]]
"""Number and metric of the lanes that were measured."""
_POWERS = 1 << np.arange(63)


def tabulate(run: str, tree: TreeTables | RecordedTree, definitions: Definitions) -> Tables:
    """Tables of one run in canonical order, with the metrics that ``definitions`` names as measured.

    Functions without a definition, because its line was torn, are called ``(unknown)``.
    """
    if isinstance(tree, RecordedTree):
        tree = to_tables(tree)
    lanes = [(lane, tree.metrics[lane]) for lane in sorted(definitions.metrics) if lane < len(tree.metrics)]
    tables = {
        **_component_tables(lanes, tree, definitions),
        **_node_tables(lanes, tree, definitions),
        **_sample_tables(lanes, run, tree, definitions),
        **_span_tables(lanes, run, tree),
    }
    for name, rows in _waiting_rows(tree).items():
        tables[name] = concatenated([tables[name], table_of(name, rows)])
    return merge([tables])


def _component_tables(lanes: Lanes, tree: TreeTables, definitions: Definitions) -> Tables:
    nodes = tree.nodes[1:]
    codes, at = np.unique(nodes["code"], return_inverse=True)
    calls, opened = np.zeros((2, len(codes)), np.int64)
    np.add.at(calls, at, nodes["n"] + nodes["counted"])
    np.add.at(opened, at, nodes["open"])
    rows, costs = [], []
    totals, selves = costs_of_codes(tree)
    queued = [(lane, f"{MARK}{QUEUED}") for lane in _queued_lanes(tree, definitions)]
    nothing = [0] * len(tree.metrics)
    for code, *counts in zip(codes.tolist(), calls.tolist(), opened.tolist(), strict=True):
        component = definitions.components.get(code, Component("(unknown)"))
        parameters = ",".join(component.parameters)
        place = (component.file, component.line, component.language, component.origin)
        rows.append((code, component.name, *place, parameters, *counts))
        total, own = totals.get(code, nothing), selves.get(code, nothing)
        costs += [(code, metric, total[lane], own[lane]) for lane, metric in lanes]
        costs += [(code, mark, total[lane], own[lane]) for lane, mark in queued if total[lane] or own[lane]]
    return {"components": table_of("components", rows), "component_costs": table_of("component_costs", costs)}


def _node_tables(lanes: Lanes, tree: TreeTables, definitions: Definitions) -> Tables:
    nodes, links, histogram = tree.nodes, tree.tables[Export.LINKS], tree.tables[Export.HISTOGRAM]
    numbers = np.arange(len(nodes))
    sites = np.empty(len(nodes), [("code", np.int64), ("site", np.int64)])
    sites["code"], sites["site"] = nodes["code"][nodes["parent"]], nodes["site"]
    sites["site"][:1] = -1  # nothing calls the root
    different, at = np.unique(sites, return_inverse=True)
    lines = np.array([definitions.line_at(*site) for site in different.tolist()], dtype=np.int64)[at]
    context = {"node": numbers, "component": nodes["code"], "site_line": lines}
    moments = _by_lane("moments", lanes, nodes, tree.by_lane(Export.NODE_LANES), {"node": numbers})
    # Counted calls have events and no other cost, and each metric has its own population.
    n = nodes["n"][:, None] + nodes["counted"][:, None] * np.array([lane == EVENTS_LANE for lane, _ in lanes])
    moments = moments.replaced({"n": Column(n.ravel())})
    counted = np.flatnonzero(nodes["counted"])
    # A stratum is a power of two, which has four buckets; the final merge adds rows of equal stratum.
    strata = {"component": nodes["code"][histogram["node"]], "stratum": histogram["bucket"] // 4}
    return {
        "calltree": _table("calltree", nodes, context),
        "moments": moments.take(np.arange(len(lanes), len(moments))),  # the root has no moments
        "pairs": _by_lane("pairs", lanes, tree.tables[Export.PAIRS], tree.by_lane(Export.PAIR_LANES)),
        "links": _by_lane("links", lanes, links, tree.by_lane(Export.LINK_LANES)),
        "histograms": _table("histograms", histogram),
        "strata": _table("strata", histogram, strata),
        "counted": _table("counted", nodes[counted], {"node": counted, "calls": nodes["counted"][counted]}),
        "queued": _queued_table(tree, definitions),
    }


def _queued_lanes(tree: TreeTables, definitions: Definitions) -> list[int]:
    return [lane for lane, mark in definitions.marks.items() if mark == QUEUED and lane < len(tree.metrics)]


def _queued_table(tree: TreeTables, definitions: Definitions) -> Table:
    """The nodes whose invocations lost the CPU to others. What else threads were off for is kept of samples alone."""
    lanes = _queued_lanes(tree, definitions)
    if not lanes:
        return table_of("queued", ())
    costs = tree.by_lane(Export.NODE_LANES)[:, lanes[0]]
    nodes = 1 + np.flatnonzero(costs["max_x"][1:])
    return _table("queued", costs[nodes], {"node": nodes})


def _table(name: str, rows: Array, given: Mapping[str, Array] | None = None) -> Table:
    """The table of that name: columns that are given, the others from ``rows``."""
    arrays = given or {}
    return Table({of: Column(arrays[of] if of in arrays else rows[of]) for of in COLUMNS[name]})


def _by_lane(name: str, lanes: Lanes, rows: Array, costs: Array, given: Mapping[str, Array] | None = None) -> Table:
    """Each row once for each lane: the columns that lanes share, the metric, and the lane's costs (rows, lanes)."""
    chosen = np.array([lane for lane, _ in lanes], dtype=np.int32)
    shared = np.repeat(np.arange(len(rows), dtype=np.int32), len(chosen))
    own = (np.arange(len(rows), dtype=np.int32)[:, None] * np.int32(costs.shape[1]) + chosen).ravel()
    codes = np.tile(np.arange(len(chosen), dtype=np.int32), len(rows))
    columns = {"metric": Column(codes, words=tuple(metric for _, metric in lanes))}
    columns |= {of: Column(array, shared) for of, array in (given or {}).items()}
    columns |= {of: Column(rows[of], shared) for of in COLUMNS[name] if of in (rows.dtype.names or ())}
    columns |= {of: Column(costs.ravel()[of], own) for of in costs.dtype.names or ()}
    return Table({of: columns[of] for of in COLUMNS[name]})


def _waiting_rows(tree: TreeTables) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of a pseudo-child, with the moments of the waiting, of every node whose invocations were suspended."""
    pseudo = int(tree.nodes["code"].max(initial=0)) + 1
    rows: dict[str, list[tuple[Any, ...]]] = {"calltree": [], "moments": [], "pairs": []}
    total = calls = 0
    waits = enumerate(rows_of(tree.tables[Export.WAITS]), len(tree.nodes))
    for child, (node, n, waited, squares, least, most) in waits:
        rows["calltree"].append((child, node, pseudo, -1, 0, int(tree.nodes["depth"][node]) + 1))
        rows["moments"].append((child, TIME.name, n, waited, squares, least, most, 0))
        rows["pairs"].append((child, TIME.name, LOCAL, LOCAL, squares))
        total, calls = total + waited, calls + n
    if not total and not calls:
        return {}
    component = (pseudo, WAITING, "", 0, "", "library", "", calls, 0)
    return rows | {"components": [component], "component_costs": [(pseudo, TIME.name, total, total)]}


def _sample_tables(lanes: Lanes, run: str, tree: TreeTables, definitions: Definitions) -> Tables:
    """The sampled invocations: their costs, callees and features."""
    samples, costs = tree.tables[Export.SAMPLES], tree.by_lane(Export.COSTS)["cost"]
    callees, features = tree.tables[Export.CALLEES], tree.tables[Export.FEATURES]
    with_cpu = CPU_LANE in dict(lanes)
    rows = {name: samples[name] for name in ("sequence", "node", "uniform_key", "stratum_key")}
    # Of a sample that became smaller while it was taken, larger priorities are left only of early invocations.
    if definitions.sample_bounds:
        bounds = np.full(samples["code"].max(initial=0) + 1, 1 << 62)
        for code in definitions.sample_bounds.keys() & set(range(len(bounds))):
            bounds[code] = definitions.sample_bounds[code]
        rows["uniform_key"] = np.where(rows["uniform_key"] < bounds[samples["code"]], rows["uniform_key"], -1)
    rows |= {"component": samples["code"], "started": samples["started"] - (tree.first or 0)}
    rows |= {"x": costs[:, TIME_LANE], "x_events": costs[:, EVENTS_LANE]}
    rows |= {"x_cpu": _measured(with_cpu, costs[:, CPU_LANE]), "weight": np.ones(len(samples))}
    rows["stratum"] = np.searchsorted(_POWERS, np.abs(rows["x"]), side="right")  # bits of the time
    others = [(lane, metric) for lane, metric in lanes if lane > EVENTS_LANE]
    others += [(lane, f"{MARK}{mark}") for lane, mark in sorted(definitions.marks.items()) if lane < costs.shape[1]]
    other_costs = costs[:, [lane for lane, _ in others]]
    # What awaits take is no part of a coroutine's time. A generator that is suspended waits for its consumer: no cost.
    if definitions.coroutines:
        awaiting = np.isin(samples["code"], list(definitions.coroutines))
        others.append((-1, f"{MARK}{AWAIT}"))
        other_costs = np.column_stack([other_costs, np.where(awaiting, samples["waited"], 0)])
    others.append((-1, RESUMES))
    other_costs = np.column_stack([other_costs, samples["resumes"]])
    sample, metric = np.nonzero(other_costs)
    other_rows: dict[str, Array | Column] = {
        "sequence": samples["sequence"][sample],
        "metric": Column(metric.astype(np.int32), words=tuple(name for _, name in others)),
        "x": other_costs[sample, metric],
    }
    callee_rows: dict[str, Array | Column] = {
        "sequence": _sequence_of(samples, "callees"),
        "node": callees["node"],
        "k": callees["calls"],
        "y": callees["time"],
        "y_cpu": _measured(with_cpu, callees["cpu"]),
    }
    parts = tree.tables[Export.PARTS]
    part_rows: dict[str, Array | Column] = {
        "sequence": _sequence_of(samples, "parts"),
        "node": parts["node"],
        "k": parts["calls"],
        "own": parts["time"],
        "own_cpu": _measured(with_cpu, parts["cpu"]),
    }
    # The value of a dynamic type is its number, which becomes its name.
    keys = np.repeat(samples["code"] << 32, samples["features"]) | features["number"]
    keys, at = np.unique(keys, return_inverse=True)
    names = [definitions.feature_of(key & 0xFFFFFFFF, key >> 32) for key in keys.tolist()]
    typed = np.array([name.endswith(".type") for name in names], np.bool_)[at]
    named, text = texts(names), np.full(len(features), -1, np.int32)
    types, which = np.unique(features["value"][typed], return_inverse=True)
    type_names = texts([definitions.types.get(int(number), "?") for number in types.tolist()])
    text[typed] = type_names.values[which]
    feature_rows = {
        "sequence": _sequence_of(samples, "features"),
        "feature": Column(named.values[at], words=named.words),
        "value": Column(np.where(typed, np.nan, features["value"])),
        "text": Column(text, words=type_names.words),
    }
    return {
        "invocations": _run_table("invocations", run, rows),
        "invocation_costs": _run_table("invocation_costs", run, other_rows),
        "callees": _run_table("callees", run, callee_rows),
        "parts": _run_table("parts", run, part_rows),
        "features": _run_table("features", run, feature_rows),
    }


def _measured(measured: bool, values: Array) -> Array:
    return values if measured else np.full(len(values), NULL)


def _run_table(name: str, run: str, rows: Mapping[str, Array | Column]) -> Table:
    """The table of that name, with the run in its column ``run``."""
    columns = {of: values if isinstance(values, Column) else Column(values) for of, values in rows.items()}
    columns["run"] = Column(np.zeros(len(columns["sequence"]), np.int32), words=(run,))
    return Table({of: columns[of] for of in COLUMNS[name]})


def _sequence_of(samples: Array, counts: str) -> Column:
    """The invocation that each callee or feature belongs to; ``counts`` is the column with their number."""
    return Column(samples["sequence"], np.repeat(np.arange(len(samples), dtype=np.int32), samples[counts]))


def _span_tables(lanes: Lanes, run: str, tree: TreeTables) -> Tables:
    """The longest invocations, and their spans, which are numbered within each."""
    worst, spans = tree.tables[Export.WORST], tree.tables[Export.SPANS]
    rows = {"sequence": worst["sequence"], "component": worst["code"], "node": worst["node"]}
    rows |= {"started": worst["started"] - (tree.first or 0), "x": worst["time"], "x_events": worst["events"]}
    rows["x_cpu"] = _measured(CPU_LANE in dict(lanes), worst["cpu"])
    counts = worst["spans"]
    number = np.arange(len(spans)) - np.repeat(np.cumsum(counts) - counts, counts)
    span_rows = {"sequence": np.repeat(worst["sequence"], counts), "span": number, "y": spans["time"]}
    span_rows |= {of: spans[of] for of in ("parent", "node", "started")}
    return {"worst": _run_table("worst", run, rows), "spans": _run_table("spans", run, span_rows)}
