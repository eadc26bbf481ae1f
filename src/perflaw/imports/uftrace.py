"""Data of uftrace: a folder that the tool itself turns into text, a record a line.

Of its two forms the plain dump is read and not the JSON, which leaves out the depth of a record on its stack. The depth
alone says where ``longjmp`` and ``exec`` led to, and which calls never ended.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, TargetError
from perflaw.imports.formats import ForeignFile, Format
from perflaw.imports.tracks import BEGUN_EARLIER, Number, ProcessEvents, Trace, trace_of
from perflaw.types import Component

SLEEP: Final = "linux:sched-"
"""Events of the kernel: ``out``, ``out (pre-empted)`` and ``in``. They have no depth."""
WAITING: Final = "linux:schedule"
"""Name of the time between them in uftrace's own reports."""
LOST: Final = "uftrace lost records, its buffers were full: record with a larger --buffer"
_RETURNS_TWICE: Final = ("setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "fork")
_RECORD: Final = re.compile(
    r"(\d{1,9})\.(\d{9})\s+(\d{1,9}): \[(\w+) ?\] (.*)\([0-9a-f]+\)(?: depth: (\d{1,9}))?", re.ASCII
)
_NUMBER: Final = re.compile(r"  args\[(\d{1,3})\] ([diu])(8|16|32|64): (-?\d{1,20}|0x[0-9a-f]{1,16})(?!\S)", re.ASCII)
_TASK: Final = re.compile(r"(TASK|FORK|SESS) .*?(?:tid=(\d{1,9}) )?pid=(\d{1,9})(?:.* exename=\"(.*)\")?")


@dataclass(frozen=True, slots=True)
class Record:
    """An event of a task."""

    stamp: int
    """ns."""
    begins: bool
    """Whether a call begins, or ends."""
    name: str
    """Name of the function, or of the kernel's event."""
    depth: int
    """Calls below it on the stack; -1 for the kernel's events."""
    numbers: list[tuple[str, Number]]
    """Arguments that came with it."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a recording: threads, and the processes that own them."""

    owners: Mapping[int, int]
    """Task → process; a task that is missing is a process of its own."""
    programs: Mapping[int, str]
    """Process → name of its program."""


@dataclass(frozen=True, slots=True)
class _OpenCall:
    """A call that has not ended."""

    name: str
    """Name of its function."""
    depth: int
    """Calls below it."""
    frame: int
    """Its identity in the records."""
    code: int
    """Code of its component."""


class _Stack:
    """The open calls of a task, put on a track."""

    def __init__(self, process: ProcessEvents) -> None:
        self.process, self.track = process, process.track()
        self.open: list[_OpenCall] = []

    def play(self, record: Record) -> None:
        """Take in a record. Waiting becomes a callee of the call that waits."""
        waits = bool(self.open) and self.open[-1].name == WAITING
        if record.depth >= 0 and record.begins:
            self.enter(record, record.name, record.depth)
        elif record.depth >= 0:
            self.leave(record)
        elif not record.name.startswith(SLEEP + "in"):
            if self.open and not waits:
                self.enter(record, WAITING, self.open[-1].depth + 1)
        elif waits:
            self.process.exit(self.track, record.stamp, self.open.pop().frame)

    def enter(self, record: Record, name: str, depth: int) -> None:
        """Begin a call. Open calls of this depth or deeper never end."""
        self.abandon(record.stamp, depth)
        code, caller = self.process.component(Component(name)), self.open[-1].code if self.open else 0
        frame = self.process.enter(self.track, record.stamp, code, caller, record.numbers)
        self.open.append(_OpenCall(name, depth, frame, code))

    def leave(self, record: Record) -> None:
        """End the call of that depth. If another function is open there, the record is the second return of ``setjmp``."""
        self.abandon(record.stamp, record.depth + 1)
        if self.open and (self.open[-1].name, self.open[-1].depth) == (record.name, record.depth):
            self.process.exit(self.track, record.stamp, self.open.pop().frame)
        elif record.name not in _RETURNS_TWICE:
            self.process.notes[BEGUN_EARLIER] += 1

    def abandon(self, stamp: int, depth: int) -> None:
        """Drop open calls of this depth or deeper."""
        before = len(self.open)
        while self.open and self.open[-1].depth >= depth:
            self.open.pop()
        if len(self.open) < before:
            self.process.abandon(self.track, stamp, self.open[-1].frame if self.open else 0)


class _Tracks:
    """The stacks of tasks, by process."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.processes: dict[int, ProcessEvents] = {}
        self.stacks: dict[int, _Stack] = {}
        self.is_lost = False

    def play(self, task: int, record: Record) -> None:
        """Take in a record of a task, in order of time."""
        if task not in self.stacks:
            pid = self.tasks.owners.get(task, task)
            if pid not in self.processes:
                self.processes[pid] = ProcessEvents(self.tasks.programs.get(pid, ""), pid)
            self.stacks[task] = _Stack(self.processes[pid])
        self.stacks[task].play(record)

    def trace(self) -> Trace:
        """The calls of all tasks."""
        return trace_of("uftrace", self.processes.values(), 1, LOST if self.is_lost else "")


def parse_dump(lines: Iterable[str], tasks: Tasks) -> Trace:
    """The calls in the text of ``uftrace dump``; its records may come in any order."""
    by_task: dict[int, list[Record]] = {}
    tracks = _Tracks(tasks)
    for task, record in _records(lines, tracks):
        by_task.setdefault(task, []).append(record)
    for task, records in by_task.items():
        for record in sorted(records, key=lambda record: record.stamp):
            tracks.play(task, record)
    return tracks.trace()


def stream_dump(lines: Callable[[], Iterable[str]], tasks: Tasks) -> Trace | None:
    """The same, of which only the kernel's events are in memory; None where the records of a task are not in order.

    The text lists the records of one task after the other, in order of time, and the kernel's events of all tasks at its
    end. So these are read first, and each waits for the records of its task.
    """
    waiting: dict[int, list[Record]] = {}
    for task, record in _records((line for line in lines() if SLEEP in line), _Tracks(tasks)):
        waiting.setdefault(task, []).append(record)
    for events in waiting.values():
        events.sort(key=lambda record: record.stamp, reverse=True)  # the next one is the last
    last: dict[int, int] = {}
    tracks = _Tracks(tasks)
    for task, record in _records(lines(), tracks):
        if record.depth < 0:
            continue
        if record.stamp < last.get(task, 0):
            return None
        last[task] = record.stamp
        events = waiting.get(task, [])
        while events and events[-1].stamp < record.stamp:
            tracks.play(task, events.pop())
        tracks.play(task, record)
    for task, events in waiting.items():
        for event in reversed(events):
            tracks.play(task, event)
    return tracks.trace()


def _records(lines: Iterable[str], tracks: _Tracks) -> Iterator[tuple[int, Record]]:
    """Task and event of each record that counts, with its numbers; notes where records were lost."""
    held: tuple[int, Record] | None = None
    for line in lines:
        if held and (argument := _NUMBER.match(line)):
            place, kind, bits, text = argument.groups()
            value = int(text, 16 if text.startswith("0x") else 10)
            if kind != "u" and value >> (int(bits) - 1) == 1:
                value -= 1 << int(bits)  # negative numbers are written in hexadecimal, by their bits
            held[1].numbers.append((f"arg{int(place) + 1}", value))
        elif found := _RECORD.match(line):
            seconds, fraction, task, kind, name, depth = found.groups()
            if kind in ("entry", "exit") or name.startswith(SLEEP):
                if held:
                    yield held
                stamp = int(seconds) * 10**9 + int(fraction)
                held = int(task), Record(stamp, kind == "entry", name, -1 if depth is None else int(depth), [])
            tracks.is_lost |= kind == "lost"
    if held:
        yield held


def read(folder: ForeignFile) -> Trace:
    """The calls of a folder; TargetError where uftrace is not installed, DataError where it refuses the folder."""
    tool = shutil.which("uftrace")
    if tool is None:
        why = "only uftrace itself reads its data, and it is not installed here"
        raise TargetError(
            f"{folder.path}: data of uftrace", why, f"uftrace dump --chrome -d {folder.path} > trace.json"
        )
    tasks = _tasks(folder.path)
    trace = stream_dump(lambda: _dump(tool, folder.path), tasks) or parse_dump(_dump(tool, folder.path), tasks)
    if not trace.processes:
        raise DataError(f"{folder.path}: no call in it", "uftrace recorded none", f"uftrace report -d {folder.path}")
    return trace


def _dump(tool: str, path: Path) -> Iterator[str]:
    """The lines of ``uftrace dump`` as it writes them; DataError where it refuses the folder."""
    with (
        tempfile.TemporaryFile(prefix="perflaw-") as problems,
        subprocess.Popen(
            [tool, "dump", "--no-pager", "-d", str(path)], stdout=subprocess.PIPE, stderr=problems
        ) as dump,
    ):
        assert dump.stdout
        try:
            for line in dump.stdout:
                yield line.decode(errors="replace")
        except BaseException:
            dump.kill()  # whoever reads wants no more
            raise
        if dump.wait():
            problems.seek(0)
            why = problems.read(1000).decode(errors="replace").strip()[:200] or f"exit status {dump.returncode}"
            raise DataError(f"{path}: uftrace cannot read its data", why, f"uftrace info -d {path}")


def _tasks(path: Path) -> Tasks:
    """The tasks in ``task.txt``; without that file, each task counts as a process."""
    owners: dict[int, int] = {}
    programs: dict[int, str] = {}
    try:
        text = (path / "task.txt").read_text(errors="replace")
    except OSError:
        return Tasks(owners, programs)
    for line in text.splitlines():
        if found := _TASK.match(line):
            kind, task, pid, program = found.groups()
            if kind == "SESS":
                programs.setdefault(int(pid), Path(program or "").name)
            else:
                owners[int(task or pid)] = int(pid)
                parent = re.search(r"ppid=(\d{1,9})(?!\d)", line)
                programs.setdefault(int(pid), programs.get(int(parent[1]), "") if parent else "")
    return Tasks(owners, programs)


def recognises(file: ForeignFile) -> bool:
    """Whether a folder is what ``uftrace record`` writes."""
    path = file.path
    return path.is_dir() and (path / "info").is_file() and (any(path.glob("*.dat")) or (path / "task.txt").exists())


FORMAT: Final = Format("uftrace data", recognises, read)
