"""Contexts, deadlines and invocations to look at, for the variance page."""

from __future__ import annotations

import math
from typing import Any

from perflaw.report import text
from perflaw.report.encode import finite
from perflaw.report.page_charts import shortened
from perflaw.report.quantity import NOTHING, significant
from perflaw.types.deadlines import Bound
from perflaw.types.explanations import Callee, Exemplar, Explanation

Json = dict[str, Any]

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
