"""The variance view of the page: patterns as rows and graphs, and a screen a function, deflated on its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from perflaw.report.law_words import short_path
from perflaw.report.page.data import flat, packed
from perflaw.report.quantity import count, counted, quantity, significant
from perflaw.report.variance.page_screen import screen
from perflaw.report.variance.words import call_path, root_text, share_text
from perflaw.types import Component
from perflaw.types.documents import Document, finite
from perflaw.types.variance import Explanation, Pattern, PatternChange, Variance

LABELS = {"time": "wall time", "cpu": "CPU time", "events": "recorded calls"}
"""Metrics that stand side by side, by the names that the page gives them."""
MAX_CONTEXTS = 6
"""Calling contexts that a node lists."""


@dataclass(frozen=True, slots=True)
class Since:
    """What became of the patterns of other recordings."""

    name: str
    """Experiment of the other recordings."""
    changes: Sequence[PatternChange]
    """Every pattern of either experiment, by the same metric."""


@dataclass(frozen=True, slots=True)
class VarianceView:
    """Patterns by one metric, with the explanations of functions by that metric."""

    variance: Variance
    """The patterns."""
    explanations: Mapping[Component, Explanation] = field(default_factory=dict)
    """Function → why its cost varies; the page shows these in full, and opens with the first."""
    driven: Collection[Component] = frozenset()
    """Functions among them whose drivers were learnt."""
    since: Since | None = None
    """What changed since other recordings; None without them, or where they lack the metric."""


def variance_data(views: Sequence[VarianceView], overhead: str) -> Document:
    """Everything that the view shows; ``overhead`` is the recorder's, in words."""
    components = dict.fromkeys(
        component
        for view in views
        for component in (
            *(node.component for pattern in view.variance.patterns for node in pattern.nodes),
            *view.explanations,
        )
    )
    numbers = {component: number for number, component in enumerate(components)}
    metrics = []
    for view in views:
        variance = view.variance
        name, unit = variance.metric.name, variance.metric.unit
        top = max((pattern.nodes[0].vim for pattern in variance.patterns), default=0.0)
        screens = {}
        for component, explanation in view.explanations.items():
            by_metric = [(other.variance.metric.name, other.explanations.get(component)) for other in views]
            beside = {LABELS.get(metric, metric): one for metric, one in by_metric if one is not None}
            driven = component in view.driven
            screens[str(numbers[component])] = packed(screen(explanation, beside, overhead, driven))
        shown = sum(len(pattern.nodes) for pattern in variance.patterns)
        (nodes, patterns), (merged_nodes, merged_patterns) = variance.extracted, variance.merged
        summary = f"{counted(variance.tree_nodes, 'calling context')}: {counted(nodes, 'node')} "
        summary += f"in {counted(patterns, 'pattern')}, merged to {merged_nodes:,} in {merged_patterns:,}, "
        summary += f"{shown:,} in {len(variance.patterns):,} after trimming"
        summary += f"; {variance.too_few:,} contexts have fewer than 30 calls" if variance.too_few else ""
        metrics.append(
            {
                "name": name,
                "label": LABELS.get(name, name),
                "summary": summary,
                "notes": list(variance.notes),
                "since": _since(view.since, numbers, unit) if view.since else None,
                "patterns": [_pattern(pattern, numbers, unit, top) for pattern in variance.patterns],
                "screens": screens,
            }
        )
    return {
        "opens": next((numbers[component] for view in views for component in view.explanations), None),
        "functions": [
            {"name": one.name, "place": f"{short_path(one.file)}:{one.line}" if one.file else ""} for one in components
        ],
        "metrics": metrics,
    }


def _pattern(pattern: Pattern, numbers: Mapping[Component, int], unit: str, top: float) -> Document:
    names = {node.id: node.component.name for node in pattern.nodes}
    root = pattern.nodes[0]
    return {
        "part": finite(root.vim / top) if top else 0.0,
        "sources": [
            f"{share_text(edge.cf_net)} {names[edge.source]}" for edge in pattern.contributions if edge.to == root.id
        ],
        "nodes": [
            {
                **flat(node),
                "function": numbers[node.component],
                "contexts": [call_path(path) for path in node.contexts[:MAX_CONTEXTS]],
                "text": {
                    "n": count(node.n),
                    "mean": quantity(node.mean, unit),
                    "cov": significant(node.cov),
                    "vim": quantity(node.vim, unit),
                    "off_cpu": share_text(node.off_cpu),
                },
            }
            for node in pattern.nodes
        ],
        "contributions": [
            {
                **flat(edge),
                "text": {
                    "cf_net": share_text(edge.cf_net),
                    "cf_self": "not recorded" if edge.cf_self is None else share_text(edge.cf_self),
                },
            }
            for edge in pattern.contributions
        ],
    }


def _since(since: Since, numbers: Mapping[Component, int], unit: str) -> Document:
    shown = [change for change in since.changes if change.what != "stays"]
    return {
        "name": since.name,
        "stay": len(since.changes) - len(shown),
        "rows": [
            {
                "component": change.component.name,
                "function": numbers.get(change.component),
                "id": change.new.id if change.new else None,
                "what": change.what,
                "old": root_text(change.old, unit),
                "new": root_text(change.new, unit),
                "shares": [
                    {
                        "old": "none" if share.old is None else share_text(share.old),
                        "new": "none" if share.new is None else share_text(share.new),
                        "of": share.path[0],
                        "from": " > ".join(share.path[1:]),
                    }
                    for share in change.shares
                ],
            }
            for change in shown
        ],
    }
