"""The variance view of the page: patterns as rows and graphs, and a screen for each function, deflated on its own.

The screen gives eight answers about the cost of a function, in words and as the numbers behind the bars.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from perflaw.report.law_words import short_path
from perflaw.report.page import flat, packed, shortened
from perflaw.report.quantity import NOTHING, count, counted, interval, number, percent, quantity, significant
from perflaw.report.variance.graphs import perfetto
from perflaw.report.variance.text import (
    await_texts,
    call_path,
    driver_text,
    ends_text,
    last_name,
    part_name,
    share_text,
    shown_change,
    shown_explanation,
)
from perflaw.types import Component
from perflaw.types.documents import Document, document, finite
from perflaw.types.variance import (
    Budget,
    Exemplar,
    Explanation,
    Latency,
    Part,
    Pattern,
    PatternChange,
    Variance,
    VaryingLatency,
)

LABELS = {"time": "wall time", "cpu": "CPU time", "events": "recorded calls"}
"""Metrics that stand side by side, by the names that the page gives them."""
NODE_CONTEXTS = 6
"""Calling contexts that a node of a pattern lists."""


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
            *(one.component for one in view.variance.latencies),
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
                "latencies": [_latency_row(one, numbers) for one in variance.latencies],
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


def _latency_row(one: VaryingLatency, numbers: Mapping[Component, int]) -> Document:
    """A coroutine whose latency varies highly."""
    return {
        "function": numbers[one.component],
        "n": count(one.n),
        "mean": quantity(one.latency.mean, "ns"),
        "cov": significant(one.latency.cov),
        "p99": quantity(one.latency.p99, "ns"),
        "sources": await_texts(one.latency),
    }


def _latency_screen(latency: Latency, shown: Document) -> Document:
    """The latency of a coroutine on its screen; ``shown`` has the words on its function."""
    facts = [("mean latency", latency.mean), ("median latency", latency.p50), ("p99 latency", latency.p99)]
    return {
        "verdict": shown["latency"],
        "facts": [*((name, quantity(value, "ns")) for name, value in facts), ("CoV", significant(latency.cov))],
        "awaiting": share_text(latency.awaiting),
        "awaits": [
            {
                "name": name,
                "path": one.component.name if one.component else "",
                "share": share_text(one.share),
                "mean": quantity(one.mean, "ns"),
            }
            for name, one in zip(shown["awaits"], latency.awaits, strict=True)
            if one.mean > 0
        ],
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
                "contexts": [call_path(path) for path in node.contexts[:NODE_CONTEXTS]],
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
                **shown_change(change, unit),
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


MAX_ROWS = 40
"""Rows of the budget and of the parts that the page holds."""
MAX_CONTEXTS, MAX_CALLEES, MAX_COMPARED = 12, 5, 12
"""Contexts that are listed, callees of an invocation, and parts compared between metrics."""


def screen(explanation: Explanation, beside: Mapping[str, Explanation], overhead: str, driven: bool) -> Document:
    """The whole screen; ``beside`` holds the explanations of the same function by label of the metric.

    ``driven`` says whether drivers were looked for.
    """
    budget, unit, shown = explanation.budget, explanation.metric.unit, shown_explanation(explanation)
    ratio = ""
    if budget and budget.p50 > 0:
        ratio = f"p99 is {significant(budget.p99 / budget.p50)} times the median"
    facts = [
        ("calls (N)", count(explanation.n)),
        ("mean", quantity(explanation.mean, unit)),
        ("CoV (σ / mean)", significant(explanation.cov)),
        ("median", quantity(budget.p50, unit) if budget else "unknown"),
        ("p99", quantity(budget.p99, unit) if budget else "unknown"),
        ("sampled beyond p99", count(budget.samples) if budget else NOTHING),
        ("recorder", overhead),
    ]
    parts = sorted(explanation.parts, key=lambda part: -abs(part.cf_net))[:MAX_ROWS]
    # Contexts where the cost varies and where it is steady; half of the rows are kept for the steady ones.
    high = [context for context in explanation.contexts if context.high]
    steady = [context for context in explanation.contexts if not context.high]
    few = high[: max(MAX_CONTEXTS // 2, MAX_CONTEXTS - len(steady))]
    contexts = {
        "all": len(explanation.contexts),
        "high": len(high),
        "rows": [
            {
                **flat(context),
                "line": context.path[-1].line if context.path else 0,
                "few": context.n < 30,
                "text": {
                    "from": " > ".join(step.callee for step in context.path[:-1]) or "the start",
                    "n": count(context.n),
                    "mean": quantity(context.mean, explanation.metric.unit),
                    "cov": significant(context.cov),
                },
            }
            for context in [*few, *steady[: MAX_CONTEXTS - len(few)]]
        ],
    }
    return {
        **flat(explanation),
        "facts": facts,
        "text": {"verdict": shown["verdict"], "ratio": ratio, "cause": shown["cause"]},
        "latency": _latency_screen(explanation.latency, shown) if explanation.latency else None,
        "budget": _budget(budget, explanation, shown["budget"]) if budget else None,
        "covs": [{"name": name, "text": significant(cov)} for name, cov in explanation.covs.items()],
        "beside": _beside(beside) if len(beside) > 1 else None,
        "parts": [_part(part, explanation.parts, unit) for part in parts],
        "groups": [
            {
                "parts": block["parts"],
                "text": f"{block['relation']}: {share_text(block['cf_net'])} of the variance together",
            }
            for block in shown["together"]
        ],
        "drivers": [
            {"text": driver_text(document(driver)), "law": driver.expression} for driver in explanation.drivers
        ],
        "driven": driven,
        "contexts": contexts,
        "deadlines": deadlines_data(explanation) if explanation.deadlines or explanation.bounds else None,
        "exemplars": [_exemplar(exemplar, unit) for exemplar in explanation.exemplars],
        "perfetto": perfetto(explanation),
    }


def _budget(budget: Budget, explanation: Explanation, names: Sequence[str]) -> Document:
    """The budget, whose rows have these names."""
    unit, left = explanation.metric.unit, budget.rows[MAX_ROWS:]
    rows = []
    for name, row in list(zip(names, budget.rows, strict=True))[:MAX_ROWS]:
        steps = [f"{step.callee} (line {step.line})" for step in row.path]
        rows.append(
            {
                **flat(row),
                "text": {
                    "where": name,
                    "path": " > ".join([explanation.component.name, *steps]),
                    "share": share_text(row.share),
                    "interval": ends_text(row.share_low, row.share_high),
                    "cf_net": share_text(row.cf_net),
                    "off_cpu": share_text(row.off_cpu) if explanation.metric.name == "time" else NOTHING,
                },
            }
        )
    return {
        "rows": rows,
        "estimated": any(row.estimated for row in budget.rows),
        "text": {
            "more": quantity(budget.tail - budget.median, unit),
            "tail": quantity(budget.tail, unit),
            "median": quantity(budget.median, unit),
            "left": f"{len(left):,} more: {share_text(sum(row.share for row in left))} together" if left else "",
            "further": [f"{name} is {share_text(share)} of it" for name, share in budget.further.items()],
        },
    }


def _part(part: Part, parts: Sequence[Part], unit: str) -> Document:
    """One of the parts of a function with ``shares`` of its variance: called or not, trip count, cost per call."""
    split, whole = part.split, part.variance
    shares = shortened([split.called / whole, split.trips / whole, split.cost / whole], 4) if split and whole else None
    return {
        **flat(part),
        "shares": shares,
        "mechanism": split.mechanism if split else "own code",
        "text": {
            "name": part_name(part, parts),
            "path": part.component.name if part.component else "the function's own code",
            "mean": quantity(part.mean, unit),
            "cf_net": share_text(part.cf_net),
            "cf_self": "not recorded" if part.cf_self is None else share_text(part.cf_self),
        },
    }


def _beside(explanations: Mapping[str, Explanation]) -> Document:
    """Share of the variance of each part by each metric."""
    nets = [{(part.component, part.site): part.cf_net for part in one.parts} for one in explanations.values()]
    largest = {key: max(abs(net.get(key, 0.0)) for net in nets) for net in nets for key in net}
    names = {
        (part.component, part.site): part_name(part, one.parts) for one in explanations.values() for part in one.parts
    }
    keys = sorted(largest, key=lambda key: -largest[key])[:MAX_COMPARED]
    return {
        "metrics": [{"label": label, "cov": significant(one.cov)} for label, one in explanations.items()],
        "rows": [{"name": names[key], "nets": [finite(net.get(key, 0.0)) for net in nets]} for key in keys],
    }


def deadlines_data(explanation: Explanation) -> Document:
    """The curve P(cost > d), recorded and by Chebyshev, and the deadlines of round probabilities."""
    unit, points = explanation.metric.unit, explanation.deadlines
    values = [point.deadline for point in points]
    ticks: list[float] = []
    if values and min(values) > 0:
        # Powers of ten within the values; where these are few, two and five times them as well.
        low, high = min(values), max(values)
        tens = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
        factors = (1, 2, 5) if high < 1e3 * low else (1,)
        ticks = [ten * factor for ten in tens for factor in factors if low <= ten * factor <= high]
    bounds = []
    for bound in explanation.bounds:
        seen = "unknown: too few calls" if bound.observed is None else quantity(bound.observed, unit)
        known = bound.low is not None and bound.high is not None
        ends = interval(bound.low or 0.0, bound.high or 0.0, unit) if known else NOTHING
        bounds.append([percent(bound.probability), seen, ends, quantity(bound.chebyshev, unit)])
    return {
        "d": shortened(values, 5),
        "ticks": [{"at": at, "text": quantity(at, unit)} for at in ticks],
        "observed": shortened([point.observed for point in points], 4),
        "low": shortened([point.low for point in points], 4),
        "high": shortened([point.high for point in points], 4),
        "chebyshev": shortened([point.chebyshev for point in points], 4),
        "texts": [quantity(value, unit) for value in values],
        "bounds": bounds,
    }


def _exemplar(exemplar: Exemplar, unit: str) -> Document:
    callees = []
    for callee in exemplar.callees[:MAX_CALLEES]:
        name = last_name(callee.component.name) if callee.component else "others"
        callees.append(f"{callee.k:,} × {name}" + (f" {quantity(callee.y, unit)}" if math.isfinite(callee.y) else ""))
    return {
        **flat(exemplar),
        "text": {
            "x": quantity(exemplar.x, unit),
            "time": quantity(exemplar.time, "ns"),
            "cpu": quantity(exemplar.cpu, "ns") if math.isfinite(exemplar.cpu) else "unknown",
            "run": exemplar.run.partition("-")[0],
            "started": quantity(exemplar.started, "ns"),
            "path": " > ".join(step.callee for step in exemplar.path),
            "callees": callees,
            "features": ", ".join(f"{name} = {number(value)}" for name, value in exemplar.features.items()),
        },
    }
