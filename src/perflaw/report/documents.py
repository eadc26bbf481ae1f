"""The JSON documents of the verbs (``docs/json.md``): stable names, no NaN or infinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflaw.report.json import law_document, predictions_document
from perflaw.types import Annotation, Run, Scope

Document = dict[str, Any]


def annotate_document(
    annotations: Sequence[Annotation], runs: Sequence[Run], at: Mapping[str, float] | None
) -> Document:
    """``perflaw.annotate/1``: every component with its laws, in the order of their ranking."""
    return {
        "schema": "perflaw.annotate/1",
        "at": dict(at) if at else None,
        "runs": [{"id": run.id, "features": dict(run.features), "complete": run.complete} for run in runs],
        "annotations": [_annotation(one) for one in annotations],
    }


def _annotation(one: Annotation) -> Document:
    return {
        "component": one.component.name,
        "file": one.component.file,
        "line": one.component.line,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "features": list(one.features),
        "scopes": [_scope(scope) for scope in one.scopes],
        "marks": list(one.marks),
        "calls": one.calls,
        "total": one.total,
        "share": one.share,
        "self_share": one.self_share,
        "run_law": law_document(one.run_law) if one.run_law else None,
        "predicted": predictions_document([one.predicted])[0] if one.predicted else None,
    }


def _scope(scope: Scope) -> Document:
    return {"condition": scope.condition, "probability": scope.probability, "law": law_document(scope.law)}
