"""The page's data: dataclasses in, JSON values out. Words come from ``text``, numbers from the laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perflaw.report import text
from perflaw.report.encode import finite
from perflaw.report.page_charts import charts
from perflaw.report.page_detail import detail
from perflaw.report.page_mine import mine_data
from perflaw.report.page_outcomes import outcomes
from perflaw.report.page_trend import trend_data
from perflaw.report.page_variance import variance_data
from perflaw.types import Annotation, Prediction

if TYPE_CHECKING:
    from perflaw.report.page_model import Page

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
