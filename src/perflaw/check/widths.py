"""Limits of predictions over their means, at points between and beyond those that a twin holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

Point = Mapping[str, float]
Document = Mapping[str, Any]
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
