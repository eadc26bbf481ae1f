"""Patterns as a graph for Graphviz, drawn as in the paper's Figures 4 to 7.

Boxes are Tasks, ovals Contrasts, dashed boxes Contributors; dashed back-edges carry the share of the variance.
"""

from __future__ import annotations

from perflaw.report.quantity import count, percent, quantity, significant
from perflaw.types.variance import Contribution, Pattern, PatternNode, Variance

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
