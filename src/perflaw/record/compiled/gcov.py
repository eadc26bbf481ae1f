"""Compiled programs recorded by gcc's coverage: the environment of a run, and what is read of it afterwards.

Goldsmith et al., FSE'07, §2.1: counts are exact and repeatable, and counting does not affect them. libgcov writes them
when the program ends by ``exit`` or before it becomes another by ``exec``, and adds to what is there; so the counts of
child processes that were built with coverage belong to the run.
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
from perflaw.record.compiled.elf import Instrumented
from perflaw.record.compiled.gcov_files import NotesFinder, Object, Places, find_gcov, read_documents, read_header
from perflaw.record.launch import Launch
from perflaw.record.python.interpreter import Interpreter
from perflaw.record.recorded import Counted, Reader, Recorded, empty_tree
from perflaw.record.records import Definitions, Ended, Process, Started
from perflaw.store.experiment import discard
from perflaw.types import Counts, Location

# ---- What gcov says of a run's object files, added up: counts of lines, of the outcomes of branches, and of
# functions.
#
# A line of a header is in every object file that includes it, and a line of a template in each of its instantiations:
# their counts are added. Locations and their order depend on the program alone, never on the counts.

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


# ---- What a run of a compiled program left behind, read: data files matched with their notes, sources with both.

_SOME: Final = 3
"""Names told of files that something is wrong with."""
_SLACK_S: Final = 1.0
"""A source file that is newer than its notes by no more than this may be of the same build: clocks of file systems."""


@dataclass(slots=True)
class Doubts:
    """Files that something is wrong with, by what is wrong."""

    torn: list[str] = field(default_factory=list)
    """Data files that are none."""
    missing: list[str] = field(default_factory=list)
    """Data files whose notes are not there."""
    stale: list[str] = field(default_factory=list)
    """Data files whose notes are of another build."""
    changed: list[str] = field(default_factory=list)
    """Source files newer than the program."""
    absent: list[str] = field(default_factory=list)
    """Source files that are not there."""

    def told(self) -> str:
        """All of it in words; empty where nothing is wrong."""
        said = [
            _said(self.missing, "not counted for want of notes (--notes DIR says where the .gcno files are)"),
            _said(self.stale, "not counted: its .gcno is of another build than the program"),
            _said(self.torn, "not counted: its .gcda is torn"),
            _said(self.changed, "changed since the program was built: line numbers are those of the build"),
            _said(self.absent, "source not found (--source-map OLD=NEW says where it is)"),
        ]
        return "; ".join(filter(None, said))

    def error(self, places: Places) -> TargetError:
        """Why nothing at all could be read."""
        if self.stale:
            why = "they are of another build than the program: it was compiled again, or they were, and not linked"
            remedy = "make clean && make CFLAGS='-O0 -g --coverage'"
            return TargetError(f"notes of {_named(self.stale)} do not belong to what was counted", why, remedy)
        if self.missing:
            return no_notes(self.missing[0], places)
        return TargetError("the counts cannot be read", f"damaged: {_named(self.torn) or 'gcov says nothing'}", "df -h")


def no_notes(data: str, places: Places) -> TargetError:
    """Notes that are not where they were made."""
    notes = data.removesuffix(".gcda") + ".gcno"
    if places.notes is not None:
        return TargetError(
            f"{Path(notes).name}: not below {places.notes}", "gcc writes it beside the object file", f"ls {notes}"
        )
    why = "the compiler's notes, without which counts have no lines, were removed or moved"
    return TargetError(f"{notes}: no such file", why, "perflaw record --collect lines --notes DIR -- …")


def _said(files: list[str], what: str) -> str:
    return f"{_named(files)}: {what}" if files else ""


def _named(files: list[str]) -> str:
    names = sorted({Path(file).name for file in files})
    more = len(names) - _SOME
    return ", ".join(names[:_SOME]) + (f" and {more} more" if more > 0 else "")


def read_counted(folder: Path, program: Path, places: Places, doubts: Doubts) -> Counted:
    """Everything counted below ``folder``; what is wrong with single files goes to ``doubts``.

    TargetError where nothing is left, or no gcov fits.
    """
    finder = NotesFinder(places, program)
    found = (_object(path, folder, finder, doubts) for path in sorted(folder.rglob("*.gcda")))
    objects = [one for one in found if one]
    sums, built = Sums(places), dict[str, float]()
    for major in sorted({one.major for one in objects}):
        its = [one for one in objects if one.major == major]
        for one, document in read_documents(find_gcov(major), its):
            made = one.notes.stat().st_mtime
            built.update({file: max(made, built.get(file, 0)) for file in sums.add(document)})
    if not built:
        raise doubts.error(places)
    return Counted(sums.counts(), _sources(built, doubts))


def _object(data: Path, folder: Path, finder: NotesFinder, doubts: Doubts) -> Object | None:
    """A data file with its notes; None where they do not come together."""
    header, name = read_header(data), "/" + str(data.relative_to(folder))
    if header is None:
        doubts.torn.append(name)
        return None
    notes, stale = finder.find(name, header.stamp)
    if notes is None or stale:
        (doubts.stale if stale else doubts.missing).append(name)
        return None
    return Object(data, notes, header.major)


def _sources(built: Mapping[str, float], doubts: Doubts) -> dict[str, str]:
    """Texts of the source files; ``built``: when the newest program of each was."""
    texts: dict[str, str] = {}
    for file, made in sorted(built.items()):
        path = Path(file)
        try:
            texts[file] = path.read_bytes().decode(errors="replace")
        except OSError:
            doubts.absent.append(file)
            continue
        if path.stat().st_mtime > made + _SLACK_S:
            doubts.changed.append(file)
    return texts


NO_INTERPRETER: Final = Interpreter("", "gcc", "", "", "")
_LANES: Final = ("time", "cpu", "events")
"""What every call tree has, the empty one too."""
_NO_COUNTS: Final = "no counts were written: the program did not end by exit (a signal, _exit, or still running)"


def launch_of(program: Instrumented, command: tuple[str, ...]) -> Launch:
    """The launch of a compiled program."""
    return Launch(command, command[1:], program.path.name, "", "", NO_INTERPRETER)


@dataclass(frozen=True, slots=True)
class GcovTracer:
    """libgcov counts in the target, gcov reads what it wrote."""

    program: Instrumented
    places: Places = Places()  # noqa: RUF009 (frozen)
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    reason: str = "execution counts by gcc's coverage"
    file: Path | None = None
    name: str = "gcov"
    module: str = ""

    def environment(self, spool: Path) -> dict[str, str]:
        """The person's own, but for where data files go: below ``spool``, never beside the object files."""
        env = {name: value for name, value in os.environ.items() if name != "GCOV_PREFIX_STRIP"}
        return {**env, "GCOV_PREFIX": str((spool / "gcov").resolve())}

    def check(self) -> None:
        """TargetError where the notes of everything that the program will count are missing, or no gcov can read them."""
        finder = NotesFinder(self.places, self.program.path)
        found = [finder.find(data, None)[0] for data in self.program.data]
        notes = next(filter(None, found), None)
        if found and notes is None:
            raise no_notes(self.program.data[0], self.places)
        header = read_header(notes) if notes else None
        if header:
            find_gcov(header.major)

    def reader(self, spool: Path, seed: int) -> Reader:
        """What reads the data files when the program has ended."""
        return _GcovReader(self, spool)


@dataclass(slots=True)
class _GcovReader:
    """Nothing arrives while the program runs."""

    tracer: GcovTracer
    spool: Path
    idle_s: float = 0.05
    paths: bool = False

    def step(self) -> int:
        """Nothing."""
        return 0

    def finish(self, pid: int) -> Iterator[Recorded]:
        """The program, children included; TargetError where counts were written that nothing can be made of."""
        folder = self.spool / "gcov"
        words: dict[str, str] = {}
        try:
            counted = self._counted(folder, words)
        except TargetError:
            discard(self.spool.parent)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        known = Definitions(metrics={}, words=words, process=Process(pid, 0, ()))
        known.started, known.ended = Started(0, 0, 0, ""), Ended(0, 0, 0, "", 0, 0, ())
        yield Recorded(known, empty_tree(_LANES), counted=counted)

    def _counted(self, folder: Path, words: dict[str, str]) -> Counted | None:
        """The counts below ``folder``, and in ``words`` what is missing of them; None where there are none."""
        if not any(folder.rglob("*.gcda")):
            words["end"] = words["lines"] = _NO_COUNTS
            return None
        doubts = Doubts()
        counted = read_counted(folder, self.tracer.program.path, self.tracer.places, doubts)
        if told := doubts.told():
            words["lines"] = told
        return Counted(self._selected(counted.counts), counted.sources)

    def _selected(self, counts: Counts) -> Counts:
        """Those of functions that were selected: by their whole name, or by it without parameters."""
        select, exclude = self.tracer.select, self.tracer.exclude
        if not select and not exclude:
            return counts
        stays = [number for number, one in enumerate(counts.locations) if _chosen(one.function, select, exclude)]
        return Counts(tuple(counts.locations[number] for number in stays), counts.counts[stays])


def _chosen(function: str, select: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    names = (function, function.partition("(")[0])
    wanted = not select or any(fnmatchcase(name, glob) for name in names for glob in select)
    return wanted and not any(fnmatchcase(name, glob) for name in names for glob in exclude)
