"""Recordings merged, as one calling-context tree for the learner of variance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np

from perflaw.store.columns import NULL, WIDE, Array, Column, Row, Table, Tables
from perflaw.store.experiment import Recording
from perflaw.store.merge import merge
from perflaw.store.schema import WORST
from perflaw.store.tables import read_table
from perflaw.types import CPU, EVENTS, TIME, Clock, Component, Metric
from perflaw.types.call_trees import CallTree, LinkMoments, NodeMoments, PairMoments, Samples
from perflaw.types.recordings import NestedSpan, WorstCall

LEAST_NOISE_NS: Final = 100
"""A cache miss: the cost of an invocation is not known better than this."""


def read_call_tree(recordings: Sequence[Recording], metric: Metric) -> CallTree:
    """The tree of all recordings together. StoreError where a table is missing or damaged."""
    tables = merge([recording.tables() for recording in recordings])
    metrics = {one.name: one for recording in recordings for one in recording.run.metrics}
    noise = max(_noise(recording.run.clock) for recording in recordings)
    return call_tree(tables, metric, metrics, _notes(recordings), noise)


def _noise(clock: Clock) -> float:
    """What an event costs is taken out by its mean: single ones are off by a fifth of it and more."""
    return 0.0 if clock.name == "fake" else float(max(clock.event_ns / 5, clock.tick_ns, LEAST_NOISE_NS))


def call_tree(
    tables: Tables, metric: Metric, metrics: dict[str, Metric], notes: tuple[str, ...] = (), noise: float = 0.0
) -> CallTree:
    """The tree of such tables, one metric of it. ``noise``: ns by which the clock may be off."""
    nodes = tables["calltree"]
    count = len(nodes)
    histogram = tables["histograms"]
    return CallTree(
        metric,
        metrics,
        tuple(_component(row) for row in tables["components"]),
        nodes["parent"],
        nodes["component"],
        nodes["site"],
        nodes["site_line"],
        {name: _moments(tables["moments"], name, count) for name in metrics},
        PairMoments(**_columns(tables["pairs"], metric.name, ("node", "i", "j", "sum_yy"))),
        LinkMoments(**_columns(tables["links"], metric.name, tuple(LinkMoments.__slots__))),
        _samples(tables, metric),
        (histogram["node"], histogram["bucket"], histogram["count"]),
        noise,
        notes,
    )


def _notes(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """What bounds of the recorder were met, and which runs did not end."""
    lost = [recording.run.lost for recording in recordings]
    folded, unlinked = sum(one.folded_calls for one in lost), sum(one.unlinked for one in lost)
    incomplete = sum(not recording.run.complete for recording in recordings)
    notes = []
    if folded:
        notes.append(f"{folded} calls from further contexts are put together by function")
    if unlinked:
        notes.append(f"{unlinked} times a descendant's part was not kept: its variance counts as its ancestor's own")
    if incomplete:
        notes.append(f"{incomplete} of {len(lost)} runs did not end normally: they hold what had completed")
    return tuple(notes)


def _component(row: tuple[object, ...]) -> Component:
    _, name, file, line, language, told, parameters = row[:7]
    origin: Literal["own", "library"] = "library" if told == "library" else "own"
    names = tuple(str(parameters).split(",")) if parameters else ()
    return Component(str(name), str(file), int(str(line)), str(language), origin, names)


def _exact(column: Column) -> Array:
    """Sums as Python's integers, other columns as they are."""
    if column.values.dtype != WIDE:
        return column.array()
    values = np.empty(len(column), dtype=object)
    values[:] = column.plain()
    return values


def _rows_of(table: Table, metric: str) -> Table:
    column = table.columns["metric"]
    words = column.words or ()
    code = words.index(metric) if metric in words else -2
    return table.take(np.flatnonzero(column.array() == code))


def _columns(table: Table, metric: str, names: tuple[str, ...]) -> dict[str, Array]:
    some = _rows_of(table, metric)
    return {name: _exact(some.columns[name]) for name in names}


def _moments(table: Table, metric: str, count: int) -> NodeMoments:
    """Moments by node; nodes without a completed invocation have none."""
    some = _rows_of(table, metric)
    n = np.zeros(count, np.int64)
    sum_x, sum_xx = np.zeros(count, dtype=object), np.zeros(count, dtype=object)
    n[some["node"]] = some["n"]
    sum_x[some["node"]], sum_xx[some["node"]] = _exact(some.columns["sum_x"]), _exact(some.columns["sum_xx"])
    return NodeMoments(n, sum_x, sum_xx)


def _samples(tables: Tables, metric: Metric) -> Samples:
    table, callees = tables["invocations"], tables["callees"]
    costs = _further_costs(tables)
    time, cpu = table["x"].astype(np.float64), _measured(table["x_cpu"])
    known = {TIME.name: time, CPU.name: cpu, EVENTS.name: table["x_events"].astype(np.float64)} | costs
    parts = {TIME.name: callees["y"].astype(np.float64), CPU.name: _measured(callees["y_cpu"])}
    words = table.columns["run"].words or ()
    return Samples(
        tuple(words[code] for code in table["run"].tolist()),
        table["sequence"],
        table["node"],
        table["started"],
        known.get(metric.name, np.zeros(len(table))),
        time,
        cpu,
        known[EVENTS.name],
        table["weight"].astype(np.float64),
        table["stratum"],
        table["uniform_key"] >= 0,
        _places(table, callees),
        callees["node"],
        callees["k"],
        parts.get(metric.name, np.full(len(callees), np.nan)),
        parts[TIME.name],
        parts[CPU.name],
        costs,
        _features(tables),
    )


def _measured(column: Array) -> Array:
    return np.where(column == NULL, np.nan, column.astype(np.float64))


def _places(invocations: Table, table: Table) -> Array:
    """Place among the sampled invocations of each row that goes with one."""
    if not len(table):
        return np.empty(0, np.int64)
    run_of, sequence = _codes(invocations, table), invocations["sequence"]
    key = (invocations["run"].astype(np.int64) << 40) + sequence
    wanted = (run_of.astype(np.int64) << 40) + table["sequence"]
    order = np.argsort(key, kind="stable")
    return order[np.searchsorted(key[order], wanted)]


def _codes(invocations: Table, table: Table) -> Array:
    """The runs of a table's rows by the codes of the invocations' runs."""
    words = invocations.columns["run"].words or ()
    return table.columns["run"].spoken(words).array()


def _further_costs(tables: Tables) -> dict[str, Array]:
    """Metric → cost of each sampled invocation; no row is a cost of 0."""
    table = tables["invocation_costs"]
    places, codes = _places(tables["invocations"], table), table["metric"]
    costs: dict[str, Array] = {}
    for code, name in enumerate(table.columns["metric"].words or ()):
        rows = np.flatnonzero(codes == code)
        if len(rows):
            costs[name] = np.zeros(len(tables["invocations"]))
            costs[name][places[rows]] = table["x"][rows]
    return costs


def _features(tables: Tables) -> dict[str, Array]:
    """Feature → number read of each sampled invocation."""
    table = tables["features"]
    places, codes, values = _places(tables["invocations"], table), table["feature"], table["value"]
    found: dict[str, Array] = {}
    read = np.flatnonzero(~np.isnan(values))
    order = read[np.argsort(codes[read], kind="stable")]
    words = table.columns["feature"].words or ()
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else ():
        column = found[words[codes[rows[0]]]] = np.full(len(tables["invocations"]), np.nan)
        column[places[rows]] = values[rows]
    return found


# ---- The longest invocations of a function over all recordings, with the nested spans within them.

_IDENTITY = ("name", "file", "line", "language", "origin")


def worst_calls(recordings: Sequence[Recording], component: Component) -> tuple[WorstCall, ...]:
    """The longest, the longest first; none where the recordings are of a version of perflaw that kept none.

    StoreError where a table is damaged.
    """
    found = [call for recording in recordings for call in _of(recording, component)]
    return tuple(sorted(found, key=lambda one: (-one.time_ns, one.run, one.sequence))[:WORST])


def _of(recording: Recording, component: Component) -> Iterator[WorstCall]:
    if not (recording.folder / "worst.parquet").is_file():
        return
    components = read_table(recording.folder, "components")
    wanted = tuple(getattr(component, name) for name in _IDENTITY)
    numbers = {row[0] for row in components if row[1:6] == wanted}
    rows = [row for row in read_table(recording.folder, "worst") if row[2] in numbers]
    if not rows:
        return
    contexts = _Contexts(recording, {row[0]: str(row[1]) for row in components})
    keys = {row[:2] for row in rows}
    spans, features = contexts.spans(keys), _worst_calls_features(recording, keys)
    for run, sequence, _, node, started, time, cpu, calls in rows:
        key, path = (run, sequence), contexts.path(node)
        measured = float("nan") if cpu is None else float(cpu)
        nested = tuple(spans.get(key, ()))
        yield WorstCall(run, sequence, started, time, measured, calls, path, nested, features.get(key, {}))


class _Contexts:
    """Calling contexts of a recording by node."""

    def __init__(self, recording: Recording, names: dict[int, str]) -> None:
        self.folder = recording.folder
        columns = ("node", "parent", "component", "site_line")
        self.nodes = {row[0]: row[1:] for row in read_table(recording.folder, "calltree", columns)}
        self.names = names

    def name(self, node: int) -> str:
        return self.names.get(self.nodes[node][1], "(unknown)")

    def path(self, node: int) -> tuple[str, ...]:
        names = []
        while node > 0:
            names.append(self.name(node))
            node = self.nodes[node][0]
        return tuple(reversed(names))

    def spans(self, keys: set[Row]) -> dict[Row, list[NestedSpan]]:
        """Spans of these invocations, in order."""
        found: dict[Row, list[NestedSpan]] = {}
        for run, sequence, _, parent, node, started, time in read_table(self.folder, "spans"):
            if (run, sequence) in keys:
                span = NestedSpan(self.name(node), self.nodes[node][2], parent, started, time)
                found.setdefault((run, sequence), []).append(span)
        return found


def _worst_calls_features(recording: Recording, keys: set[Row]) -> dict[Row, dict[str, float | str]]:
    """What was read at the entry of those among them that were sampled."""
    found: dict[Row, dict[str, float | str]] = {}
    for run, sequence, feature, value, text in read_table(recording.folder, "features"):
        if (run, sequence) in keys and (value is not None or text is not None):
            found.setdefault((run, sequence), {})[feature] = text if value is None else value
    return found
