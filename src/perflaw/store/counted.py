"""What calls that were counted and not timed took, estimated from those of the same function that were timed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflaw.store.columns import Array
from perflaw.store.experiment import Recording
from perflaw.store.tables import read_table
from perflaw.types import EVENTS, Metric


@dataclass(frozen=True, slots=True, eq=False)
class CountedCalls:
    """The calls of a recording that were counted and not timed, by node of the call tree (n of them)."""

    node: Array
    """(n,) the nodes."""
    caller: Array
    """(n,) the nodes that call them; -1 for none."""
    component: Array
    """(n,) the functions."""
    caller_component: Array
    """(n,) their callers; -1 for none."""
    calls: Array
    """(n,) number of calls."""
    cost: Array
    """(n,) estimated cost of these calls: the recording has it as their callers' own."""


def read_counted(recording: Recording, metric: Metric) -> CountedCalls | None:
    """The counted calls of a recording and their cost in a metric; None if it has none or the metric knows them.

    Counted functions call nothing that is recorded, so a call costs what the timed calls of the function cost on
    average. All counted calls of a caller together cost at most its own cost in that context.
    """
    if not recording.run.lost.counted_functions or metric == EVENTS:
        return None
    counted = read_table(recording.folder, "counted")
    tree = read_table(recording.folder, "calltree", ("node", "parent", "component"))
    moments = read_table(recording.folder, "moments", ("node", "metric", "n", "sum_x"))
    words = list(moments.columns["metric"].words or ())
    if metric.name not in words or not len(counted):
        return None
    moments = moments.take(np.flatnonzero(moments["metric"] == words.index(metric.name)))
    # Rows of the tree by number of the node: numbers are dense, and -1 (no node) is the last.
    size = int(tree["node"].max(initial=0)) + 2
    parent, component = np.full((2, size), -1, np.int64)
    parent[tree["node"]], component[tree["node"]] = tree["parent"], tree["component"]
    timed, inclusive = np.zeros((2, size))
    timed[moments["node"]] = moments["n"]
    inclusive[moments["node"]] = np.array(moments.columns["sum_x"].plain(), dtype=np.float64)
    own = inclusive.copy()
    np.subtract.at(own, parent[:-1][parent[:-1] >= 0], inclusive[:-1][parent[:-1] >= 0])
    # Own cost of a timed call by component, 0 where no call was timed; the last is that of no component.
    components, known = int(component.max(initial=0)) + 2, component >= 0
    timed_calls = np.bincount(component[known], timed[known], minlength=components)
    timed_cost = np.maximum(np.bincount(component[known], own[known], minlength=components), 0.0)
    unit = np.divide(timed_cost, timed_calls, out=np.zeros(components), where=timed_calls > 0)
    node, calls = counted["node"].astype(np.int64), counted["calls"].astype(np.int64)
    caller, cost = parent[node], calls * unit[component[node]]
    asked = np.bincount(caller[caller >= 0], cost[caller >= 0], minlength=size)
    part = np.divide(np.maximum(own, 0.0), asked, out=np.ones(size), where=asked > 0)
    cost *= np.where(caller >= 0, np.minimum(part, 1.0)[caller], 0.0)
    return CountedCalls(node, caller, component[node], component[caller], calls, cost)
