"""What laws predict at points that were not recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perflaw.api.laws import load_laws
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.check.claims import Claim
    from perflaw.check.forecasts import Question
    from perflaw.types import Forecast, Prediction


@dataclass(frozen=True, slots=True)
class CostForecasts:
    """What laws say at some points."""

    functions: list[Forecast]
    """Forecasts of every law, point by point."""
    whole: list[Prediction]
    """Cost of a whole run at each point; empty for laws of a file, and at points that lack a feature of the runs."""
    per: str
    """The function of which single calls stand for runs; empty where laws are those of runs."""


def predict_costs(laws: str, points: Sequence[Mapping[str, float]], metric: str = "time") -> CostForecasts:
    """Forecasts of every law of a file or an experiment.

    UsageError for a feature that no law has, because it is probably mistyped, and where no law depends on the features.
    """
    from perflaw.check.forecasts import forecast

    forecasts: list[Forecast] = []
    whole: list[Prediction] = []
    per = ""
    for point in points:
        loaded = load_laws(laws, metric, at=point)
        claims, per = loaded.claims, loaded.per
        forecasts += forecast(claims, [_question(laws, claims, point)])
        whole += [loaded.whole] if loaded.whole else []
    if not any(one.features for one in forecasts):
        needed = sorted({", ".join(sorted(claim.names)) for claim in claims if claim.names})
        why = f"laws depend on {'; '.join(needed[:6]) or 'nothing'}"
        raise UsageError(f"no law of {laws} makes a prediction at these points", why, "perflaw annotate")
    return CostForecasts(forecasts, whole, per)


def _question(laws: str, claims: Sequence[Claim], point: Mapping[str, float]) -> Question:
    """What a point asks: a name is a feature, else a function's name with a dot and a feature of its calls."""
    from perflaw.check.forecasts import Question

    of_claim = {claim.component: _feature_names(claim) for claim in claims}
    known = {name for names in of_claim.values() for name in names}
    features: dict[str, float] = {}
    of_calls: dict[str, dict[str, float]] = {}
    for name, value in point.items():
        if name in known:
            features[name] = value
            continue
        owners = {
            (component, feature)
            for component, names in of_claim.items()
            for feature in names
            if name.endswith(f".{feature}") and f".{component}.{feature}".endswith((f".{name}", f"::{name}"))
        }
        if not owners:
            shown = ", ".join(sorted(known)[:8])
            why = f"its features are {shown}" if shown else "every law in it is a constant"
            command = f"perflaw predict {laws} {min(known)}=1e6" if known else "perflaw annotate"
            raise UsageError(f"{name}=…: {laws} has no feature {name!r}", why, command)
        if len(owners) > 1:
            candidates = sorted(".".join(owner) for owner in owners)
            why = f"it may be {', '.join(candidates[:8])}"
            raise UsageError(f"{name}=… is ambiguous", why, f"perflaw predict {laws} {candidates[0]}={value:g}")
        [(component, feature)] = owners
        of_calls.setdefault(component, {})[feature] = value
    return Question(features, of_calls)


def _feature_names(claim: Claim) -> set[str]:
    return {*claim.names, *claim.ranges, *(claim.document or {}).get("features", ())}
