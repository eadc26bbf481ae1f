"""The sampled invocations of a call tree as tables: costs, callees and features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perflaw.collect.core_tables import CoreTree, Export
from perflaw.collect.definitions import Definitions
from perflaw.collect.layout import CPU_LANE, EVENTS_LANE, TIME_LANE
from perflaw.store.columns import NULL, Array, Column, Table, Tables, texts
from perflaw.store.schema import COLUMNS

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
    tables["invocations"] = _table("invocations", run, found)
    tables["invocation_costs"] = _other_costs(lanes, run, samples["sequence"], costs)
    tables["callees"] = _callees(run, tree, with_cpu)
    tables["features"] = _features(run, tree, definitions)


def _where(measured: bool, values: Array) -> Array:
    return values if measured else np.full(len(values), NULL)


def _table(name: str, run: str, found: Mapping[str, Array | Column]) -> Table:
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
    return _table("invocation_costs", run, {"sequence": sequence[sample], "metric": named, "x": chosen[sample, metric]})


def _callees(run: str, tree: CoreTree, with_cpu: bool) -> Table:
    callees = tree.tables[Export.CALLEES]
    found = {"node": callees["node"], "k": callees["calls"], "y": callees["time"]}
    found["y_cpu"] = _where(with_cpu, callees["cpu"])
    return _table("callees", run, {"sequence": _sequence(tree, "callees"), **found})


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
    return _table("features", run, found)
