"""Compiled programs recorded by gcc's coverage: the environment of a run, and what is read afterwards.

Counts are exact and repeatable, and counting does not change them (Goldsmith et al., FSE'07, §2.1). libgcov writes them
when the program ends by ``exit`` or before it becomes another program by ``exec``, and adds to existing files; so the
counts of child processes built with coverage belong to the run.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.compiled.gcov_files import (
    BuildPlaces,
    CountedObject,
    CountedProgram,
    NotesFinder,
    counted_program,
    find_gcov,
    read_documents,
    read_header,
)
from perflaw.record.launch import Launch
from perflaw.record.reader import ExecutionCounts, Reader, RecordedProcess, empty_tree
from perflaw.record.tree.records import definitions_without_tracer
from perflaw.store.experiment import discard
from perflaw.types import Counts, Location

# ---- gcov's documents of a run's object files, added up: counts of functions, lines and outcomes of branches. A line of a
# header is in every object file that includes it, and a line of a template in each of its instantiations: their counts are
# added. Locations and their order depend on the program only, never on the counts.

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


# ---- The environment of a run, and what is read after it.

_NO_COUNTS: Final = "no counts were written: the program did not end by exit (a signal, _exit, or still running)"
_NAMED_FILES: Final = 3
"""Number of files that a message names."""
_SLACK_S: Final = 1.0
"""A source file may be newer than its notes by this much and still be of the same build: file systems' clocks differ."""


@dataclass(frozen=True, slots=True)
class GcovTracer:
    """libgcov counts in the program; gcov reads what it wrote."""

    program: CountedProgram
    """The program."""
    places: BuildPlaces
    """Present places of the files of its build."""
    select: tuple[str, ...] = ()
    """Globs of functions to keep; empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs of functions to leave out."""
    reason: str = "execution counts by gcc's coverage"
    name: str = "gcov"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """The person's environment; data files go to the spool, never beside the object files."""
        env = {name: value for name, value in os.environ.items() if name != "GCOV_PREFIX_STRIP"}
        return {**env, "GCOV_PREFIX": str(Path(settings["SPOOL"]) / "gcov")}

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the data files, which are there when the program has ended."""
        return _GcovReader(self, spool)

    def tick_ns(self) -> None:
        """Nothing is timed."""


def gcov_tracer(
    path: Path, places: BuildPlaces, select: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> GcovTracer:
    """The tracer of a program that counts its lines.

    TargetError if it does not count, if all notes of what it will count are missing, or if no gcov can read them.
    """
    program = counted_program(path)
    finder = NotesFinder(places, path)
    notes = [finder.find(data, None)[0] for data in program.data]
    existing = next(filter(None, notes), None)
    if notes and existing is None:
        raise _no_notes(program.data[0], places)
    header = read_header(existing) if existing else None
    if header:
        find_gcov(header.major)
    return GcovTracer(program, places, select, exclude)


def _no_notes(data: str, places: BuildPlaces) -> TargetError:
    """Why the notes of a data file are missing, and what to do."""
    notes = data.removesuffix(".gcda") + ".gcno"
    if places.notes is not None:
        why = "gcc writes it beside the object file"
        return TargetError(f"{Path(notes).name}: not below {places.notes}", why, f"ls {notes}")
    why = "the compiler's notes, without which counts have no lines, were removed or moved"
    return TargetError(f"{notes}: no such file", why, "perflaw record --collect lines --notes DIR -- …")


@dataclass(slots=True)
class _GcovReader:
    """Reads nothing while the program runs, and its data files afterwards."""

    tracer: GcovTracer
    spool: Path
    idle_s: float = 0.05
    paths: bool = False

    def step(self) -> int:
        """Nothing arrives while the program runs."""
        return 0

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """The program, its children included; TargetError if counts were written that cannot be read."""
        folder = self.spool / "gcov"
        known = definitions_without_tracer(pid)
        known.metrics = {}
        counted = None
        if any(folder.rglob("*.gcda")):
            problems = FileProblems()
            try:
                counted = read_counts(folder, self.tracer, problems)
            except TargetError:
                discard(self.spool.parent)
                raise
            if message := problems.message():
                known.words["lines"] = message
        else:
            known.words["end"] = known.words["lines"] = _NO_COUNTS
        shutil.rmtree(folder, ignore_errors=True)
        yield RecordedProcess(known, empty_tree(), counted=counted)


@dataclass(slots=True)
class FileProblems:
    """Files that something is wrong with."""

    torn: list[str] = field(default_factory=list)
    """Data files that are damaged."""
    missing: list[str] = field(default_factory=list)
    """Data files whose notes are missing."""
    stale: list[str] = field(default_factory=list)
    """Data files whose notes are of another build."""
    changed: list[str] = field(default_factory=list)
    """Source files newer than the program."""
    absent: list[str] = field(default_factory=list)
    """Source files that do not exist."""

    def message(self) -> str:
        """All problems in words; empty if there is none."""
        problems = (
            (self.missing, "not counted because notes are missing (--notes DIR says where the .gcno files are)"),
            (self.stale, "not counted: its .gcno is of another build than the program"),
            (self.torn, "not counted: its .gcda is torn"),
            (self.changed, "changed since the program was built: line numbers are those of the build"),
            (self.absent, "source not found (--source-map OLD=NEW says where it is)"),
        )
        return "; ".join(f"{_names(files)}: {problem}" for files, problem in problems if files)

    def error(self, places: BuildPlaces) -> TargetError:
        """Why nothing at all could be read."""
        if self.stale:
            why = "they are of another build than the program: it was compiled again, or they were, and not linked"
            remedy = "make clean && make CFLAGS='-O0 -g --coverage'"
            return TargetError(f"notes of {_names(self.stale)} do not belong to what was counted", why, remedy)
        if self.missing:
            return _no_notes(self.missing[0], places)
        why = f"damaged: {_names(self.torn) or 'gcov says nothing'}"
        return TargetError("the counts cannot be read", why, "df -h")


def _names(files: list[str]) -> str:
    """Names of the first files, and the number of the others."""
    names = sorted({Path(file).name for file in files})
    more = len(names) - _NAMED_FILES
    return ", ".join(names[:_NAMED_FILES]) + (f" and {more} more" if more > 0 else "")


def read_counts(folder: Path, tracer: GcovTracer, problems: FileProblems) -> ExecutionCounts:
    """Everything counted below ``folder``, of the selected functions; adds to ``problems``.

    TargetError if nothing can be read, or no gcov fits.
    """
    finder = NotesFinder(tracer.places, tracer.program.path)
    objects = []
    for data in sorted(folder.rglob("*.gcda")):
        header, name = read_header(data), "/" + str(data.relative_to(folder))
        if header is None:
            problems.torn.append(name)
            continue
        notes, stale = finder.find(name, header.stamp)
        if notes is None or stale:
            (problems.stale if stale else problems.missing).append(name)
        else:
            objects.append(CountedObject(data, notes, header.major))
    sums, built = CountSums(tracer.places), dict[str, float]()
    for major in sorted({each.major for each in objects}):
        for each, document in read_documents(find_gcov(major), [each for each in objects if each.major == major]):
            made = each.notes.stat().st_mtime
            built.update({file: max(made, built.get(file, 0)) for file in sums.add(document)})
    if not built:
        raise problems.error(tracer.places)
    sources: dict[str, str] = {}  # source file → its text
    for file, made in sorted(built.items()):
        path = Path(file)
        try:
            sources[file] = path.read_bytes().decode(errors="replace")
        except OSError:
            problems.absent.append(file)
            continue
        if path.stat().st_mtime > made + _SLACK_S:
            problems.changed.append(file)
    counts = sums.counts()
    if tracer.select or tracer.exclude:
        locations = counts.locations
        kept = []
        for at, place in enumerate(locations):
            names = (place.function, place.function.partition("(")[0])  # whole, and without parameters
            selected = not tracer.select or any(fnmatchcase(name, glob) for name in names for glob in tracer.select)
            if selected and not any(fnmatchcase(name, glob) for name in names for glob in tracer.exclude):
                kept.append(at)
        counts = Counts(tuple(locations[at] for at in kept), counts.counts[kept])
    return ExecutionCounts(counts, sources)
