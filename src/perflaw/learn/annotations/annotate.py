"""Annotations: for every component, the laws of its cost per call and per run, ranked (Freud §2–§3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.call_laws import as_small, cell_series, learn_relevant
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.records import RecordTable, record_table, representative
from perflaw.learn.annotations.scopes import ComponentScopes, Point, component_scopes, with_prediction
from perflaw.learn.annotations.tree import TreeNode, grow_trees, root_node
from perflaw.learn.cells import Array, Cells, make_cells
from perflaw.learn.series import Learnt, Series, learn
from perflaw.types import Annotation, Curve, Evidence, Points, Prediction, Run

MAX_POINTS: Final = 400
"""Number of points of a chart."""
MIN_UNIFORM: Final = 50
"""With fewer records in the uniform part of the sample, a chart shows all records."""
CURVE_POINTS: Final = 61
"""Number of points of a curve."""


def annotate(
    evidence: Sequence[Evidence], options: AnnotationOptions | None = None, at: Point | None = None
) -> list[Annotation]:
    """Laws of all components, ranked by predicted cost at the point ``at`` if given, else by share of the cost.

    The result is deterministic. Components without a completed call are left out.
    """
    options = options or AnnotationOptions()
    evidence = [one for one in evidence if one.cost.size]
    preferred = tuple(at or ())
    cells = [make_cells(one, preferred) for one in evidence]
    series = [cell_series(one.component.name, of_one, options) for one, of_one in zip(evidence, cells, strict=True)]
    call_laws, small = learn_relevant(series, options)
    roots = [
        root_node(record_table(representative(one), preferred), of_one, law)
        for one, of_one, law in zip(evidence, cells, call_laws, strict=True)
    ]
    leaves = grow_trees(roots, options)
    run_laws = learn_runs(evidence, preferred, options.quantum)
    scopes = [component_scopes(of_one, options, at) for of_one in leaves]
    for i in small:
        if len(scopes[i].scopes) == 1:
            [scope] = scopes[i].scopes
            scopes[i] = replace(scopes[i], scopes=(replace(scope, law=as_small(scope.law)),))
    whole = float(sum({cost.run.id: cost.cost for one in evidence for cost in one.runs}.values())) or 1.0
    annotations = [
        _annotation(*of_one, whole, options, at) for of_one in zip(evidence, roots, scopes, run_laws, strict=True)
    ]

    def rank(annotation: Annotation) -> tuple[float, float, str]:
        predicted = annotation.predicted.mean if annotation.predicted else 0.0
        return -predicted, -annotation.share, annotation.component.name

    return sorted(annotations, key=rank)


def _annotation(
    evidence: Evidence,
    root: TreeNode,
    scopes: ComponentScopes,
    run_law: Learnt | None,
    whole: float,
    options: AnnotationOptions,
    at: Point | None,
) -> Annotation:
    """The annotation of a component; ``whole`` is the cost of all runs together."""
    total = sum(cost.total for cost in evidence.runs)
    self_total = sum(cost.self_total for cost in evidence.runs)
    run_features = [name for cost in evidence.runs for name in cost.run.features]
    single = len(scopes.scopes) == 1
    return Annotation(
        component=evidence.component,
        metric=options.metric,
        features=tuple(dict.fromkeys([*evidence.features, *run_features])),
        scopes=scopes.scopes,
        calls=sum(cost.calls for cost in evidence.runs),
        total=total,
        share=min(1.0, total / whole),
        self_share=min(1.0, self_total / whole),
        run_law=with_prediction(run_law.law, run_law, at) if run_law else None,
        predicted=_predict_run(run_law, at, run_features),
        curves=_curves(scopes.learnt[0]),
        points=points_of_cells(root.cells, root.learnt.residuals()) if single else points_of_records(root.table),
        marks=scopes.marks,
        breakpoints=tuple(dict.fromkeys(one for learnt in scopes.learnt for one in learnt.law.breakpoints)),
    )


def _predict_run(run_law: Learnt | None, at: Point | None, run_features: Sequence[str]) -> Prediction | None:
    """Cost of a whole run at a point of the runs' features, None if the law of the runs needs others."""
    if not at or run_law is None or not set(at) <= set(run_features):
        return None
    return run_law.predict([at])[0] if set(run_law.law.features) <= set(at) else None


def learn_runs(evidence: Sequence[Evidence], preferred: Sequence[str], quantum: float) -> list[Learnt | None]:
    """Cost of a whole execution as a law of the workload's features, for each component; None without an execution.

    An execution is the program's own run with those of its child processes; incomplete ones do not count.
    """
    runs = {cost.run.id: cost.run for one in evidence for cost in one.runs}
    series: list[Series] = []
    with_executions: list[int] = []
    for place, one in enumerate(evidence):
        totals: dict[str, float] = {}
        incomplete = set()
        for cost in one.runs:
            root = _root(cost.run, runs)
            totals[root.id] = totals.get(root.id, 0.0) + cost.total
            if not cost.run.complete:
                incomplete.add(root.id)
        executions = [runs[name] for name in totals if name not in incomplete and runs[name].complete]
        if executions:
            y = np.array([totals[run.id] for run in executions])
            names = np.array([run.id for run in executions])
            series.append(Series(one.component.name, y, _workload(executions, preferred), names, None, quantum))
            with_executions.append(place)
    laws: list[Learnt | None] = [None] * len(evidence)
    for place, law in zip(with_executions, learn(series) if series else [], strict=True):
        laws[place] = law
    return laws


def _root(run: Run, runs: Mapping[str, Run]) -> Run:
    """The program's own run, or the uppermost one that has not been removed."""
    while run.parent in runs:
        run = runs[run.parent]
    return run


def _workload(runs: Sequence[Run], preferred: Sequence[str]) -> dict[str, Array]:
    """Features that all of the runs have; only the preferred ones, if there are any, because a point has no others."""
    names = [name for name in runs[0].features if all(name in run.features for run in runs)]
    names = [name for name in names if name in preferred] or names
    return {name: np.array([run.features[name] for run in runs], dtype=np.float64) for name in names}


def _curves(learnt: Learnt) -> tuple[Curve, ...]:
    """A law over each of its features, from the smallest value seen to ten times the largest."""
    curves = []
    for name in learnt.law.features:
        low, high = learnt.law.range[name]
        curves.append(learnt.curve(name, low, high * 10 if high > 0 else high, CURVE_POINTS))
    return tuple(curves)


def points_of_cells(cells: Cells, residuals: Array) -> Points:
    """The points of a single law's chart: its cells, with their residuals (n,)."""
    keep = _evenly(np.arange(cells.y.size))
    return Points(
        {name: tuple(values[keep].tolist()) for name, values in cells.features.items()},
        tuple(cells.y[keep].tolist()),
        tuple(cells.run[keep].tolist()),
        _with_none(residuals[keep]),
    )


def points_of_records(table: RecordTable) -> Points:
    """The points of a chart of several laws: single records, because averages would mix the laws of several scopes.

    The records are those of the uniform part of the sample, because the other part has more slow invocations.
    """
    evidence = table.evidence
    uniform = np.flatnonzero(evidence.uniform)
    keep = _evenly(uniform if uniform.size >= MIN_UNIFORM else np.arange(evidence.cost.size))
    texts = {column.name: column.values[keep] for column in table.columns if column.kind == "category"}
    numbers = {column.name: column.numbers[keep] for column in table.columns if column.kind != "category"}
    return Points(
        {name: _with_none(values) for name, values in numbers.items()},
        tuple(evidence.cost[keep].tolist()),
        tuple(evidence.run[keep].tolist()),
        (None,) * keep.size,
        {name: tuple(values.tolist()) for name, values in texts.items()},
    )


def _evenly(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """At most ``MAX_POINTS`` of the places."""
    count = min(places.size, MAX_POINTS)
    kept: NDArray[np.intp] = places[np.unique(np.linspace(0, places.size - 1, count).astype(np.int64))]
    return kept


def _with_none(values: Array) -> tuple[float | None, ...]:
    """The values with None for NaN."""
    return tuple(None if np.isnan(value) else value for value in values.tolist())
