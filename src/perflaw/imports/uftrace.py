"""Data of uftrace: a folder that the tool itself turns into text, a record a line.

Of its two forms the plain dump is read and not the JSON, which leaves out the depth of a record on its stack: that alone
says where ``longjmp`` and ``exec`` led to, and what died on the way.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, TargetError
from perflaw.imports.chrome import UNBEGUN
from perflaw.imports.tracks import Number, ProcessEvents, Trace
from perflaw.types import Component

# ---- Records of one task of uftrace, by stamp, to a track: each says how deep on the stack it stands.

SLEEP: Final = "linux:sched-"
"""Events of the kernel: ``out``, ``out (pre-empted)`` and ``in``. They have no depth."""
WAITING: Final = "linux:schedule"
"""What uftrace's own reports call the time between them."""
_AGAIN: Final = ("setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "fork")
"""What returns a second time."""


@dataclass(frozen=True, slots=True)
class Record:
    """An event of one task."""

    stamp: int
    """ns."""
    begins: bool
    """Whether a call begins, or ends."""
    name: str
    """Of the function, or of the kernel's event."""
    depth: int
    """Calls below it on the stack; -1 for the kernel's."""
    numbers: list[tuple[str, Number]]
    """Arguments that came with it."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that has not ended."""

    name: str
    """Of its function."""
    depth: int
    """Calls below it."""
    frame: int
    """Its identity in the records."""
    code: int
    """Number of its component."""


class _Track:
    """The calls of one task."""

    def __init__(self, process: ProcessEvents) -> None:
        self.process, self.track = process, process.track()
        self.open: list[_Open] = []

    def enter(self, record: Record, name: str, depth: int) -> None:
        """A call begins; what stands as deep or deeper has died."""
        self.bury(record.stamp, depth)
        code, caller = self.process.component(Component(name)), self.open[-1].code if self.open else 0
        frame = self.process.enter(self.track, record.stamp, code, caller, record.numbers)
        self.open.append(_Open(name, depth, frame, code))

    def leave(self, record: Record) -> None:
        """The call of that depth ends; where another function stands there, this is the second return of ``setjmp``."""
        self.bury(record.stamp, record.depth + 1)
        if self.open and (self.open[-1].name, self.open[-1].depth) == (record.name, record.depth):
            self.end(record.stamp)
        elif record.name not in _AGAIN:
            self.process.said[UNBEGUN] += 1

    def end(self, stamp: int) -> None:
        """The innermost call ends."""
        self.process.exit(self.track, stamp, self.open.pop().frame)

    def bury(self, stamp: int, depth: int) -> None:
        """Calls of this depth and more are no more."""
        before = len(self.open)
        while self.open and self.open[-1].depth >= depth:
            self.open.pop()
        if len(self.open) < before:
            self.process.bury(self.track, stamp, self.open[-1].frame if self.open else 0)


def play(process: ProcessEvents, records: Iterable[Record]) -> None:
    """Put them on a track of the process. Waiting is a callee of what waits."""
    track = _Track(process)
    for record in records:
        if record.depth >= 0 and record.begins:
            track.enter(record, record.name, record.depth)
        elif record.depth >= 0:
            track.leave(record)
        elif not record.name.startswith(SLEEP + "in"):
            if track.open and track.open[-1].name != WAITING:
                track.enter(record, WAITING, track.open[-1].depth + 1)
        elif track.open and track.open[-1].name == WAITING:
            track.end(record.stamp)


_RECORD: Final = re.compile(r"(\d+)\.(\d{9})\s+(\d+): \[(\w+) ?\] (.*)\([0-9a-f]+\)(?: depth: (\d+))?")
_NUMBER: Final = re.compile(r"  args\[(\d+)\] ([diu])(8|16|32|64): (\S+)")
_TASK: Final = re.compile(r"(TASK|FORK|SESS) .*?(?:tid=(\d+) )?pid=(\d+)(?:.* exename=\"(.*)\")?")
_LOST: Final = "uftrace lost records, its buffers were full: record with a larger --buffer"


def is_data(path: Path) -> bool:
    """Whether a folder is what ``uftrace record`` writes."""
    return path.is_dir() and (path / "info").is_file() and (any(path.glob("*.dat")) or (path / "task.txt").exists())


def read_data(path: Path) -> Trace:
    """The calls of such a folder; TargetError where uftrace is not installed, DataError where it refuses."""
    by_task, lost = _records(_dumped(path))
    owner, names = _tasks(path)
    processes: dict[int, ProcessEvents] = {}
    for task, records in by_task.items():
        pid = owner.get(task, task)
        if pid not in processes:
            processes[pid] = ProcessEvents(names.get(pid, ""), pid)
        play(processes[pid], sorted(records, key=lambda one: one.stamp))
    found = sorted(filter(ProcessEvents.ordered, processes.values()), key=lambda one: one.ordered()[0][0][0])
    if not found:
        raise DataError(f"{path}: no call in it", "uftrace recorded none", f"uftrace report -d {path}")
    return Trace("uftrace", tuple(found), 1, _LOST * lost)


def _dumped(path: Path) -> Iterator[str]:
    tool = shutil.which("uftrace")
    if tool is None:
        why = "only uftrace itself reads its data, and it is not installed here"
        raise TargetError(f"{path}: data of uftrace", why, f"uftrace dump --chrome -d {path} > trace.json")
    done = subprocess.run([tool, "dump", "--no-pager", "-d", str(path)], capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()[:200] or f"exit status {done.returncode}"
        raise DataError(f"{path}: uftrace cannot read its data", why, f"uftrace info -d {path}")
    return (line.decode(errors="replace") for line in done.stdout.split(b"\n"))


def _records(lines: Iterable[str]) -> tuple[dict[int, list[Record]], bool]:
    """By task, in the order of the text; and whether some were lost."""
    by_task: dict[int, list[Record]] = {}
    last, lost = None, False
    for line in lines:
        if last and (number := _NUMBER.match(line)):
            last.numbers.append((f"arg{int(number[1]) + 1}", _integer(number[2], int(number[3]), number[4])))
        elif found := _RECORD.match(line):
            seconds, rest, task, kind, name, depth = found.groups()
            stamp = int(seconds) * 10**9 + int(rest)
            if kind == "entry" or kind == "exit" or name.startswith(SLEEP):
                last = Record(stamp, kind == "entry", name, -1 if depth is None else int(depth), [])
                by_task.setdefault(int(task), []).append(last)
            lost = lost or kind == "lost"
    return by_task, lost


def _integer(kind: str, bits: int, text: str) -> int:
    """As it was passed: negative numbers are told in hexadecimal by their bits."""
    value = int(text, 0)
    return value - (1 << bits) if kind != "u" and value >> (bits - 1) == 1 else value


def _tasks(path: Path) -> tuple[dict[int, int], dict[int, str]]:
    """The process of each task, and the program of each process."""
    owner: dict[int, int] = {}
    names: dict[int, str] = {}
    try:
        text = (path / "task.txt").read_text(errors="replace")
    except OSError:
        return owner, names  # each task counts as a process then
    for line in text.splitlines():
        if found := _TASK.match(line):
            kind, task, pid, program = found.groups()
            if kind == "SESS":
                names.setdefault(int(pid), Path(program or "").name)
            else:
                owner[int(task or pid)] = int(pid)
                parent = re.search(r"ppid=(\d+)", line)
                names.setdefault(int(pid), names.get(int(parent[1]), "") if parent else "")
    return owner, names
