"""Data of uftrace: a folder that the tool itself turns into text, a record a line.

Of its two forms the plain dump is read and not the JSON, which leaves out the depth of a record on its stack: that alone
says where ``longjmp`` and ``exec`` led to, and what died on the way.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from perflaw.collect.imports.events import ProcessEvents
from perflaw.collect.imports.trace import Trace
from perflaw.collect.imports.uftrace_tracks import SLEEP, Record, play
from perflaw.errors import DataError, TargetError

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
