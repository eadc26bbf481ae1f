"""Compiled programs recorded by gcc's coverage: the environment of a run, and what is read afterwards.

Counts are exact and repeatable, and counting does not change them (Goldsmith et al., FSE'07, §2.1). libgcov writes them
when the program ends by ``exit`` or before it becomes another program by ``exec``, and adds to existing files; so the
counts of child processes built with coverage belong to the run.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import zip_longest
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.compiled.gcov_files import (
    BuildPlaces,
    CountedObject,
    CountedProgram,
    NotedFunction,
    NotesFinder,
    alone,
    apart,
    counted_program,
    find_gcov,
    noted_functions,
    optimisation,
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


Included = Mapping[str, AbstractSet[int]]
"""Source file, as gcov names it → lines of it that functions of other files include."""


class CountSums:
    """Counts of a run, added up over its object files."""

    def __init__(self, places: BuildPlaces) -> None:
        self.places = places
        self.lines: dict[tuple[str, int], dict[SourceFunction, _LinePart]] = {}
        """(file, line) → function → its part."""
        self.functions: dict[tuple[str, SourceFunction], int] = {}
        """(file, function) → executions."""

    def add(self, document: Mapping[str, Any], included: Included | None = None) -> list[str]:
        """Add gcov's document of one object file, without lines of ``included`` files; the present places of its sources."""
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
            elsewhere = included.get(source["file"], ()) if included else ()
            for line in source["lines"]:
                if line["line_number"] in elsewhere and "function_name" not in line:
                    continue
                function = known.get(line.get("function_name", ""), SourceFunction(0, "", language))
                self._add_line(file, line, function)
        return files

    def add_included(self, document: Mapping[str, Any], group: Iterable[NotedFunction]) -> None:
        """Add the lines that functions include from other files, of gcov's document of these functions alone."""
        folder = str(document.get("current_working_directory", ""))
        functions = [each for source in document["files"] for each in source["functions"]]
        shown = {each["name"]: each.get("demangled_name") or each["name"] for each in functions}
        language = "c++" if any(name.startswith("_Z") for name in shown) else "c"
        for source in document["files"]:
            file = self.places.now(os.path.normpath(os.path.join(folder, source["file"])))  # noqa: PTH118 (a path of elsewhere)
            for function in group:
                numbers = function.included.get(source["file"], ())
                for line in source["lines"]:
                    if line["line_number"] in numbers and "function_name" not in line:
                        name = shown.get(function.name, function.name)
                        self._add_line(file, line, SourceFunction(0, name, language))

    def _add_line(self, file: str, line: Mapping[str, Any], function: SourceFunction) -> None:
        """Add a function's part in a line."""
        part = self.lines.setdefault((file, line["line_number"]), {}).setdefault(function, _LinePart())
        branches = line["branches"]
        if not branches and not part.count and not part.branches:
            part.count = _whole(line["count"])
            return
        # The outcomes without those of calls that may throw, which gcov also lists as branches.
        kept = [not branch["throw"] for branch in branches]
        for at, branch in enumerate(branches):
            if branch["throw"] and at and kept[at - 1] and branches[at - 1]["fallthrough"]:
                kept[at - 1] = False
        outcomes = [_whole(branch["count"]) for branch, stays in zip(branches, kept, strict=True) if stays]
        part.add(_whole(line["count"]), outcomes)

    def counts(self) -> Counts:
        """The counts of all locations: the functions, then each line followed by the outcomes of its branches."""
        locations: list[Location] = []
        counts: list[int] = []
        for (file, function), count in sorted(self.functions.items()):
            locations.append(Location("function", function.name, file, function.line, function.name, function.language))
            counts.append(count)
        short = {file: PurePath(file).name for file in {file for file, _ in self.lines}}
        for (file, number), all_parts in sorted(self.lines.items(), key=lambda item: item[0]):
            homes = _homes(all_parts)
            for parts in homes:
                inner = min(parts, key=lambda function: (-function.line, function.name))
                name = f"{short[file]}:{number}"
                if len(homes) > 1:
                    name += f" ({inner.plain})"
                place = (file, number, inner.name, inner.language)
                locations.append(Location("line", name, *place))
                counts.append(sum(part.count for part in parts.values()))
                # Outcomes of all instantiations of a function are added, function after function.
                outcomes = parts[inner].branches
                if len(parts) > 1:
                    functions: dict[str, _LinePart] = {}
                    for function, part in sorted(parts.items(), key=lambda item: item[0]):
                        functions.setdefault(function.plain, _LinePart()).add(0, part.branches)
                    outcomes = [count for part in functions.values() for count in part.branches]
                locations += [Location("block", f"{name} branch {at}", *place) for at in range(1, len(outcomes) + 1)]
                counts += outcomes
        return Counts(tuple(locations), np.array(counts, dtype=np.int64))


def _homes(parts: Mapping[SourceFunction, _LinePart]) -> list[dict[SourceFunction, _LinePart]]:
    """The parts of a line by the function that it lies in: several if a file is included several times.

    Then several functions begin on the same line of the file, or the file is included within several functions. Of
    functions that begin on different lines one contains the others, and instantiations of a template are one function.
    """
    if len(parts) == 1:
        return [dict(parts)]
    last = max(function.line for function in parts)
    names = dict.fromkeys(function.plain for function in sorted(parts) if function.line == last)
    homes: dict[str, dict[SourceFunction, _LinePart]] = {name: {} for name in names}
    first = next(iter(homes))
    for function, part in parts.items():
        homes[function.plain if function.line == last else first][function] = part
    return list(homes.values())


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
    optimised: str = ""
    """How the program was optimised (``-O2``); empty if it was not."""
    reason: str = "execution counts by gcc's coverage"
    name: str = "gcov"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """The person's environment; data files go to the spool, never beside the object files."""
        env = {name: value for name, value in os.environ.items() if name != "GCOV_PREFIX_STRIP"}
        return {**env, "GCOV_PREFIX": str(Path(settings["SPOOL"]) / "gcov")}

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the data files, which are there when the program has ended."""
        problems = FileProblems(optimised=self.optimised)
        return CoverageReader(spool / "gcov", "*.gcda", partial(read_counts, self), problems)

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
    return GcovTracer(program, places, select, exclude, optimisation(path))


def _no_notes(data: str, places: BuildPlaces) -> TargetError:
    """Why the notes of a data file are missing, and what to do."""
    notes = data.removesuffix(".gcda") + ".gcno"
    if places.notes is not None:
        why = "gcc writes it beside the object file"
        return TargetError(f"{Path(notes).name}: not below {places.notes}", why, f"ls {notes}")
    why = "the compiler's notes, without which counts have no lines, were removed or moved"
    return TargetError(f"{notes}: no such file", why, "perflaw record --collect lines --notes DIR -- …")


@dataclass(slots=True)
class CoverageReader:
    """Reads nothing while the program runs, and afterwards the files that a compiler's coverage wrote."""

    folder: Path
    """Folder of the spool that the files are written to."""
    files: str
    """Glob of the files."""
    read: Callable[[Path, FileProblems], ExecutionCounts]
    """Function that reads the counts below a folder and adds to the problems; TargetError if nothing can be read."""
    problems: FileProblems
    """What is wrong with the files; how the program was optimised is known before they are read."""
    idle_s: float = 0.05
    paths: bool = False

    def step(self) -> int:
        """Nothing arrives while the program runs."""
        return 0

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """The program, its children included; TargetError if counts were written that cannot be read."""
        known = definitions_without_tracer(pid)
        known.metrics = {}
        counted = None
        if any(self.folder.rglob(self.files)):
            try:
                counted = self.read(self.folder, self.problems)
            except TargetError:
                discard(self.folder.parent.parent)
                raise
            if message := self.problems.message():
                known.words["lines"] = message
        else:
            known.words["end"] = known.words["lines"] = _NO_COUNTS
        shutil.rmtree(self.folder, ignore_errors=True)
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
    optimised: str = ""
    """How the program was optimised; empty if it was not."""

    def message(self) -> str:
        """All problems in words; empty if there is none."""
        problems = (
            (self.missing, "not counted because notes are missing (--notes DIR says where the .gcno files are)"),
            (self.stale, "not counted: its .gcno is of another build than the program"),
            (self.torn, "not counted: its .gcda is torn"),
            (self.changed, "changed since the program was built: line numbers are those of the build"),
            (self.absent, "source not found (--source-map OLD=NEW says where it is)"),
        )
        told = [f"{_names(files)}: {problem}" for files, problem in problems if files]
        if self.optimised:
            told.append(f"built with {self.optimised}: some lines count elsewhere or not at all; build with -O0")
        return "; ".join(told)

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


def read_counts(tracer: GcovTracer, folder: Path, problems: FileProblems) -> ExecutionCounts:
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
        gcov = find_gcov(major)
        for each, document in read_documents(gcov, [each for each in objects if each.major == major]):
            made, groups = each.notes.stat().st_mtime, list[list[NotedFunction]]()
            if any("function_name" not in line for source in document["files"] for line in source["lines"]):
                groups = apart(noted_functions(each.notes, major))
            included: dict[str, set[int]] = {}
            for function in (function for group in groups for function in group):
                for file, numbers in function.included.items():
                    included.setdefault(file, set()).update(numbers)
            built.update({file: max(made, built.get(file, 0)) for file in sums.add(document, included)})
            with TemporaryDirectory(prefix="perflaw-gcov-") as apart_folder:
                parts = [alone(each, group, Path(apart_folder) / str(i)) for i, group in enumerate(groups)]
                for part, of_group in read_documents(gcov, parts):
                    sums.add_included(of_group, groups[parts.index(part)])
    if not built:
        raise problems.error(tracer.places)
    sources = read_texts(built, problems)
    return ExecutionCounts(selected(sums.counts(), tracer.select, tracer.exclude), sources)


def read_texts(built: Mapping[str, float], problems: FileProblems) -> dict[str, str]:
    """Source file → its text, of files and when they were built; adds those that changed or are gone to ``problems``."""
    sources: dict[str, str] = {}
    for file, made in sorted(built.items()):
        path = Path(file)
        try:
            changed = path.stat().st_mtime
            sources[file] = path.read_bytes().decode(errors="replace")
        except OSError:  # reported below the recording: "source not found"
            problems.absent.append(file)
            continue
        if changed > made + _SLACK_S:
            problems.changed.append(file)
    return sources


def selected(counts: Counts, select: Sequence[str], exclude: Sequence[str]) -> Counts:
    """The counts of functions that one of ``select`` matches, all if there is none, and none of ``exclude``."""
    if not select and not exclude:
        return counts
    kept = []
    for at, place in enumerate(counts.locations):
        names = (place.function, place.function.partition("(")[0])  # whole, and without parameters
        is_selected = not select or any(fnmatchcase(name, glob) for name in names for glob in select)
        if is_selected and not any(fnmatchcase(name, glob) for name in names for glob in exclude):
            kept.append(at)
    return Counts(tuple(counts.locations[at] for at in kept), counts.counts[kept])
