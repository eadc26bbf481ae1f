"""google-benchmark: ``--benchmark_out=FILE.json`` or ``--benchmark_format=json``. Arguments stand in the names."""

from __future__ import annotations

import re

from perflaw.documents import DocumentNode
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter, parameter

UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds in each unit of time the tool writes."""

TIMES = ("real_time", "cpu_time")
"""Its two clocks, per iteration; the first is learnt by default."""

_OWN = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "error_occurred", "error_message", "label",
    "aggregate_name", "aggregate_unit", "skipped", "skip_message", "cpu_coefficient", "real_coefficient", "big_o", "rms",
}  # fmt: skip
"""Fields that are no counters of the person's."""

_SETTING = re.compile(r"(repeats|min_time|min_warmup_time|iterations):|(real_time|manual_time|process_time)$")
"""Parts of a name that say how it was measured."""

_SUFFIX = re.compile(r"_(mean|median|stddev|cv|min|max|BigO|RMS)$")
"""Aggregates by name, in files of versions before 1.5, which do not say ``run_type``."""


def recognises(document: DocumentNode) -> bool:
    """Whether the document is google-benchmark's."""
    value = document.value
    return isinstance(value, dict) and {"benchmarks", "context"} <= value.keys()


def read(document: DocumentNode) -> Benchmarks:
    """Repetitions as rows, responses ``real_time`` (learnt by default), ``cpu_time`` and user counters."""
    groups: dict[str, list[DocumentNode]] = {}
    for benchmark in document.child("benchmarks").items():
        groups.setdefault(_run_name(benchmark), []).append(benchmark)
    cases = tuple(_case(name, row) for name, group in groups.items() for row in _rows(group))
    version = document.child("context").child("library_version").value
    return Benchmarks(document.source.file, f"google-benchmark {version or ''}".strip(), cases, TIMES[0])


def _rows(group: list[DocumentNode]) -> list[DocumentNode]:
    """Repetitions of one benchmark; where only aggregates were reported, their median, else their mean."""
    kinds = [_aggregate(benchmark) for benchmark in group]
    wanted = next((kind for kind in (None, "median", "mean") if kind in kinds), None)
    return [benchmark for benchmark, kind in zip(group, kinds, strict=True) if kind == wanted]


def _run_name(benchmark: DocumentNode) -> str:
    """The name without that of an aggregate."""
    run_name = benchmark.child("run_name")
    return run_name.text() if run_name.value is not None else _SUFFIX.sub("", benchmark.child("name").text())


def _aggregate(benchmark: DocumentNode) -> str | None:
    """Name of the aggregate, None of a single run."""
    if benchmark.child("run_type").value == "aggregate":
        return benchmark.child("aggregate_name").text()
    found = _SUFFIX.search(benchmark.child("name").text())
    return found[1] if found and benchmark.child("run_type").value is None else None


def _case(run_name: str, benchmark: DocumentNode) -> Case:
    name, parameters = parse_name(run_name)
    failed = benchmark.child("error_occurred").value or benchmark.child("skipped").value
    counters = {
        key: value
        for key, value in (
            (key, parameter(value)) for key, value in benchmark.mapping_value().items() if key not in _OWN
        )
        if isinstance(value, float)
    }
    if failed:
        return Case(name, parameters, {}, "ns", counters)
    scale = _scale(benchmark.child("time_unit"))
    responses = {key: (benchmark.child(key).number(finite=False) * scale,) for key in TIMES}
    return Case(name, parameters, {**responses, **{key: (value,) for key, value in counters.items()}}, "ns", counters)


def _scale(unit: DocumentNode) -> float:
    name = "ns" if unit.value is None else unit.text()
    if name not in UNITS:
        unit.expect(f"one of the units of time {', '.join(UNITS)}")
    return UNITS[name]


def parse_name(text: str) -> tuple[str, dict[str, Parameter]]:
    """Benchmark and arguments: ``name:value`` by name, the only bare number ``n``, several ``arg1``, ``arg2`` and so on.

    >>> parse_name("BM_sum/64/repeats:3")
    ('BM_sum', {'n': 64.0})
    >>> parse_name("Fixture/BM_two/rows:1/8/real_time/threads:2")
    ('Fixture/BM_two', {'rows': 1.0, 'n': 8.0, 'threads': 2.0})
    """
    words, named, bare = [], [], 0
    for place, part in enumerate(text.split("/")):
        name, colon, value = part.rpartition(":")
        argument = colon and not name.endswith(":") and _number(value) is not None
        if place and _SETTING.match(part):
            continue
        if place and (argument or _number(part) is not None):
            bare += not argument
            named.append((name if argument else "", part if not argument else value))
        else:
            words.append(part)
    numbers = iter(["n"] if bare == 1 else [f"arg{i + 1}" for i in range(bare)])
    return "/".join(words), {name or next(numbers): float(value) for name, value in named}


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
