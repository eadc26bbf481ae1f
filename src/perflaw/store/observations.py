"""The costs of single calls of a function (``--per``), each of which is an execution by itself, as a request of a server is.

Kept are the calls that are in the function's uniform sample, each with the calls and own costs of every node within it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from perflaw.errors import UsageError
from perflaw.store.columns import Array, Table, grouped
from perflaw.store.contexts import QUEUEING, ContextReader, costs_of
from perflaw.store.experiment import Recording
from perflaw.store.tables import has_table, read_each, read_table
from perflaw.types import CPU, EVENTS, TIME, Metric, ProgramCosts, Run
from perflaw.types.recordings import FEATURE_NAME, MOST_QUEUED

_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "components": (),
    "calltree": ("node", "parent", "component", "site_line"),
    "invocations": ("sequence", "component", "uniform_key"),
    "invocation_costs": ("sequence", "metric", "x"),
    "features": ("sequence", "feature", "value"),
    "parts": (),
}
"""Tables that hold the observations, and the columns that are needed; all where none is named."""
_COLUMNS: Final = {EVENTS.name: "k", TIME.name: "own", CPU.name: "own_cpu"}
"""Metric → its column in the table of parts. A call is one event of its own."""

MOST: Final = 0.95
"""Part of the observations that have a feature, from which on those without it are left out instead of the feature."""


def read_observations(recordings: Sequence[Recording], metric: Metric) -> ProgramCosts | None:
    """The costs of all observations in a metric; None if there are none.

    Wall time on a busy machine is without the time in which others had the CPU, where CPU time is recorded too.

    UsageError if those of several functions are there, or not kept in the metric.
    """
    recordings = [one for one in recordings if has_table(one.folder, "parts")]
    folders = [recording.folder for recording in recordings]
    reader, runs, tops, queued = ContextReader(metric), list[Run](), set[int](), dict[str, tuple[float, ...]]()
    columns = zip(*(read_each(folders, name, needed) for name, needed in _TABLES.items()), strict=True)
    for recording, tables in zip(recordings, columns, strict=True):
        components, tree, invocations, further, features, parts = tables
        uniform = invocations.take(np.flatnonzero(invocations["uniform_key"] >= 0))
        parts = parts.take(np.flatnonzero(np.isin(parts["sequence"], uniform["sequence"])))
        if not len(parts):
            continue
        if metric.name not in _COLUMNS:
            why = f"of single calls, {', '.join(_COLUMNS)} are kept"
            raise UsageError(f"--metric {metric.name} of recordings with --per", why, "perflaw annotate --metric cpu")
        numbers = {row[0]: reader.number(row) for row in components}
        observed = uniform["component"][np.isin(uniform["sequence"], parts["sequence"])]
        tops |= {numbers[component] for component in np.unique(observed).tolist()}
        if len(tops) > 1:
            names = [list(reader.components)[top][0] for top in sorted(tops)]
            why = f"--per {recording.run.per} is the name of {' and of '.join(names)}"
            raise UsageError("calls of several functions were observed", why, f"perflaw attach --per {names[0]} …")
        [top] = tops
        left_out = np.zeros(len(parts))
        if metric == TIME and CPU in recording.run.metrics and has_table(recording.folder, "queued"):
            left_out = queueing_of_parts(parts, tree, read_table(recording.folder, "queued"), further)
        queued |= _per_observation(parts, recording.run, left_out, parts["own_cpu"])
        runs += _read(reader, recording.run, tree, features, parts, numbers, top, left_out)
    if not runs:
        return None
    [top] = tops
    without, on_cpu = np.array([queued[run.id] for run in runs]).T
    is_busy = bool((without > MOST_QUEUED * (without + on_cpu)).any())
    per = list(reader.components.values())[top]
    return replace(costs_of(reader, tuple(runs)), per=per, queued=without if is_busy else None)


def _per_observation(parts: Table, run: Run, *columns: Array) -> dict[str, tuple[float, ...]]:
    """Sums of the columns (P,) of the parts over each observation, by its name."""
    sequence, place = np.unique(parts["sequence"], return_inverse=True)
    sums = [np.bincount(place, column).tolist() for column in columns]
    return dict(zip([f"{run.id}:{number}" for number in sequence.tolist()], zip(*sums, strict=True), strict=True))


def queueing_of_parts(parts: Table, tree: Table, queued: Table, further: Table) -> Array:
    """The part of the own time of every node of every observation in which others had the CPU, ns, (P,).

    The kernel told it of each observation as a whole. Its nodes share it by their time off the CPU, in which one that always
    waits of its own accord has a smaller part of queueing: that of all its calls is known.
    """
    observed, place = np.unique(parts["sequence"], return_inverse=True)
    rows = further.where("metric", QUEUEING.name)
    rows = rows.take(np.flatnonzero(np.isin(rows["sequence"], observed)))
    whole = np.bincount(np.searchsorted(observed, rows["sequence"]), rows["x"], len(observed))
    off = np.maximum(parts["own"] - parts["own_cpu"], 0).astype(np.float64)
    within = {int(node): int(time) for node, time in queued}
    itself = Counter(within)
    for node, parent in zip(tree["node"].tolist(), tree["parent"].tolist(), strict=True):
        itself[parent] -= within.get(node, 0)
    nodes, node_of = np.unique(parts["node"], return_inverse=True)
    of_nodes = np.maximum([itself[node] for node in nodes.tolist()], 0)
    share = off * (of_nodes / np.maximum(np.bincount(node_of, off), 1.0))[node_of]
    total = np.bincount(place, share, len(observed))
    return np.asarray(np.minimum(off, np.floor(share * (whole / np.maximum(total, 1e-9))[place])))


def _read(
    reader: ContextReader,
    run: Run,
    tree: Table,
    features: Table,
    parts: Table,
    numbers: Mapping[int, int],
    top: int,
    left_out: Array,
) -> list[Run]:
    """Take in the observations of a recording; gives each as a run with the features of its call.

    ``left_out`` is the part (P,) of the own costs that is none of the program's.
    """
    nodes, node = np.unique(parts["node"], return_inverse=True)  # callers first, by the order of their numbers
    order = np.argsort(tree["node"])
    rows = order[np.searchsorted(tree["node"], nodes, sorter=order)]
    component = np.array([numbers[each] for each in tree["component"][rows].tolist()], dtype=np.intp)
    above = tree["parent"][rows]
    parent = np.minimum(np.searchsorted(nodes, above), len(nodes) - 1)
    parent = np.where(nodes[parent] == above, parent, -1)
    calls = np.bincount(node, parts["k"], len(nodes))
    lines = tree["site_line"][rows].tolist()
    contexts, callers, edges = reader.walk(parent.tolist(), component.tolist(), lines, calls.tolist(), top)
    values = np.array([parts["k"], parts[_COLUMNS[reader.metric.name]] - left_out], dtype=np.float64)
    known = _features(features, parts, reader, component, node)
    runs = []
    kept = _common(known)
    order, starts = grouped([parts["sequence"]])
    for rows_of in np.split(order, starts[1:]):
        sequence, which = int(parts["sequence"][rows_of[0]]), node[rows_of]
        if not known[sequence].keys() >= kept:
            continue
        name = f"{run.id}:{sequence}"
        of_call = {**run.features, **{feature: known[sequence][feature] for feature in sorted(kept)}}
        runs.append(replace(run, id=name, features=of_call, machine=None, collections=None))
        own = values[:, rows_of]
        reader.costs.append((name, component[which], own, contexts[which], own, callers[which]))
        reader.edge_calls.append((name, edges[which], own[0]))
    return runs


def _features(
    table: Table, parts: Table, reader: ContextReader, component: Array, node: Array
) -> dict[int, dict[str, float]]:
    """The numbers that were read of each observation, and of the functions that it calls once."""
    calls: dict[int, dict[str, int]] = {sequence: {} for sequence in parts["sequence"].tolist()}
    names = [name for name, *_ in reader.components]
    for sequence, number, count in zip(
        parts["sequence"].tolist(), component[node].tolist(), parts["k"].tolist(), strict=True
    ):
        of_call = calls[sequence]
        of_call[names[number]] = of_call.get(names[number], 0) + count
    owners: dict[str, str] = {}
    known: dict[int, dict[str, float]] = {sequence: {} for sequence in calls}
    for sequence, name, value in table:
        if value is None or sequence not in calls or not FEATURE_NAME.fullmatch(name):
            continue
        if name not in owners:
            owners[name] = max((one for one in names if name.startswith(one + ".")), key=len, default="")
        if calls[sequence].get(owners[name], 1) == 1:
            known[sequence][name] = value
    return known


def _common(known: Mapping[int, Mapping[str, float]]) -> set[str]:
    """Features that nearly all observations have. Reading is kept cheap, so some calls within a busy one are not read."""
    counts = Counter(name for features in known.values() for name in features)
    return {name for name, count in counts.items() if count >= MOST * len(known)}
