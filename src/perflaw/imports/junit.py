"""JUnit XML: durations of test cases, as pytest, Maven, Gradle and many other runners write them.

A runner puts parameters into the name of a test: ``test_sort[100-random]`` of pytest, ``sort(int)[3]`` of JUnit. Numbers
among them are parameters ``arg1``, ``arg2``, …; the only one is ``n``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final
from xml.parsers import expat

from perflaw.errors import DataError
from perflaw.imports.benchmarks import Benchmarks, Case, Parameter
from perflaw.imports.formats import ForeignFile, Format
from perflaw.imports.tracks import number

SECOND: Final = 1e9
"""Nanoseconds."""
_ROOT: Final = re.compile(r"\s*(<\?xml[^>]{0,200}\?>\s*)?(<!--.{0,2000}?-->\s*)*<testsuites?[\s>]", re.DOTALL)
_FAILED: Final = frozenset({"failure", "error", "skipped"})


class _JunitReader:
    """Collects the test cases of a file while it is parsed."""

    def __init__(self, file: ForeignFile) -> None:
        self.file = file
        self.durations: dict[str, list[float]] = defaultdict(list)
        """Full name of a test → its durations, ns; none where it failed or was skipped."""
        self.open: tuple[str, str] | None = None
        """Full name and duration of the test case that the parser is in."""

    def read(self) -> Benchmarks:
        """Tests as cases; DataError where the XML is damaged."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse  # entities could make a small file large
        try:
            parser.Parse(self.file.data, True)
        except expat.ExpatError as error:
            what = f"{self.file.path}:{error.lineno}:{error.offset + 1}: not XML"
            raise DataError(what, expat.errors.messages.get(error.code, str(error)), self.file.advice) from None
        cases = []
        for full, durations in self.durations.items():
            name, parameters = _parameters(full)
            cases.append(Case(name, parameters, {"time": tuple(durations)} if durations else {}, "ns"))
        return Benchmarks(str(self.file.path), "JUnit XML", tuple(cases), "time")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            names = (attributes.get("classname", ""), attributes.get("name", ""))
            self.open = ".".join(filter(None, names)), attributes.get("time", "")
            _ = self.durations[self.open[0]]
        elif tag in _FAILED:
            self.open = None

    def _end(self, tag: str) -> None:
        if tag == "testcase" and self.open:
            seconds = number(self.open[1].replace(",", ""))  # Maven writes 1,234.5
            if seconds is not None:
                self.durations[self.open[0]].append(float(seconds) * SECOND)
            self.open = None

    def _refuse(self, *_: object) -> None:
        raise DataError(f"{self.file.path}: XML with a document type", "no test runner writes one", self.file.advice)


def _parameters(full: str) -> tuple[str, dict[str, Parameter]]:
    """Name of a test and the numbers in the brackets at its end; other parameters are kept as ``case``."""
    name, bracket, inner = full.partition("[")
    if not bracket:
        return full, {}
    words = inner.rstrip("]").split("-")
    numbers = [(word, found) for word in words if (found := number(word)) is not None]
    names = ["n"] if len(numbers) == 1 else [f"arg{place}" for place in range(1, len(numbers) + 1)]
    parameters: dict[str, Parameter] = {key: float(found) for key, (_, found) in zip(names, numbers, strict=True)}
    others = "-".join(word for word in words if number(word) is None)
    return name, {**parameters, **({"case": others} if others else {})}


def recognises(file: ForeignFile) -> bool:
    """Whether a file is XML with a suite of tests."""
    return not file.is_json and _ROOT.match(file.text[:4096]) is not None


FORMAT: Final = Format("JUnit XML", recognises, lambda file: _JunitReader(file).read())
