"""One function's screen on the variance page: the eight answers as JSON values, their words and the numbers behind the bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.report import text
from perflaw.report.encode import finite
from perflaw.report.page_charts import shortened
from perflaw.report.page_variance_evidence import contexts, deadlines, exemplars
from perflaw.report.page_variance_words import between, call_path, last_name, share_text
from perflaw.report.perfetto import perfetto
from perflaw.report.quantity import NOTHING, significant
from perflaw.types.explanations import Budget, BudgetRow, Explanation, Part

Json = dict[str, Any]

ROWS = 40
"""Rows of the budget and of the parts that the page holds."""


def screen(one: Explanation, beside: Mapping[str, Explanation], overhead: str, driven: bool) -> Json:
    """All of it; ``beside`` holds the explanations of the same function, metric's label by label.

    ``driven`` says whether drivers were looked for.
    """
    return {
        "facts": _facts(one, overhead),
        "headline": _headline(one),
        "budget": _budget(one.budget, one) if one.budget else None,
        "cause": _cause(one),
        "covs": [{"name": name, "text": significant(cov), "cov": finite(cov)} for name, cov in one.covs.items()],
        "beside": _beside(one, beside),
        "parts": [_part(part, one) for part in sorted(one.parts, key=lambda part: -abs(part.cf_net))[:ROWS]],
        "groups": _groups(one),
        "drivers": [{"of": d.of, "feature": d.feature, "law": d.expression, "r2": f"{d.r2:.2f}"} for d in one.drivers],
        "driven": driven,
        "contexts": contexts(one),
        "deadlines": deadlines(one),
        "exemplars": exemplars(one),
        "perfetto": perfetto(one),
    }


def _headline(one: Explanation) -> Json:
    """The verdict, and how much slower slow calls are."""
    word = "varies highly" if one.high else "steady" if one.n >= 30 else "too few calls to say"
    if not one.budget or one.budget.p50 <= 0:
        return {"verdict": word, "ratio": "", "cause": one.cause}
    ratio = f"p99 is {significant(one.budget.p99 / one.budget.p50)} times the median"
    return {"verdict": word, "ratio": ratio, "cause": one.cause}


def _facts(one: Explanation, overhead: str) -> list[tuple[str, str]]:
    unit, budget = one.metric.unit, one.budget
    facts = [
        ("calls (N)", text.count(one.n)),
        ("mean", text.quantity(one.mean, unit)),
        ("CoV (σ / mean)", significant(one.cov)),
        ("median", text.quantity(budget.p50, unit) if budget else "unknown"),
        ("p99", text.quantity(budget.p99, unit) if budget else "unknown"),
    ]
    return [*facts, ("sampled beyond p99", text.count(budget.samples) if budget else NOTHING), ("recorder", overhead)]


def _budget(budget: Budget, one: Explanation) -> Json:
    left = budget.rows[ROWS:]
    return {
        "more": text.quantity(budget.tail - budget.median, one.metric.unit),
        "tail": text.quantity(budget.tail, one.metric.unit),
        "median": text.quantity(budget.median, one.metric.unit),
        "rows": [_row(row, one) for row in budget.rows[:ROWS]],
        "left": f"{len(left):,} more: {share_text(sum(row.share for row in left))} together" if left else "",
        "estimated": any(row.estimated for row in budget.rows),
        "further": [f"{name} is {share_text(share)} of it" for name, share in budget.further.items()],
    }


def _row(row: BudgetRow, one: Explanation) -> Json:
    where = call_path(row.path) or ("own code" if row.component == one.component else row.component.name)
    return {
        "where": where + (" (the rest)" if row.rest else "") + (" *" if row.estimated else ""),
        "full": " > ".join([one.component.name, *(f"{step.callee} (line {step.line})" for step in row.path)]),
        "share": finite(row.share),
        "text": share_text(row.share),
        "low": finite(row.share_low),
        "high": finite(row.share_high),
        "between": between(row.share_low, row.share_high),
        "net": finite(row.cf_net),
        "netText": share_text(row.cf_net),
        "mechanism": row.mechanism,
        "off": share_text(row.off_cpu) if one.metric.name == "time" else NOTHING,
    }


def _part_name(part: Part) -> str:
    if part.component is None:
        return "own code"
    return f"{last_name(part.component.name)}:{part.line}" if part.line else last_name(part.component.name)


def _part(part: Part, one: Explanation) -> Json:
    split, whole = part.split, part.variance
    shares = shortened([split.called / whole, split.trips / whole, split.cost / whole], 4) if split and whole else None
    return {
        "name": _part_name(part),
        "full": part.component.name if part.component else "what the function does itself",
        "mean": text.quantity(part.mean, one.metric.unit),
        "net": share_text(part.cf_net),
        "self": "not recorded" if part.cf_self is None else share_text(part.cf_self),
        "shares": shares,
        "mechanism": split.mechanism if split else "own code",
    }


def _cause(one: Explanation) -> str:
    """Work or interference, with its interval, or why it is not known."""
    if one.cause == "steady":
        return "steady: nothing to explain"
    if one.off_cpu is None:
        why = "CPU time was not measured" if one.metric.name == "time" else "what was measured is work alone"
        return f"{one.cause}: {why}"
    ends = between(one.off_cpu_low, one.off_cpu_high)
    return f"{one.cause}: {share_text(one.off_cpu)} ({ends}) of the variance comes about off the CPU"


def _beside(one: Explanation, others: Mapping[str, Explanation]) -> Json | None:
    """Share of the variance of each part by each metric; None where there is one metric alone."""
    if len(others) < 2:
        return None
    nets = [{(p.component, p.site): p.cf_net for p in other.parts} for other in others.values()]
    most = {key: max(abs(net.get(key, 0.0)) for net in nets) for net in nets for key in net}
    names = {(p.component, p.site): _part_name(p) for other in others.values() for p in other.parts}
    keys = sorted(most, key=lambda key: -most[key])[:12]
    return {
        "metrics": [{"label": label, "cov": significant(other.cov)} for label, other in others.items()],
        "rows": [{"name": names[key], "nets": [finite(net.get(key, 0.0)) for net in nets]} for key in keys],
    }


def _groups(one: Explanation) -> list[Json]:
    """Parts that vary together, and how."""
    verbs = {"cancel": "cancel each other", "in step": "vary in step", "mixed": "vary together"}
    return [
        {
            "parts": [_part_name(one.parts[place]) for place in block.parts],
            "relation": block.relation,
            "words": f"{verbs[block.relation]}: {share_text(block.cf_net)} of the variance together",
        }
        for block in one.blocks
        if len(block.parts) > 1 and block.relation in verbs
    ]
