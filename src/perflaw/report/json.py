"""Laws as JSON: every field of a law under its own name, and never a NaN or an infinity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perflaw.report.encode import finite
from perflaw.types import Alternative, Breakpoint, Law, Prediction


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
