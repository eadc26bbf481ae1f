"""Invocations as Chrome's trace events, which Perfetto (ui.perfetto.dev) opens.

The longest stand with the calls nested in them, as they were. Of sampled ones the order of callees was not recorded: they
stand one after the other, the dearest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflaw.report.encode import dumps, finite
from perflaw.types.explanations import Exemplar, Explanation
from perflaw.types.spans import WorstCall

Event = dict[str, Any]


def perfetto(one: Explanation, longest: Sequence[WorstCall] = ()) -> str:
    """A trace with a row for each of the longest invocations and for the exemplars; times of the trace are in µs.

    Where the longest are known, the worst among the samples are left out if cost is time: they are the same ones.
    """
    known = {(call.run, call.sequence) for call in longest}
    events: list[Event] = []
    for row, call in enumerate(longest, 1):
        events += [_row(row, f"longest {row}: run {call.run}"), *_nested(one.component.name, call, row)]
    others = [exemplar for exemplar in one.exemplars if (exemplar.run, exemplar.sequence) not in known]
    if longest and one.metric.name == "time":
        others = [exemplar for exemplar in others if exemplar.reason != "worst"]
    for row, exemplar in enumerate(others, len(longest) + 1):
        events += [_row(row, f"{exemplar.reason} {row}: run {exemplar.run}"), *_spans(one, exemplar, row)]
    return dumps({"displayTimeUnit": "ns", "traceEvents": events})


def _row(row: int, name: str) -> Event:
    return {"name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": {"name": name}}


def _nested(name: str, call: WorstCall, row: int) -> list[Event]:
    args = {
        "sequence": call.sequence,
        "started_ns": call.started_ns,
        "cpu_ns": finite(call.cpu_ns),
        "calls": call.calls,
        "shorter_calls_left_out": call.left_out,
        "path": " > ".join(call.path),
        **call.features,
    }
    whole = _span(name, row, 0.0, call.time_ns, args)
    return [whole, *(_span(span.name, row, span.started_ns, span.time_ns, {"line": span.line}) for span in call.spans)]


def _spans(one: Explanation, exemplar: Exemplar, row: int) -> list[Event]:
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


def _span(name: str, row: int, start_ns: float, length_ns: float, args: dict[str, Any]) -> Event:
    return {
        "name": name, "ph": "X", "pid": 1, "tid": row, "ts": start_ns / 1000, "dur": length_ns / 1000, "args": args,
    }  # fmt: skip
