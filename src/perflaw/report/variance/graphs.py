"""Patterns as a graph for Graphviz, drawn as in the paper's Figures 4 to 7.

Boxes are Tasks, ovals Contrasts, dashed boxes Contributors; dashed back-edges carry the share of the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflaw.report.quantity import count, percent, quantity, significant
from perflaw.types.documents import dumps, finite
from perflaw.types.recordings import WorstCall
from perflaw.types.variance import Contribution, Exemplar, Explanation, Pattern, PatternNode, Variance

_SHAPES = {
    "Task": "shape=box",
    "Contributor": "shape=box, style=dashed",
    "Contrast": "shape=ellipse",
}


def variance_dot(found: Variance) -> str:
    """The graph as text."""
    lines = [
        "digraph variance {",
        '  node [fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for pattern in found.patterns:
        lines += _pattern(pattern, found.metric.unit)
    return "\n".join([*lines, "}"]) + "\n"


def _pattern(pattern: Pattern, unit: str) -> list[str]:
    lines = [_node(node, unit) for node in pattern.nodes]
    lines += [f"  n{node.parent} -> n{node.id};" for node in pattern.nodes if node.parent is not None]
    return lines + [_edge(one) for one in pattern.contributions]


def _node(node: PatternNode, unit: str) -> str:
    words = [f"{node.component.name} ({node.id})", f"μ {quantity(node.mean, unit)}  γ {significant(node.cov)}"]
    words.append(f"N {count(node.n)}  V {quantity(node.vim, unit)}")
    if node.cause == "interference":
        words.append(f"{percent(node.off_cpu or 0)} off the CPU")
    text = "\\n".join(_quoted(word) for word in words)
    return f'  n{node.id} [{_SHAPES[node.kind]}, label="{text}"];'


def _edge(one: Contribution) -> str:
    return f'  n{one.source} -> n{one.to} [style=dashed, constraint=false, label="{percent(one.cf_net)}"];'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


# ---- Invocations as Chrome's trace events, which Perfetto (ui.perfetto.dev) opens.
#
# The longest stand with the calls nested in them, as they were. Of sampled ones the order of callees was not
# recorded: they
# stand one after the other, the dearest first.

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
