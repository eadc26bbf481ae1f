"""Annotations: for every component, the law of its cost per call and per run, ranked (Freud §2; one scope each for now)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.learn.cells import Array, Cells, make_cells
from perflaw.learn.laws import Learnt, Series, learn
from perflaw.types import TIME, Annotation, Curve, Evidence, Law, Metric, Points, Prediction, Run, Scope

MIN_EFFECT = 1.1
"""A law whose mean varies by less than this factor over its data is told as a constant: it does not matter to anyone."""
CURVE_POINTS, MAX_POINTS = 61, 400

Point = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Learnt:
    """A component's cells and what was learnt from them."""

    evidence: Evidence
    cells: Cells
    per_call: Learnt
    per_run: Learnt | None
    negligible: bool
    """Its per-call law was a dependence too small to matter, and is told as a constant."""


def annotate(
    evidence: Sequence[Evidence], at: Point | None = None, quantum: float = 1.0, metric: Metric = TIME
) -> list[Annotation]:
    """Laws of all components, ranked by predicted cost at ``at`` where given, else by share of the cost.

    ``quantum`` is the smallest step of the metric (of time: the clock's tick in ns). The result is deterministic.
    Components without a completed call are left out.
    """
    present = [one for one in evidence if one.cost.size]
    cells = [make_cells(one, tuple(at or ())) for one in present]
    per_call, negligible = _learn_calls(present, cells, quantum)
    per_run = _learn_runs(present, tuple(at or ()), quantum)
    whole = _whole_cost(present)
    annotations = [
        _annotation(_Learnt(*parts), at, whole, metric)
        for parts in zip(present, cells, per_call, per_run, negligible, strict=True)
    ]
    return sorted(annotations, key=_rank)


def _rank(annotation: Annotation) -> tuple[float, float, str]:
    predicted = annotation.predicted.mean if annotation.predicted else 0.0
    return -predicted, -annotation.share, annotation.component.name


def _learn_calls(
    evidence: Sequence[Evidence], cells: Sequence[Cells], quantum: float
) -> tuple[list[Learnt], list[bool]]:
    """The law of a call for each component, and whether a dependence was found that is too small to matter."""
    series = [
        Series(one.component.name, cell.y, cell.features, cell.run, quantum=quantum)
        for one, cell in zip(evidence, cells, strict=True)
    ]
    learnt = learn(series)
    small = [index for index, found in enumerate(learnt) if _negligible(found)]
    plain = [Series(one.name, one.y, {}, one.runs, quantum=quantum) for one in (series[index] for index in small)]
    for index, constant in zip(small, learn(plain) if plain else [], strict=True):
        learnt[index] = constant
    return learnt, [index in small for index in range(len(learnt))]


def _negligible(learnt: Learnt) -> bool:
    """Whether a law's mean hardly varies over the data it was learnt from."""
    law = learnt.law
    if not law.features:
        return False
    means = [prediction.mean for prediction in learnt.predict(_corners(law))]
    return max(means) < MIN_EFFECT * min(means)


def _corners(law: Law) -> list[Point]:
    name = law.features[0]
    low, high = law.range[name]
    return [{name: float(x)} for x in np.linspace(low, high, 9)]


def _learn_runs(evidence: Sequence[Evidence], preferred: tuple[str, ...], quantum: float) -> list[Learnt | None]:
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


def _whole_cost(evidence: Sequence[Evidence]) -> float:
    """Cost of all runs together."""
    return float(sum({cost.run.id: cost.cost for one in evidence for cost in one.runs}.values())) or 1.0


def _annotation(learnt: _Learnt, at: Point | None, whole: float, metric: Metric) -> Annotation:
    evidence, law = learnt.evidence, _asked(learnt.per_call, at)
    if learnt.negligible:
        law = replace(law, verdict="none", reason="it varies by less than 10 % over the sizes seen")
    total = sum(cost.total for cost in evidence.runs)
    self_total = sum(cost.self_total for cost in evidence.runs)
    return Annotation(
        component=evidence.component,
        metric=metric,
        features=tuple(dict.fromkeys([*evidence.features, *(f for cost in evidence.runs for f in cost.run.features)])),
        scopes=(Scope("", 1.0, law),),
        calls=sum(cost.calls for cost in evidence.runs),
        total=total,
        share=min(1.0, total / whole),
        self_share=min(1.0, self_total / whole),
        run_law=_asked(learnt.per_run, at) if learnt.per_run else None,
        predicted=_predicted(learnt, at),
        curves=tuple(_curve(learnt.per_call, name) for name in law.features),
        points=_thin_points(learnt),
    )


def _asked(learnt: Learnt, at: Point | None) -> Law:
    """The law with its prediction at the point asked for, where that says the features the law needs."""
    law = learnt.law
    if not at or not set(law.features) <= set(at):
        return law
    return replace(law, predictions=tuple(learnt.predict([at])))


def _predicted(learnt: _Learnt, at: Point | None) -> Prediction | None:
    """Cost of a whole run at ``at``, None where the law of its runs needs a feature that ``at`` does not say."""
    if not at or learnt.per_run is None or not set(at) <= _known(learnt.evidence):
        return None
    return learnt.per_run.predict([at])[0] if set(learnt.per_run.law.features) <= set(at) else None


def _known(evidence: Evidence) -> set[str]:
    return {name for cost in evidence.runs for name in cost.run.features}


def _curve(learnt: Learnt, feature: str) -> Curve:
    """The law from the smallest value seen to ten times the largest."""
    low, high = learnt.law.range[feature]
    return learnt.curve(feature, low, high * 10 if high > 0 else high, CURVE_POINTS)


def _thin_points(learnt: _Learnt) -> Points:
    """The points a law was learnt from, at most MAX_POINTS of them, evenly taken."""
    cells, residuals = learnt.cells, learnt.per_call.residuals()
    count = cells.y.size
    keep = np.unique(np.linspace(0, count - 1, min(count, MAX_POINTS)).astype(np.int64))
    return Points(
        {name: tuple(values[keep].tolist()) for name, values in cells.features.items()},
        tuple(cells.y[keep].tolist()),
        tuple(str(run) for run in cells.run[keep]),
        tuple(residuals[keep].tolist()),
    )
