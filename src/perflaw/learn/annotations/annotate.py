"""Annotations: for every component, the laws of its cost per call and per run, ranked (Freud §2–§3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from perflaw.laws.evaluation import evaluate
from perflaw.learn.annotations.call_laws import as_small, cell_series, learn_relevant
from perflaw.learn.annotations.options import AnnotationOptions, ignore
from perflaw.learn.annotations.records import RecordTable, record_table, representative
from perflaw.learn.annotations.scopes import ComponentScopes, Point, component_scopes
from perflaw.learn.annotations.serial import worth_of_calls
from perflaw.learn.annotations.tree import TreeNode, grow_trees, root_node
from perflaw.learn.cells import Array, Cells, make_cells, run_features
from perflaw.learn.plausibility import without_run_numbers
from perflaw.learn.program import CostModel, RunLaws
from perflaw.learn.program.terms import BEYOND
from perflaw.learn.series import learn
from perflaw.learn.series.series import evenly
from perflaw.parts import are_here, in_parts, step_of
from perflaw.types import Annotation, Breakpoint, Curve, Evidence, Law, Points, Scope, Verdict

MAX_POINTS: Final = 400
"""Number of points of a chart."""
MIN_UNIFORM: Final = 50
"""With fewer records in the uniform part of the sample, a chart shows all records."""
CURVE_POINTS: Final = 61
"""Number of points of a curve."""
MIN_SHARE: Final = 0.005
"""Share of the cost, now or at the largest size predicted, from which dependences of a call's cost are looked for."""
COSTLIEST: Final = 60
"""Number of the costliest components in which they are looked for, whatever their share."""
PART: Final = 64
"""Components that are learnt together."""
CELLS, FIRST_LAWS, TREES, WORTH = 0.07, 0.42, 0.8, 0.87
"""Part of the work that is done when records are cells, when all components have one law, when these are split, and when
all but the constants are learnt."""
SMALL: Final = "a small part of the cost, in which no dependence was looked for"
NOT_ASKED: Final = "only the laws of runs were asked for"
"""Reasons of constant laws."""


@dataclass(frozen=True, slots=True)
class CallLaw:
    """What is told of the calls of a component. It has no records: those of a part stay where the part is learnt."""

    scopes: tuple[Scope, ...]
    marks: tuple[str, ...]
    breakpoints: tuple[Breakpoint, ...]
    curves: tuple[Curve, ...]
    points: Points


def annotate(
    evidence: Sequence[Evidence],
    options: AnnotationOptions | None = None,
    at: Point | None = None,
    run_laws: RunLaws | None = None,
) -> list[Annotation]:
    """Laws of all components, ranked by predicted cost at the point ``at`` if given, else by share of the cost.

    The laws of a call are learnt from the evidence; those of a whole run, and its cost at ``at``, are the ``run_laws`` of the
    program's cost model. The result is deterministic. Components without a completed call are left out.
    """
    options = options or AnnotationOptions()
    evidence = [one if options.paper else without_run_numbers(one) for one in evidence if one.cost.size]
    if (
        run_laws and run_laws.model.costs.per
    ):  # what lies outside of the calls that are observed has no part in their cost
        evidence = [one for one in evidence if run_laws.place(one.component) is not None]
    whole = float(sum({cost.run.id: cost.cost for one in evidence for cost in one.runs}.values())) or 1.0
    ranked = sorted(evidence, key=lambda one: sum(cost.total for cost in one.runs), reverse=True)
    costliest = {id(one) for one in ranked[:COSTLIEST]}
    # A law is looked for where a component has a share of the cost, now or at the largest size predicted.
    matters = []
    for one in evidence:
        place = run_laws.place(one.component) if run_laws else None
        large = run_laws is None or sum(cost.total for cost in one.runs) >= MIN_SHARE * whole
        grows = run_laws is not None and place is not None and run_laws.largest_share(place) >= MIN_SHARE
        # What each run calls once, without a feature of its own, has the law of the run: none is looked for.
        settled = run_laws is not None and not (one.features or one.categories) and has_one_call(one, run_laws.model)
        settled |= not options.calls and place is not None
        settled |= one is not ranked[0] and sum(cost.total for cost in one.runs) < options.least_share * whole
        matters.append((id(one) in costliest or large or grows) and not settled)
    worth = [one for one, does in zip(evidence, matters, strict=True) if does]
    done = 0

    def tell(number: int) -> None:
        nonlocal done
        done = number
        options.progress(WORTH * done / max(len(worth), 1))

    def tell_within(part: float) -> None:
        options.progress(WORTH * (done + part * min(PART, len(worth) - done)) / max(len(worth), 1))

    # Other processes have no progress bar.
    together = replace(options, progress=tell_within if are_here() or len(worth) <= PART else ignore)
    learnt = iter(in_parts(partial(_call_laws, options=together, at=at), worth, PART, tell))
    constant = [one for one, does in zip(evidence, matters, strict=True) if not does]
    minor = iter(_constants(constant, options, at, SMALL if options.calls else NOT_ASKED))
    laws = [next(learnt if does else minor) for does in matters]
    annotations = []
    for number, (one, of_one) in enumerate(zip(evidence, laws, strict=True)):
        options.progress(WORTH + (1.0 - WORTH) * (1 + number / len(laws)) / 2)
        annotations.append(_annotation(one, of_one, run_laws, whole, options, at))
    options.progress(1.0)

    def rank(annotation: Annotation) -> tuple[float, float, str]:
        predicted = annotation.predicted.mean if annotation.predicted else 0.0
        return -predicted, -annotation.share, annotation.component.name

    return sorted(annotations, key=rank)


def _call_laws(evidence: Sequence[Evidence], options: AnnotationOptions, at: Point | None) -> list[CallLaw]:
    """The laws of a call of each component, learnt together.

    If that fails, the components are learnt in halves until only the one at fault is left: its row says why it has no
    law, and all others have theirs.
    """
    try:
        return _learn_together(evidence, options, at) if evidence else []
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        if len(evidence) == 1:
            failure = f"not learnt: {type(error).__name__}: {error}"
            return _constants(evidence, options, at, failure, verdict="inconclusive")
        half = len(evidence) // 2
        return [*_call_laws(evidence[:half], options, at), *_call_laws(evidence[half:], options, at)]


def _learn_together(evidence: Sequence[Evidence], options: AnnotationOptions, at: Point | None) -> list[CallLaw]:
    preferred = tuple(at or ())
    cells = [make_cells(one, preferred) for one in evidence]
    series = [cell_series(one, of_one, options) for one, of_one in zip(evidence, cells, strict=True)]
    options.progress(CELLS)
    call_laws, small = learn_relevant(series, options, tell=step_of(options.progress, CELLS, FIRST_LAWS))
    tables = [record_table(representative(one), preferred) for one in evidence]
    worth = [1.0 if options.paper else worth_of_calls(*pair) for pair in zip(call_laws, tables, strict=True)]
    correlated = [i for i, one in enumerate(worth) if one < 1.0]
    again, small_again = learn_relevant([replace(series[i], worth=worth[i]) for i in correlated], options)
    small |= {correlated[i] for i in small_again}
    for i, law in zip(correlated, again, strict=True):
        call_laws[i] = law
    roots = [root_node(*three) for three in zip(tables, cells, call_laws, strict=True)]
    leaves = grow_trees(roots, options, step_of(options.progress, FIRST_LAWS, TREES))
    scopes = component_scopes(leaves, options, at, step_of(options.progress, TREES, 1.0))
    for i in small:
        if len(scopes[i].scopes) == 1:
            [scope] = scopes[i].scopes
            scopes[i] = replace(scopes[i], scopes=(replace(scope, law=as_small(scope.law)),))
    return [_call_law(*pair) for pair in zip(roots, scopes, strict=True)]


def _constants(
    evidence: Sequence[Evidence],
    options: AnnotationOptions,
    at: Point | None,
    reason: str,
    verdict: Verdict | None = None,
) -> list[CallLaw]:
    """Constant laws of components whose dependences are not looked for, with the reason and, if given, the verdict."""
    cells = [make_cells(one, tuple(at or ())) for one in evidence]
    series = [
        replace(cell_series(one, of_one, options), features={}) for one, of_one in zip(evidence, cells, strict=True)
    ]
    laws = [
        replace(one, law=replace(one.law, reason=reason, verdict=verdict or one.law.verdict))
        for one in (learn(series) if series else [])
    ]
    # Nothing asks for the columns of their records.
    return [
        _call_law(
            root_node(RecordTable(one, (), np.zeros(one.cost.size, dtype=np.intp)), of_one, law),
            ComponentScopes((Scope(None, 1.0, law.law),), (law,), ()),
        )
        for one, of_one, law in zip(evidence, cells, laws, strict=True)
    ]


def _call_law(root: TreeNode, scopes: ComponentScopes) -> CallLaw:
    """What is told of a component's calls, with the curves and points of its chart."""
    # A law over each of its features, from the smallest value seen to ten times the largest.
    learnt = scopes.learnt[0]
    ends = {name: learnt.law.range[name] for name in learnt.law.features}
    curves = [
        learnt.curve(name, low, BEYOND * high if high > 0 else high, CURVE_POINTS) for name, (low, high) in ends.items()
    ]
    single = len(scopes.scopes) == 1
    return CallLaw(
        scopes.scopes,
        scopes.marks,
        tuple(dict.fromkeys(one for learnt in scopes.learnt for one in learnt.law.breakpoints)),
        tuple(curves),
        points_of_cells(root.cells, root.learnt.residuals()) if single else points_of_records(root.table),
    )


def _annotation(
    evidence: Evidence,
    calls: CallLaw,
    run_laws: RunLaws | None,
    whole: float,
    options: AnnotationOptions,
    at: Point | None,
) -> Annotation:
    """The annotation of a component; ``whole`` is the cost of all runs together."""
    component = evidence.component
    place = run_laws.place(component) if run_laws else None
    run_law = run_laws.of(place) if run_laws and place is not None else None
    total = sum(cost.total for cost in evidence.runs)
    self_total = sum(cost.self_total for cost in evidence.runs)
    names_of_runs = [name for cost in evidence.runs for name in cost.run.features]
    number, counted = sum(cost.calls for cost in evidence.runs), sum(cost.counted for cost in evidence.runs)
    share, self_share = total / whole, self_total / whole
    if run_laws and place is not None and run_laws.model.costs.per:
        share, self_share = run_laws.share(place)
    own = own_features(evidence)
    if run_laws and place is not None and run_law and is_called_once(evidence, calls.scopes, run_laws.model):
        # Its one call costs what the run does in it: the law that predicts runs is the law of its calls.
        curves = run_laws.curves(place, run_law, CURVE_POINTS)
        points = points_of_runs(make_cells(evidence, tuple(at or ())), evidence, run_law)
        calls, own = CallLaw((Scope(None, 1.0, run_law),), (), (), curves, points), ()
    return Annotation(
        component=evidence.component,
        metric=options.metric,
        features=tuple(dict.fromkeys([*evidence.features, *names_of_runs])),
        scopes=calls.scopes,
        calls=number,
        total=total,
        share=min(1.0, share),
        self_share=min(1.0, self_share),
        run_law=run_law,
        predicted=run_law.predictions[0] if run_law and at and run_law.predictions else None,
        curves=calls.curves,
        points=calls.points,
        marks=(*calls.marks, *[f"{number - counted:,} of {number:,} calls timed"] * bool(counted)),
        breakpoints=calls.breakpoints,
        own_features=own,
    )


def own_features(evidence: Evidence) -> tuple[str, ...]:
    """Features of the calls that have the name of a feature of the runs, and in some call another value than it."""
    of_runs = run_features(evidence)
    return tuple(
        name
        for name, values in evidence.features.items()
        if name in of_runs and bool((np.abs(values - of_runs[name]) > 0).any())  # missing values do not count
    )


def is_called_once(evidence: Evidence, scopes: Sequence[Scope], model: CostModel) -> bool:
    """Whether each run calls a function once, and its one law is over features of runs: it has one cost, that of the run."""
    return len(scopes) == 1 and set(scopes[0].law.features) <= model.features.keys() and has_one_call(evidence, model)


def has_one_call(evidence: Evidence, model: CostModel) -> bool:
    """Whether each execution of the program calls a function once."""
    return [cost.run.id for cost in evidence.runs if cost.calls == 1] == [run.id for run in model.runs]


def points_of_runs(cells: Cells, evidence: Evidence, law: Law) -> Points:
    """The points of the chart of a law of runs: a function's only call in each run, at the features of the run."""
    features = {cost.run.id: cost.run.features for cost in evidence.runs}
    of_runs = {name: np.array([features[str(run)][name] for run in cells.run], dtype=np.float64) for name in law.range}
    mean = np.broadcast_to(evaluate(law.mean, of_runs), cells.y.shape)
    residuals = np.log(np.maximum(cells.y, 1e-300) / np.maximum(mean, 1e-300))
    return points_of_cells(replace(cells, features={**cells.features, **of_runs}), residuals)


def points_of_cells(cells: Cells, residuals: Array) -> Points:
    """The points of a single law's chart: its cells, with their residuals (n,)."""
    keep = evenly(np.arange(cells.y.size), MAX_POINTS)
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
    keep = evenly(uniform if uniform.size >= MIN_UNIFORM else np.arange(evidence.cost.size), MAX_POINTS)
    texts = {column.name: column.values[keep] for column in table.columns if column.kind == "category"}
    numbers = {column.name: column.numbers[keep] for column in table.columns if column.kind != "category"}
    return Points(
        {name: _with_none(values) for name, values in numbers.items()},
        tuple(evidence.cost[keep].tolist()),
        tuple(evidence.run[keep].tolist()),
        (None,) * keep.size,
        {name: tuple(values.tolist()) for name, values in texts.items()},
    )


def _with_none(values: Array) -> tuple[float | None, ...]:
    """The values with None for NaN."""
    return tuple(None if np.isnan(value) else value for value in values.tolist())
