"""pytest-benchmark: ``pytest --benchmark-json FILE.json`` or what ``--benchmark-save`` wrote. Its times are seconds."""

from __future__ import annotations

from perflaw.documents import DocumentNode
from perflaw.imports.benchmarks import Benchmarks, Case, parameter

SECOND = 1e9
"""Nanoseconds."""

STATISTICS = ("median", "mean", "min", "max")
"""What is read of a benchmark's statistics. The median comes first: one interrupted round shifts the mean by half."""


def recognises(document: DocumentNode) -> bool:
    """Whether the document is pytest-benchmark's."""
    value = document.value
    return isinstance(value, dict) and {"benchmarks", "machine_info"} <= value.keys()


def read(document: DocumentNode) -> Benchmarks:
    """Benchmarks with responses ``median`` (learnt by default), ``mean``, ``min``, ``max`` and, where saved, ``data``."""
    cases = tuple(_case(benchmark) for benchmark in document.child("benchmarks").items())
    version = document.child("version").value
    return Benchmarks(document.source.file, f"pytest-benchmark {version or ''}".strip(), cases, STATISTICS[0])


def _case(benchmark: DocumentNode) -> Case:
    # The identifier of a parametrized test ends in its parameters: these are told by name instead.
    name = benchmark.child("fullname").text()
    parameters = benchmark.child("params")
    if parameters.value is None:
        return Case(name, {}, _responses(benchmark.child("stats")), "ns", _extra(benchmark))
    values = {key: parameter(value) for key, value in parameters.mapping_value().items()}
    return Case(name.partition("[")[0], values, _responses(benchmark.child("stats")), "ns", _extra(benchmark))


def _responses(stats: DocumentNode) -> dict[str, tuple[float, ...]]:
    there = [name for name in STATISTICS if name in stats.mapping_value()]
    responses: dict[str, tuple[float, ...]] = {
        name: (stats.child(name).number(finite=False) * SECOND,) for name in there
    }
    data = stats.child("data")
    if data.value is not None:
        responses["data"] = tuple(round_.number(finite=False) * SECOND for round_ in data.items())
    return responses


def _extra(benchmark: DocumentNode) -> dict[str, float]:
    """Numbers among ``benchmark.extra_info``."""
    info = benchmark.child("extra_info")
    values = {} if info.value is None else {key: parameter(value) for key, value in info.mapping_value().items()}
    return {key: value for key, value in values.items() if isinstance(value, float)}
