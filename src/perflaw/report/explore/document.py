"""``perflaw.explore/1``: the result of a study as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from perflaw.report.documents import law_document
from perflaw.types.explored import Choice, Estimate, Explored, FrontPoint, Importance, Notice, Surface
from perflaw.types.studies import Trial

Document = dict[str, Any]


def explore_document(found: Explored, seed: int = 0) -> Document:
    """Return the document; ``seed`` is what the study was begun with."""
    shares = [(one, share) for one in found.importance for share in one.shares]
    return {
        "schema": "perflaw.explore/1",
        "study": found.study.name,
        "digest": found.study.digest,
        "policy": found.study.policy,
        "seed": seed,
        "unfinished": found.unfinished,
        "ended": found.ended,
        "left": dict(found.left),
        "objective": {"metric": found.objective.name, "goal": found.objective.goal} if found.objective else None,
        "trials": [trial_document(one) for one in found.trials],
        "best": _choice(found.best),
        "robust": _choice(found.robust),
        "pareto": [_front(one) for one in found.pareto],
        "importance": [_importance(one) for one in found.importance],
        "interactions": [
            {"metric": one.metric, **asdict(share)} for one, share in shares if len(share.knobs) > 1 and share.sure
        ],
        "warnings": [_notice(one) for one in found.notices],
        "laws": {one.metric.name: law_document(one.law) for one in found.laws},
        "surface": _surface(found.surface),
    }


def trial_document(one: Trial) -> Document:
    """A trial with all that is known of it."""
    return {
        "number": one.number,
        "configuration": dict(one.configuration),
        "metrics": dict(one.metrics),
        "scatter": dict(one.scatter),
        "n": one.n,
        "valid": one.valid,
        "reason": one.reason,
        "stopped": one.stopped,
        "contaminated": one.contaminated,
        "repetition": one.repetition,
        "why": one.why,
        "run": one.run,
        "started": one.started,
        "seconds": one.seconds,
        "measured_s": one.measured_s,
        "verified": dict(one.verified),
        "conditions": asdict(one.conditions),
    }


def _choice(one: Choice | None) -> Document | None:
    if one is None:
        return None
    return {
        "configuration": dict(one.configuration),
        "metrics": {name: estimate.value for name, estimate in one.metrics.items()},
        "intervals": _intervals(one.metrics),
        "measured": dict(one.measured),
        "trials": list(one.trials),
        "within_margin": {"margin": one.margin, "probability": one.probability},
        "why": one.why,
    }


def _front(one: FrontPoint) -> Document:
    return {
        "configuration": dict(one.configuration),
        "metrics": {name: estimate.value for name, estimate in one.metrics.items()},
        "intervals": _intervals(one.metrics),
        "trials": list(one.trials),
        "probability": one.probability,
    }


def _intervals(metrics: Mapping[str, Estimate]) -> Document:
    return {name: [estimate.low, estimate.high] for name, estimate in metrics.items()}


def _importance(one: Importance) -> Document:
    return {
        "metric": one.metric,
        "logarithm": one.logarithm,
        "shares": [asdict(share) for share in one.shares],
        "rest": one.rest,
        "noise": one.noise,
        "p": one.p,
        "exact": one.exact,
        "reason": one.reason,
    }


def _notice(one: Notice) -> Document:
    return {"kind": one.kind, "words": one.words, "trials": list(one.trials)}


def _surface(one: Surface | None) -> Document | None:
    if one is None:
        return None
    return asdict(one)
