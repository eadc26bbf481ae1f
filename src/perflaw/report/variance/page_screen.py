"""One function's screen on the variance page: the eight answers as JSON values, their words and the numbers behind the bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from perflaw.report import law_words as text
from perflaw.report.page.charts import shortened
from perflaw.report.quantity import NOTHING, significant
from perflaw.report.variance.graphs import perfetto
from perflaw.types.documents import finite
from perflaw.types.variance import Bound, Budget, BudgetRow, Callee, Exemplar, Explanation, Part, Step

# ---- Contexts, deadlines and invocations to look at, for the variance page.

CONTEXTS = 12
"""Contexts listed; steady ones come in as well."""
CALLEES = 5
"""Callees told of an invocation."""


def contexts(one: Explanation) -> Json:
    """Where the function varies and where it is steady; half of the places are kept for the latter."""
    high = [context for context in one.contexts if context.high]
    steady = [context for context in one.contexts if not context.high]
    few = high[: max(CONTEXTS // 2, CONTEXTS - len(steady))]
    shown = [*few, *steady[: CONTEXTS - len(few)]]
    return {
        "all": len(one.contexts),
        "high": len(high),
        "rows": [
            {
                "from": " > ".join(step.callee for step in context.path[:-1]) or "the start",
                "line": context.path[-1].line if context.path else 0,
                "n": text.count(context.n),
                "mean": text.quantity(context.mean, one.metric.unit),
                "cov": finite(context.cov),
                "covText": significant(context.cov),
                "high": context.high,
                "few": context.n < 30,
            }
            for context in shown
        ],
    }


def deadlines(one: Explanation) -> Json | None:
    """The curve P(cost > d), recorded and by Chebyshev, and the deadlines of round probabilities."""
    if not one.deadlines and not one.bounds:
        return None
    unit = one.metric.unit
    some = one.deadlines
    return {
        "unit": unit,
        "d": shortened([d.deadline for d in some], 5),
        "ticks": [{"at": at, "text": text.quantity(at, unit)} for at in _ticks([d.deadline for d in some])],
        "observed": shortened([d.observed for d in some], 4),
        "low": shortened([d.low for d in some], 4),
        "high": shortened([d.high for d in some], 4),
        "chebyshev": shortened([d.chebyshev for d in some], 4),
        "texts": [text.quantity(d.deadline, unit) for d in some],
        "bounds": [_bound(b, unit) for b in one.bounds],
    }


def _ticks(values: list[float]) -> list[float]:
    """Powers of ten within the values; where those are few, two and five times them as well."""
    if not values or min(values) <= 0:
        return []
    low, high = min(values), max(values)
    tens = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    factors = (1, 2, 5) if high < 1e3 * low else (1,)
    return [ten * factor for ten in tens for factor in factors if low <= ten * factor <= high]


def _bound(b: Bound, unit: str) -> list[str]:
    seen = "unknown: too few calls" if b.observed is None else text.quantity(b.observed, unit)
    between = text.interval(b.low, b.high, unit) if b.low is not None and b.high is not None else NOTHING
    return [text.percent(b.probability), seen, between, text.quantity(b.chebyshev, unit)]


def exemplars(one: Explanation) -> list[Json]:
    """Invocations to look at, in the order of the learner: the worst, then some at random."""
    return [_exemplar(exemplar, one.metric.unit) for exemplar in one.exemplars]


def _exemplar(one: Exemplar, unit: str) -> Json:
    return {
        "reason": one.reason,
        "x": text.quantity(one.x, unit),
        "value": finite(one.x),
        "time": text.quantity(one.time, "ns"),
        "cpu": text.quantity(one.cpu, "ns") if math.isfinite(one.cpu) else "unknown",
        "run": one.run.partition("-")[0],
        "at": text.quantity(one.started, "ns"),
        "path": " > ".join(step.callee for step in one.path),
        "callees": [_callee(callee, unit) for callee in one.callees[:CALLEES]],
        "features": ", ".join(f"{name} = {text.number(value)}" for name, value in one.features.items()),
    }


def _callee(one: Callee, unit: str) -> str:
    name = one.component.name.rpartition(".")[2] if one.component else "others"
    return f"{one.k:,} × {name}" + (f" {text.quantity(one.y, unit)}" if math.isfinite(one.y) else "")


# ---- Shares and calls in words, for the variance page: what is not known is said to be unknown.


def share_text(share: float | None) -> str:
    """A share; what rounds to nothing has no sign.

    >>> share_text(0.61), share_text(-0.001), share_text(-0.2), share_text(None)
    ('61 %', '0 %', '-20 %', 'unknown')
    """
    if share is None or not math.isfinite(share):
        return "unknown"
    return text.percent(share).replace("-0 %", "0 %") if abs(share) < 0.005 else text.percent(share)


def between(low: float | None, high: float | None) -> str:
    """Both ends of an interval of a share, in percent.

    >>> between(0.33, 0.61), between(-0.0001, 0.0), between(None, 1.0)
    ('33–61', '0–0', 'unknown')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "unknown"
    return f"{round(low * 100):d}–{round(high * 100):d}"


def call_path(path: Sequence[Step]) -> str:
    """Calls in few words: last names and lines.

    >>> call_path([Step("app.f", 3, 0, "app.g"), Step("app.g", 0, 0, "app.h")])
    'g:3 > h'
    """
    return " > ".join(f"{last_name(one.callee)}:{one.line}" if one.line else last_name(one.callee) for one in path)


def last_name(name: str) -> str:
    """What follows the last dot."""
    return name.rpartition(".")[2] or name


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
