"""Sampled invocations as Chrome's trace events, which Perfetto (ui.perfetto.dev) opens.

Within an invocation the order of its callees was not recorded: they stand one after the other, the dearest first.
"""

from __future__ import annotations

from typing import Any

from perflaw.report.encode import dumps, finite
from perflaw.types.explanations import Exemplar, Explanation


def perfetto(one: Explanation) -> str:
    """A trace with a row for each of the function's exemplars; times of the trace are in µs."""
    events: list[dict[str, Any]] = []
    for row, exemplar in enumerate(one.exemplars):
        name = f"{exemplar.reason} {row + 1}: run {exemplar.run}"
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": row + 1, "args": {"name": name}})
        events += _spans(one, exemplar, row + 1)
    return dumps({"displayTimeUnit": "ns", "traceEvents": events})


def _spans(one: Explanation, exemplar: Exemplar, row: int) -> list[dict[str, Any]]:
    args = {
        "sequence": exemplar.sequence,
        "started_ns": exemplar.started,
        "cpu_ns": finite(exemplar.cpu),
        one.metric.name: exemplar.x,
        "path": " > ".join(step.callee for step in exemplar.path),
        **exemplar.features,
    }
    spans = [_span(one.component.name, row, 0.0, exemplar.time, args)]
    at = 0.0
    for callee in exemplar.callees:
        if one.metric.name != "time" or not callee.y >= 0:
            continue
        name = callee.component.name if callee.component else "(other callees)"
        spans.append(_span(f"{name} x{callee.k}", row, at, callee.y, {"line": callee.line, "calls": callee.k}))
        at += callee.y
    return spans


def _span(name: str, row: int, start_ns: float, length_ns: float, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "ph": "X", "pid": 1, "tid": row, "ts": start_ns / 1000, "dur": length_ns / 1000, "args": args,
    }  # fmt: skip
