"""Durations of a function as bars on a logarithmic axis, one colour a behaviour, with the borders between clusters."""

from __future__ import annotations

import math
from typing import Any

from perflaw.report.quantity import count, quantity
from perflaw.types import Histogram
from perflaw.types.spec_files import MinedSpec

Json = dict[str, Any]
BARS = 120
"""Bars at most; buckets are put together for fewer."""


def histogram_data(mined: MinedSpec) -> Json | None:
    """Bars by group, None where the durations themselves are not known."""
    spans = [(h.scale, h.offset, h.offset + h.counts.size) for h in mined.histograms if h.counts.size]
    if not spans:
        return None
    scale = min(scale for scale, _, _ in spans)
    low = min(start >> (own - scale) for own, start, _ in spans)
    high = max(((end - 1) >> (own - scale)) + 1 for own, _, end in spans)
    while high - low > BARS:
        scale, low, high = scale - 1, low >> 1, ((high - 1) >> 1) + 1
    rows = [_bars(h, scale, low, high) for h in mined.histograms]
    zeros = sum(h.zeros for h in mined.histograms)
    width = math.ldexp(1.0, -scale)
    return {
        "low": low * width,
        "width": width,
        "groups": rows,
        "borders": [
            {"at": math.log2(one), "text": quantity(one, mined.spec.unit)} for one in mined.spec.borders if one > 0
        ],
        "ticks": _ticks(low * width, high * width, mined.spec.unit),
        "zeros": count(zeros) if zeros else "",
    }


def _bars(h: Histogram, scale: int, low: int, high: int) -> list[int]:
    """Calls in each bar."""
    bars = [0] * (high - low)
    for place, calls in enumerate(h.counts.tolist()):
        if calls:
            bars[((h.offset + place) >> (h.scale - scale)) - low] += calls
    return bars


def _ticks(low: float, high: float, unit: str) -> list[Json]:
    """Round numbers on the axis, in binary logarithms."""
    decades = range(math.floor(low * math.log10(2)), math.ceil(high * math.log10(2)) + 1)
    steps = (1,) if len(decades) > 4 else (1, 3) if len(decades) > 2 else (1, 2, 5)
    values = [step * 10.0**power for power in decades for step in steps]
    return [
        {"at": math.log2(value), "text": quantity(value, unit)} for value in values if low <= math.log2(value) <= high
    ]
