"""Forecasts of ``perflaw predict``: a table in 80 columns, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perflaw.report.quantity import estimate, interval, quantity
from perflaw.report.terminal import NAME_WIDTH, SMALL_SHARE, WIDTH, broken, printable, text_table
from perflaw.report.text import features_text
from perflaw.types import Forecast


def forecast_text(forecasts: Sequence[Forecast], colour: bool, every: bool = False) -> str:
    """One table a point; what weighs little beside the dearest is counted, unless everything is asked for."""
    parts = []
    for of in ("run", "call"):
        some = [one for one in forecasts if one.of == of]
        points: dict[str, list[Forecast]] = {}
        for one in some:
            points.setdefault(features_text(one.features), []).append(one)
        parts += [_table(of, point, here, colour, every) for point, here in points.items()]
    return "\n".join(parts)


def _table(of: str, point: str, forecasts: Sequence[Forecast], colour: bool, every: bool) -> str:
    dearest = max((one.mean or 0.0 for one in forecasts), default=0.0)
    shown = [one for one in forecasts if every or one.mean is None or one.mean >= SMALL_SHARE * dearest]
    headings = ["function", f"expected {forecasts[0].metric.name} a {of}", f"one new {of}"]
    left = len(forecasts) - len(shown)
    more = f"{left} more of small cost (--all lists them)\n" if left else ""
    table = text_table(headings, [_row(one) for one in shown], right=(), colour=colour)
    return f"{printable(point)}\n{table}{more}{_notes(shown)}"


def _notes(forecasts: Sequence[Forecast]) -> str:
    """What is to be said of the answers, each thing once with those it is said of where not of all."""
    said: dict[str, list[str]] = {}
    for one in forecasts:
        if one.message:
            said.setdefault(one.message, []).append(one.component.name)
    lines = []
    for message, names in said.items():
        whose = "" if len(names) == len(forecasts) else f"{', '.join(names[:3])}{' …' * (len(names) > 3)}: "
        lines += textwrap.wrap(printable(whose + message), WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "".join(line + "\n" for line in lines)


def _row(one: Forecast) -> list[str]:
    unit = one.metric.unit
    name = broken(printable(one.component.name), ".", NAME_WIDTH)
    if one.condition:
        name += f"\n [{printable(one.condition)}]"
    if one.mean is None:
        return [name, "—", "—"]
    if one.mean_low is None or one.mean_high is None:
        mean = quantity(one.mean, unit)
    else:
        mean = estimate(one.mean, one.mean_low, one.mean_high, unit)
    new = interval(one.new_low, one.new_high, unit) if one.new_low is not None and one.new_high is not None else "—"
    return [name, mean, new]


def forecast_document(forecasts: Sequence[Forecast]) -> Mapping[str, Any]:
    """``perflaw.predict/1``."""
    return {"schema": "perflaw.predict/1", "predictions": [_document(one) for one in forecasts]}


def _document(one: Forecast) -> dict[str, Any]:
    document = asdict(one)
    document.pop("component")
    return {
        "component": one.component.name,
        **document,
        "metric": one.metric.name,
        "unit": one.metric.unit,
    }
