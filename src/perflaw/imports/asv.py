"""asv: ``results/<machine>/<commit>-<environment>.json``.

The file ``benchmarks.json``, one folder above the machine's, has the names of parameters and the units.
"""

from __future__ import annotations

import ast
import itertools
import math
from typing import Any, Final

from perflaw.bounds import read_file, read_json
from perflaw.documents import DocumentNode
from perflaw.errors import DataError
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter, parameter
from perflaw.imports.formats import ForeignFile, Format

VERSION: Final = 2
"""Version of the result files that is read."""
UNITS: Final = {"seconds": (1e9, "ns"), "bytes": (1.0, "bytes"), "unit": (1.0, "")}
"""Unit in the file → factor and unit here (``unit`` is asv's word for none); others stay as they are."""
KINDS: Final = {"time": "seconds", "timeraw": "seconds", "mem": "bytes", "peakmem": "bytes"}
"""First word of a benchmark's function → its unit, where ``benchmarks.json`` is missing."""


def read(file: ForeignFile) -> Benchmarks:
    """Benchmarks with responses ``result`` (learnt by default) and, where recorded, ``samples``."""
    document = file.document()
    version = document.child("version").value
    if version != VERSION:
        raise DataError(f"{file.path}: asv results of version {version}", f"version {VERSION} is read", "asv update")
    columns = [column.text() for column in document.child("result_columns").items()]
    results = document.child("results").mapping()
    try:  # without the file of descriptions, parameters have no names
        found = read_json(read_file(file.path.parent.parent / "benchmarks.json"))
    except (OSError, ValueError):
        found = {}
    descriptions = (
        {key: value for key, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}
    )
    cases = (case for name, row in results.items() for case in _cases(name, row, columns, descriptions.get(name, {})))
    return Benchmarks(str(file.path), "asv", tuple(cases), "result")


def _cases(name: str, row: DocumentNode, columns: list[str], description: dict[str, Any]) -> list[Case]:
    """One case for each combination of the benchmark's parameters, the last parameter varying fastest."""
    cells = dict(zip(columns, row.items(), strict=False))
    if "params" not in cells or "result" not in cells:
        row.expect("a list with result and params")
    choices = [[_value(value.text()) for value in values.items()] for values in cells["params"].items()]
    combinations = list(itertools.product(*choices))
    count = len(combinations)
    results = [None] * count if cells["result"].value is None else list(cells["result"].items())
    if len(results) != count:
        cells["result"].expect(f"{count} numbers, one for each choice of parameters,")
    recorded = cells.get("samples")  # asv keeps samples on demand (--record-samples)
    samples = list(recorded.items()) if recorded is not None and recorded.value is not None else []
    function = name.rpartition(".")[2].lower()
    unit = str(description.get("unit") or KINDS.get(function.partition("_")[0], ""))
    factor, unit = UNITS.get(unit, (1.0, unit))
    names = description.get("param_names")
    if not isinstance(names, list) or not len(names) == len(set(map(str, names))) == len(choices):
        names = [f"param{i + 1}" for i in range(len(choices))]
    cases = []
    for combination, result, sample in zip(combinations, results, [*samples, *[None] * count], strict=False):
        responses: dict[str, tuple[float, ...]] = {}
        # asv writes null or NaN where the benchmark failed or was skipped.
        if result is not None and result.value is not None and math.isfinite(result.number(finite=False)):
            responses["result"] = (result.number() * factor,)
            if sample is not None and sample.value is not None:
                responses["samples"] = tuple(each.number(finite=False) * factor for each in sample.items())
        cases.append(Case(name, dict(zip(map(str, names), combination, strict=True)), responses, unit))
    return cases


def _value(text: str) -> Parameter:
    """A parameter from its ``repr``: a number, a text without its quotes, anything else as it is written."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return parameter(value) if isinstance(value, int | float | str) else text


FORMAT: Final = Format("asv", lambda file: {"results", "commit_hash"} <= file.keys.keys(), read)
