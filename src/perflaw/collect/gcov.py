"""Compiled programs recorded by gcc's coverage: the environment of a run, and what is read of it afterwards.

Goldsmith et al., FSE'07, §2.1: counts are exact and repeatable, and counting does not affect them. libgcov writes them
when the program ends by ``exit`` or before it becomes another by ``exec``, and adds to what is there; so the counts of
child processes that were built with coverage belong to the run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from perflaw.collect.definitions import Definitions, Ended, Process, Started
from perflaw.collect.gcov_files import NotesFinder, Places, read_header
from perflaw.collect.gcov_read import Doubts, no_notes, read_counted
from perflaw.collect.gcov_target import Instrumented
from perflaw.collect.gcov_tool import find_gcov
from perflaw.collect.interpreter import Interpreter
from perflaw.collect.launch import Launch
from perflaw.collect.recorded import Counted, Reader, Recorded, empty_tree
from perflaw.errors import TargetError
from perflaw.store.experiment import discard
from perflaw.types import Counts

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
