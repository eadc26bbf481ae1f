"""asv: ``results/<machine>/<commit>-<environment>.json``.

Names of parameters and units stand in ``benchmarks.json``, one folder above the machine's.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
from pathlib import Path
from typing import Any

from perflaw.documents import DocumentNode
from perflaw.errors import DataError
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter, parameter

VERSION = 2
"""Version of the result files that is read."""

UNITS = {"seconds": (1e9, "ns"), "bytes": (1.0, "bytes"), "unit": (1.0, "")}
"""Unit in the file → factor and unit here (``unit`` is asv's word for none); others stay as they are."""

KINDS = {"time": "seconds", "timeraw": "seconds", "mem": "bytes", "peakmem": "bytes"}
"""First word of a benchmark's function → its unit, where no ``benchmarks.json`` says it."""


def recognises(document: DocumentNode) -> bool:
    """Whether the document is one of asv's results."""
    value = document.value
    return isinstance(value, dict) and {"results", "commit_hash"} <= value.keys()


def read(document: DocumentNode) -> Benchmarks:
    """Benchmarks with responses ``result`` (learnt by default) and, where recorded, ``samples``."""
    version = document.child("version").value
    if version != VERSION:
        raise DataError(
            f"{document.source.file}: asv results of version {version}", f"read is version {VERSION}", "asv update"
        )
    columns = [column.text() for column in document.child("result_columns").items()]
    described = _described(document.source.file)
    cases: list[Case] = []
    for name in document.child("results").mapping_value():
        cases += _cases(name, document.child("results").child(name), columns, described.get(name, {}))
    return Benchmarks(document.source.file, "asv", tuple(cases), "result")


def _described(file: str) -> dict[str, Any]:
    """What ``benchmarks.json``, two folders up, says of each benchmark; nothing where it is not there."""
    try:
        found = json.loads((Path(file).parent.parent / "benchmarks.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}


def _cases(name: str, row: DocumentNode, columns: list[str], described: dict[str, Any]) -> list[Case]:
    """One case for each combination of the benchmark's parameters, the last varying fastest."""
    if not isinstance(row.value, list):
        row.expect("a list")
    cells = dict(zip(columns, row.items(), strict=False))
    if "params" not in cells or "result" not in cells:
        row.expect("a list with result and params")
    choices = [[_value(value.text()) for value in one.items()] for one in cells["params"].items()]
    combinations = list(itertools.product(*choices))
    results = [None] * len(combinations) if cells["result"].value is None else list(cells["result"].items())
    if len(results) != len(combinations):
        cells["result"].expect(f"{len(combinations)} numbers, one for each choice of parameters,")
    factor, unit = _unit(name, described)
    samples = _samples(cells.get("samples"), len(combinations))
    names = _names(described, len(choices))
    return [
        Case(name, dict(zip(names, combination, strict=True)), _responses(result, sample, factor), unit)
        for combination, result, sample in zip(combinations, results, samples, strict=True)
    ]


def _samples(cell: DocumentNode | None, count: int) -> list[DocumentNode | None]:
    """Samples of each combination; asv keeps them on demand (``--record-samples``)."""
    found = list(cell.items()) if cell is not None and cell.value is not None else []
    return [*found, *[None] * (count - len(found))][:count]


def _responses(
    result: DocumentNode | None, samples: DocumentNode | None, factor: float
) -> dict[str, tuple[float, ...]]:
    """None or NaN where the benchmark failed or was skipped."""
    if result is None or result.value is None or not math.isfinite(result.number(finite=False)):
        return {}
    responses: dict[str, tuple[float, ...]] = {"result": (result.number(finite=False) * factor,)}
    if samples is not None and samples.value is not None:
        responses["samples"] = tuple(one.number(finite=False) * factor for one in samples.items())
    return responses


def _names(described: dict[str, Any], count: int) -> list[str]:
    """Names of the parameters; asv's own default where nothing says them."""
    names = described.get("param_names")
    if isinstance(names, list) and len(names) == len(set(map(str, names))) == count:
        return [str(name) for name in names]
    return [f"param{i + 1}" for i in range(count)]


def _unit(name: str, described: dict[str, Any]) -> tuple[float, str]:
    function = name.rpartition(".")[2].lower()
    unit = str(described.get("unit") or KINDS.get(function.partition("_")[0], ""))
    return UNITS.get(unit, (1.0, unit))


def _value(text: str) -> Parameter:
    """A parameter from its ``repr``: a number, a text without its quotes, anything else as it is written."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return parameter(value) if isinstance(value, int | float | str) else text
