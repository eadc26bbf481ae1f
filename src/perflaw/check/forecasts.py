"""Forecasts of laws at a point: the cost with an interval for the mean and one for a new run or call, or a refusal.

A twin holds intervals at 2 and 10 times the 95th percentile of the data. Nearer points get those at twice (an upper
bound of theirs); between and beyond, the logarithm of the relative width grows with that of the distance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any, Literal

import numpy as np

from perflaw.check.claims import Claim, claim_of_document, clause_names
from perflaw.confidence import HIGH, LOW
from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate, truth
from perflaw.types import NOT_ASKED, Component, Forecast

Point = Mapping[str, float]
"""Feature → value."""
Document = Mapping[str, Any]
"""A law in the JSON twin."""
Limits = tuple[float, float, float, float]
"""Limits of the mean and of a new run, each divided by the mean: low, high, low, high."""

MAX_DISTANCE = 10.0
"""Beyond so many times the data a law of doubtful shape refuses."""
MISFIT = 0.01
"""p of the lack-of-fit test below which a law's shape is doubtful."""


@dataclass(frozen=True, slots=True)
class Question:
    """A point at which laws are asked."""

    features: Point
    """Features of runs, and of calls of all functions whose feature of the name is not one of their own."""
    of_calls: Mapping[str, Point] = field(default_factory=dict)
    """Component → features of its calls."""

    def of_call(self, claim: Claim) -> dict[str, float]:
        """The values of the features of a claim's calls."""
        shared = {name: value for name, value in self.features.items() if name not in claim.own_names}
        return {**shared, **self.of_calls.get(claim.component, {})}


def forecast(claims: Sequence[Claim], questions: Sequence[Question]) -> list[Forecast]:
    """Forecasts of all laws that depend on features of the points alone, point by point.

    At each point whole runs come before single calls, and the largest cost first. A function without one is among them,
    last and with the reason: its law was not learnt, or depends on features that the point does not name. The law of a
    call that has a feature of the run's name as its own is not answered by that of the run.
    """
    forecasts: list[Forecast] = []
    for question in questions:
        point = question.features
        here: list[Forecast] = []
        unanswered: list[Forecast] = []
        for claim in claims:
            # A claim has a law of a call, and may have one of a whole run in its document.
            document = claim.document or {}
            run_law = document.get("run_law")
            about_runs = run_law and run_law["range"].keys() & point.keys()
            of_run = bool(run_law and about_runs and set(run_law["features"]) <= point.keys())
            if run_law and of_run:
                scope = {"condition": "", "probability": 1.0, "law": run_law}
                here.append(_forecast(claim_of_document({**document, "scopes": [scope], "check": None}), point, "run"))
            reasons = (scope["law"]["reason"] for scope in document.get("scopes", ()))
            failure = next((reason for reason in reasons if reason.startswith("not learnt")), "")
            given = question.of_call(claim)
            constant = bool(given) and not about_runs
            of_call = not failure and claim.names <= given.keys() and bool(claim.names or constant)
            if of_call:
                own = question.of_calls.get(claim.component, {})
                here.append(_forecast(claim, given, "call", own))
            needed = (claim.names or set(run_law["features"] if run_law else ())) - given.keys()
            own_only = (claim.names - given.keys()) & point.keys()  # the point names them, but means those of the run
            mistaken = not failure and bool(own_only) and own_only == claim.names - given.keys()
            if not of_call and (not of_run or mistaken):
                missing = f"its law needs {', '.join(sorted(needed))}" if needed else "its law is a constant"
                message = failure or f"{NOT_ASKED}: {missing}"
                if mistaken:
                    name = min(own_only)
                    message = f"{name} of a call is not that of the run: FUNCTION.{name}=… sets it"
                component = Component(claim.component, document.get("file", ""), document.get("line", 0))
                none = (None,) * 5
                unanswered.append(Forecast(component, claim.metric, "call", {}, *none, "", False, message))
        forecasts += sorted(here, key=lambda one: (one.of == "call", -(one.mean or 0.0), one.component.name))
        forecasts += sorted(unanswered, key=lambda one: one.component.name)
    return forecasts


def _forecast(claim: Claim, point: Point, of: Literal["run", "call"], own: Collection[str] = ()) -> Forecast:
    """A law's forecast; the ``own`` features are told with the function's name."""
    document = claim.document or {}
    component = Component(claim.component, document.get("file", ""), document.get("line", 0))
    # A constant law is asked at the whole point.
    asked = {name: value for name, value in point.items() if name in claim.names} or point
    features = {f"{claim.component}.{name}" if name in own else name: value for name, value in asked.items()}

    def refuse(reason: str) -> Forecast:
        none = (None, None, None, None, None)
        return Forecast(component, claim.metric, of, features, *none, "", False, f"no forecast: {reason}")

    values = {name: np.array([point[name]]) for name in claim.names}
    number = next(
        (
            number
            for number, clause in enumerate(claim.clauses)
            if clause.condition is None or bool(np.all(truth(evaluate(clause.condition, values))))
        ),
        None,
    )
    if number is None:
        return refuse("none of the law's conditions is true here")
    clause, scopes = claim.clauses[number], (claim.document or {}).get("scopes") or []
    start = sum(len(before.parts) for before in claim.clauses[:number])
    laws = [scope["law"] for scope in scopes[start : start + len(clause.parts)]]  # none for text alone
    own = {name: values[name] for name in clause_names(clause)}
    mean = float(np.ravel(distributions.mean(clause, own))[0]) * claim.factor
    if not np.isfinite(mean):
        return refuse("the law has no finite value here")
    message, distance = _outside(claim, point)
    doubt = next((reason for law in laws if (reason := _doubt(law))), "")
    if distance > MAX_DISTANCE and doubt:
        return refuse(f"{message}, and {doubt}")
    mean = max(mean, 0.0)
    mean_low: float | None
    mean_high: float | None
    new_low: float | None
    new_high: float | None
    widest = widest_limits(laws, point)
    if widest:
        mean_low, mean_high, new_low, new_high = (mean * limit for limit in widest)
        note = ""
    else:
        ends = np.ravel([distributions.quantile(clause, p, own) for p in (LOW, HIGH)]) * claim.factor
        mean_low = mean_high = None
        new_low, new_high = (max(float(end), 0.0) if np.isfinite(end) else None for end in ends)
        note = "text alone: the interval is the scatter that the law states"
    return Forecast(
        component,
        claim.metric,
        of,
        features,
        mean,
        mean_low,
        mean_high,
        new_low,
        new_high,
        condition=claim.condition(number),
        inside=not message,
        message="; ".join(filter(None, [message, note])),
    )


def _outside(claim: Claim, point: Point) -> tuple[str, float]:
    """A sentence about the feature that is farthest beyond the data, and how many times it is; ("", 0) inside."""
    farthest = ("", 0.0)
    for name in sorted(claim.names & claim.ranges.keys()):
        low, high = claim.ranges[name]
        value = point[name]
        if low <= value <= high:
            continue
        times = value / high if value > high > 0 else low / value if 0 < value < low else 1.0 + abs(value - low)
        if times > farthest[1]:
            farthest = f"{name} = {value:,.6g} is outside the range of the data ({low:,.6g}–{high:,.6g})", times
    return farthest


def _doubt(law: Document) -> str:
    """Why a law is no forecast far beyond its data; empty if it is one."""
    p = law.get("lack_of_fit")
    if p is not None and p < MISFIT:
        return "the law's shape does not fit its data"
    return "the data do not decide how it grows" if law["verdict"] == "inconclusive" and law["features"] else ""


def widest_limits(laws: Sequence[Document], point: Point) -> Limits | None:
    """Limits at a point: the widest of those of a mixture's laws; None if none is known."""
    known = [limits for law in laws if (limits := _law_limits(law, point))]
    if not known:
        return None
    lows, highs, new_lows, new_highs = zip(*known, strict=True)
    return min(lows), max(highs), min(new_lows), max(new_highs)


def _law_limits(law: Document, point: Point) -> Limits | None:
    """Limits of one law, from those of its predictions."""
    known: list[tuple[float, Limits]] = []
    for one in law["predictions"]:
        ends = [one[name] for name in ("mean_low", "mean_high", "new_low", "new_high")]
        if not one["mean"] or None in ends:
            continue
        relative = (ends[0] / one["mean"], ends[1] / one["mean"], ends[2] / one["mean"], ends[3] / one["mean"])
        if all(one["features"].get(name) == point.get(name) for name in law["features"]):
            return relative
        known.append((_log_distance(law, one["features"]), relative))
    if not known:
        return None
    (near, first), (far, last) = min(known), max(known)
    at = _log_distance(law, point)
    if at <= near or near == far:
        return first
    part = (at - near) / (far - near)
    limits = []
    for a, b in zip(first, last, strict=True):
        # Between or beyond two known limits the logarithm is linear in that of the distance, and never shrinks.
        if a <= 0 or b <= 0:
            limits.append(min(a, b) if a < 1 else max(a, b))
        elif abs(log(b)) >= abs(log(a)):
            limits.append(exp(max(-60.0, min(60.0, log(a) + (log(b) - log(a)) * part))))
        else:
            limits.append(a)
    low, high, new_low, new_high = limits
    return low, high, new_low, new_high


def _log_distance(law: Document, point: Mapping[str, float | None]) -> float:
    """Log of how many times the point is beyond the largest values of the data; negative inside."""
    distances = [
        log(max(float(point[name] or 0.0), 1e-300) / ends[1])
        for name, ends in law["range"].items()
        if name in law["features"] and ends[1] and ends[1] > 0 and point.get(name) is not None
    ]
    return max(distances, default=0.0)
