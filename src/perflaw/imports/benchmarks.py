"""What readers of benchmark results give: benchmarks with parameters and responses, and how these become series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from perflaw.errors import DataError, UsageError
from perflaw.store.csv_files import NumberSeries

Parameter = float | str
"""A number, or anything else as text."""


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark with one choice of its parameters."""

    benchmark: str
    """Name of the benchmark without its parameters."""
    parameters: Mapping[str, Parameter]
    """Name → value, in the tool's order."""
    responses: Mapping[str, tuple[float, ...]]
    """Name of a response → its values; several are repetitions. Empty where the benchmark failed."""
    unit: str = ""
    """Unit of the responses: ns, bytes, or the tool's word."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Numbers that the person attached to the benchmark: features if they are asked for by name."""


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """The results in a file of another tool."""

    file: str
    """File as the person named it."""
    tool: str
    """Tool that wrote it, with its version if the file has it."""
    cases: tuple[Case, ...]
    """Its benchmarks, in the file's order."""
    response: str
    """Response that is learnt if the person names none."""

    def responses(self) -> list[str]:
        """Names of all responses."""
        return list(dict.fromkeys(name for case in self.cases for name in case.responses))


def parameter(value: object) -> Parameter:
    """A parameter as the tool wrote it: finite numbers are numbers; truth values and anything else are texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return str(value)
        return number if math.isfinite(number) else str(value)
    return value if isinstance(value, str) else str(value)


def split_benchmarks(
    benchmarks: Benchmarks, response: str | None, features: Sequence[str] | None, by: str | None
) -> list[NumberSeries]:
    """One series for each benchmark and choice of its parameters that are not numbers, in the file's order.

    Parameters that are numbers in all cases of a benchmark are features; ``features`` restricts them and may name
    attached numbers; ``by`` names a parameter that separates series although it is a number. Cases without the response
    are counted as dropped where others of their series have it.

    Raises UsageError on names that no benchmark has, DataError where nothing is left.
    """
    response = response or benchmarks.response
    responses = benchmarks.responses()
    if response not in responses:
        what = f"{benchmarks.file} has no response {response!r}"
        raise UsageError(what, f"{benchmarks.tool} gives {', '.join(responses)}", f"--response {benchmarks.response}")
    parameters = list(dict.fromkeys(name for case in benchmarks.cases for name in (*case.parameters, *case.extra)))
    for option, wanted in (("--features", features or ()), ("--by", (by,) if by else ())):
        for name in wanted:
            if name not in parameters:
                what = f"{option} {name}: {benchmarks.file} has no such parameter"
                example = f"{option} {parameters[0]}" if parameters else f"perflaw fit {benchmarks.file}"
                raise UsageError(what, f"its parameters: {', '.join(parameters) or 'none'}", example)

    by_benchmark: dict[str, list[Case]] = {}
    for case in benchmarks.cases:
        by_benchmark.setdefault(case.benchmark, []).append(case)
    groups: dict[str, list[tuple[Case, dict[str, float]]]] = {}
    for cases in by_benchmark.values():
        names = [name for name in cases[0].parameters if name != by]
        numeric = [name for name in names if all(isinstance(case.parameters.get(name), float) for case in cases)]
        for case in cases:
            values = {name: float(case.parameters[name]) for name in numeric}
            if features is not None:
                known = {**case.extra, **values}
                values = {name: known[name] for name in features if name in known}
            # The name of a series, such as ``test_sort[kind=random]``, has the parameters that are not features.
            others = [
                f"{name}={value if isinstance(value, str) else f'{value:.15g}'}"
                for name, value in case.parameters.items()
                if name not in numeric
            ]
            name = f"{case.benchmark}[{', '.join(others)}]" if others else case.benchmark
            groups.setdefault(name, []).append((case, values))

    series = []
    for name, members in groups.items():
        common = [feature for feature in members[0][1] if all(feature in values for _, values in members)]
        numbers = [[y for y in case.responses.get(response, ()) if math.isfinite(y)] for case, _ in members]
        repeats = [len(ys) for ys in numbers]
        if not any(repeats):
            continue
        features_of = {x: np.array([values[x] for _, values in members]).repeat(repeats) for x in common}
        # The values of one case share the process that measured them, so they are a run.
        runs = np.repeat([str(place) for place in range(len(members))], repeats) if max(repeats) > 1 else None
        first = members[0][0]
        unit = "" if response in first.extra else first.unit  # attached numbers have no unit that the tool knows
        series.append(NumberSeries(name, np.concatenate(numbers), features_of, runs, repeats.count(0), unit))
    if not series:
        why = "all of them failed"
        raise DataError(
            f"{benchmarks.file}: no benchmark has a number for {response!r}", why, f"perflaw fit {benchmarks.file}"
        )
    return series
