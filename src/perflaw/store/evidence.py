"""The evidence of an experiment: sampled invocations and totals per component, over all its recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perflaw.store.experiment import Recording
from perflaw.store.tables import read_table
from perflaw.types import Component, Evidence, Run, RunCost

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


def gather(recordings: Sequence[Recording]) -> list[Evidence]:
    """Evidence per component, ordered by name. StoreError where a table is missing or damaged."""
    found: dict[Key, _Gathered] = {}
    for recording in recordings:
        _gather_run(recording, found)
    return [_evidence(found[key]) for key in sorted(found)]


def _gather_run(recording: Recording, found: dict[Key, _Gathered]) -> None:
    components = read_table(recording.folder, "components")
    cost = _cost_of_run(recording)
    here: dict[int, _Gathered] = {}
    for number, name, file, line, language, origin, parameters, calls, _, total, self_total in components:
        names = tuple(parameters.split(",")) if parameters else ()
        entry = found.setdefault((name, file, line), _Gathered(Component(name, file, line, language, origin, names)))
        entry.runs.append(RunCost(recording.run, calls, total, self_total, cost))
        here[number] = entry
    places = _gather_samples(recording.run, read_table(recording.folder, "invocations"), here)
    for _, sequence, feature, value, _ in read_table(recording.folder, "features"):
        if value is not None:
            entry, index = places[sequence]
            entry.features.setdefault(feature, {})[index] = value


def _cost_of_run(recording: Recording) -> int:
    """Wall time between the first and last event, or the top functions' time over all threads where that is more."""
    tops = {row[0] for row in read_table(recording.folder, "calltree") if row[5] == 1}
    busy = sum(row[3] for row in read_table(recording.folder, "moments") if row[0] in tops)
    return max(recording.run.span_ns, int(busy))


def _gather_samples(
    run: Run, invocations: Iterable[tuple[Any, ...]], here: dict[int, _Gathered]
) -> dict[int, tuple[_Gathered, int]]:
    """Append a run's sampled invocations; returns where each went, by its sequence number."""
    places: dict[int, tuple[_Gathered, int]] = {}
    for _, sequence, component, _, _, x, _, uniform_key, _, weight in invocations:
        entry = here[component]
        places[sequence] = (entry, len(entry.cost))
        entry.cost.append(x)
        entry.weight.append(weight)
        entry.uniform.append(uniform_key >= 0)
        entry.run.append(run.id)
    return places


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
