"""Benchmark tools whose results are lines of text: Go's ``testing``, and Criterion with the bencher of Rust.

Parameters stand in the names: ``BenchmarkSort/n=100/kind=random-8`` of Go, ``sum/fold/100`` of Criterion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from perflaw.imports.benchmarks import Benchmarks, Case, Parameter
from perflaw.imports.formats import Format

UNITS: Final = {"ps": 1e-3, "ns": 1.0, "µs": 1e3, "us": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
"""Unit of time that a tool writes → nanoseconds."""
GO_TIME: Final = "ns/op"
"""Unit of the time of an iteration, which is its response's name."""
_HEAD: Final = 1 << 16
"""Characters in which the first result of a file is looked for."""
_NUMBER: Final = r"[0-9]{1,20}(?:\.[0-9]{0,20})?(?:e[+-]?[0-9]{1,3})?"
_GO: Final = re.compile(rf"^(Benchmark\S*)\s+\d{{1,18}}((?:\s+{_NUMBER} \S+)+)\s*$", re.MULTILINE)
_GO_VALUE: Final = re.compile(rf"({_NUMBER}) (\S+)")
_CRITERION: Final = re.compile(
    rf"^(\S[^\n]*?)?\s+time:\s+\[({_NUMBER}) (\S+) ({_NUMBER}) (\S+) ({_NUMBER}) (\S+)\]", re.MULTILINE
)
_BENCHER: Final = re.compile(
    r"^test (\S[^\n]*?)\s+\.\.\. bench:\s+([0-9][0-9,]{0,29}(?:\.[0-9]{0,20})?) ns/iter", re.MULTILINE
)


def _go_cases(text: str) -> Iterator[Case]:
    """Benchmarks of Go: their repetitions (``-count``) are values of one case, so that they are a run."""
    repetitions: dict[str, list[dict[str, float]]] = {}
    for line in _GO.finditer(text):
        values = {unit: float(number) for number, unit in _GO_VALUE.findall(line[2])}
        repetitions.setdefault(line[1], []).append(values)
    for full, rows in repetitions.items():
        name, parameters = parse_path(re.sub(r"-\d{1,5}$", "", full).removeprefix("Benchmark"))
        names = dict.fromkeys(unit for row in rows for unit in row)
        responses = {unit: tuple(row[unit] for row in rows if unit in row) for unit in names}
        others = {unit: values[0] for unit, values in responses.items() if unit != GO_TIME}  # these are not in ns
        yield Case(name, parameters, responses, "ns", others)


def _criterion_cases(text: str) -> Iterator[Case]:
    """Benchmarks of Criterion: its estimate, which stands in the middle of its interval."""
    before = ""  # a name that is too long stands on a line of its own
    place = 0
    for line in _CRITERION.finditer(text):
        lines = text[place : line.start()].rstrip().splitlines()
        before = next((one for one in reversed(lines) if one and not one[0].isspace()), before)
        place = line.end()
        name, parameters = parse_path((line[1] or before).strip())
        if line[5] in UNITS:
            yield Case(name, parameters, {"time": (float(line[4]) * UNITS[line[5]],)}, "ns")


def _bencher_cases(text: str) -> Iterator[Case]:
    """Benchmarks of Rust's own harness, and of Criterion with ``--output-format bencher``."""
    for line in _BENCHER.finditer(text):
        name, parameters = parse_path(line[1])
        yield Case(name, parameters, {"time": (float(line[2].replace(",", "")),)}, "ns")


def parse_path(path: str) -> tuple[str, dict[str, Parameter]]:
    """Name and parameters of a benchmark: ``key=value`` by name, the only bare number as ``n``, several as ``arg1``, ….

    >>> parse_path("Sort/n=100/kind=random/64")
    ('Sort', {'n': 100.0, 'kind': 'random', 'arg1': 64.0})
    >>> parse_path("sum/fold/100")
    ('sum/fold', {'n': 100.0})
    """
    words: list[str] = []
    parameters: dict[str, Parameter] = {}
    bare: list[float] = []
    for part in path.split("/"):
        key, sign, value = part.partition("=")
        if sign and key:
            parameters[key] = float(value) if _is_number(value) else value
        elif _is_number(part) and words:
            bare.append(float(part))
        else:
            words.append(part)
    names = ["n"] if len(bare) == 1 and "n" not in parameters else [f"arg{place}" for place in range(1, len(bare) + 1)]
    return "/".join(words), {**parameters, **dict(zip(names, bare, strict=True))}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", text, re.ASCII) is not None


def _format(
    name: str, tool: str, line: re.Pattern[str], cases: Callable[[str], Iterator[Case]], response: str
) -> Format[Benchmarks]:
    return Format(
        name,
        lambda file: not file.is_json and line.search(file.text[:_HEAD]) is not None,
        lambda file: Benchmarks(str(file.path), tool, tuple(cases(file.text)), response),
    )


GO: Final = _format("Go's go test -bench", "go test", _GO, _go_cases, GO_TIME)
CRITERION: Final = _format("Criterion", "Criterion", _CRITERION, _criterion_cases, "time")
BENCHER: Final = _format("Rust's cargo bench", "cargo bench", _BENCHER, _bencher_cases, "time")
