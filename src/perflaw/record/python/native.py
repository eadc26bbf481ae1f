"""Reads what the native tracer appends: a folder a process in the spool, a ring a thread in it, a call tree each in C."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

import numpy as np

from perflaw.record.recorded import Counted, Recorded, empty_tree
from perflaw.record.records import CPU_LANE, CountedCode, Definitions, DefinitionsReader
from perflaw.record.tree.core import Core
from perflaw.types import Component, Counts, Location

# ---- How often lines were executed: the counters that the native tracer kept in the spool, by source file and line.

_OUTCOMES: Final = ("not taken", "taken")
_NO_FILE: Final = np.zeros(0, dtype=np.uint64)
Place = tuple[str, int, str]
"""Source file, line, and which block of the line: empty for the line itself."""
Owners = dict[Place, Component]
"""The outermost function that has code at a place."""


@dataclass(slots=True)
class LineCounts:
    """What one process counted. Code objects that share a line (a lambda, a class) are added up."""

    counts: Counter[Place] = field(default_factory=Counter)
    """Executions, those of lines that never ran among them."""
    owners: Owners = field(default_factory=dict)
    """Which function each of them is told to lie in."""

    def add(self, code: CountedCode, component: Component, counters: Sequence[int]) -> None:
        """Take in the counters of one code object, in their order."""
        for line in code.lines:
            self._add(component, code.first + line, "", counters[line])
        for branch, line, rank in code.blocks:
            for taken, outcome in enumerate(_OUTCOMES):
                block = f"{f'_{rank}' * (rank > 1)} {outcome}"
                self._add(component, line, block, counters[code.span + 2 * branch + taken])

    def _add(self, component: Component, line: int, block: str, count: int) -> None:
        place = (component.file, line, block)
        self.counts[place] += count
        known = self.owners.setdefault(place, component)
        if (component.line, component.name.count(".")) < (known.line, known.name.count(".")):
            self.owners[place] = component

    def table(self, owners: Owners) -> Counts:
        """The same as it is kept. ``owners``: what an earlier process of the run said, which holds here too; it grows."""
        places = sorted(self.counts, key=lambda place: (place[0], place[1], place[2] != "", place[2]))
        for place in places:
            owners.setdefault(place, self.owners[place])
        locations = tuple(_location(place, owners[place]) for place in places)
        return Counts(locations, np.array([self.counts[place] for place in places], dtype=np.int64))

    def sources(self) -> dict[str, str]:
        """Text of each source file that can be read now; code made by ``exec`` has none."""
        return dict(_texts({file for file, _, _ in self.counts}))


def _location(place: Place, owner: Component) -> Location:
    file, line, block = place
    name = f"{PurePath(file).name or file}:{line}{block}"
    return Location("block" if block else "line", name, file, line, owner.name, owner.language)


def _texts(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    for file in sorted(files):
        with suppress(OSError, ValueError):  # it was never a file, or is gone
            yield file, Path(file).read_bytes().decode(errors="replace")


def read_line_counts(folder: Path, known: Definitions) -> LineCounts | None:
    """What the process of ``folder`` has counted; its files of counters are then removed. None where it counts nothing."""
    if not known.counted:
        return None
    counts, files = LineCounts(), {}
    for number in {code.file for code in known.counted}:
        with suppress(OSError):  # the program removed it
            path = folder / f"{number}.counts"
            files[number] = np.fromfile(path, dtype=np.uint64)
            path.unlink()
    for code in known.counted:
        end = code.place + code.span + 2 * (1 + max((branch for branch, _, _ in code.blocks), default=-1))
        counters = files.get(code.file, _NO_FILE)[code.place : end].tolist()
        if code.component in known.components and len(counters) == end - code.place:  # whole, in spite of the program
            counts.add(code, known.components[code.component], counters)
    return counts


LOOK_S, CHECK_S, GRACE_S = 0.001, 0.05, 0.5
"""How often new rings are looked for; how often it is asked who still lives; how long children may outlive the program."""


class Member:
    """One process of a recording."""

    def __init__(self, folder: Path, library: Path, seed: int, paths: bool = False) -> None:
        self.folder, self.library, self.seed, self.paths = folder, library, seed, paths
        self.pid, self.serial = map(int, folder.name.split("-"))
        self.definitions = DefinitionsReader(folder / "definitions")
        self.core: Core | None = None
        self.rings: set[str] = set()
        self.lines: LineCounts | None = None
        self.gone = False
        """Whether nothing can arrive any more, and everything was taken in."""

    def look(self) -> None:
        """Attach the rings that have appeared. All metrics are defined before the first of them, so the core is made then."""
        for name in sorted(set(_names(self.folder)) - self.rings):
            if name.endswith(".ring"):
                self.core = self.core or self._new_core()
                self.rings.add(name)
                with suppress(OSError):  # removed by the program since
                    self.core.attach(self.folder / name)

    def _new_core(self) -> Core:
        known = self.definitions.update()
        core = Core(self.library, self.seed, known.lanes())
        if self.paths:
            core.collect_paths(CPU_LANE in known.metrics)
        return core

    def step(self) -> int:
        """Take in records. What was not seen to begin may stand in a ring that is new."""
        if not self.core or self.gone:
            return 0
        taken = self.core.step()
        if self.core.asks():
            self.look()
            taken += self.core.step()
        return taken

    def take_rest(self) -> None:
        """The process has gone, or is to be left: take in what it wrote, and give its rings' memory and disk back."""
        if self.gone:
            return
        self.look()
        while self.step():
            pass
        self.lines = read_line_counts(self.folder, self.definitions.update())
        self.gone = True
        if self.core:
            self.core.leave()
        for name in self.rings:
            (self.folder / name).unlink(missing_ok=True)

    def alive(self) -> bool:
        """Whether the process still runs and records."""
        return not self.gone and self.definitions.update().ended is None and runs(self.pid)

    def recorded(self, parent: int | None, alive: bool, owners: Owners) -> Recorded:
        """What came of it. ``owners``: see :meth:`LineCounts.table`."""
        known = self.definitions.definitions
        tree = self.core.finish() if self.core else empty_tree(known.lanes())
        counted = Counted(self.lines.table(owners), self.lines.sources()) if self.lines else None
        return Recorded(known, tree, parent, alive, counted)


class NativeReader:
    """The reading side of a native recording: all processes of it."""

    idle_s = LOOK_S
    paths = False

    def __init__(self, spool: Path, seed: int, library: Path) -> None:
        self.spool, self.seed, self.library = spool, seed, library
        self.members: dict[str, Member] = {}
        self.next_look = self.next_check = 0.0

    def step(self) -> int:
        """Take in what has arrived; returns the number of records."""
        now = time.monotonic()
        if now >= self.next_look:
            self._look()
            self.next_look = now + LOOK_S
        if now >= self.next_check:
            self._check()
            self.next_check = now + CHECK_S
        return sum(member.step() for member in self.members.values())

    def finish(self, pid: int) -> Iterator[Recorded]:
        """See :class:`Reader`. Children that outlive the program are given a moment, then asked to record no more."""
        deadline = time.monotonic() + GRACE_S
        self._look()
        while time.monotonic() < deadline and any(one.alive() for one in self.members.values() if one.pid != pid):
            if not self.step():
                time.sleep(LOOK_S)
            self._look()
        alive = {name for name, member in self.members.items() if member.pid != pid and member.alive()}
        for name in alive:
            core = self.members[name].core
            if core:
                core.stop()
        for member in self.members.values():
            member.take_rest()
        members, owners = list(self.members.values()), Owners()
        for member, parent in family(members, pid):
            yield member.recorded(parent, member.folder.name in alive, owners)
            member.core = None
        if not members:
            known = DefinitionsReader(self.spool / "definitions").definitions
            yield Recorded(known, empty_tree(known.lanes()))

    def _look(self) -> None:
        for name in sorted(set(_names(self.spool)) - self.members.keys()):
            if name.replace("-", "").isdigit():
                self.members[name] = Member(self.spool / name, self.library, self.seed, self.paths)
        for member in self.members.values():
            if not member.gone:
                member.look()

    def _check(self) -> None:
        """Be done with processes that have gone: a program may have thousands of short-lived children."""
        newest = {member.pid: member.serial for member in sorted(self.members.values(), key=lambda one: one.serial)}
        for member in self.members.values():
            replaced = newest[member.pid] != member.serial  # by exec: the same process, another program
            if not member.gone and (replaced or not runs(member.pid)):
                member.take_rest()


def family(members: list[Member], pid: int) -> list[tuple[Member, int | None]]:
    """The processes, that of ``pid`` first, parents before children, each with the place of its parent in the list."""
    if not members:
        return []
    root = min(members, key=lambda one: (one.pid != pid, *_began(one), one.serial))
    order: list[tuple[Member, int | None]] = [(root, None)]
    left = sorted((one for one in members if one is not root), key=_began)
    parents = {id(one): parent_of(one, members) or root for one in left}
    for place, (parent, _) in enumerate(order):  # the list grows while it is read
        order += [(one, place) for one in left if parents[id(one)] is parent]
    known = {id(one) for one, _ in order}
    return order + [(one, 0) for one in left if id(one) not in known]  # numbers used again can make a circle


def parent_of(child: Member, members: list[Member]) -> Member | None:
    """The process that started this one; None where it was not recorded itself."""
    if child.serial > 1:
        return next((one for one in members if (one.pid, one.serial) == (child.pid, child.serial - 1)), None)
    process = child.definitions.definitions.process
    before = [one for one in members if process and one.pid == process.ppid and _began(one) <= _began(child)]
    return max(before, key=_began, default=None)


def _began(member: Member) -> tuple[bool, int]:
    """When it began to record, for sorting; those that never did are last."""
    started = member.definitions.definitions.started
    return (started is None, started.clock if started else 0)


def runs(pid: int) -> bool:
    """Whether a process runs; one that only waits to be asked for its status does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False  # it has gone
    return text[text.rfind(")") + 2 :][:1] not in ("Z", "X")


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (names alone are wanted, a thousand times a second)
    except OSError:
        return []  # removed by the program: what was attached before is read on
