"""Variance for other programs: patterns as a Graphviz graph, invocations as a trace for Perfetto (ui.perfetto.dev)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflaw.report.quantity import count, percent, quantity, significant
from perflaw.types.documents import Document, dumps, finite
from perflaw.types.recordings import WorstCall
from perflaw.types.variance import Explanation, Variance

_SHAPES = {"Task": "shape=box", "Contributor": "shape=box, style=dashed", "Contrast": "shape=ellipse"}


def variance_dot(variance: Variance) -> str:
    """The patterns as a graph, drawn as in the paper's Figures 4 to 7.

    Boxes are Tasks, ovals Contrasts, dashed boxes Contributors; dashed back-edges carry shares of the variance.
    """
    lines = [
        "digraph variance {",
        '  node [fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for pattern in variance.patterns:
        for node in pattern.nodes:
            words = [
                f"{node.component.name} ({node.id})",
                f"μ {quantity(node.mean, variance.metric.unit)}  γ {significant(node.cov)}",
                f"N {count(node.n)}  V {quantity(node.vim, variance.metric.unit)}",
            ]
            if node.cause in ("interference", "waiting"):
                words.append(f"{percent(node.off_cpu or 0)} off the CPU")
            label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in words)
            lines.append(f'  n{node.id} [{_SHAPES[node.kind]}, label="{label}"];')
        lines += [f"  n{node.parent} -> n{node.id};" for node in pattern.nodes if node.parent is not None]
        lines += [
            f'  n{edge.source} -> n{edge.to} [style=dashed, constraint=false, label="{percent(edge.cf_net)}"];'
            for edge in pattern.contributions
        ]
    return "\n".join([*lines, "}"]) + "\n"


def perfetto(explanation: Explanation, longest: Sequence[WorstCall] = ()) -> str:
    """Chrome's trace events with a row for each of the longest invocations and of the exemplars; times are in µs.

    The longest invocations hold the calls nested in them as they were. The order of an exemplar's callees was not
    recorded: they stand one after the other, the costliest first. Exemplars that are among the longest are left out.
    """
    known = {(call.run, call.sequence) for call in longest}
    rows = []
    for row, call in enumerate(longest, 1):
        arguments = {
            "sequence": call.sequence,
            "started_ns": call.started_ns,
            "cpu_ns": finite(call.cpu_ns),
            "calls": call.calls,
            "shorter_calls_left_out": call.left_out,
            "path": " > ".join(call.path),
            **call.features,
        }
        nested = [_span(span.name, span.started_ns, span.time_ns, {"line": span.line}) for span in call.spans]
        rows.append(
            (
                f"longest {row}: run {call.run}",
                [_span(explanation.component.name, 0.0, call.time_ns, arguments), *nested],
            )
        )
    for exemplar in explanation.exemplars:
        among_longest = longest and explanation.metric.name == "time" and exemplar.reason == "worst"
        if not among_longest and (exemplar.run, exemplar.sequence) not in known:
            name = f"{exemplar.reason} {len(rows) + 1}: run {exemplar.run}"
            arguments = {
                "sequence": exemplar.sequence,
                "started_ns": exemplar.started,
                "cpu_ns": finite(exemplar.cpu),
                explanation.metric.name: exemplar.x,
                "path": " > ".join(step.callee for step in exemplar.path),
                **exemplar.features,
            }
            spans = [_span(explanation.component.name, 0.0, exemplar.time, arguments)]
            start = 0.0
            for callee in exemplar.callees:
                if explanation.metric.name == "time" and callee.y >= 0:
                    what = callee.component.name if callee.component else "(other callees)"
                    detail = {"line": callee.line, "calls": callee.k}
                    spans.append(_span(f"{what} x{callee.k}", start, callee.y, detail))
                    start += callee.y
            rows.append((name, spans))
    events: list[Document] = []
    for row, (name, spans) in enumerate(rows, 1):
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": {"name": name}})
        events += [{**span, "pid": 1, "tid": row} for span in spans]
    return dumps({"displayTimeUnit": "ns", "traceEvents": events})


def _span(name: str, start_ns: float, length_ns: float, arguments: Mapping[str, Any]) -> Document:
    return {"name": name, "ph": "X", "ts": start_ns / 1000, "dur": length_ns / 1000, "args": arguments}
