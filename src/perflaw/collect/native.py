"""Reads what the native tracer appends: a folder a process in the spool, a ring a thread in it, a call tree each in C."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perflaw.collect.core_library import Core
from perflaw.collect.definitions import DefinitionsReader
from perflaw.collect.layout import CPU_LANE
from perflaw.collect.line_counts import LineCounts, Owners, read_line_counts
from perflaw.collect.recorded import Counted, Recorded, empty_tree

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
