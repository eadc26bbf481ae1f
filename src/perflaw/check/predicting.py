"""Laws asked at a point: cost with an interval for the mean and one for a new run or call, or why there is none.

A twin holds intervals at 2 and 10 times the 95th percentile of the data. Nearer points get those at twice (an upper
bound of theirs); between and beyond, the logarithm of the relative width grows with that of the distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any, Literal

import numpy as np

from perflaw.check.claims import Claim, claim_of_document, clause_names
from perflaw.confidence import HIGH, LOW
from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate, truth
from perflaw.laws.tree import Clause
from perflaw.types import Component, Forecast

# ---- Limits of predictions over their means, at points between and beyond those that a twin holds.

Widths = tuple[float, float, float, float]
"""Mean's and new run's limits over the mean: low, high, low, high."""


def widths_at(laws: Sequence[Document], point: Point) -> Widths | None:
    """Limits over the mean at a point: the widest of the parts'."""
    several = [one for one in (_law_widths(law, point) for law in laws) if one]
    if not several:
        return None
    low, high = min(one[0] for one in several), max(one[1] for one in several)
    return low, high, min(one[2] for one in several), max(one[3] for one in several)


def _law_widths(law: Document, point: Point) -> Widths | None:
    known = [(_distance(law, one["features"]), _relative(one)) for one in law["predictions"]]
    sound = sorted((distance, widths) for distance, widths in known if widths)
    if not sound:
        return None
    at = _distance(law, point)
    exact = [
        widths for one, (_, widths) in zip(law["predictions"], known, strict=True) if widths and _same(law, one, point)
    ]
    if exact:
        return exact[0]
    if at <= sound[0][0] or len(sound) == 1 or sound[-1][0] == sound[0][0]:
        return sound[0][1]
    (near, first), (far, last) = sound[0], sound[-1]
    part = (at - near) / (far - near)
    low, high, new_low, new_high = (_between(a, b, part) for a, b in zip(first, last, strict=True))
    return low, high, new_low, new_high


def _same(law: Document, prediction: Document, point: Point) -> bool:
    return all(prediction["features"].get(name) == point.get(name) for name in law["features"])


def _between(near: float, far: float, part: float) -> float:
    """A limit over the mean between or beyond two known ones; log widths grow, they never shrink."""
    if near <= 0 or far <= 0:
        return min(near, far) if near < 1 else max(near, far)
    a, b = log(near), log(far)
    return exp(max(-60.0, min(60.0, a + (b - a) * part))) if abs(b) >= abs(a) else near


def _distance(law: Document, point: Mapping[str, float | None]) -> float:
    """Log of how many times the point is beyond the largest values learnt from; negative inside."""
    far = [
        log(max(float(point[name] or 0.0), 1e-300) / ends[1])
        for name, ends in law["range"].items()
        if name in law["features"] and ends[1] and ends[1] > 0 and point.get(name) is not None
    ]
    return max(far, default=0.0)


def _relative(one: Document) -> Widths | None:
    """Limits of a prediction over its mean; None where a number is missing."""
    mean = one["mean"]
    limits = [one[name] for name in ("mean_low", "mean_high", "new_low", "new_high")]
    if not mean or None in limits:
        return None
    return limits[0] / mean, limits[1] / mean, limits[2] / mean, limits[3] / mean


Point = Mapping[str, float]
Document = Mapping[str, Any]

Limits = tuple[float | None, float | None, float | None, float | None]
"""Mean's and new run's limits, unit of the metric."""

FAR = 10.0
"""Beyond so many times the data a law whose shape is in doubt refuses."""
MISFIT = 0.01
"""p of the lack-of-fit test below which a law's shape is in doubt."""


def forecast(claims: Sequence[Claim], points: Sequence[Point]) -> list[Forecast]:
    """Answers of all laws that the points can ask, dearest first, point by point; whole runs before single calls."""
    found: list[Forecast] = []
    for point in points:
        here = [answer for claim in claims for answer in _answers(claim, point)]
        found += sorted(here, key=lambda one: (one.of == "call", -(one.mean or 0.0), one.component.name))
    return found


def _answers(claim: Claim, point: Point) -> list[Forecast]:
    """The claim's law of a whole run, and that of a call, where the point says what they need."""
    run_law = (claim.document or {}).get("run_law")
    found = []
    about_runs = run_law and run_law["range"].keys() & point.keys()
    if run_law and about_runs and set(run_law["features"]) <= point.keys():
        scope = {"condition": "", "probability": 1.0, "law": run_law}
        whole = claim_of_document({**(claim.document or {}), "scopes": [scope], "check": None})
        found.append(_answer(whole, point, "run"))
    if claim.names <= point.keys() and (claim.names or not about_runs):
        found.append(_answer(claim, point, "call"))
    return found


def _answer(claim: Claim, point: Point, of: Literal["run", "call"]) -> Forecast:
    values = {name: np.array([point[name]]) for name in claim.names}
    number = next((n for n, one in enumerate(claim.clauses) if _true(one, values)), None)
    if number is None:
        return _refused(claim, point, of, "none of the law's conditions is true here")
    clause, laws = claim.clauses[number], _laws(claim, number)
    mine = {name: values[name] for name in clause_names(clause)}
    mean = float(np.ravel(distributions.mean(clause, mine))[0]) * claim.factor
    if not np.isfinite(mean):
        return _refused(claim, point, of, "the law has no finite value here")
    outside = _outside(claim, point)
    doubt = next((why for law in laws if (why := _doubt(law))), "")
    if outside and outside[1] > FAR and doubt:
        return _refused(claim, point, of, f"{outside[0]}, and {doubt}")
    widths = widths_at(laws, point) if laws else None
    mean = max(mean, 0.0)
    limits: Limits
    if widths:
        limits, message = (mean * widths[0], mean * widths[1], mean * widths[2], mean * widths[3]), ""
    else:
        ends = np.ravel([distributions.quantile(clause, p, mine) for p in (LOW, HIGH)]) * claim.factor
        low, high = (max(float(end), 0.0) if np.isfinite(end) else None for end in ends)
        limits = (None, None, low, high)
        message = "text alone: the interval is the scatter the law states"
    mean_low, mean_high, new_low, new_high = limits
    told = "; ".join(filter(None, [outside[0] if outside else "", message]))
    return Forecast(
        _component(claim),
        claim.metric,
        of,
        _asked(claim, point),
        mean,
        mean_low,
        mean_high,
        new_low,
        new_high,
        claim.condition(number),
        not outside,
        told,
    )


def _true(clause: Clause, values: Mapping[str, np.ndarray]) -> bool:
    return clause.condition is None or bool(np.all(truth(evaluate(clause.condition, values))))


def _component(claim: Claim) -> Component:
    document = claim.document or {}
    return Component(claim.component, document.get("file", ""), document.get("line", 0))


def _asked(claim: Claim, point: Point) -> dict[str, float]:
    """The part of the point that the law depends on; all of it for a constant."""
    return {name: value for name, value in point.items() if name in claim.names} or dict(point)


def _refused(claim: Claim, point: Point, of: Literal["run", "call"], why: str) -> Forecast:
    none = (None, None, None, None, None)
    return Forecast(_component(claim), claim.metric, of, _asked(claim, point), *none, "", False, f"no answer: {why}")


def _laws(claim: Claim, number: int) -> list[Document]:
    """Documents of the laws of a clause; empty for text alone."""
    scopes = (claim.document or {}).get("scopes") or []
    counts = [len(one.parts) for one in claim.clauses]
    start = sum(counts[:number])
    return [scope["law"] for scope in scopes[start : start + counts[number]]]


def _outside(claim: Claim, point: Point) -> tuple[str, float] | None:
    """Where the point is beyond the data, in words, and how many times; None inside."""
    worst: tuple[str, float] | None = None
    for name in sorted(claim.names & claim.ranges.keys()):
        low, high = claim.ranges[name]
        value = point[name]
        if low <= value <= high:
            continue
        times = value / high if value > high > 0 else low / value if 0 < value < low else 1.0 + abs(value - low)
        told = f"{name} = {value:,.6g} is outside what was learnt ({low:,.6g}–{high:,.6g})"
        if worst is None or times > worst[1]:
            worst = told, times
    return worst


def _doubt(law: Document) -> str:
    """Why a law cannot be carried far beyond its data; empty where it can."""
    p = law.get("lack_of_fit")
    if p is not None and p < MISFIT:
        return "the law's shape does not fit its data"
    return "the data cannot say how it grows" if law["verdict"] == "inconclusive" and law["features"] else ""
