"""The variance view's data: patterns as rows and graphs, one screen a function deflated on its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflaw.report import law_words as text
from perflaw.report.page.charts import packed
from perflaw.report.quantity import significant
from perflaw.report.variance.page_screen import call_path, screen, share_text
from perflaw.types import Component
from perflaw.types.documents import finite
from perflaw.types.variance import Contribution, Explanation, Pattern, PatternChange, PatternNode, ShareChange, Variance

# ---- What a page of variance is made from.


@dataclass(frozen=True, slots=True)
class Since:
    """What became of the patterns of other recordings."""

    name: str
    """Experiment that those are of."""
    changes: Sequence[PatternChange]
    """Every pattern of either, by the same metric."""


@dataclass(frozen=True, slots=True)
class VarianceView:
    """Patterns by one metric, with the explanations of functions by it."""

    found: Variance
    """The patterns."""
    explanations: Mapping[Component, Explanation] = field(default_factory=dict)
    """Function → why it is sometimes slow; the page shows these in full, and opens with the first."""
    driven: Collection[Component] = frozenset()
    """Those of them of which it was learnt what drives them."""
    since: Since | None = None
    """Where other recordings are compared with; None also where they do not have the metric."""


# ---- What changed since other recordings, for the variance page: patterns that appeared, went, or vary for other
# reasons.


def since_data(since: Since | None, numbers: Mapping[Component, int], unit: str) -> Json | None:
    """The comparison; None where there is nothing to compare with. ``numbers`` are those of the page's functions."""
    if since is None:
        return None
    shown = [one for one in since.changes if one.what != "stays"]
    return {
        "name": since.name,
        "stay": len(since.changes) - len(shown),
        "rows": [_row(one, numbers, unit) for one in shown],
    }


def _row(one: PatternChange, numbers: Mapping[Component, int], unit: str) -> Json:
    return {
        "name": one.component.name,
        "f": numbers.get(one.component),
        "id": one.new.id if one.new else None,
        "what": one.what,
        "old": _root(one.old, unit),
        "new": _root(one.new, unit),
        "shares": [_share(share) for share in one.shares],
    }


def _root(node: PatternNode | None, unit: str) -> str:
    return f"CoV {significant(node.cov)} of {text.quantity(node.mean, unit)}" if node else "none"


def _share(share: ShareChange) -> Json:
    ends = ["none" if value is None else share_text(value) for value in (share.old, share.new)]
    return {"old": ends[0], "new": ends[1], "of": share.path[0], "from": " > ".join(share.path[1:])}


Json = dict[str, Any]

LABELS = {"time": "wall time", "cpu": "CPU time", "events": "recorded calls"}
"""What the metrics that stand side by side are called."""
CONTEXTS = 6
"""Calling contexts told of a node."""


def variance_data(views: Sequence[VarianceView], overhead: str) -> Json:
    """Everything the view shows, as JSON values without NaN or infinity; ``overhead`` is the recorder's, in words."""
    components = dict.fromkeys(component for view in views for component in _named(view))
    numbers = {component: number for number, component in enumerate(components)}
    return {
        "opens": next((numbers[one] for view in views for one in view.explanations), None),
        "functions": [_function(one) for one in components],
        "metrics": [_metric(view, views, numbers, overhead) for view in views],
    }


def _named(view: VarianceView) -> list[Component]:
    """Functions of a view: those of its patterns, then those explained."""
    return [*(node.component for one in view.found.patterns for node in one.nodes), *view.explanations]


def _function(one: Component) -> Json:
    return {"name": one.name, "place": f"{text.short_path(one.file)}:{one.line}" if one.file else ""}


def _metric(view: VarianceView, views: Sequence[VarianceView], numbers: Mapping[Component, int], overhead: str) -> Json:
    found = view.found
    top = max((one.nodes[0].vim for one in found.patterns), default=0.0)
    return {
        "name": found.metric.name,
        "label": LABELS.get(found.metric.name, found.metric.name),
        "summary": _summary(found),
        "notes": list(found.notes),
        "since": since_data(view.since, numbers, found.metric.unit),
        "patterns": [_pattern(one, numbers, found.metric.unit, top) for one in found.patterns],
        "screens": {
            str(numbers[component]): packed(screen(one, _beside(component, views), overhead, component in view.driven))
            for component, one in view.explanations.items()
        },
    }


def _beside(component: Component, views: Sequence[VarianceView]) -> Json:
    """Metric's label → the same function's explanation by it."""
    known = [(view.found.metric.name, view.explanations.get(component)) for view in views]
    return {LABELS.get(name, name): one for name, one in known if one is not None}


def _summary(found: Variance) -> str:
    shown = sum(len(one.nodes) for one in found.patterns)
    (nodes, patterns), (merged, alike) = found.extracted, found.merged
    words = f"{found.tree_nodes:,} calling contexts: {nodes:,} nodes, merged to {merged:,}, {shown:,} after trimming"
    words += f" (patterns: {patterns:,}, {alike:,}, {len(found.patterns):,})"
    return words + (f"; {found.too_few:,} contexts have fewer than 30 calls" if found.too_few else "")


def _pattern(pattern: Pattern, numbers: Mapping[Component, int], unit: str, top: float) -> Json:
    names = {node.id: node.component.name for node in pattern.nodes}
    root = pattern.nodes[0]
    mine = [one for one in pattern.contributions if one.to == root.id]
    return {
        "part": finite(root.vim / top) if top else 0.0,
        "sources": [f"{share_text(one.cf_net)} {names[one.source]}" for one in mine],
        "nodes": [_node(node, numbers, unit) for node in pattern.nodes],
        "edges": [_edge(one) for one in pattern.contributions],
    }


def _node(node: PatternNode, numbers: Mapping[Component, int], unit: str) -> Json:
    return {
        "id": node.id,
        "parent": node.parent,
        "f": numbers[node.component],
        "kind": node.kind,
        "n": text.count(node.n),
        "mean": text.quantity(node.mean, unit),
        "cov": significant(node.cov),
        "vim": finite(node.vim),
        "vimText": text.quantity(node.vim, unit),
        "cause": node.cause,
        "off": share_text(node.off_cpu),
        "contexts": [call_path(path) for path in node.contexts[:CONTEXTS]],
        "more": max(0, len(node.contexts) - CONTEXTS),
    }


def _edge(one: Contribution) -> Json:
    return {
        "to": one.to,
        "from": one.source,
        "net": share_text(one.cf_net),
        "self": "not recorded" if one.cf_self is None else share_text(one.cf_self),
        "path": list(one.path),
    }
