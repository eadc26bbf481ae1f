"""The JSON documents of the verbs (``docs/json.md``): stable names, no NaN or infinity."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perflaw.types import (
    Alternative,
    Annotation,
    Breakpoint,
    CheckVerdict,
    DiffVerdict,
    Law,
    Prediction,
    Run,
    Scope,
    SpecVerdict,
)

# ---- A verdict as its JSON object, whichever verb came to it.


def verdict_document(one: CheckVerdict | DiffVerdict | SpecVerdict) -> dict[str, Any]:
    """Its fields; component and metric by name, with where the one stands and the unit of the other."""
    document = asdict(one)
    component = document.pop("component")
    return {
        **{"component": component["name"], "file": component["file"], "line": component["line"]},
        **document,
        "metric": one.metric.name,
        "unit": one.metric.unit,
    }


# ---- Documents to JSON text.


def dumps(document: Mapping[str, Any]) -> str:
    """The document as text; numbers that JSON does not have become null."""
    return json.dumps(_finite(document), indent=1, allow_nan=False, ensure_ascii=False)


def finite(value: float | None) -> float | None:
    """The number, or None where JSON has none for it."""
    return value if value is not None and math.isfinite(value) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


# ---- Laws as JSON: every field of a law under its own name, and never a NaN or an infinity.


def law_document(law: Law) -> dict[str, Any]:
    """A law as the contract says, numbers finite or null."""
    return {
        "family": law.family,
        "expression": law.expression,
        "mean": law.mean,
        "features": list(law.features),
        "slope": _numbers(law.slope),
        "slope_low": _numbers(law.slope_low),
        "slope_high": _numbers(law.slope_high),
        "noise": {"distribution": law.noise.distribution, "scale": finite(law.noise.scale)},
        "n": law.n,
        "runs": law.runs,
        "r2": finite(law.r2),
        "verdict": law.verdict,
        "reason": law.reason,
        "exponent": finite(law.exponent),
        "log_exponent": finite(law.log_exponent),
        "coefficient": finite(law.coefficient),
        "intercept": finite(law.intercept),
        "range": {name: [finite(low), finite(high)] for name, (low, high) in law.range.items()},
        "alternatives": [_alternative(one) for one in law.alternatives],
        "predictions": predictions_document(law.predictions),
        "breakpoints": [_breakpoint(one) for one in law.breakpoints],
        "segments": [law_document(one) for one in law.segments],
        "collinear": {name: list(others) for name, others in law.collinear.items()},
        "lack_of_fit": finite(law.lack_of_fit),
    }


def predictions_document(predictions: Iterable[Prediction]) -> list[dict[str, Any]]:
    """Predictions in their order."""
    return [
        {
            "features": _numbers(one.features),
            "mean": finite(one.mean),
            "mean_low": finite(one.mean_low),
            "mean_high": finite(one.mean_high),
            "new_low": finite(one.new_low),
            "new_high": finite(one.new_high),
        }
        for one in predictions
    ]


def _breakpoint(one: Breakpoint) -> dict[str, Any]:
    return {"feature": one.feature, "value": finite(one.value), "low": finite(one.low), "high": finite(one.high)}


def _alternative(one: Alternative) -> dict[str, Any]:
    return {
        "family": one.family,
        "expression": one.expression,
        "slope": _numbers(one.slope),
        "delta": finite(one.delta),
    }


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite(value) for name, value in values.items()}


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
