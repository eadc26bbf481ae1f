"""google-benchmark: ``--benchmark_out=FILE.json`` or ``--benchmark_format=json``. Names of benchmarks hold arguments."""

from __future__ import annotations

import re
from typing import Final

from perflaw.documents import DocumentNode
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter, parameter
from perflaw.imports.formats import ForeignFile, Format

UNITS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Unit of time that the tool writes → nanoseconds."""
TIMES: Final = ("real_time", "cpu_time")
"""Its two clocks, per iteration; the first is learnt by default."""
_OWN_FIELDS: Final = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "error_occurred", "error_message", "label",
    "aggregate_name", "aggregate_unit", "skipped", "skip_message", "cpu_coefficient", "real_coefficient", "big_o", "rms",
}  # fmt: skip
"""Fields that the tool writes; all others are counters of the person's."""
_SETTING: Final = re.compile(r"(repeats|min_time|min_warmup_time|iterations):|(real_time|manual_time|process_time)$")
"""Parts of a name that say how the benchmark was measured."""
_AGGREGATE_SUFFIX: Final = re.compile(r"_(mean|median|stddev|cv|min|max|BigO|RMS)$")
"""Names of aggregates, in files of versions before 1.5, which have no ``run_type``."""


def read(file: ForeignFile) -> Benchmarks:
    """Repetitions as rows, with responses ``real_time`` (learnt by default), ``cpu_time`` and user counters."""
    document = file.document()
    groups: dict[str, list[DocumentNode]] = {}
    for benchmark in document.child("benchmarks").items():
        run_name = benchmark.child("run_name")
        has_name = run_name.value is not None
        name = run_name.text() if has_name else _AGGREGATE_SUFFIX.sub("", benchmark.child("name").text())
        groups.setdefault(name, []).append(benchmark)
    cases = []
    for name, group in groups.items():
        kinds: list[str | None] = []
        for benchmark in group:
            if benchmark.child("run_type").value == "aggregate":
                kinds.append(benchmark.child("aggregate_name").text())
            else:
                suffix = _AGGREGATE_SUFFIX.search(benchmark.child("name").text())
                kinds.append(suffix[1] if suffix and benchmark.child("run_type").value is None else None)
        # Repetitions; where only aggregates were reported, their median, otherwise their mean.
        wanted = next((kind for kind in (None, "median", "mean") if kind in kinds), None)
        cases += [_case(name, row) for row, kind in zip(group, kinds, strict=True) if kind == wanted]
    version = document.child("context").child("library_version").value
    return Benchmarks(str(file.path), f"google-benchmark {version or ''}".strip(), tuple(cases), TIMES[0])


def _case(run_name: str, benchmark: DocumentNode) -> Case:
    name, parameters = parse_name(run_name)
    fields = {key: parameter(value) for key, value in benchmark.mapping_value().items() if key not in _OWN_FIELDS}
    counters = {key: value for key, value in fields.items() if isinstance(value, float)}
    if benchmark.child("error_occurred").value or benchmark.child("skipped").value:
        return Case(name, parameters, {}, "ns", counters)
    unit = benchmark.child("time_unit")
    unit_name = "ns" if unit.value is None else unit.text()
    if unit_name not in UNITS:
        unit.expect(f"one of the units of time {', '.join(UNITS)}")
    times = {key: (benchmark.child(key).number(finite=False) * UNITS[unit_name],) for key in TIMES}
    return Case(name, parameters, {**times, **{key: (value,) for key, value in counters.items()}}, "ns", counters)


def parse_name(text: str) -> tuple[str, dict[str, Parameter]]:
    """Benchmark and arguments: ``name:value`` by name, the only bare number as ``n``, several as ``arg1``, ``arg2``, ….

    >>> parse_name("BM_sum/64/repeats:3")
    ('BM_sum', {'n': 64.0})
    >>> parse_name("Fixture/BM_two/rows:1/8/real_time/threads:2")
    ('Fixture/BM_two', {'rows': 1.0, 'n': 8.0, 'threads': 2.0})
    """
    first, *parts = text.split("/")
    words, arguments = [first], []
    for part in parts:
        name, colon, value = part.rpartition(":")
        if _SETTING.match(part):
            continue
        if colon and not name.endswith(":") and _is_number(value):
            arguments.append((name, value))
        elif _is_number(part):
            arguments.append(("", part))
        else:
            words.append(part)
    bare = sum(not name for name, _ in arguments)
    names = iter(["n"] if bare == 1 else [f"arg{i + 1}" for i in range(bare)])
    return "/".join(words), {name or next(names): float(value) for name, value in arguments}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


FORMAT: Final = Format("google-benchmark", lambda file: {"benchmarks", "context"} <= file.keys.keys(), read)
