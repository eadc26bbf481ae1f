"""pytest-benchmark: ``pytest --benchmark-json FILE.json`` or what ``--benchmark-save`` wrote. Its times are seconds."""

from __future__ import annotations

from perflaw.imports.benchmarks import Benchmarks, Case, Node, parameter

SECOND = 1e9
"""Nanoseconds."""

STATISTICS = ("median", "mean", "min", "max")
"""What is read of a benchmark's statistics. The median comes first: one interrupted round shifts the mean by half."""


def recognises(document: Node) -> bool:
    """Whether the document is pytest-benchmark's."""
    value = document.value
    return isinstance(value, dict) and {"benchmarks", "machine_info"} <= value.keys()


def read(document: Node) -> Benchmarks:
    """Benchmarks with responses ``median`` (learnt by default), ``mean``, ``min``, ``max`` and, where saved, ``data``."""
    cases = tuple(_case(benchmark) for benchmark in document.get("benchmarks").items())
    version = document.get("version").value
    return Benchmarks(document.file, f"pytest-benchmark {version or ''}".strip(), cases, STATISTICS[0])


def _case(benchmark: Node) -> Case:
    # The identifier of a parametrized test ends in its parameters: these are told by name instead.
    name = benchmark.get("fullname").text()
    parameters = benchmark.get("params")
    if parameters.value is None:
        return Case(name, {}, _responses(benchmark.get("stats")), "ns", _extra(benchmark))
    values = {key: parameter(value) for key, value in parameters.fields().items()}
    return Case(name.partition("[")[0], values, _responses(benchmark.get("stats")), "ns", _extra(benchmark))


def _responses(stats: Node) -> dict[str, tuple[float, ...]]:
    there = [name for name in STATISTICS if name in stats.fields()]
    responses: dict[str, tuple[float, ...]] = {name: (stats.get(name).number() * SECOND,) for name in there}
    data = stats.get("data")
    if data.value is not None:
        responses["data"] = tuple(round_.number() * SECOND for round_ in data.items())
    return responses


def _extra(benchmark: Node) -> dict[str, float]:
    """Numbers among ``benchmark.extra_info``."""
    info = benchmark.get("extra_info")
    values = {} if info.value is None else {key: parameter(value) for key, value in info.fields().items()}
    return {key: value for key, value in values.items() if isinstance(value, float)}
