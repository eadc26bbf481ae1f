"""The evidence of an experiment: sampled invocations and totals per component, over all its recordings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import UsageError
from perflaw.store.columns import Array, Table, grouped
from perflaw.store.experiment import Recording
from perflaw.store.tables import read_table
from perflaw.types import CPU, EVENTS, TIME, Component, Evidence, Metric, RunCost

Key = tuple[str, str, int]
"""Name, file and first line: what makes a component the same in two runs."""
Parts = dict[str, list[tuple[Array, Array]]]
"""Name → places among a component's invocations, and the values there, of each run."""
BRANCH: Final = re.compile(r"branch\.L\d+(_\d+)?\.(not_)?taken")
"""Names of features that count outcomes of a branch; a parameter may be named ``branch`` as well."""
CALLS: Final = "calls."
"""What names of call edges begin with."""


@dataclass(slots=True)
class _Gathered:
    component: Component
    samples: list[Table] = field(default_factory=list)
    """Sampled invocations of each run that has any."""
    cost: list[Array] = field(default_factory=list)
    """Their costs."""
    run: list[str] = field(default_factory=list)
    """Run of each sampled invocation."""
    features: Parts = field(default_factory=dict)
    """Feature → places among the invocations, and the values there."""
    categories: Parts = field(default_factory=dict)
    """The same of texts."""
    edges: Parts = field(default_factory=dict)
    """The same of calls of callees, named ``calls.<component>``; a place may stand there more than once."""
    runs: list[RunCost] = field(default_factory=list)


def gather(recordings: Sequence[Recording], metric: Metric = TIME) -> list[Evidence]:
    """Evidence per component of its cost in a metric, ordered by name. StoreError where a table is missing or damaged."""
    found: dict[Key, _Gathered] = {}
    for recording in recordings:
        _gather_run(recording, metric, found)
    return [_evidence(found[key]) for key in sorted(found)]


def measured(recordings: Sequence[Recording], name: str) -> Metric:
    """The metric of that name; UsageError where a recording does not have it."""
    for recording in recordings:
        known = {metric.name: metric for metric in recording.run.metrics}
        if not known:
            what = f"run {recording.run.id}: a compiled program's, of which only execution counts are recorded"
            raise UsageError(what, "it has no costs of calls", "perflaw trend")
        if name not in known:
            what, why = f"--metric {name}: not measured in run {recording.run.id}", f"it has {', '.join(known)}"
            raise UsageError(what, why, f"perflaw record --metric {name} -- …")
    return known[name]


def _gather_run(recording: Recording, metric: Metric, found: dict[Key, _Gathered]) -> None:
    costs = {row[0]: row[2:] for row in read_table(recording.folder, "component_costs") if row[1] == metric.name}
    whole = _cost_of_run(recording, metric)
    here: dict[int, _Gathered] = {}
    for number, name, file, line, language, origin, parameters, calls, _ in read_table(recording.folder, "components"):
        names = tuple(parameters.split(",")) if parameters else ()
        entry = found.setdefault((name, file, line), _Gathered(Component(name, file, line, language, origin, names)))
        total, self_total = costs.get(number, (0, 0))
        entry.runs.append(RunCost(recording.run, calls, total, self_total, whole))
        here[number] = entry
    samples = read_table(recording.folder, "invocations")
    places = _gather_samples(recording, samples, metric, here)
    sampled = _Sampled(samples["sequence"], samples["component"], places, here)
    _gather_features(recording, sampled)
    _gather_edges(recording, sampled)


def _cost_of_run(recording: Recording, metric: Metric) -> int:
    """Cost of the top functions over all threads; of time at least what passed between the first and last event."""
    calltree = read_table(recording.folder, "calltree", ("node", "depth"))
    tops = set(calltree["node"][calltree["depth"] == 1].tolist())
    moments = read_table(recording.folder, "moments", ("node", "metric", "sum_x"))
    busy = sum(int(sum_x) for node, name, sum_x in moments if node in tops and name == metric.name)
    return max(recording.run.span_ns, busy) if metric == TIME else busy


def _gather_samples(recording: Recording, samples: Table, metric: Metric, here: dict[int, _Gathered]) -> Array:
    """Append a run's sampled invocations; returns the place of each among those of its component."""
    cost = _sample_costs(recording, samples, metric)
    places = np.empty(len(samples), np.int64)
    for rows in _groups(samples["component"]):
        some = samples.take(rows)
        entry = here[int(some["component"][0])]
        places[rows] = np.arange(len(entry.run), len(entry.run) + len(rows))
        entry.samples.append(some)
        entry.cost.append(cost[rows])
        entry.run += [recording.run.id] * len(rows)
    return places


def _groups(*keys: Array) -> list[NDArray[np.intp]]:
    """Numbers of the rows of each group of equal keys, in order."""
    order, starts = grouped(keys)
    return np.split(order, starts[1:]) if len(order) else []


def _sample_costs(recording: Recording, samples: Table, metric: Metric) -> Array:
    """Cost of each sampled invocation."""
    column = {TIME.name: "x", CPU.name: "x_cpu", EVENTS.name: "x_events"}.get(metric.name)
    if column is not None:
        return samples[column]
    rows = read_table(recording.folder, "invocation_costs")
    costs = {sequence: cost for _, sequence, name, cost in rows if name == metric.name}
    return np.array([costs.get(sequence, 0) for sequence in samples["sequence"].tolist()], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Sampled:
    """The sampled invocations of a run, in order of their sequence."""

    sequence: Array
    component: Array
    """Number of the component of each."""
    place: Array
    """Place of each among all of its component."""
    here: dict[int, _Gathered]
    """By number of a component."""

    def rows_of(self, sequence: Array) -> Array:
        """Which of them these rows of another table belong to."""
        return np.searchsorted(self.sequence, sequence)


def _gather_features(recording: Recording, sampled: _Sampled) -> None:
    """Append what was read of the sampled invocations: numbers, and names of types."""
    table = read_table(recording.folder, "features", ("sequence", "feature", "value", "text"))
    sample, codes, words = sampled.rows_of(table["sequence"]), table["feature"], table.columns["feature"].words or ()
    texts = np.array([*(table.columns["text"].words or ()), ""], dtype=object)
    read = ~np.isnan(table["value"])
    for is_number, values in ((True, table["value"]), (False, texts[table["text"]])):
        some = np.flatnonzero(read if is_number else ~read)
        for rows in (some[group] for group in _groups(sampled.component[sample[some]], codes[some])):
            gathered = sampled.here[int(sampled.component[sample[rows[0]]])]
            columns = gathered.features if is_number else gathered.categories
            columns.setdefault(words[codes[rows[0]]], []).append((sampled.place[sample[rows]], values[rows]))


def _gather_edges(recording: Recording, sampled: _Sampled) -> None:
    """Append how often the sampled invocations called each component directly. Callees not kept apart have no edge."""
    table = read_table(recording.folder, "callees", ("sequence", "node", "k"))
    table = table.take(np.flatnonzero(table["node"] > 0))
    sample, calls = sampled.rows_of(table["sequence"]), table["k"]
    tree = read_table(recording.folder, "calltree", ("node", "component"))
    order = np.argsort(tree["node"])
    callee = tree["component"][order][np.searchsorted(tree["node"][order], table["node"])]
    for rows in _groups(sampled.component[sample], callee):
        columns = sampled.here[int(sampled.component[sample[rows[0]]])].edges
        called = sampled.here[int(callee[rows[0]])].component
        if called.line:  # else it is no function: the waiting of a generator
            columns.setdefault(CALLS + called.name, []).append((sampled.place[sample[rows]], calls[rows]))


def _evidence(gathered: _Gathered) -> Evidence:
    count = len(gathered.run)
    return Evidence(
        gathered.component,
        _joined(gathered.cost).astype(np.float64),
        _joined([some["weight"] for some in gathered.samples]).astype(np.float64),
        _joined([some["uniform_key"] for some in gathered.samples]) >= 0,
        np.array(gathered.run, dtype=np.str_),
        {name: _column(parts, count) for name, parts in gathered.features.items() if not BRANCH.fullmatch(name)},
        tuple(gathered.runs),
        {name: _texts(parts, count) for name, parts in gathered.categories.items()},
        {name: _sums(parts, count) for name, parts in gathered.edges.items()},
        _branches({name: parts for name, parts in gathered.features.items() if BRANCH.fullmatch(name)}, count),
    )


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0)


def _column(parts: list[tuple[Array, Array]], count: int) -> NDArray[np.float64]:
    column = np.full(count, np.nan)
    for places, values in parts:
        column[places] = values
    return column


def _branches(outcomes: Parts, count: int) -> dict[str, NDArray[np.float64]]:
    """Counts of every outcome. The tracer tells those that are not 0, and one in any case of an invocation it counted."""
    columns = {name: _column(parts, count) for name, parts in outcomes.items()}
    counted = np.zeros(count, np.bool_)
    for column in columns.values():
        counted |= ~np.isnan(column)
    return {name: np.where(counted, np.nan_to_num(column), np.nan) for name, column in columns.items()}


def _texts(parts: list[tuple[Array, Array]], count: int) -> NDArray[np.str_]:
    column = np.full(count, "", dtype=object)
    for places, values in parts:
        column[places] = values
    return column.astype(np.str_)


def _sums(parts: list[tuple[Array, Array]], count: int) -> NDArray[np.float64]:
    column = np.zeros(count)
    for places, values in parts:
        np.add.at(column, places, values)
    return column
