"""A verdict as its JSON object, whichever verb came to it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from perflaw.types import CheckVerdict, DiffVerdict, SpecVerdict


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
