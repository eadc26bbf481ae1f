"""What all importers give: benchmarks with their parameters and responses, and how these become series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError, UsageError
from perflaw.store.csv_files import NumberSeries

Parameter = float | str
"""A number, or anything else as text."""


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark at one choice of its parameters."""

    benchmark: str
    """Name of the benchmark without its parameters."""
    parameters: Mapping[str, Parameter]
    """Name → value, in the tool's order."""
    responses: Mapping[str, tuple[float, ...]]
    """Name of a response → its values; several are repetitions. Empty where the benchmark failed."""
    unit: str = ""
    """Unit of the responses: ns, bytes, or the tool's word."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Numbers the person attached to the benchmark: features where they are asked for by name."""


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """A file of another tool."""

    name: str
    """File as the person named it."""
    tool: str
    """Tool that wrote it, with its version where that is said."""
    cases: tuple[Case, ...]
    """Its benchmarks, in the file's order; at least one."""
    response: str
    """Response that is learnt where none is named."""

    def responses(self) -> list[str]:
        """Names of all responses."""
        return list(dict.fromkeys(name for case in self.cases for name in case.responses))


def split_benchmarks(
    found: Benchmarks, response: str | None, features: Sequence[str] | None, by: str | None
) -> list[NumberSeries]:
    """One series a benchmark and choice of its parameters that are no numbers, in the file's order.

    Parameters that are numbers in all cases of a benchmark are features; ``features`` restricts them and may name
    attached numbers; ``by`` names a parameter that tells series apart although it is a number. Benchmarks without the
    response are left out and counted as dropped where others of the series have it.

    Raises UsageError on names that no benchmark has, DataError where nothing is left.
    """
    response = response or found.response
    _check(found, response, features, by)
    groups: dict[str, list[tuple[Case, dict[str, float]]]] = {}
    for cases in _by_benchmark(found.cases).values():
        numbers = _numbers(cases, by)
        for case in cases:
            chosen = _features(case, numbers, features)
            groups.setdefault(_series(case, numbers), []).append((case, chosen))
    series = [_rows(name, members, response) for name, members in groups.items()]
    kept = [one for one in series if one is not None]
    if not kept:
        raise DataError(f"{found.name}: no benchmark has a number for {response!r}", "all of them failed", "")
    return kept


def _check(found: Benchmarks, response: str, features: Sequence[str] | None, by: str | None) -> None:
    """Every name that the person gave is there."""
    there = found.responses()
    if response not in there:
        what = f"{found.name} has no response {response!r}"
        raise UsageError(what, f"{found.tool} gives {', '.join(there)}", f"--response {found.response}")
    known = list(dict.fromkeys(name for case in found.cases for name in (*case.parameters, *case.extra)))
    for option, names in (("--features", features or ()), ("--by", (by,) if by else ())):
        for name in names:
            if name not in known:
                there_is = ", ".join(known) or "none"
                raise UsageError(f"{option} {name}: {found.name} has no such parameter", f"its parameters: {there_is}")


def _by_benchmark(cases: Sequence[Case]) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.benchmark, []).append(case)
    return groups


def _numbers(cases: Sequence[Case], by: str | None) -> list[str]:
    """Parameters that all cases of a benchmark have and that are numbers in each."""
    names = [name for name in cases[0].parameters if name != by]
    return [name for name in names if all(isinstance(case.parameters.get(name), float) for case in cases)]


def _features(case: Case, numbers: Sequence[str], wanted: Sequence[str] | None) -> dict[str, float]:
    own = {name: float(case.parameters[name]) for name in numbers}
    if wanted is None:
        return own
    known = {**case.extra, **own}
    return {name: known[name] for name in wanted if name in known}


def _series(case: Case, numbers: Sequence[str]) -> str:
    """``test_sort[kind=random]``: the benchmark and its parameters that are no features."""
    rest = [f"{name}={_word(value)}" for name, value in case.parameters.items() if name not in numbers]
    return f"{case.benchmark}[{', '.join(rest)}]" if rest else case.benchmark


def _word(value: Parameter) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _rows(name: str, members: Sequence[tuple[Case, dict[str, float]]], response: str) -> NumberSeries | None:
    """The series of one benchmark; cases without a response are dropped, None where no case is left.

    Values of one case share the process that measured them: they are a run.
    """
    common = [feature for feature in members[0][1] if all(feature in chosen for _, chosen in members)]
    y: list[float] = []
    runs: list[str] = []
    columns: dict[str, list[float]] = {feature: [] for feature in common}
    dropped = 0
    for place, (case, chosen) in enumerate(members):
        values = [value for value in case.responses.get(response, ()) if math.isfinite(value)]
        dropped += not values
        y += values
        runs += [str(place)] * len(values)
        for feature in common:
            columns[feature] += [chosen[feature]] * len(values)
    if not y:
        return None
    several = np.array(runs) if len(set(runs)) < len(runs) else None
    arrays: dict[str, NDArray[np.float64]] = {feature: np.array(values) for feature, values in columns.items()}
    # A number that the person attached is in no unit that the tool knows.
    unit = "" if response in members[0][0].extra else members[0][0].unit
    return NumberSeries(name, np.array(y), arrays, several, dropped, unit)


def parameter(value: object) -> Parameter:
    """A parameter as the tool wrote it: finite numbers are numbers, truth values and anything else text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return str(value)
        return number if math.isfinite(number) else str(value)
    return value if isinstance(value, str) else str(value)
