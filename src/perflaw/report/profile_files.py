"""Profiles as files of other tools: collapsed stacks, speedscope, pprof, Perfetto, Prometheus' text and OTLP metrics.

All of them hold sums over calls; Perfetto's and OTLP's have the longest calls too. ``perflaw export`` writes them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from struct import pack
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


class _PerfettoTrace:
    """A trace of Perfetto in protobuf: slices on tracks. Field numbers are those of its ``trace.proto``."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.tracks = 0
        """Number of tracks, processes included; each has its number as its identity."""

    def packet(self, content: bytes) -> None:
        """Add a packet of the only sequence; the first one says that it begins."""
        first = _field(13, 1) * (not self.parts)
        self.parts.append(_field(1, content + _field(10, 1) + first))

    def track(self, name: str, process: int = 0, pid: int = 0) -> int:
        """A track of a process, or a new process where none is given."""
        self.tracks += 1
        if process:
            about = _field(2, name.encode()) + _field(5, process)
        else:
            about = _field(3, _field(1, pid) + _field(6, name.encode()))
        self.packet(_field(60, _field(1, self.tracks) + about))
        return self.tracks

    def begin(self, track: int, at: int, name: str, file: str, line: int, notes: Mapping[str, float | str]) -> None:
        """Begin a slice. ``at``: ns. ``notes`` are shown beside it."""
        parts = [_field(9, 1), _field(11, track), _field(23, (name or _UNKNOWN).encode())]
        if file:
            parts.append(_field(33, _field(2, file.encode()) + _field(4, max(line, 0))))
        for key, value in notes.items():
            told = _field(6, value.encode()) if isinstance(value, str) else _double(5, value)
            if isinstance(value, int) and 0 <= value < 1 << 63:
                told = _field(4, value)
            parts.append(_field(4, _field(10, key.encode()) + told))
        self.packet(_field(8, at) + _field(11, b"".join(parts)))

    def end(self, track: int, at: int) -> None:
        """End the innermost open slice of a track."""
        self.packet(_field(8, at) + _field(11, _field(9, 2) + _field(11, track)))


def perfetto(profile: Profile, metric: str, worst: Callable[[Component], Sequence[WorstCall]]) -> bytes:
    """A trace of Perfetto: the call tree with its sums, and the longest calls at the times when they were.

    In the call tree each context is a slice as long as all its calls together, with its callees one after the other. The
    longest calls are those of the functions with the largest own cost, a track for each function; a call that overlaps
    another one is on a track of its own.
    """
    trace = _PerfettoTrace()
    target = profile.runs[0].target
    process = trace.track(f"{target}: sums by calling context, not times", pid=1)
    _add_sums(trace, profile, metric, trace.track(f"call tree: {metric}", process))
    runs = {run.id: run for run in profile.runs}
    processes: dict[str, int] = {}
    for place in (-profile.function_own[metric]).argsort(kind="stable")[:WITH_EXEMPLARS].tolist():
        component = profile.components[place]
        tracks: dict[str, list[tuple[int, int]]] = {}  # of each run: when a track is free again, and its number
        for call in sorted(worst(component), key=lambda one: one.started_ns):
            number = call.run.partition("-")[0]
            run = runs[number]
            if number not in processes:
                # Perfetto takes processes of one id for one; runs may have the same.
                processes[number] = trace.track(f"{run.target}: longest calls of run {number}", pid=len(processes) + 2)
            free = tracks.setdefault(number, [])
            at = next((one for one, (until, _) in enumerate(free) if until <= call.started_ns), len(free))
            if at == len(free):
                free.append((0, trace.track(component.name or _UNKNOWN, processes[number])))
            free[at] = call.started_ns + call.time_ns, free[at][1]
            _add_call(trace, free[at][1], call, _epoch_ns(run.started), component)
    return b"".join(trace.parts)


def _add_sums(trace: _PerfettoTrace, profile: Profile, metric: str, track: int) -> None:
    """The call tree as slices, the callees of a context one after the other, its own cost after them."""
    own = [max(round(cost), 0) for cost in profile.own[metric].tolist()]
    parents, total = profile.parent.tolist(), own.copy()
    callees: list[list[int]] = [[] for _ in own]
    waiting: list[int] = []  # contexts that begin, and ~contexts that end; the last one is next
    for context in range(len(own) - 1, -1, -1):  # callers come before their callees
        parent = parents[context]
        (callees[parent] if parent >= 0 else waiting).append(context)
        if parent >= 0:
            total[parent] += total[context]
    at = _epoch_ns(profile.runs[0].started)
    while waiting:
        context = waiting.pop()
        if context < 0:
            at += own[~context]
            trace.end(track, at)
        elif total[context]:
            one = profile.components[int(profile.component[context])]
            notes = {"calls": int(profile.calls[context]), "own": own[context]}
            trace.begin(track, at, one.name, one.file, one.line, notes)
            waiting += [~context, *callees[context]]


def _add_call(trace: _PerfettoTrace, track: int, call: WorstCall, started: int, component: Component) -> None:
    """A single call with the longest calls within it."""
    begin = started + call.started_ns
    notes = {"call path": " > ".join(call.path), **call.features}
    trace.begin(track, begin, component.name, component.file, component.line, notes)
    open_until = [begin + call.time_ns]
    places: list[int] = []  # the spans that are open
    for place, span in enumerate(call.spans):
        while places and places[-1] != span.parent:
            places.pop()
            trace.end(track, open_until.pop())
        until = begin + span.started_ns + span.time_ns
        trace.begin(track, begin + span.started_ns, span.name, "", 0, {"called in line": span.line})
        open_until.append(min(until, open_until[-1]))
        places.append(place)
    while open_until:
        trace.end(track, open_until.pop())


def _double(number: int, value: float) -> bytes:
    """A field of type double."""
    return _varint(number << 3 | 1) + pack("<d", value)


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
