"""Effects of the runs a law was learnt from: what its JSON twin keeps, so that a check knows how far runs differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perflaw.check.evalues import Effects


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the runs a law was learnt from lie about it, in several views."""

    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Feature → values at which records are split by size, increasing."""
    effects: Mapping[str, Effects] = field(default_factory=dict)
    """View → logarithms of observed over expected cost, one a run."""
    scatter: float = 0.0
    """Mean squared relative deviation of single invocations: what a run of few records may be off by."""


def baseline_document(baseline: Baseline) -> dict[str, Any]:
    """The baseline for the JSON twin."""
    return {
        "cuts": {name: list(values) for name, values in baseline.cuts.items()},
        "views": {
            view: {"effect": _rounded(one.value), "variance": _rounded(one.variance)}
            for view, one in baseline.effects.items()
        },
        "scatter": float(f"{baseline.scatter:.6g}"),
    }


def baseline_from(document: Mapping[str, Any] | None) -> Baseline | None:
    """The baseline of a JSON twin; None where it has none."""
    if not document:
        return None
    effects = {
        view: Effects(np.array(one["effect"], dtype=np.float64), np.array(one["variance"], dtype=np.float64))
        for view, one in document["views"].items()
    }
    return Baseline(
        {name: tuple(values) for name, values in document["cuts"].items()}, effects, float(document["scatter"])
    )


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
