"""Laws as JSON: every field of a law under its own name, and never a NaN or an infinity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from perflaw.types import Alternative, Law, Prediction


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
        "noise": {"distribution": law.noise.distribution, "scale": _finite(law.noise.scale)},
        "n": law.n,
        "runs": law.runs,
        "r2": _finite(law.r2),
        "verdict": law.verdict,
        "reason": law.reason,
        "exponent": _finite(law.exponent),
        "log_exponent": _finite(law.log_exponent),
        "coefficient": _finite(law.coefficient),
        "intercept": _finite(law.intercept),
        "range": {name: [_finite(low), _finite(high)] for name, (low, high) in law.range.items()},
        "alternatives": [_alternative(one) for one in law.alternatives],
        "predictions": predictions_document(law.predictions),
    }


def predictions_document(predictions: Iterable[Prediction]) -> list[dict[str, Any]]:
    """Predictions in their order."""
    return [
        {
            "features": _numbers(one.features),
            "mean": _finite(one.mean),
            "mean_low": _finite(one.mean_low),
            "mean_high": _finite(one.mean_high),
            "new_low": _finite(one.new_low),
            "new_high": _finite(one.new_high),
        }
        for one in predictions
    ]


def _alternative(one: Alternative) -> dict[str, Any]:
    return {
        "family": one.family,
        "expression": one.expression,
        "slope": _numbers(one.slope),
        "delta": _finite(one.delta),
    }


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in values.items()}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
