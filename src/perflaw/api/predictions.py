"""What laws predict at points that were not recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perflaw.api.laws import load_laws
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.types import Forecast


def predict_costs(laws: str, points: Sequence[Mapping[str, float]], metric: str = "time") -> tuple[list[Forecast], str]:
    """Forecasts of every law of a file or an experiment, and the function of which single calls stand for runs.

    UsageError for a feature that no law has, because it is probably mistyped, and where no law depends on the features.
    """
    from perflaw.check.forecasts import forecast

    forecasts: list[Forecast] = []
    per = ""
    for point in points:
        loaded = load_laws(laws, metric, at=point)
        claims, per = loaded.claims, loaded.per
        known = {name for claim in claims for name in claim.names | claim.ranges.keys()}
        for claim in claims:
            known |= set((claim.document or {}).get("features", ()))
        for name in point:
            if name not in known:
                features = ", ".join(sorted(known)[:8])
                why = f"its features are {features}" if features else "every law in it is a constant"
                raise UsageError(f"{name}=…: {laws} has no feature {name!r}", why, f"perflaw predict {laws}")
        forecasts += forecast(claims, [point])
    if not any(one.features for one in forecasts):
        needed = sorted({", ".join(sorted(claim.names)) for claim in claims if claim.names})
        why = f"laws depend on {'; '.join(needed[:6]) or 'nothing'}"
        raise UsageError(f"no law of {laws} makes a prediction at these points", why, "perflaw annotate")
    return forecasts, per
