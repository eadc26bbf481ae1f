"""hyperfine: ``--export-json FILE.json``. A command is a benchmark; values of ``--parameter-scan`` are its parameters."""

from __future__ import annotations

from typing import Final

from perflaw.documents import DocumentNode
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter, parameter
from perflaw.imports.formats import ForeignFile, Format, mapping, objects
from perflaw.imports.tracks import number

SECOND: Final = 1e9
"""Nanoseconds."""


def read(file: ForeignFile) -> Benchmarks:
    """Commands with responses ``time`` (each run, learnt by default), ``user`` and ``system`` (their means)."""
    cases = tuple(_case(result) for result in file.document().child("results").items())
    return Benchmarks(str(file.path), "hyperfine", cases, "time")


def _case(result: DocumentNode) -> Case:
    given = result.child("parameters")
    parameters: dict[str, Parameter] = {}
    name = result.child("command").text()
    for key, value in ({} if given.value is None else given.mapping_value()).items():
        found = number(value)  # the tool writes all values as text
        parameters[key] = parameter(value) if found is None else float(found)
        # The name is the command before the values were put in: the same for all of them.
        name = " ".join(f"{{{key}}}".join(word.rsplit(str(value), 1)) for word in name.split(" "))
    times = result.child("times")
    seconds = [result.child("mean")] if times.value is None else times.items()
    responses = {"time": tuple(one.number(finite=False) * SECOND for one in seconds)}
    for clock in ("user", "system"):
        if result.child(clock).value is not None:
            responses[clock] = (result.child(clock).number(finite=False) * SECOND,)
    return Case(name, parameters, responses, "ns")


def recognises(file: ForeignFile) -> bool:
    """Whether a file has results of commands with their times."""
    results = objects(file.keys.get("results"))
    return bool(results) and {"command", "mean"} <= mapping(results[0]).keys()


FORMAT: Final = Format("hyperfine", recognises, read)
