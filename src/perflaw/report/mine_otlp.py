"""Specifications as OTLP metrics: an exponential histogram of durations for every group of call paths.

OpenTelemetry protocol 1.x, JSON encoding: ``ExportMetricsServiceRequest`` with 64-bit numbers as text.
"""

from __future__ import annotations

from typing import Any

from perflaw.errors import DataError
from perflaw.types import Histogram
from perflaw.types.spec_files import MinedSpec, SpecFile
from perflaw.types.specs import PathGroup

Document = dict[str, Any]
NAME = "perflaw.call.duration"
CUMULATIVE = 2


def mine_otlp(file: SpecFile) -> Document:
    """The request; DataError where durations are not known, as of specifications read from a file."""
    if file.specs and not any(one.histograms for one in file.specs):
        why = "files of specifications hold shares and no durations"
        raise DataError("OTLP: no durations", why, "perflaw mine --export otlp (from recordings)")
    points = [_point(one, place) for one in file.specs if one.histograms for place in range(len(one.spec.groups))]
    metric = {
        "name": NAME,
        "description": "Durations of calls by group of call paths, as mined by perflaw",
        "unit": "ns",
        "exponentialHistogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": points},
    }
    resource = {"attributes": [_attribute("service.name", "perflaw")]}
    return {
        "resourceMetrics": [
            {"resource": resource, "scopeMetrics": [{"scope": {"name": "perflaw"}, "metrics": [metric]}]}
        ]
    }


def _point(one: MinedSpec, place: int) -> Document:
    group, histogram = one.spec.groups[place], one.histograms[place]
    return {
        "attributes": _attributes(one, group),
        "startTimeUnixNano": str(one.span_ns[0]),
        "timeUnixNano": str(one.span_ns[1]),
        **_buckets(histogram),
    }


def _attributes(one: MinedSpec, group: PathGroup) -> list[Document]:
    """The function, the group by its id, the clock; never a call path."""
    values = {"code.function.name": one.spec.component, "spec_group": group.id, "clock": one.spec.metric}
    return [_attribute(name, value) for name, value in values.items()]


def _attribute(name: str, value: str) -> Document:
    return {"key": name, "value": {"stringValue": value.encode("utf-8", "backslashreplace").decode()}}


def _buckets(histogram: Histogram) -> Document:
    counts = histogram.counts.tolist()
    return {
        "count": str(sum(counts) + histogram.zeros),
        "scale": histogram.scale,
        "zeroCount": str(histogram.zeros),
        "positive": {"offset": histogram.offset, "bucketCounts": [str(calls) for calls in counts]},
    }
