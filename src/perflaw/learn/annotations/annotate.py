"""Annotations: for every component, the laws of its cost per call and per run, ranked (Freud §2–§3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.relevant import learn_relevant, too_small
from perflaw.learn.annotations.scopes import Scoped, asked, curves, scoped
from perflaw.learn.annotations.table import AnnotationOptions, Table, representative, table_of
from perflaw.learn.annotations.tree import Node, grow, root
from perflaw.learn.cells import Array, Cells, make_cells
from perflaw.learn.series import Learnt, Series, learn
from perflaw.types import Annotation, Evidence, Metric, Points, Prediction, Run

# ---- The evidence behind an annotation, thinned for charts.

MAX_POINTS: Final = 400
FEW: Final = 50
"""With fewer records in the uniform part of the sample, all are shown."""


def points_of_cells(cells: Cells, residuals: Array) -> Points:
    """The points that one law was learnt from, (n,), with their residuals."""
    keep = _evenly(np.arange(cells.y.size))
    return Points(
        {name: tuple(values[keep].tolist()) for name, values in cells.features.items()},
        tuple(cells.y[keep].tolist()),
        tuple(cells.run[keep].tolist()),
        _readable(residuals[keep]),
    )


def points_of_records(table: Table) -> Points:
    """Single records with all that conditions speak of: averages would mix the laws of several scopes.

    The uniform part of the sample, because the rest holds more slow invocations than there are.
    """
    evidence = table.evidence
    uniform = np.flatnonzero(evidence.uniform)
    keep = _evenly(uniform if uniform.size >= FEW else np.arange(evidence.cost.size))
    texts = {column.name: column.values[keep] for column in table.columns if column.kind == "category"}
    numbers = {column.name: column.values[keep] for column in table.columns if column.kind != "category"}
    return Points(
        {name: _readable(np.asarray(values, dtype=np.float64)) for name, values in numbers.items()},
        tuple(evidence.cost[keep].tolist()),
        tuple(evidence.run[keep].tolist()),
        (None,) * keep.size,
        {name: tuple(values.tolist()) for name, values in texts.items()},
    )


def _evenly(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """At most MAX_POINTS of the places."""
    count = min(places.size, MAX_POINTS)
    kept: NDArray[np.intp] = places[np.unique(np.linspace(0, places.size - 1, count).astype(np.int64))]
    return kept


def _readable(values: Array) -> tuple[float | None, ...]:
    told = values.tolist()
    return tuple(None if np.isnan(value) else value for value in told) if np.isnan(values).any() else tuple(told)


# ---- Cost of a whole execution as a law of the workload's features: what ``--at n=…`` is answered by.


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


Point = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Found:
    """What was learnt of a component."""

    evidence: Evidence
    scoped: Scoped
    root: Node
    per_run: Learnt | None
    negligible: bool
    """Its per-call law was a dependence too small to matter, and is told as a constant."""


def annotate(
    evidence: Sequence[Evidence], options: AnnotationOptions | None = None, at: Point | None = None
) -> list[Annotation]:
    """Laws of all components, ranked by predicted cost at ``at`` where given, else by share of the cost.

    The result is deterministic. Components without a completed call are left out.
    """
    options = options or AnnotationOptions()
    metric, quantum = options.metric, options.quantum
    present = [one for one in evidence if one.cost.size]
    preferred = tuple(at or ())
    cells = [make_cells(one, preferred) for one in present]
    per_call, negligible = _learn_calls(present, cells, quantum, options)
    roots = [
        root(table_of(representative(one), preferred), cell, learnt)
        for one, cell, learnt in zip(present, cells, per_call, strict=True)
    ]
    leaves = grow(roots, quantum, options)
    per_run = learn_runs(present, preferred, quantum)
    whole = _whole_cost(present)
    annotations = []
    for one, tree, mine, of_run, small in zip(present, roots, leaves, per_run, negligible, strict=True):
        scopes = scoped(mine, metric, quantum, options, at)
        found = _Found(one, scopes, tree, of_run, small and len(scopes.scopes) == 1)
        annotations.append(_annotation(found, at, whole, metric))
    return sorted(annotations, key=_rank)


def _rank(annotation: Annotation) -> tuple[float, float, str]:
    predicted = annotation.predicted.mean if annotation.predicted else 0.0
    return -predicted, -annotation.share, annotation.component.name


def _learn_calls(
    evidence: Sequence[Evidence], cells: Sequence[Cells], quantum: float, options: AnnotationOptions
) -> tuple[list[Learnt], list[bool]]:
    """The law of a call for each component, and whether a dependence was found that is too small to matter."""
    series = [
        Series(one.component.name, cell.y, cell.features, cell.run, quantum=quantum)
        for one, cell in zip(evidence, cells, strict=True)
    ]
    learnt, small = learn_relevant(series, options)
    return learnt, [index in small for index in range(len(learnt))]


def _whole_cost(evidence: Sequence[Evidence]) -> float:
    """Cost of all runs together."""
    return float(sum({cost.run.id: cost.cost for one in evidence for cost in one.runs}.values())) or 1.0


def _annotation(found: _Found, at: Point | None, whole: float, metric: Metric) -> Annotation:
    evidence, scopes = found.evidence, found.scoped.scopes
    if found.negligible:
        scopes = tuple(replace(scope, law=too_small(scope.law)) for scope in scopes)
    total = sum(cost.total for cost in evidence.runs)
    self_total = sum(cost.self_total for cost in evidence.runs)
    return Annotation(
        component=evidence.component,
        metric=metric,
        features=_features(evidence),
        scopes=scopes,
        calls=sum(cost.calls for cost in evidence.runs),
        total=total,
        share=min(1.0, total / whole),
        self_share=min(1.0, self_total / whole),
        run_law=asked(found.per_run.law, found.per_run, at) if found.per_run else None,
        predicted=_predicted(found, at),
        curves=curves(found.scoped.learnt),
        points=_points(found),
        marks=found.scoped.marks,
        breakpoints=tuple(dict.fromkeys(one for each in found.scoped.learnt for one in each.law.breakpoints)),
    )


def _features(evidence: Evidence) -> tuple[str, ...]:
    """All features that were read: of the invocations, then of the runs."""
    return tuple(dict.fromkeys([*evidence.features, *(f for cost in evidence.runs for f in cost.run.features)]))


def _predicted(found: _Found, at: Point | None) -> Prediction | None:
    """Cost of a whole run at ``at``, None where the law of its runs needs a feature that ``at`` does not say."""
    if not at or found.per_run is None or not set(at) <= _known(found.evidence):
        return None
    return found.per_run.predict([at])[0] if set(found.per_run.law.features) <= set(at) else None


def _known(evidence: Evidence) -> set[str]:
    return {name for cost in evidence.runs for name in cost.run.features}


def _points(found: _Found) -> Points:
    """What the laws stand on: the points of one law, or single records where several hold."""
    if len(found.scoped.scopes) > 1:
        return points_of_records(found.root.table)
    return points_of_cells(found.root.cells, found.root.learnt.residuals())
