"""The worst invocations of a call tree and the nested spans within them as tables."""

from __future__ import annotations

import numpy as np

from perflaw.collect.core_tables import CoreTree, Export
from perflaw.collect.layout import CPU_LANE
from perflaw.collect.tabulate_samples import Lanes
from perflaw.store.columns import NULL, Array, Column, Table, Tables
from perflaw.store.schema import COLUMNS


def add_spans(tables: Tables, lanes: Lanes, run: str, tree: CoreTree) -> None:
    """Add the tables of worst invocations and of their spans, which are numbered within each."""
    worst, spans = tree.tables[Export.WORST], tree.tables[Export.SPANS]
    cpu = worst["cpu"] if CPU_LANE in dict(lanes) else np.full(len(worst), NULL)
    found = {"sequence": worst["sequence"], "component": worst["code"], "node": worst["node"]}
    found |= {"started": worst["started"] - (tree.first or 0), "x": worst["time"], "x_cpu": cpu}
    tables["worst"] = _table("worst", run, {**found, "x_events": worst["events"]})
    counts = worst["spans"]
    number = np.arange(len(spans)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = {"sequence": np.repeat(worst["sequence"], counts), "span": number, "y": spans["time"]}
    tables["spans"] = _table("spans", run, {**found, **{of: spans[of] for of in ("parent", "node", "started")}})


def _table(name: str, run: str, found: dict[str, Array]) -> Table:
    columns = {of: Column(values) for of, values in found.items()}
    columns["run"] = Column(np.zeros(len(found["sequence"]), np.int32), words=(run,))
    return Table({of: columns[of] for of in COLUMNS[name]})
