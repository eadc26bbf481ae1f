"""gcov's documents of a run's object files, added up: counts of functions, lines and outcomes of branches.

A line of a header is in every object file that includes it, and a line of a template in each of its instantiations: their
counts are added. Locations and their order depend on the program only, never on the counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from perflaw.record.compiled.gcov_files import BuildPlaces
from perflaw.types import Counts, Location

LANGUAGES: Final = {
    ".f": "fortran", ".for": "fortran", ".f90": "fortran", ".f95": "fortran", ".d": "d", ".go": "go", ".adb": "ada",
    ".cc": "c++", ".cp": "c++", ".cxx": "c++", ".cpp": "c++", ".c++": "c++", ".C": "c++", ".hh": "c++", ".hpp": "c++",
    ".hxx": "c++", ".tcc": "c++", ".m": "objective-c", ".rs": "rust",
}  # fmt: skip
"""Suffix of a source file → language; others are C unless their object file has mangled names."""
_TEMPLATE_ARGUMENTS: Final = re.compile(r"(?<!operator)(?<!operator<)<[^<>]*>")
"""Innermost arguments of a template."""


@dataclass(frozen=True, slots=True, order=True)
class SourceFunction:
    """A function of one source file."""

    line: int
    """Its first line."""
    name: str
    """Demangled name."""
    language: str
    """Its language, mostly ``c`` or ``c++``."""

    @property
    def plain(self) -> str:
        """The name that all instantiations of a template share: without arguments and type of the result.

        >>> SourceFunction(1, "int ns::sum<int>(std::vector<int, A<int> > const&)", "c++").plain
        'ns::sum'
        """
        text, before = self.name.replace("(anonymous namespace)", "{}").replace("operator()", "operator"), ""
        while text != before:
            text, before = _TEMPLATE_ARGUMENTS.sub("", text), text
        return text.partition("(")[0].rstrip().rpartition(" ")[2]


@dataclass(slots=True)
class _LinePart:
    """Counts of one function's part in a line."""

    count: int = 0
    branches: list[int] = field(default_factory=list)
    """Counts of the outcomes of its branches, in gcov's order."""

    def add(self, count: int, branches: Iterable[int]) -> None:
        """Add the counts of another object file or instantiation."""
        self.count += count
        self.branches = [one + other for one, other in zip_longest(self.branches, branches, fillvalue=0)]


class CountSums:
    """Counts of a run, added up over its object files."""

    def __init__(self, places: BuildPlaces) -> None:
        self.places = places
        self.lines: dict[tuple[str, int], dict[SourceFunction, _LinePart]] = {}
        """(file, line) → function → its part."""
        self.functions: dict[tuple[str, SourceFunction], int] = {}
        """(file, function) → executions."""

    def add(self, document: Mapping[str, Any]) -> list[str]:
        """Add gcov's document of one object file; returns the present places of its source files."""
        folder = str(document.get("current_working_directory", ""))
        # Only C++ mangles names; a header's suffix does not tell its language.
        mangled = any(each["name"].startswith("_Z") for source in document["files"] for each in source["functions"])
        files = []
        for source in document["files"]:
            file = self.places.now(os.path.normpath(os.path.join(folder, source["file"])))  # noqa: PTH118 (a path of elsewhere)
            files.append(file)
            language = "c++" if mangled else LANGUAGES.get(PurePath(file).suffix, "c")
            known: dict[str, SourceFunction] = {}
            for each in source["functions"]:
                name = each.get("demangled_name") or each["name"]
                known[each["name"]] = function = SourceFunction(each["start_line"], name, language)
                count = self.functions.get((file, function), 0)
                self.functions[file, function] = count + _whole(each["execution_count"])
            for line in source["lines"]:
                function = known.get(line.get("function_name", ""), SourceFunction(0, "", language))
                part = self.lines.setdefault((file, line["line_number"]), {}).setdefault(function, _LinePart())
                # The outcomes without those of calls that may throw, which gcov also lists as branches.
                branches = list(line["branches"])
                kept = [not branch["throw"] for branch in branches]
                for at, branch in enumerate(branches):
                    if branch["throw"] and at and kept[at - 1] and branches[at - 1]["fallthrough"]:
                        kept[at - 1] = False
                outcomes = [_whole(branch["count"]) for branch, stays in zip(branches, kept, strict=True) if stays]
                part.add(_whole(line["count"]), outcomes)
        return files

    def counts(self) -> Counts:
        """The counts of all locations: the functions, then each line followed by the outcomes of its branches."""
        locations: list[Location] = []
        counts: list[int] = []
        for (file, function), count in sorted(self.functions.items()):
            locations.append(Location("function", function.name, file, function.line, function.name, function.language))
            counts.append(count)
        for (file, number), parts in sorted(self.lines.items()):
            inner = min(parts, key=lambda function: (-function.line, function.name))
            name = f"{PurePath(file).name}:{number}"
            place = (file, number, inner.name, inner.language)
            locations.append(Location("line", name, *place))
            counts.append(sum(part.count for part in parts.values()))
            # Outcomes of all instantiations of a function are added, function after function.
            functions: dict[str, _LinePart] = {}
            for function, part in sorted(parts.items(), key=lambda item: item[0]):
                functions.setdefault(function.plain, _LinePart()).add(0, part.branches)
            outcomes = [count for part in functions.values() for count in part.branches]
            locations += [Location("block", f"{name} branch {at}", *place) for at in range(1, len(outcomes) + 1)]
            counts += outcomes
        return Counts(tuple(locations), np.array(counts, dtype=np.int64))


def _whole(count: int) -> int:
    """A count; gcov may compute a negative one if threads without atomic counters lost some."""
    return max(int(count), 0)
