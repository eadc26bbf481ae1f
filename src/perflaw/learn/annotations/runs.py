"""Cost of a whole execution as a law of the workload's features: what ``--at n=…`` is answered by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perflaw.learn.cells import Array
from perflaw.learn.laws import Learnt, Series, learn
from perflaw.types import Evidence, Run


def learn_runs(evidence: Sequence[Evidence], preferred: tuple[str, ...], quantum: float) -> list[Learnt | None]:
    """Cost per whole execution as a law of the workload's features; incomplete ones say nothing of it."""
    runs = {cost.run.id: cost.run for one in evidence for cost in one.runs}
    series: list[Series] = []
    places: list[int] = []
    for place, one in enumerate(evidence):
        executions = _executions(one, runs)
        if executions:
            y = np.array([total for _, total in executions])
            roots = [root for root, _ in executions]
            names = np.array([root.id for root in roots])
            series.append(Series(one.component.name, y, _workload(roots, preferred), names, None, quantum))
            places.append(place)
    found: list[Learnt | None] = [None] * len(evidence)
    for place, learnt in zip(places, learn(series) if series else [], strict=True):
        found[place] = learnt
    return found


def _executions(evidence: Evidence, runs: Mapping[str, Run]) -> list[tuple[Run, float]]:
    """What a component cost in each execution that was recorded whole: in the program's process and its children's."""
    totals: dict[str, float] = {}
    for cost in evidence.runs:
        root = _root(cost.run, runs)
        totals[root.id] = totals.get(root.id, 0.0) + cost.total
    torn = {_root(cost.run, runs).id for cost in evidence.runs if not cost.run.complete}
    return [(runs[name], total) for name, total in totals.items() if name not in torn and runs[name].complete]


def _root(run: Run, runs: Mapping[str, Run]) -> Run:
    """The program's own run; the uppermost that is there where its was removed."""
    while run.parent in runs:
        run = runs[run.parent]
    return run


def _workload(runs: Sequence[Run], preferred: tuple[str, ...]) -> dict[str, Array]:
    """Features that every one of the runs has; where a point is asked for, those it names: others cannot answer it."""
    names = [name for name in runs[0].features if all(name in run.features for run in runs)]
    names = [name for name in names if name in preferred] or names
    return {name: np.array([run.features[name] for run in runs], dtype=np.float64) for name in names}
