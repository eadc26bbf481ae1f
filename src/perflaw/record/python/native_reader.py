"""Reads what the native tracer and the hooks append: a folder for each process in the spool, in it a ring for each thread.

Each process has a call tree, which the C core builds. Counters of executed lines are added up by source file and line.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from perflaw.record.machine import stat_of
from perflaw.record.reader import ExecutionCounts, RecordedProcess, empty_tree
from perflaw.record.rights import OWN, PASSING, Rights, read_regular
from perflaw.record.tree.core import Core, load
from perflaw.record.tree.records import CPU_LANE, CountedCode, Definitions, DefinitionsReader, TreeLimits
from perflaw.types import Component

if TYPE_CHECKING:
    from perflaw.types import Counts

LOOK_S: Final = 0.001
"""Interval at which new processes and rings are looked for."""
MAX_PAUSE_S: Final = 0.016
"""Longest pause between two turns of reading where all rings are large; a turn costs the recorder some 0.1 ms."""
LARGE_RING: Final = 1 << 22
"""Bytes of a large ring (native/*/threads.c)."""
MUCH: Final = 2048
"""More new records than this in a turn shorten the pause, and much fewer lengthen it: a full ring stops the program."""
CLOCK_STEP_NS: Final = 2_000_000_000
"""A folder that changed no longer ago is read again: the clocks of file systems have steps, some of them of a second."""
CHECK_S: Final = 0.05
"""Interval at which ended processes are looked for."""
_ATTEMPTS, _PAUSE_S = 20, 0.05
"""How often and at which interval the last rings of a process are looked for."""
_FOLDER: Final = re.compile(r"[0-9]+-[0-9]+")
"""Names of processes' folders: process id and a number."""
GRACE_S: Final = 0.5
"""Time for which children may outlive the program and still be recorded."""


class ProcessSpool:
    """The spool folder of one process: its definitions, its rings, and the call tree built from them."""

    def __init__(self, folder: Path, reader: NativeReader) -> None:
        self.folder, self.library, self.seed, self.rights = folder, reader.library, reader.seed, reader.rights
        self.paths, self.limits = reader.paths, reader.limits
        self.pid, self.serial = map(int, folder.name.split("-"))
        self.definitions, self.listing = DefinitionsReader(folder / "definitions"), Listing(folder)
        self.core: Core | None = None
        self.rings: set[str] = set()
        self.smallest_ring = LARGE_RING
        """Bytes of its smallest ring."""
        self.lines: LineCounts | None = None
        self.gone = False
        """Whether nothing can arrive any more and everything has been read."""

    def look(self) -> None:
        """Attach new rings. All metrics are defined before the first ring appears, so the core is made then."""
        for name in sorted(self.listing.names() - self.rings):
            if name.endswith(".ring"):
                if self.core is None:
                    known = self.definitions.update()
                    self.core = Core(self.library, self.seed, known.lanes(), self.limits)
                    if self.paths:
                        self.core.collect_paths(CPU_LANE in known.metrics)
                try:
                    self.core.attach(self.folder / name)
                except OSError as error:
                    if error.errno in PASSING:  # it is tried again at the next look
                        self.listing.forget()
                        continue
                self.rings.add(name)
                with suppress(OSError):  # the program removed it
                    self.smallest_ring = min(self.smallest_ring, (self.folder / name).stat().st_size)

    def step(self) -> int:
        """Read records. One that waits for an unknown entry may find it in a new ring."""
        if not self.core or self.gone:
            return 0
        taken = self.core.step()
        if self.core.asks():
            self.look()
            taken += self.core.step()
        return taken

    def take_rest(self) -> None:
        """Read everything that is left of a process that has ended, or is left alone; free its memory and disk."""
        if self.gone:
            return
        self.look()
        while self.step():
            pass
        self._require_rings()
        self.lines = read_line_counts(self.folder, self.definitions.update())
        self.gone = True
        if self.core:
            self.core.leave()
        for name in self.rings:
            (self.folder / name).unlink(missing_ok=True)

    def _require_rings(self) -> None:
        """MemoryError if a ring could not be mapped, with no descriptor or memory of the recorder's left for it."""
        for _ in range(_ATTEMPTS):
            if all(name in self.rings for name in _names(self.folder) if name.endswith(".ring")):
                return
            time.sleep(_PAUSE_S)
            self.listing.forget()
            self.look()
            while self.step():
                pass
        raise MemoryError(f"{self.folder}: records that cannot be mapped")

    def alive(self) -> bool:
        """Whether the process still runs and records."""
        return not self.gone and self.definitions.update().ended is None and is_running(self.pid)

    def recorded(self, parent: int | None, alive: bool, owners: LineOwners) -> RecordedProcess:
        """Everything recorded of the process. ``owners``: see :meth:`LineCounts.table`."""
        known = self.definitions.definitions
        tree = self.core.finish() if self.core else empty_tree(known.lanes())
        self.core = None
        counted = None
        if self.lines:
            with self.rights:
                sources = self.lines.sources()
            counted = ExecutionCounts(self.lines.table(owners), sources)
        return RecordedProcess(known, tree, parent, alive, counted)

    @property
    def began(self) -> tuple[bool, int]:
        """When it began to record, for sorting; processes that never did come last."""
        started = self.definitions.definitions.started
        return (started is None, started.clock if started else 0)


class NativeReader:
    """Reads the recording of a program and its child processes."""

    idle_s = LOOK_S
    paths = False

    def __init__(
        self, spool: Path, seed: int, library: Path, rights: Rights = OWN, limits: TreeLimits | None = None
    ) -> None:
        """``rights``: with whose rights the files of the spool are opened; ``limits``: of each process's call tree."""
        self.spool, self.seed, self.library, self.rights, self.limits = spool, seed, library, rights, limits
        load(library)  # now, with our own rights
        self.processes: dict[str, ProcessSpool] = {}
        self.listing = Listing(spool)
        self.next_look = self.next_check = 0.0
        self.pause_s = LOOK_S
        """How long to wait until the next turn: as long as leaves most of every ring free."""

    def step(self) -> int:
        """Read what has arrived; returns the number of records."""
        now = time.monotonic()
        if now >= self.next_look:
            self._look()
            self.next_look = now + LOOK_S
        with self.rights:
            taken = self._take(now)
        self._set_pause(taken)
        return taken

    def _set_pause(self, taken: int) -> None:
        """Set the pause after a turn that read so many records."""
        if taken > MUCH:
            self.pause_s /= 2
        elif taken < MUCH // 4:
            self.pause_s *= 2
        smallest = min((one.smallest_ring for one in self.processes.values() if not one.gone), default=LARGE_RING)
        self.pause_s = max(min(self.pause_s, MAX_PAUSE_S * smallest / LARGE_RING), self.idle_s)

    def _take(self, now: float) -> int:
        """Read from what is known; returns the number of records."""
        if now >= self.next_check:
            # Processes that have ended are finished now: a program may have thousands of short-lived children.
            newest = {one.pid: one.serial for one in sorted(self.processes.values(), key=lambda one: one.serial)}
            for process in self.processes.values():
                process.definitions.update()  # now, on another CPU than the program's, rather than when it has ended
                replaced = newest[process.pid] != process.serial  # by exec: the same process runs another program
                if not process.gone and (replaced or not is_running(process.pid)):
                    process.take_rest()
            self.next_check = now + CHECK_S
        return sum(process.step() for process in self.processes.values())

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """See :class:`Reader`. Children that outlive the program get a moment, then are asked to stop recording."""
        deadline = time.monotonic() + GRACE_S
        self._look()
        while time.monotonic() < deadline and self._children_alive(pid):
            if not self.step():
                time.sleep(LOOK_S)
            self._look()
        alive = self._children_alive(pid)
        for name in alive:
            core = self.processes[name].core
            if core:
                core.stop()
        with self.rights:
            for process in self.processes.values():
                process.take_rest()
        owners: LineOwners = {}
        for process, parent in _with_parents(list(self.processes.values()), pid):
            yield process.recorded(parent, process.folder.name in alive, owners)
        if not self.processes:
            known = DefinitionsReader(self.spool / "definitions").definitions
            yield RecordedProcess(known, empty_tree(known.lanes()))

    def _children_alive(self, pid: int) -> set[str]:
        """Folders of the processes that still run and record, without that of ``pid``."""
        with self.rights:
            return {name for name, process in self.processes.items() if process.pid != pid and process.alive()}

    def _look(self) -> None:
        with self.rights:
            for name in sorted(self.listing.names() - self.processes.keys()):
                if _FOLDER.fullmatch(name):
                    folder = self.spool / name
                    self.processes[name] = ProcessSpool(folder, self)
            for process in self.processes.values():
                if not process.gone:
                    process.look()


def _with_parents(processes: list[ProcessSpool], pid: int) -> list[tuple[ProcessSpool, int | None]]:
    """The processes, that of ``pid`` first, parents before children, each with the index of its parent in the list."""
    if not processes:
        return []
    root = min(processes, key=lambda one: (one.pid != pid, *one.began, one.serial))
    order: list[tuple[ProcessSpool, int | None]] = [(root, None)]
    left = sorted((one for one in processes if one is not root), key=lambda one: one.began)
    parents = {}
    for child in left:
        if child.serial > 1:  # the process as it was before exec
            earlier = [one for one in processes if (one.pid, one.serial) == (child.pid, child.serial - 1)]
        else:
            identity = child.definitions.definitions.process
            earlier = [one for one in processes if identity and one.pid == identity.ppid and one.began <= child.began]
        # A child whose parent was not recorded belongs to the program.
        parents[id(child)] = max(earlier, key=lambda one: one.began, default=root)
    for place, (parent, _) in enumerate(order):  # the list grows during the loop
        order += [(one, place) for one in left if parents[id(one)] is parent]
    known = {id(one) for one, _ in order}
    return order + [(one, 0) for one in left if id(one) not in known]  # reused process ids can form a circle


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie, which only waits for its parent to read its status, does not."""
    return stat_of(pid)[:1] not in ([], ["Z"], ["X"])


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (only names are needed, a thousand times a second)
    except OSError:
        return []  # the program removed it; rings that are attached stay readable


class Listing:
    """Names in a folder, read again where its time of change says that there may be new ones: that costs a tenth."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.changed = str(folder), 0

    def names(self) -> set[str]:
        """All names if there may be new ones since the last call; else none."""
        try:
            changed = os.stat(self.folder).st_mtime_ns  # noqa: PTH116 (a thousand times a second)
        except OSError:
            return set()  # the program removed it; rings that are attached stay readable
        if changed == self.changed:
            return set()
        # Clocks of file systems have steps: another name may come at the same time.
        self.changed = changed if abs(time.time_ns() - changed) > CLOCK_STEP_NS else 0
        return set(_names(Path(self.folder)))

    def forget(self) -> None:
        """Have the next call read the folder."""
        self.changed = 0


_OUTCOMES: Final = ("not taken", "taken")
SourcePlace = tuple[str, int, str]
"""Source file, line, and block of the line; empty for the line itself."""
LineOwners = dict[SourcePlace, Component]
"""The outermost function that has code at a place."""


@dataclass(slots=True)
class LineCounts:
    """Executions counted in one process. Code objects that share a line (a lambda, a class) are added up."""

    counts: Counter[SourcePlace] = field(default_factory=Counter)
    """Executions by place; 0 for lines that never ran."""
    owners: LineOwners = field(default_factory=dict)
    """The function that each place is attributed to."""

    def add(self, code: CountedCode, component: Component, counters: Sequence[int]) -> None:
        """Add the counters of one code object, in their order."""
        counts = [(code.first + line, "", counters[line]) for line in code.lines]
        for branch, line, rank in code.blocks:
            for taken, outcome in enumerate(_OUTCOMES):
                block = f"{f'_{rank}' * (rank > 1)} {outcome}"
                counts.append((line, block, counters[code.span + 2 * branch + taken]))
        for line, block, count in counts:
            place = (component.file, line, block)
            self.counts[place] += count
            known = self.owners.setdefault(place, component)
            if (component.line, component.name.count(".")) < (known.line, known.name.count(".")):
                self.owners[place] = component

    def table(self, owners: LineOwners) -> Counts:
        """The counts in order of file and line. ``owners`` of earlier processes of the run take precedence; they grow."""
        from perflaw.types import Counts, Location  # most recordings count no lines

        places = sorted(self.counts, key=lambda place: (place[0], place[1], place[2] != "", place[2]))
        locations = []
        for file, line, block in places:
            owner = owners.setdefault((file, line, block), self.owners[file, line, block])
            name = f"{PurePath(file).name or file}:{line}{block}"
            kind = "block" if block else "line"
            locations.append(Location(kind, name, file, line, owner.name, owner.language))
        return Counts(tuple(locations), np.array([self.counts[place] for place in places], dtype=np.int64))

    def sources(self) -> dict[str, str]:
        """Source file → text, of the files that can be read now; code made by ``exec`` has none."""
        texts = {}
        for file in sorted({file for file, _, _ in self.counts}):
            with suppress(OSError, ValueError):  # it was never a file, or is gone
                texts[file] = read_regular(Path(file)).decode(errors="replace")
        return texts


def read_line_counts(folder: Path, known: Definitions) -> LineCounts | None:
    """The counts of the process of ``folder``, whose counter files are then removed; None if it counts no lines."""
    if not known.counted:
        return None
    counts, files = LineCounts(), {}
    for number in {code.file for code in known.counted}:
        with suppress(OSError):  # the program removed it
            path = folder / f"{number}.counts"
            content = read_regular(path)
            files[number] = np.frombuffer(content[: len(content) // 8 * 8], dtype=np.uint64)
            path.unlink()
    for code in known.counted:
        end = code.place + code.span + 2 * (1 + max((branch for branch, _, _ in code.blocks), default=-1))
        counters = files[code.file][code.place : end].tolist() if code.file in files else []
        is_whole = len(counters) == end - code.place and max(code.lines, default=-1) < code.span
        if code.component in known.components and is_whole:  # the program did not damage it
            counts.add(code, known.components[code.component], counters)
    return counts
