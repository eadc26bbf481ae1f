"""pytest-benchmark: ``pytest --benchmark-json FILE.json``, or a file of ``--benchmark-save``. Its times are in seconds."""

from __future__ import annotations

from typing import Final

from perflaw.documents import DocumentNode
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter, parameter
from perflaw.imports.formats import ForeignFile, Format

SECOND: Final = 1e9
"""Nanoseconds."""
STATISTICS: Final = ("median", "mean", "min", "max")
"""Statistics that are read. The median is learnt by default: a single interrupted round can shift the mean by half."""


def read(file: ForeignFile) -> Benchmarks:
    """Benchmarks with responses ``median`` (learnt by default), ``mean``, ``min``, ``max`` and, where saved, ``data``."""
    document = file.document()
    cases = tuple(_case(benchmark) for benchmark in document.child("benchmarks").items())
    version = document.child("version").value
    return Benchmarks(str(file.path), f"pytest-benchmark {version or ''}".strip(), cases, STATISTICS[0])


def _case(benchmark: DocumentNode) -> Case:
    name, stats = benchmark.child("fullname").text(), benchmark.child("stats")
    responses: dict[str, tuple[float, ...]] = {
        statistic: (stats.child(statistic).number(finite=False) * SECOND,)
        for statistic in STATISTICS
        if statistic in stats.mapping_value()
    }
    rounds = stats.child("data")
    if rounds.value is not None:
        responses["data"] = tuple(time.number(finite=False) * SECOND for time in rounds.items())
    parameters = benchmark.child("params")
    values: dict[str, Parameter] = {}
    if parameters.value is not None:
        # The name of a parametrized test ends in its parameters, which are read from "params" instead.
        name = name.partition("[")[0]
        values = {key: parameter(value) for key, value in parameters.mapping_value().items()}
    info = benchmark.child("extra_info")
    extra = {} if info.value is None else {key: parameter(value) for key, value in info.mapping_value().items()}
    numbers = {key: value for key, value in extra.items() if isinstance(value, float)}
    return Case(name, values, responses, "ns", numbers)


FORMAT: Final = Format("pytest-benchmark", lambda file: {"benchmarks", "machine_info"} <= file.keys.keys(), read)
