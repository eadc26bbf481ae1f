"""The words beside the charts of one component: its laws, their evidence, what they predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perflaw.report import text
from perflaw.types import Annotation, Breakpoint, Law, Prediction

Json = dict[str, Any]


def detail(annotation: Annotation) -> Json:
    """Every text the page shows of a selected component."""
    unit = annotation.metric.unit
    run_law = annotation.run_law
    return {
        "features": list(annotation.features),
        "used": list(dict.fromkeys(name for scope in annotation.scopes for name in scope.law.features)),
        "marks": list(annotation.marks),
        "total": text.quantity(annotation.total, unit),
        "scopes": [
            {"condition": s.condition, "probability": text.percent(s.probability), **_law(s.law, unit)}
            for s in annotation.scopes
        ],
        "run": _law(run_law, unit) if run_law else None,
        "predicted": _predictions([annotation.predicted], unit) if annotation.predicted else [],
    }


def _law(law: Law, unit: str) -> Json:
    return {
        "text": text.law_text(law, unit),
        "expression": law.expression,
        "family": law.family,
        "grows": text.grows_as(law),
        "verdict": law.verdict,
        "reason": law.reason,
        "facts": _facts(law, unit),
        "alternatives": [
            {
                "family": a.family,
                "expression": a.expression,
                "slope": _slopes(a.slope),
                "delta": f"{a.delta:.1f}",
            }
            for a in law.alternatives
        ],
        "predictions": _predictions(law.predictions, unit),
    }


def _facts(law: Law, unit: str) -> list[tuple[str, str]]:
    """(name, value) pairs, only those the law has."""
    facts = [
        ("noise", text.noise_text(law.noise, unit)),
        ("evidence", f"{law.n:,} points from {law.runs} {'run' if law.runs == 1 else 'runs'}"),
        ("r²", "—" if law.r2 is None else f"{law.r2:.4f}"),
        ("learnt on", ", ".join(_range(name, *ends) for name, ends in law.range.items())),
        ("local exponent", ", ".join(_slope(law, name) for name in law.features if name in law.slope)),
        ("exponent", "" if law.exponent is None or not law.features else _exponents(law)),
        ("breaks at", ", ".join(_breakpoint(one) for one in law.breakpoints)),
        (
            "may be as well",
            ", ".join(f"{name}: {', '.join(others)}" for name, others in law.collinear.items() if others),
        ),
        ("lack of fit", "" if law.lack_of_fit is None else f"p = {law.lack_of_fit:.2g}"),
        ("intercept", "" if law.intercept is None else text.quantity(law.intercept, unit)),
    ]
    return [(name, value) for name, value in facts if value]


def _range(name: str, low: float, high: float) -> str:
    return f"{name} = {text.number(low)}" if low == high else f"{name} {text.number(low)}–{text.number(high)}"


def _breakpoint(one: Breakpoint) -> str:
    return f"{one.feature} = {text.number(one.value)} ({text.number(one.low)}–{text.number(one.high)})"


def _slope(law: Law, name: str) -> str:
    ends = f" ({law.slope_low[name]:.2f}–{law.slope_high[name]:.2f})" if name in law.slope_low else ""
    return f"{name} {law.slope[name]:.2f}{ends}"


def _slopes(slope: Mapping[str, float]) -> str:
    return ", ".join(f"{name}^{value:.2f}" for name, value in slope.items()) or "constant"


def _exponents(law: Law) -> str:
    logs = f", of its logarithm {text.number(law.log_exponent)}" if law.log_exponent else ""
    return f"{text.number(law.exponent or 0.0)}{logs}"


def _predictions(predictions: Iterable[Prediction], unit: str) -> list[list[str]]:
    """Rows of: where, mean, interval for the mean, interval for a new run."""
    rows = dict.fromkeys(
        tuple(_prediction(p, unit)) for p in predictions
    )  # a law without features says one thing twice
    return [list(row) for row in rows]


def _prediction(p: Prediction, unit: str) -> list[str]:
    return [
        text.features_text(p.features) or "anywhere",
        text.quantity(p.mean, unit),
        text.interval(p.mean_low, p.mean_high, unit),
        text.interval(p.new_low, p.new_high, unit),
    ]
