"""Profiles as files of other tools: collapsed stacks, speedscope, pprof, Prometheus' text and OTLP metrics.

All of them hold sums over calls. ``perflaw export`` writes them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from perflaw.types.documents import Document
from perflaw.types.profiles import Profile
from perflaw.types.recordings import Component, WorstCall

CALLS: Final = "calls"
"""Name of the number of calls beside the costs of metrics."""
_UNKNOWN: Final = "(unnamed)"
_SPEEDSCOPE_UNITS: Final = {"ns": "nanoseconds", "bytes": "bytes"}
_UNITS_OF_UCUM: Final = {"ns": "ns", "bytes": "By"}
"""Our units → those of OTLP, which are the Unified Code for Units of Measure."""
_CUMULATIVE: Final = 2
WITH_EXEMPLARS: Final = 20
"""Functions, by their own time, whose longest calls are exemplars."""


def stacks(profile: Profile, metric: str) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each context with a cost of its own: its functions from the outermost on, and that cost."""
    paths: list[tuple[int, ...]] = []
    for parent, component, cost in zip(
        profile.parent.tolist(), profile.component.tolist(), profile.own[metric].tolist(), strict=True
    ):
        paths.append((*(paths[parent] if parent >= 0 else ()), component))
        if round(cost) > 0:
            yield paths[-1], round(cost)


def collapsed(profile: Profile, metric: str) -> str:
    """Collapsed stacks, as flamegraph.pl and inferno read them: ``a;b;c 1200``, a context a line."""
    names = [re.sub(r"[;\s]+", "_", one.name) or _UNKNOWN for one in profile.components]
    return "".join(f"{';'.join(names[one] for one in path)} {cost}\n" for path, cost in stacks(profile, metric))


def speedscope(profile: Profile, metric: str) -> str:
    """A sampled profile in the JSON of speedscope, a sample for each context with its own cost as the weight."""
    samples, weights = [], []
    for path, cost in stacks(profile, metric):
        samples.append(path)
        weights.append(cost)
    frames = [
        {"name": one.name or _UNKNOWN, **({"file": one.file, "line": one.line} if one.file else {})}
        for one in profile.components
    ]
    unit = _SPEEDSCOPE_UNITS.get(profile.metrics[metric].unit, "none")
    name = f"{profile.runs[0].target}: {metric}"
    shown = {
        "type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": sum(weights), "samples": samples,
        "weights": weights,
    }  # fmt: skip
    schema = "https://www.speedscope.app/file-format-schema.json"
    document = {"$schema": schema, "name": name, "exporter": "perflaw", "shared": {"frames": frames}}
    return json.dumps({**document, "profiles": [shown]}, ensure_ascii=False)


class _Strings:
    """The table of texts of a pprof profile; the first is empty."""

    def __init__(self) -> None:
        self.places = {"": 0}

    def place(self, text: str) -> int:
        """Number of a text, which is added if it is new."""
        return self.places.setdefault(text, len(self.places))


def pprof(profile: Profile) -> bytes:
    """A profile of pprof, gzipped protobuf, with calls and the own costs in all metrics as its sample types.

    Field numbers are those of pprof's ``profile.proto``.
    """
    strings, parts = _Strings(), []
    kinds = [(CALLS, "count")]
    kinds += [(one.name, _SPEEDSCOPE_UNITS.get(one.unit, "count")) for one in profile.metrics.values()]
    for name, unit in kinds:
        parts.append(_field(1, _field(1, strings.place(name)) + _field(2, strings.place(unit))))
    paths: list[tuple[int, ...]] = []
    rows = zip(profile.parent.tolist(), profile.component.tolist(), profile.calls.tolist(), strict=True)
    for context, (parent, component, calls) in enumerate(rows):
        paths.append((component + 1, *(paths[parent] if parent >= 0 else ())))  # pprof begins with the innermost
        values = [calls, *(max(round(float(profile.own[name][context])), 0) for name in profile.metrics)]
        if any(values):
            parts.append(_field(2, _packed(1, paths[-1]) + _packed(2, values)))
    for number, one in enumerate(profile.components, 1):
        line = _field(1, number) + _field(2, max(one.line, 0))
        parts.append(_field(4, _field(1, number) + _field(4, line)))
        named = strings.place(one.name or _UNKNOWN)
        function = _field(1, number) + _field(2, named) + _field(3, named) + _field(4, strings.place(one.file))
        parts.append(_field(5, function + _field(5, max(one.line, 0))))
    default = strings.place("time" if "time" in profile.metrics else CALLS)
    parts += [_field(6, text.encode()) for text in strings.places]
    parts += [_field(9, _epoch_ns(profile.runs[0].started)), _field(14, default)]
    return gzip.compress(b"".join(parts), mtime=0)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a message of Protocol Buffers."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _packed(number: int, values: Sequence[int]) -> bytes:
    return _field(number, b"".join(map(_varint, values)))


def prometheus(profile: Profile) -> str:
    """Calls and own costs of functions in Prometheus' text format; time in seconds, as its rules of naming want."""
    families = [("perflaw_calls_total", "Calls of recorded functions.", profile.function_calls.tolist(), 1.0)]
    for name, metric in profile.metrics.items():
        unit, factor = ("_seconds", 1e-9) if metric.unit == "ns" else ("_bytes" * (metric.unit == "bytes"), 1.0)
        base = re.sub(r"\W", "_", name).removesuffix("_bytes").removesuffix("_total")
        words = f"Cost of recorded functions without their callees: {name}."
        families.append((f"perflaw_own_{base}{unit}_total", words, profile.function_own[name].tolist(), factor))
    lines = []
    for name, words, values, factor in families:
        lines += [f"# HELP {name} {words}", f"# TYPE {name} counter"]
        for one, value in zip(profile.components, values, strict=True):
            labels = {"function": one.name, "file": one.file, "target": profile.runs[0].target}
            told = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items() if text)
            lines.append(f"{name}{{{told}}} {max(value, 0) * factor:.12g}")
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def otlp_metrics(profile: Profile, worst: Callable[[Component], Sequence[WorstCall]]) -> Document:
    """OTLP metrics as JSON: counters of calls and own costs of functions; the longest calls are exemplars of their time."""
    started = _epoch_ns(profile.runs[0].started)
    times = {"startTimeUnixNano": str(started), "timeUnixNano": str(started + profile.runs[0].span_ns)}
    metrics = [_counter("perflaw.calls", "{call}", profile.function_calls.tolist(), profile.components, times, {})]
    for name, metric in profile.metrics.items():
        exemplars: dict[Component, list[Document]] = {}
        if name == "time":
            for place in (-profile.function_own[name]).argsort(kind="stable")[:WITH_EXEMPLARS].tolist():
                one = profile.components[place]
                exemplars[one] = [_exemplar(call, started) for call in worst(one)]
        unit, own = _UNITS_OF_UCUM.get(metric.unit, "1"), profile.function_own[name].tolist()
        metrics.append(_counter(f"perflaw.own.{name}", unit, own, profile.components, times, exemplars))
    resource = {"attributes": [_attribute("service.name", profile.runs[0].target)]}
    scope: Document = {"scope": {"name": "perflaw"}, "metrics": metrics}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}


def _exemplar(call: WorstCall, started: int) -> Document:
    """A single call: its time, when it began, and its features."""
    told = [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"doubleValue": value}}
        for key, value in call.features.items()
    ]
    when = {"timeUnixNano": str(started + call.started_ns), "asInt": str(call.time_ns)}
    return {**when, "filteredAttributes": [*told, _attribute("perflaw.call_path", " > ".join(call.path))]}


def _counter(
    name: str,
    unit: str,
    values: Sequence[float],
    components: Sequence[Component],
    times: Mapping[str, str],
    exemplars: Mapping[Component, list[Document]],
) -> Document:
    points = []
    for one, value in zip(components, values, strict=True):
        attributes = [_attribute("code.function.name", one.name)]
        attributes += [_attribute("code.file.path", one.file)] if one.file else []
        point: Document = {**times, "attributes": attributes, "asInt": str(max(round(value), 0))}
        points.append({**point, **({"exemplars": exemplars[one]} if exemplars.get(one) else {})})
    summed = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}
    return {"name": name, "unit": unit, "sum": summed}


def _attribute(key: str, text: str) -> Document:
    return {"key": key, "value": {"stringValue": text}}


def _epoch_ns(started: str) -> int:
    """A run's start in ns since 1970; 0 where it is not known."""
    try:
        return round(datetime.fromisoformat(started).timestamp() * 1000) * 10**6
    except ValueError:
        return 0
