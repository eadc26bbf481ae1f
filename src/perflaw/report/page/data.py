"""The page's data: dataclasses in, JSON values out. Words come from ``text``, numbers from the laws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perflaw.laws.printing import condition_text, learnt_text
from perflaw.report import law_words as text
from perflaw.report.mine.page import mine_data
from perflaw.report.page.charts import charts
from perflaw.report.page.outcomes import outcomes
from perflaw.report.trend.page import trend_data
from perflaw.report.variance.page import variance_data
from perflaw.types import Annotation, Breakpoint, Law, Prediction
from perflaw.types.documents import finite

if TYPE_CHECKING:
    from perflaw.report.page.model import Page


# ---- The words beside the charts of one component: its laws, their evidence, what they predict.


def detail(annotation: Annotation) -> Json:
    """Every text the page shows of a selected component."""
    unit = annotation.metric.unit
    run_law = annotation.run_law
    return {
        "features": list(annotation.features),
        "used": list(dict.fromkeys(name for scope in annotation.scopes for name in scope.law.features)),
        "marks": list(annotation.marks),
        "total": text.quantity(annotation.total, unit),
        "scopes": [
            {"condition": condition_text(s.condition), "probability": text.percent(s.probability), **_law(s.law, unit)}
            for s in annotation.scopes
        ],
        "run": _law(run_law, unit) if run_law else None,
        "predicted": _predictions([annotation.predicted], unit) if annotation.predicted else [],
    }


def _law(law: Law, unit: str) -> Json:
    return {
        "text": text.law_text(law, unit),
        "expression": learnt_text(law.expression),
        "family": law.family,
        "grows": text.grows_as(law),
        "verdict": law.verdict,
        "reason": law.reason,
        "facts": _facts(law, unit),
        "alternatives": [
            {
                "family": a.family,
                "expression": learnt_text(a.expression),
                "slope": _slopes(a.slope),
                "delta": f"{a.delta:.1f}",
            }
            for a in law.alternatives
        ],
        "predictions": _predictions(law.predictions, unit),
    }


def _facts(law: Law, unit: str) -> list[tuple[str, str]]:
    """(name, value) pairs, only those the law has."""
    facts = [
        ("noise", text.noise_text(law.noise, unit)),
        ("evidence", f"{law.n:,} points from {law.runs} {'run' if law.runs == 1 else 'runs'}"),
        ("r²", "—" if law.r2 is None else f"{law.r2:.4f}"),
        ("learnt on", ", ".join(_range(name, *ends) for name, ends in law.range.items())),
        ("local exponent", ", ".join(_slope(law, name) for name in law.features if name in law.slope)),
        ("exponent", "" if law.exponent is None or not law.features else _exponents(law)),
        ("breaks at", ", ".join(_breakpoint(one) for one in law.breakpoints)),
        (
            "may be as well",
            ", ".join(f"{name}: {', '.join(others)}" for name, others in law.collinear.items() if others),
        ),
        ("lack of fit", "" if law.lack_of_fit is None else f"p = {law.lack_of_fit:.2g}"),
        ("intercept", "" if law.intercept is None else text.quantity(law.intercept, unit)),
    ]
    return [(name, value) for name, value in facts if value]


def _range(name: str, low: float, high: float) -> str:
    return f"{name} = {text.number(low)}" if low == high else f"{name} {text.number(low)}–{text.number(high)}"


def _breakpoint(one: Breakpoint) -> str:
    return f"{one.feature} = {text.number(one.value)} ({text.number(one.low)}–{text.number(one.high)})"


def _slope(law: Law, name: str) -> str:
    ends = f" ({law.slope_low[name]:.2f}–{law.slope_high[name]:.2f})" if name in law.slope_low else ""
    return f"{name} {law.slope[name]:.2f}{ends}"


def _slopes(slope: Mapping[str, float]) -> str:
    return ", ".join(f"{name}^{value:.2f}" for name, value in slope.items()) or "constant"


def _exponents(law: Law) -> str:
    logs = f", of its logarithm {text.number(law.log_exponent)}" if law.log_exponent else ""
    return f"{text.number(law.exponent or 0.0)}{logs}"


def _predictions(predictions: Iterable[Prediction], unit: str) -> list[list[str]]:
    """Rows of: where, mean, interval for the mean, interval for a new run."""
    rows = dict.fromkeys(
        tuple(_page_detail_prediction(p, unit)) for p in predictions
    )  # a law without features says one thing twice
    return [list(row) for row in rows]


def _page_detail_prediction(p: Prediction, unit: str) -> list[str]:
    return [
        text.features_text(p.features) or "anywhere",
        text.quantity(p.mean, unit),
        text.interval(p.mean_low, p.mean_high, unit),
        text.interval(p.new_low, p.new_high, unit),
    ]


Json = dict[str, Any]


def document(page: Page) -> Json:
    """Everything the page shows, as JSON values without NaN or infinity."""
    runs = {str(run.get("id", "")): i for i, run in enumerate(page.runs)}
    for annotation in page.annotations:
        for run in annotation.points.run if annotation.points else ():
            runs.setdefault(run, len(runs))
    scope, heading = _asked(page)
    return {
        "header": _header(page),
        "runs": list(runs),
        "predicted": {"heading": heading, "scope": scope},
        "rows": [_row(a, key, scope) for a, key in zip(page.annotations, _keys(page.annotations), strict=True)],
        "details": [detail(a) for a in page.annotations],
        "charts": charts(page.annotations, runs),
        "trend": trend_data(page.trend) if page.trend else None,
        "variance": variance_data(page.variance, page.slowdown or "unknown") if page.variance else None,
        "mine": mine_data(page.mine) if page.mine else None,
        "outcomes": outcomes(page.outcomes, page.annotations) if page.outcomes else None,
    }


def _header(page: Page) -> Json:
    verdicts = [text.verdict(a) for a in page.annotations]
    return {
        "target": page.target,
        "experiment": page.experiment,
        "command": page.command,
        "created": page.created.replace("T", " "),
        "notes": [note for note in (page.slowdown, page.lost, page.left_out) if note],
        "calls": text.count(sum(a.calls for a in page.annotations)),
        "components": len({a.component for a in page.annotations}),
        "verdicts": {verdict: verdicts.count(verdict) for verdict in ("law", "inconclusive", "none")},
        "runs": [_run(run) for run in page.runs],
    }


def _run(run: Mapping[str, Any]) -> Json:
    return {
        "id": str(run.get("id", "")),
        "features": text.features_text(run.get("features") or {}),
        "wall": text.duration(run.get("wall_ns")),
        "calls": text.count(run.get("calls")),
        "complete": bool(run.get("complete", True)),
    }


def _asked(page: Page) -> tuple[str, str]:
    """What the column of predictions holds ("at", "run" or "call", never a mixture), and its heading."""
    if page.at:
        return "at", f"run at {text.features_text(page.at)}"
    asked = [a.run_law.predictions[-1] for a in page.annotations if a.run_law and a.run_law.predictions]
    points = {text.features_text(p.features) for p in asked if p.features}
    if len(points) == 1:
        return "run", f"run at {points.pop()}"
    return ("run", "predicted per run") if asked else ("call", "predicted per call")


def _prediction(annotation: Annotation, scope: str) -> Prediction | None:
    """The answer at ``--at``, or else the farthest of the default points."""
    if scope == "at":
        return annotation.predicted
    own = annotation.scopes[0].law if annotation.scopes else None
    law = annotation.run_law if scope == "run" else own
    return law.predictions[-1] if law and law.predictions else None


def _keys(annotations: Sequence[Annotation]) -> list[str]:
    """One name each for links; same-named functions and further metrics get more in theirs."""
    keys: dict[str, None] = {}
    for i, a in enumerate(annotations):
        place = f"{a.component.name} {a.component.file}:{a.component.line}"
        choices = (a.component.name, place, f"{place} {a.metric.name}", f"{place} {a.metric.name} {i}")
        keys[next(key for key in choices if key not in keys)] = None
    return list(keys)


def _row(annotation: Annotation, key: str, scope: str) -> Json:
    """A row of the table: what is shown, and the numbers it is sorted by."""
    component, law = annotation.component, text.steepest(annotation) if annotation.scopes else None
    predicted = _prediction(annotation, scope)
    return {
        "key": key,
        "name": component.name,
        "place": f"{text.short_path(component.file)}:{component.line}" if component.file else "",
        "parameters": list(component.parameters),
        "metric": annotation.metric.name,
        "share": finite(annotation.share),
        "self": finite(annotation.self_share),
        "shares": [text.percent(annotation.share), text.percent(annotation.self_share)],
        "law": text.annotation_text(annotation),
        "coefficient": finite(law.coefficient) if law else None,
        "grows": text.grows_as(law) if law else "",
        "slope": finite(max(law.slope.values(), default=0.0)) if law else None,
        "slopes": text.slope_interval(law) if law else "",
        "predicted": text.prediction_text(predicted, annotation.metric.unit) if predicted else "—",
        "at": text.features_text(predicted.features) if predicted else "",
        "cost": finite(predicted.mean) if predicted else None,
        "calls": annotation.calls,
        "callsText": text.count(annotation.calls),
        "verdict": text.verdict(annotation),
        "reason": law.reason if law else "",
    }
