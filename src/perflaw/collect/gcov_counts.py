"""What gcov says of a run's object files, added up: counts of lines, of the outcomes of branches, and of functions.

A line of a header is in every object file that includes it, and a line of a template in each of its instantiations:
their counts are added. Locations and their order depend on the program alone, never on the counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from perflaw.collect.gcov_files import Places
from perflaw.types import Counts, Location

LANGUAGES: Final = {
    ".f": "fortran", ".for": "fortran", ".f90": "fortran", ".f95": "fortran", ".d": "d", ".go": "go", ".adb": "ada",
    ".cc": "c++", ".cp": "c++", ".cxx": "c++", ".cpp": "c++", ".c++": "c++", ".C": "c++", ".hh": "c++", ".hpp": "c++",
    ".hxx": "c++", ".tcc": "c++", ".m": "objective-c", ".rs": "rust",
}  # fmt: skip
"""Language by the file's name; C where it is not here and names are not mangled."""
_ARGUMENTS: Final = re.compile(r"(?<!operator)(?<!operator<)<[^<>]*>")
"""Of a template, without such in them."""


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """A function of one source file."""

    line: int
    """Where it begins."""
    name: str
    """Its name, demangled."""
    language: str
    """``c`` or ``c++`` as a rule."""

    @property
    def plain(self) -> str:
        """The name that all instantiations of a template have: without arguments and type of the result.

        >>> Function(1, "int ns::sum<int>(std::vector<int, A<int> > const&)", "c++").plain
        'ns::sum'
        """
        text, before = self.name.replace("(anonymous namespace)", "{}").replace("operator()", "operator"), ""
        while text != before:
            text, before = _ARGUMENTS.sub("", text), text
        return text.partition("(")[0].rstrip().rpartition(" ")[2]


@dataclass(slots=True)
class _Line:
    """The counts of one function's part in a line."""

    count: int = 0
    branches: list[int] = field(default_factory=list)
    """Counts of the outcomes of its branches, in gcov's order."""

    def add(self, count: int, branches: Iterable[int]) -> None:
        """Add what another object file, or another instantiation, says of it."""
        self.count += count
        self.branches = [one + other for one, other in zip_longest(self.branches, branches, fillvalue=0)]


class Sums:
    """Counts of a run, added up over its object files."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.lines: dict[tuple[str, int], dict[Function, _Line]] = {}
        """(File, line) → parts of the functions in it."""
        self.functions: dict[tuple[str, Function], int] = {}
        """Executions of each function."""

    def add(self, document: Mapping[str, Any]) -> list[str]:
        """Take in what gcov says of one object file; gives the source files it is of, where they are now."""
        folder = str(document.get("current_working_directory", ""))
        mangled = any(each["name"].startswith("_Z") for source in document["files"] for each in source["functions"])
        files = []
        for source in document["files"]:
            file = self.places.now(os.path.normpath(os.path.join(folder, source["file"])))  # noqa: PTH118 (of elsewhere)
            files.append(file)
            known: dict[str, Function] = {}
            for each in source["functions"]:
                known[each["name"]] = function = _function(file, each, mangled)
                self.functions[file, function] = self.functions.get((file, function), 0) + _whole(
                    each["execution_count"]
                )
            for line in source["lines"]:
                function = known.get(line.get("function_name", ""), Function(0, "", _language(file, mangled)))
                part = self.lines.setdefault((file, line["line_number"]), {}).setdefault(function, _Line())
                part.add(_whole(line["count"]), _outcomes(line["branches"]))
        return files

    def counts(self) -> Counts:
        """All locations, file by file."""
        rows = [*self._functions(), *self._lines()]
        return Counts(tuple(row[0] for row in rows), np.array([row[1] for row in rows], dtype=np.int64))

    def _functions(self) -> Iterator[tuple[Location, int]]:
        for (file, function), count in sorted(self.functions.items()):
            yield Location("function", function.name, file, function.line, function.name, function.language), count

    def _lines(self) -> Iterator[tuple[Location, int]]:
        """Each line, and beside it the outcomes of its branches."""
        for (file, number), parts in sorted(self.lines.items()):
            inner = min(parts, key=lambda function: (-function.line, function.name))
            name = f"{PurePath(file).name}:{number}"
            place = (file, number, inner.name, inner.language)
            yield Location("line", name, *place), sum(part.count for part in parts.values())
            for which, count in enumerate(_together(parts), 1):
                yield Location("block", f"{name} branch {which}", *place), count


def _together(parts: Mapping[Function, _Line]) -> Iterator[int]:
    """Outcomes of a line's branches: those of all instantiations of a function together, function after function."""
    same: dict[str, _Line] = {}
    for function, part in sorted(parts.items(), key=lambda item: item[0]):
        same.setdefault(function.plain, _Line()).add(0, part.branches)
    for part in same.values():
        yield from part.branches


def _function(file: str, told: Mapping[str, Any], mangled: bool) -> Function:
    return Function(told["start_line"], told.get("demangled_name") or told["name"], _language(file, mangled))


def _language(file: str, mangled: bool) -> str:
    """``mangled``: whether names of the object file are, which only C++ does; headers do not say what they are."""
    return "c++" if mangled else LANGUAGES.get(PurePath(file).suffix, "c")


def _outcomes(branches: Iterable[Mapping[str, Any]]) -> list[int]:
    """Counts of the outcomes, without those of calls that may throw: every such call is a branch to gcov."""
    told = list(branches)
    left = [not branch["throw"] for branch in told]
    for at, branch in enumerate(told):
        if branch["throw"] and at and left[at - 1] and told[at - 1]["fallthrough"]:
            left[at - 1] = False
    return [_whole(branch["count"]) for branch, stays in zip(told, left, strict=True) if stays]


def _whole(count: int) -> int:
    """A count; where threads without atomic counters lost some, gcov may come to less than nothing."""
    return max(int(count), 0)
