"""The evidence of an experiment: sampled invocations and totals per component, over all its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import UsageError
from perflaw.store.columns import Array, Table, grouped
from perflaw.store.experiment import Recording
from perflaw.store.tables import read_table
from perflaw.types import CPU, EVENTS, TIME, Component, Evidence, Metric, RunCost

Key = tuple[str, str, int]
"""Name, file and first line: what makes a component the same in two runs."""


@dataclass(slots=True)
class _Gathered:
    component: Component
    samples: list[Table] = field(default_factory=list)
    """Sampled invocations of each run that has any."""
    cost: list[Array] = field(default_factory=list)
    """Their costs."""
    run: list[str] = field(default_factory=list)
    """Run of each sampled invocation."""
    features: dict[str, list[tuple[Array, Array]]] = field(default_factory=dict)
    """Feature → places among the invocations, and the values there."""
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
    _gather_features(recording, samples, places, here)


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


def _gather_features(recording: Recording, samples: Table, places: Array, here: dict[int, _Gathered]) -> None:
    """Append what was read at the entry of the sampled invocations, which are in order of their sequence."""
    features = read_table(recording.folder, "features", ("sequence", "feature", "value"))
    features = features.take(np.flatnonzero(~np.isnan(features["value"])))
    sample = np.searchsorted(samples["sequence"], features["sequence"])
    component, place, value = samples["component"][sample], places[sample], features["value"]
    codes, words = features["feature"], features.columns["feature"].words or ()
    for rows in _groups(component, codes):
        columns = here[int(component[rows[0]])].features
        columns.setdefault(words[codes[rows[0]]], []).append((place[rows], value[rows]))


def _evidence(gathered: _Gathered) -> Evidence:
    count = len(gathered.run)
    return Evidence(
        gathered.component,
        _joined(gathered.cost).astype(np.float64),
        _joined([some["weight"] for some in gathered.samples]).astype(np.float64),
        _joined([some["uniform_key"] for some in gathered.samples]) >= 0,
        np.array(gathered.run, dtype=np.str_),
        {name: _column(values, count) for name, values in gathered.features.items()},
        tuple(gathered.runs),
    )


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0)


def _column(parts: list[tuple[Array, Array]], count: int) -> NDArray[np.float64]:
    column = np.full(count, np.nan)
    for places, values in parts:
        column[places] = values
    return column
