"""Compiled programs recorded by clang's source-based coverage: the environment of a run, and what is read afterwards.

A program built with ``-fprofile-instr-generate -fcoverage-mapping`` writes its counters when it ends. ``llvm-profdata``
adds those of its processes up, and ``llvm-cov export`` lays them over the regions of the source that the compiler noted
in the program. The front end of clang inserts the counters, so that optimisation does not change them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.compiled.dwarf import demangled
from perflaw.record.compiled.gcov import LANGUAGES, CoverageReader, FileProblems, read_texts, selected
from perflaw.record.compiled.gcov_files import BuildPlaces
from perflaw.record.launch import Launch
from perflaw.record.reader import ExecutionCounts, Reader
from perflaw.types import Counts, Location

_VERSIONS: Final = ("", *(f"-{version}" for version in range(24, 10, -1)))
"""Suffixes under which distributions install LLVM's tools."""


@dataclass(frozen=True, slots=True)
class LlvmTools:
    """LLVM's tools of one version."""

    cov: str
    """``llvm-cov``."""
    profdata: str
    """``llvm-profdata``."""

    @classmethod
    def find(cls) -> LlvmTools:
        """The first that are on PATH; TargetError if there are none."""
        for suffix in _VERSIONS:
            cov, profdata = shutil.which(f"llvm-cov{suffix}"), shutil.which(f"llvm-profdata{suffix}")
            if cov and profdata:
                return cls(cov, profdata)
        why = "they read the counts of programs that clang compiled"
        raise TargetError("llvm-cov and llvm-profdata: not found", why, "sudo apt install llvm")

    def export(self, raw: Sequence[Path], objects: Sequence[Path], merged: Path) -> Mapping[str, Any]:
        """What all processes counted in these objects; TargetError if the tools fail, as those of an older LLVM do."""
        self._run(self.profdata, "merge", "-sparse", *map(str, raw), "-o", str(merged))
        more = [word for each in objects[1:] for word in ("-object", str(each))]
        text = self._run(self.cov, "export", "-skip-expansions", str(objects[0]), *more, f"-instr-profile={merged}")
        document: Mapping[str, Any] = json.loads(text)["data"][0]
        return document

    @staticmethod
    def _run(*command: str) -> bytes:
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            why = lines[-1] if lines else f"exit status {done.returncode}"
            raise TargetError(f"{command[0]}: failed", why, "use the LLVM of the clang that compiled the program")
        return done.stdout


@dataclass(frozen=True, slots=True)
class LlvmTracer:
    """Clang's counters count in the program; llvm-cov reads what they wrote."""

    objects: tuple[Path, ...]
    """The program or library first to be read, and further ones."""
    tools: LlvmTools
    """What reads them."""
    places: BuildPlaces
    """Present places of the files of the build."""
    select: tuple[str, ...] = ()
    """Globs of functions to keep; empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs of functions to leave out."""
    reason: str = "execution counts by clang's source-based coverage"
    name: str = "llvm-cov"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """The person's environment; each process writes a file of its own to the spool."""
        return {**os.environ, "LLVM_PROFILE_FILE": str(Path(settings["SPOOL"]) / "llvm" / "%p-%m.profraw")}

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the counters, which are there when the program has ended."""
        return CoverageReader(spool / "llvm", "*.profraw", self._read, FileProblems())

    def _read(self, folder: Path, problems: FileProblems) -> ExecutionCounts:
        """Everything counted in a folder, of the selected functions."""
        raw = sorted(folder.glob("*.profraw"))
        counts = counts_of(self.tools.export(raw, self.objects, folder / "merged.profdata"), self.places)
        built = max(each.stat().st_mtime for each in self.objects)
        sources = read_texts(dict.fromkeys((location.file for location in counts.locations), built), problems)
        return ExecutionCounts(selected(counts, self.select, self.exclude), sources)

    def tick_ns(self) -> None:
        """Nothing is timed."""


def llvm_tracer(
    objects: tuple[Path, ...], places: BuildPlaces, select: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> LlvmTracer:
    """The tracer of a program and libraries with clang's source-based coverage; TargetError without LLVM's tools."""
    return LlvmTracer(objects, LlvmTools.find(), places, select, exclude)


@dataclass(frozen=True, slots=True, order=True)
class _Body:
    """The body of a function."""

    first: int
    """Its first line."""
    last: int
    """Its last line."""
    count: int
    """Its executions."""
    name: str
    """Its name."""


def counts_of(document: Mapping[str, Any], places: BuildPlaces) -> Counts:
    """Counts of the functions, and of each line followed by the outcomes of its branches: true, false, for each."""
    bodies: dict[str, list[_Body]] = defaultdict(list)
    for function in document["functions"]:
        first, _, last, *_ = function["regions"][0]
        name = demangled(function["name"].rpartition(":")[2])  # functions of one file have its name before theirs
        bodies[function["filenames"][0]].append(_Body(first, last, function["count"], name))
    locations: list[Location] = []
    counts: list[int] = []

    def add(kind: str, name: str, file: str, line: int, function: str, language: str, count: int) -> None:
        locations.append(Location(kind, name, file, line, function, language))
        counts.append(count)

    of_lines: list[tuple[str, int, _Body | None, str, int, list[int]]] = []
    for source in sorted(document["files"], key=lambda source: str(source["filename"])):
        file = places.now(source["filename"])
        mangled = any("(" in body.name for body in bodies[source["filename"]])
        language = "c++" if mangled else LANGUAGES.get(PurePath(file).suffix, "c")
        for body in sorted(set(bodies[source["filename"]])):
            add("function", body.name, file, body.first, body.name, language, body.count)
        outcomes: dict[int, list[int]] = defaultdict(list)
        for branch in sorted(source.get("branches", ()), key=lambda branch: branch[:2]):
            outcomes[branch[0]] += branch[4:6]
        for line, count in sorted(line_counts(source["segments"]).items()):
            # Of functions that one piece of source makes, such as instantiations, the one that ran most.
            around = (body for body in bodies[source["filename"]] if body.first <= line <= body.last)
            inner = max(around, key=lambda body: (body.first, body.count, body.name), default=None)
            if inner is not None:
                of_lines.append((file, line, inner, language, count, outcomes[line]))
    for file, line, inner, language, count, ways in of_lines:
        name, function = f"{PurePath(file).name}:{line}", inner.name if inner else ""
        add("line", name, file, line, function, language, count)
        for at, way in enumerate(ways, 1):
            add("block", f"{name} branch {at}", file, line, function, language, way)
    return Counts(tuple(locations), np.array(counts, dtype=np.int64))


def line_counts(segments: Sequence[Sequence[Any]]) -> dict[int, int]:
    """Executions of each line that has code: the most of the regions that begin on it and of the one that it goes on.

    A segment is (line, column, count, whether it has one, whether a region begins, whether that is a gap). This is the
    rule of ``llvm-cov show`` (LineCoverageStats in CoverageMapping.cpp).

    >>> line_counts([[4, 1, 1, True, True, False], [5, 9, 7, True, True, False], [5, 20, 1, True, False, False],
    ...              [7, 2, 0, False, False, False]])
    {4: 1, 5: 7, 6: 1, 7: 1}
    """
    by_line: dict[int, list[Sequence[Any]]] = defaultdict(list)
    for segment in segments:
        by_line[segment[0]].append(segment)
    counts: dict[int, int] = {}
    wrapped: Sequence[Any] | None = None
    for line in range(min(by_line, default=0), max(by_line, default=-1) + 1):
        here = by_line.get(line, [])
        begins = [segment for segment in here if segment[3] and segment[4] and not segment[5]]
        is_skipped = bool(here) and not here[0][3] and here[0][4]
        if not is_skipped and (begins or (wrapped is not None and wrapped[3])):
            counts[line] = max([segment[2] for segment in begins] + ([wrapped[2]] if wrapped is not None else []))
        wrapped = here[-1] if here else wrapped
    return counts
