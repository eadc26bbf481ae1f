"""Annotations in the annotation language, as a ``.law`` file (Freud §2.2, Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.report.text import percent
from perflaw.types import Annotation, Scope


def law_file(annotations: Sequence[Annotation]) -> str:
    """All annotations, one block a component; comments tell the evidence and the unit."""
    return "\n".join(map(_block, annotations))


def _block(one: Annotation) -> str:
    law = one.scopes[0].law
    evidence = f"{one.calls:,} calls, {law.runs} runs, {percent(one.share)} of the cost; unit {one.metric.unit}"
    lines = [f"# {_comment(evidence)}"]
    if law.reason:
        lines.append(f"# {_comment(law.reason)}")
    lines += [f"# not told apart: {_comment(other.expression)}" for other in law.alternatives]
    parameters = ", ".join(one.component.parameters)
    lines.append(f"{one.component.name}.{one.metric.name}({parameters}) {{")
    lines += [f"  {_scope(scope)};" for scope in one.scopes]
    return "\n".join([*lines, "}", ""])


def _scope(scope: Scope) -> str:
    condition = f"[{scope.condition}] " if scope.condition else ""
    probability = f"{{{scope.probability:.6g}}} " if scope.probability < 1 else ""
    return f"{condition}{probability}{scope.law.expression}"


def _comment(text: str) -> str:
    return " ".join(text.split())
