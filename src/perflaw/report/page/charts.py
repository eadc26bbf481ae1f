"""The charts of the page: numbers only, deflated one by one.

As plain text 500 of them would be 8 MB, and the page looks at one at a time.
"""

from __future__ import annotations

import base64
import json
import math
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perflaw.laws.printing import condition_text, learnt_text
from perflaw.laws.trees import distribution_tree, expression_tree
from perflaw.types import Annotation, Breakpoint, Curve, Law, Points, Scope
from perflaw.types.documents import finite

Json = dict[str, Any]

# What one unit of a metric is on the charts' axes: the chart writes 3 µs itself when it is given seconds.
_AXES = {"ns": (1e-9, "s"), "bytes": (1.0, "B")}

_FULL = 100
"""As many components, from the top of the ranking, keep all their points."""
_SHARED = 50_000
"""Points shared by the components below them, so that thousands of functions still make a page that opens."""
_LEAST = 60
"""Points each of them keeps however many there are."""


def charts(annotations: Sequence[Annotation], runs: Mapping[str, int]) -> list[str]:
    """One packed chart an annotation; ``runs`` gives each run its number."""
    fewer = max(_LEAST, _SHARED // max(1, len(annotations) - _FULL))
    return [
        packed(_chart(a, runs, len(a.points.y) if a.points and i < _FULL else fewer)) for i, a in enumerate(annotations)
    ]


def _chart(annotation: Annotation, runs: Mapping[str, int], keep: int) -> Json:
    """Numbers behind the charts of one component, with the digits that a screen resolves."""
    scale, unit = _AXES.get(annotation.metric.unit, (1.0, ""))
    points, law = annotation.points, annotation.scopes[0].law if annotation.scopes else None
    drawn: Json = {"scale": scale, "unit": unit, "metric": annotation.metric.name, "metricUnit": annotation.metric.unit}
    drawn["scopes"] = [_scope(scope) for scope in annotation.scopes]
    drawn["breakpoints"] = [_breakpoint(one) for one in annotation.breakpoints]
    drawn["curves"] = [_curve(curve, law) for curve in annotation.curves]
    drawn["constant"] = _constant(law) if law and not annotation.curves else None
    drawn["noise"] = {"distribution": law.noise.distribution, "scale": finite(law.noise.scale)} if law else None
    if points:
        drawn |= _evidence(points, runs, keep)
    return drawn


def _scope(scope: Scope) -> Json:
    """What the page needs to ask a law itself: its texts, where it was learnt, and what else it may be."""
    law = scope.law
    return {
        "condition": condition_text(scope.condition),
        "where": expression_tree(scope.condition),
        "probability": finite(scope.probability),
        "expression": learnt_text(law.expression),
        "tree": distribution_tree(law.expression),
        "range": {name: [finite(low), finite(high)] for name, (low, high) in law.range.items()},
        "breakpoints": [_breakpoint(one) for one in law.breakpoints],
        "alternatives": [
            {
                "family": other.family,
                "expression": learnt_text(other.expression),
                "tree": distribution_tree(other.expression),
            }
            for other in law.alternatives
        ],
    }


def _breakpoint(one: Breakpoint) -> Json:
    return {"feature": one.feature, "value": finite(one.value), "low": finite(one.low), "high": finite(one.high)}


def _evidence(points: Points, runs: Mapping[str, int], keep: int) -> Json:
    """At most ``keep`` points, drawn by lot: every n-th point could be of the same few runs."""
    n = len(points.y)
    kept = range(n) if n <= keep else sorted(random.Random(0).sample(range(n), keep))
    return {
        "of": n,
        "features": {name: shortened([values[i] for i in kept], 5) for name, values in points.features.items()},
        "categories": {name: [values[i] for i in kept] for name, values in points.categories.items()},
        "y": shortened([points.y[i] for i in kept], 4),
        "run": [runs[points.run[i]] for i in kept],
        "residual": shortened([points.residual[i] for i in kept], 3),
    }


def _curve(curve: Curve, law: Law | None) -> Json:
    known = law.range.get(curve.feature) if law else None
    columns = {"mean": curve.mean, "meanLow": curve.mean_low, "meanHigh": curve.mean_high}
    columns |= {"newLow": curve.new_low, "newHigh": curve.new_high}
    lists = {name: shortened(values, 4) for name, values in columns.items()}
    return {"feature": curve.feature, "range": list(known) if known else None, "x": shortened(curve.x), **lists}


def _constant(law: Law) -> Json | None:
    """The horizontal line of a law without features, with its bands where it predicts."""
    if law.features:
        return None
    if not law.predictions:
        return {"mean": finite(law.coefficient)}
    p = law.predictions[0]
    ends = {"mean": p.mean, "meanLow": p.mean_low, "meanHigh": p.mean_high, "newLow": p.new_low, "newHigh": p.new_high}
    return {name: finite(value) for name, value in ends.items()}


def shortened(values: Iterable[float | None], digits: int = 5) -> list[float | None]:
    """Numbers with few digits, whole ones without a point: half the bytes, the same pixels."""
    return [_digits(value, digits) for value in values]


def _digits(value: float | None, digits: int) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def packed(chart: Json) -> str:
    """A chart as base64 of deflated JSON; the page inflates it when its row is selected."""
    plain = json.dumps(chart, allow_nan=False, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(plain, 9)).decode("ascii")
