"""Box plots of consistency per merge step (Figure 5): call paths on the left, data points on the right, beside chance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from perflaw.report.merge_table import telling
from perflaw.report.mine_words import share_text
from perflaw.types import Consistency
from perflaw.types.spec_files import MergeStep

Json = dict[str, Any]


def merges_data(steps: Sequence[MergeStep]) -> Json:
    """Two series of boxes, one of call paths and one of calls; what differs most by name."""
    told = [telling(step.found) for step in steps]
    return {
        "steps": [step.name for step in steps],
        "series": [
            {
                "name": "call paths",
                "boxes": [box([one.paths for one in some], [one.chance_paths for one in some]) for some in told],
            },
            {
                "name": "data points",
                "boxes": [box([one.points for one in some], [one.chance_points for one in some]) for some in told],
            },
        ],
        "plain": sum(len(step.found) - len(some) for step, some in zip(steps, told, strict=True)),
        "worst": [_worst(some, step.name) for step, some in zip(steps, told, strict=True) if some],
        "missing": sorted({name for step in steps for name in step.missing}),
        "unsettled": sorted({name for step in steps for name in step.unsettled}),
    }


def box(values: Sequence[float], chance: Sequence[float]) -> Json | None:
    """Quartiles, Tukey's whiskers, outliers, and the median level of chance; None without values.

    >>> box([0.5, 0.9, 1.0, 1.0, 1.0], [0.4, 0.5, 0.6, 0.6, 0.6])["quartiles"]
    [0.9, 1.0, 1.0]
    """
    if not values:
        return None
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    reach = 1.5 * (quartiles[2] - quartiles[0])
    inside = [one for one in values if quartiles[0] - reach <= one <= quartiles[2] + reach]
    return {
        "n": len(values),
        "quartiles": quartiles,
        "whiskers": [min(inside), max(inside)],
        "outliers": sorted(one for one in values if one not in inside),
        "chance": statistics.median(chance),
        "text": share_text(quartiles[1]),
    }


def _worst(found: Sequence[Consistency], name: str) -> Json:
    """The function of which the fewest calls agree."""
    least = min(found, key=lambda one: (one.points, one.component))
    return {
        "step": name,
        "function": least.component,
        "points": share_text(least.points),
        "paths": share_text(least.paths),
    }
