"""``perflaw.trend/1``: clusters of locations with their laws (``docs/json.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.report.documents import law_document, predictions_document
from perflaw.report.trend.places import places_of
from perflaw.report.trend.words import TrendView
from perflaw.types import Cluster, Overtake, PowerLaw

Document = dict[str, Any]


def trend_document(view: TrendView) -> Document:
    """Every cluster, the costliest first; numbers that JSON does not have are for the encoder to leave out."""
    trends = view.trends
    places = places_of(view.matrix.locations)
    names = [location.name for location in view.matrix.locations]
    told = view.peak
    return {
        "schema": "perflaw.trend/1",
        "at": dict(trends.at),
        "runs": list(view.matrix.runs),
        "features": list(trends.features),
        "constant": trends.constant,
        "constant_share": trends.constant_share,
        "zero": trends.zero,
        "alpha": trends.alpha,
        "sigma": trends.sigma,
        "left_out": list(view.left_out),
        "notes": list(trends.notes),
        "clusters": [{**_cluster(one, names), "places": places.told(one.members, told)} for one in trends.clusters],
    }


def _cluster(one: Cluster, names: list[str]) -> Document:
    return {
        "rank": one.rank,
        "predicted_rank": one.predicted_rank,
        "representative": one.representative,
        "is_feature": one.is_feature,
        "features": list(one.features),
        "locations": [names[row] for row in one.members],
        "share": one.share,
        "max_share": one.max_share,
        "max_cost": one.max_cost,
        "costly": one.costly,
        "law": law_document(one.law) if one.law else None,
        "laws": {name: law_document(law) for name, law in one.laws.items()},
        "powers": {name: _power(power) for name, power in one.powers.items()},
        "predicted": predictions_document([one.predicted])[0] if one.predicted else None,
        "overtakes": [_overtake(other) for other in one.overtakes],
    }


def _power(one: PowerLaw) -> Mapping[str, Any]:
    return {
        "coefficient": one.coefficient,
        "coefficient_low": one.coefficient_low,
        "coefficient_high": one.coefficient_high,
        "exponent": one.exponent,
        "exponent_low": one.exponent_low,
        "exponent_high": one.exponent_high,
        "r2": one.r2,
        "n": one.n,
        "zeros": one.zeros,
        "predictions": predictions_document(one.predictions),
    }


def _overtake(one: Overtake) -> Mapping[str, Any]:
    return {
        "rank": one.rank,
        "representative": one.representative,
        "feature": one.feature,
        "at": one.at,
        "low": one.low,
        "high": one.high,
    }
