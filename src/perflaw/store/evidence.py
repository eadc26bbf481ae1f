"""The evidence of an experiment: sampled invocations and totals per component, over all its recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import UsageError
from perflaw.store.experiment import Recording
from perflaw.store.schema import Row
from perflaw.store.tables import read_table
from perflaw.types import CPU, EVENTS, TIME, Component, Evidence, Metric, RunCost

Key = tuple[str, str, int]
"""Name, file and first line: what makes a component the same in two runs."""


@dataclass(slots=True)
class _Gathered:
    component: Component
    cost: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    uniform: list[bool] = field(default_factory=list)
    run: list[str] = field(default_factory=list)
    features: dict[str, dict[int, float]] = field(default_factory=dict)
    """Feature → index of the invocation → value."""
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
    places = _gather_samples(recording, metric, here)
    for _, sequence, feature, value, _ in read_table(recording.folder, "features"):
        if value is not None:
            entry, index = places[sequence]
            entry.features.setdefault(feature, {})[index] = value


def _cost_of_run(recording: Recording, metric: Metric) -> int:
    """Cost of the top functions over all threads; of time at least what passed between the first and last event."""
    tops = {row[0] for row in read_table(recording.folder, "calltree") if row[5] == 1}
    moments = read_table(recording.folder, "moments")
    busy = int(sum(row[3] for row in moments if row[0] in tops and row[1] == metric.name))
    return max(recording.run.span_ns, busy) if metric == TIME else busy


def _gather_samples(
    recording: Recording, metric: Metric, here: dict[int, _Gathered]
) -> dict[int, tuple[_Gathered, int]]:
    """Append a run's sampled invocations; returns where each went, by its sequence number."""
    places: dict[int, tuple[_Gathered, int]] = {}
    cost_of = _sample_costs(recording, metric)
    for row in read_table(recording.folder, "invocations"):
        sequence, uniform_key, weight = row[1], row[9], row[11]
        entry = here[row[2]]
        places[sequence] = (entry, len(entry.cost))
        entry.cost.append(cost_of(row))
        entry.weight.append(weight)
        entry.uniform.append(uniform_key >= 0)
        entry.run.append(recording.run.id)
    return places


def _sample_costs(recording: Recording, metric: Metric) -> Callable[[Row], int]:
    """What gives the cost of a row of the invocations."""
    column = {TIME.name: 5, CPU.name: 6, EVENTS.name: 7}.get(metric.name)
    if column is not None:
        return itemgetter(column)
    rows = read_table(recording.folder, "invocation_costs")
    costs = {sequence: cost for _, sequence, name, cost in rows if name == metric.name}
    return lambda row: costs.get(row[1], 0)


def _evidence(gathered: _Gathered) -> Evidence:
    count = len(gathered.cost)
    return Evidence(
        gathered.component,
        np.array(gathered.cost, dtype=np.float64),
        np.array(gathered.weight, dtype=np.float64),
        np.array(gathered.uniform, dtype=np.bool_),
        np.array(gathered.run, dtype=np.str_),
        {name: _column(values, count) for name, values in gathered.features.items()},
        tuple(gathered.runs),
    )


def _column(values: dict[int, float], count: int) -> NDArray[np.float64]:
    column = np.full(count, np.nan)
    column[list(values)] = list(values.values())
    return column
