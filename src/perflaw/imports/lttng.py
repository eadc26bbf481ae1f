"""Traces of LTTng in the Common Trace Format: a folder that babeltrace2 turns into text, an event a line.

Calls are the functions that ``liblttng-ust-cyg-profile`` traces, and tracepoints that come in pairs (``shop:pay_begin``,
``shop:pay_end``). All other events are left out and counted. The text is read as babeltrace2 writes it, in the order of
time, so memory does not grow with the number of events.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, TargetError
from perflaw.imports.formats import ForeignFile, Format
from perflaw.imports.tracks import BEGUN_EARLIER, Number, ProcessEvents, Trace, Track, number, trace_of
from perflaw.record.compiled.dwarf import FunctionCode, functions_at
from perflaw.record.compiled.elf import open_elf
from perflaw.types import Component

OTHER_EVENTS: Final = "events that neither begin nor end a call were left out"
LOST: Final = "LTTng discarded events, its buffers were full: record with larger --subbuf-size"
_MAGIC: Final = (b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57", b"/* CTF 1.")
"""How a file of metadata begins: packets in either order of bytes, or plain text."""
_MAX_FOLDERS: Final = 1000
"""Folders that are looked through for metadata; LTTng makes a few for each user or process."""
_STATE: Final = ("lttng_ust_statedump:", "lttng_ust_lib:")
"""Events that tell of a process: as its recording begins, and as it loads files later."""
_PAIRS: Final = {"entry": ("exit",), "enter": ("exit", "leave"), "begin": ("end",), "start": ("end", "stop", "done")}
"""Last word in the name of an event that begins a call → that of the one that ends it."""
_DECLARED: Final = re.compile(r'^\s*name = "([^"]+)";', re.MULTILINE)
_BEGIN: Final = r"\[(\d{1,12})\.(\d{9})\] (?:\((\d{1,9})\) )?"
"""Time of an event, and the process of a buffer that only one process has."""
_EVENT: Final = re.compile(_BEGIN + r"([^\s{}]+): ")
_FUNCTION: Final = re.compile(
    _BEGIN + r"lttng_ust_cyg_profile(?:_fast)?:func_(entry|exit): (.*)\{(?: addr = (0x[0-9A-F]{1,16})\b[^{}]*| )\}"
)
_TEXT: Final = r'"(?:[^"\\]|\\.)*+"'
_INNER: Final = rf'\{{(?:[^{{}}"]|{_TEXT})*+\}}'
_GROUP: Final = re.compile(rf'\{{((?:[^{{}}"]|{_TEXT}|{_INNER})*+)\}}')
"""A group of fields; a field may be a structure."""
_FIELD: Final = re.compile(rf"(\w+) = ({_TEXT}|\([^()]*+\)|\[ .*? \](?=,| |$)|{_INNER}|[^,\s{{}}]+)")
_MAX_CONTEXTS: Final = 4096
"""Texts of contexts whose threads are remembered."""


class _Modules:
    """The loaded files of a process: by them an address becomes a function."""

    def __init__(self) -> None:
        self.starts: list[tuple[int, int, str]] = []
        """First address, bytes and path, in order."""
        self.builds: dict[int, str] = {}
        """First address → build id, where LTTng tells it."""
        self.functions: dict[int, dict[int, FunctionCode]] = {}
        """First address → the functions of the file by their offsets, once one of them was called."""
        self.known: dict[int, Component] = {}

    def add(self, fields: dict[str, str]) -> None:
        """Take in a file that LTTng says is loaded."""
        start, size = _whole(fields.get("baddr")), _whole(fields.get("memsz"))
        self.starts = [one for one in self.starts if one[0] != start]
        insort(self.starts, (start, size, fields.get("path", '""')[1:-1]))
        self.functions.pop(start, None)
        self.known.clear()

    def component(self, address: int) -> Component:
        """The function at an address: its place in its file where nothing names it."""
        if address not in self.known:
            place = bisect_right(self.starts, address, key=lambda one: one[0]) - 1
            start, size, path = self.starts[place] if place >= 0 else (0, 0, "")
            shown = Component(f"0x{address:x}")
            if address < start + size:
                if start not in self.functions:
                    self.functions[start] = _functions_of(Path(path), self.builds.get(start, ""))
                found = self.functions[start].get(address - start)
                shown = Component(f"{path.rpartition('/')[2]}+0x{address - start:x}")
                if found is not None:
                    shown = Component(found.name, found.file, found.line, found.language)
            self.known[address] = shown
        return self.known[address]


def _functions_of(path: Path, build: str) -> dict[int, FunctionCode]:
    """All functions of a file by their offsets; none where it is not the file that was traced."""
    with open_elf(path) as elf:
        if elf is None or (build and elf.identity != build):
            return {}
        offsets = sorted({function.address - elf.base for function in elf.functions()})
    return functions_at(path, offsets)


class _Reader:
    """Reads the events of a trace, in the order of time."""

    def __init__(self, begins: dict[str, str], ends: dict[str, str]) -> None:
        """Names of events that begin and that end calls → name of the call."""
        self.begins, self.ends = begins, ends
        self.processes: dict[int, ProcessEvents] = {}
        self.modules: dict[int, _Modules] = {}
        self.threads: dict[tuple[int, int], _Thread] = {}
        """By process and thread."""
        self.contexts: dict[tuple[str | None, str], _Thread] = {}
        """Process of the buffer and text of the contexts → thread."""
        self.notes: Counter[str] = Counter()

    def take(self, line: str) -> None:
        """Take in a line. KeyError where its thread is not known."""
        if function := _FUNCTION.match(line):
            seconds, fraction, owner, kind, context, address = function.groups()
            thread = self.contexts.get((owner, context)) or self._thread(owner, context)
            stamp = int(seconds) * 10**9 + int(fraction)
            if kind == "exit":
                thread.leave(stamp, address)
            else:
                code = thread.codes.get(address) or self._code(thread, address)
                thread.enter(stamp, address, code, ())
        elif head := _EVENT.match(line):
            seconds, fraction, owner, name = head.groups()
            is_state = name.startswith(_STATE)
            groups = list(_GROUP.finditer(line, head.end()))
            if not groups or not (is_state or name in self.begins or name in self.ends):
                self.notes[OTHER_EVENTS] += 1
                return
            payload = groups[-1][1]
            thread = self._thread(owner, line[head.end() : groups[-1].start()])
            stamp = int(seconds) * 10**9 + int(fraction)
            if is_state:
                self._take_state(name, thread.process, dict(_FIELD.findall(payload)))
            elif name in self.begins:
                call = self.begins[name]
                thread.enter(stamp, call, thread.process.component(Component(call)), _numbers(payload))
            else:
                thread.leave(stamp, self.ends[name])

    def _thread(self, owner: str | None, context: str) -> _Thread:
        """The thread that the contexts of an event name."""
        fields = dict(_FIELD.findall(context))
        tid = fields.get("vtid", fields.get("tid"))
        if tid is None:
            raise KeyError("vtid")
        key = _whole(fields.get("vpid", fields.get("pid", owner))), _whole(tid)
        if key not in self.threads:
            if key[0] not in self.processes:
                self.processes[key[0]] = ProcessEvents("", key[0] if key[0] < 1 << 31 else 0)
            self.threads[key] = _Thread(self.processes[key[0]])
        if len(self.contexts) >= _MAX_CONTEXTS:
            self.contexts.clear()  # a context counts something
        self.contexts[owner, context] = self.threads[key]
        return self.threads[key]

    def _modules(self, process: ProcessEvents) -> _Modules:
        return self.modules.setdefault(process.pid, _Modules())

    def _take_state(self, name: str, process: ProcessEvents, fields: dict[str, str]) -> None:
        """What LTTng tells of a process."""
        kind = name.partition(":")[2]
        if kind in ("bin_info", "load"):
            self._modules(process).add(fields)
            for thread in self.threads.values():
                thread.codes.clear()
        elif kind == "build_id":
            digits = re.findall(r"\] = 0x([0-9A-F]{1,2})", fields.get("build_id", ""))
            build = "".join(digit.rjust(2, "0") for digit in digits).lower()
            self._modules(process).builds[_whole(fields.get("baddr"))] = build
        elif kind == "procname":
            process.name = fields.get("procname", '""')[1:-1]

    def _code(self, thread: _Thread, address: str | None) -> int:
        """Number of the function at an address; an entry without one is of an unknown function."""
        component = self._modules(thread.process).component(int(address or "0", 0))
        code = thread.codes[address] = thread.process.component(component)
        return code


class _Thread:
    """A thread: its track and its open calls."""

    def __init__(self, process: ProcessEvents) -> None:
        self.process = process
        self.track: Track | None = None
        """Its track, once it has a call."""
        self.codes: dict[str | None, int] = {}
        """Address → number of its function."""
        self.stack: list[tuple[str | None, int, int]] = []
        """Of each open call: its address (0x…) or name, its frame and its number."""

    def enter(self, stamp: int, call: str | None, code: int, numbers: Iterable[tuple[str, Number]]) -> None:
        """Begin a call."""
        track = self.track = self.track or self.process.track()
        stack = self.stack
        frame = self.process.enter(track, stamp, code, stack[-1][2] if stack else 0, numbers)
        stack.append((call, frame, code))

    def leave(self, stamp: int, call: str | None) -> None:
        """End the innermost call of an address or a name; without one, of any function."""
        stack = self.stack
        for place in range(len(stack) - 1, -1, -1):
            known = stack[place][0]
            if known == call or (call is None and known is not None and known.startswith("0x")):
                assert self.track
                self.process.exit(self.track, stamp, stack[place][1])
                del stack[place:]  # the exit says that the calls within never ended
                return
        self.process.notes[BEGUN_EARLIER] += 1


def _whole(text: str | None) -> int:
    """The number in a field; 0 where it is none."""
    try:
        return int(text or "", 0)
    except ValueError:
        return 0


def _numbers(payload: str) -> Iterator[tuple[str, Number]]:
    """The fields of an event that are numbers."""
    for name, text in _FIELD.findall(payload):
        found = number(text)
        if found is not None:
            yield name, found


def pairs_of(names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The events that begin and that end a call → name of the call: those of which both are declared.

    >>> pairs_of(["shop:pay_begin", "shop:pay_end", "shop:start", "shop:log"])
    ({'shop:pay_begin': 'shop:pay'}, {'shop:pay_end': 'shop:pay'})
    """
    declared = {name for name in names if not name.startswith((*_STATE, "lttng_ust_cyg_profile"))}
    begins, ends = {}, {}
    for name in sorted(declared):
        stem, word = re.fullmatch(r"(.*?)([^_:]*)", name, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches
        for other in _PAIRS.get(word, ()):
            if stem + other in declared:
                begins[name] = ends[stem + other] = stem.rstrip("_:")
    return begins, ends


def _folders(path: Path) -> list[Path]:
    """The folders of single traces in a folder of a session; none where there is no metadata."""
    found = []
    for count, (folder, folders, files) in enumerate(os.walk(path)):
        folders.sort()
        if count > _MAX_FOLDERS:
            break
        if "metadata" in files:
            try:
                with (Path(folder) / "metadata").open("rb") as file:
                    if file.read(9).startswith(_MAGIC):
                        found.append(Path(folder))
            except OSError:
                continue
    return found


def _wrong(path: Path, why: str) -> DataError:
    return DataError(f"{path}: babeltrace2 cannot read the trace", why, f"babeltrace2 {path}")


def _declared(tool: str, path: Path) -> list[str]:
    """The names of all events that a trace declares."""
    names: list[str] = []
    for folder in _folders(path):
        done = subprocess.run([tool, "-o", "ctf-metadata", str(folder)], capture_output=True, check=False)
        if done.returncode:
            raise _wrong(path, done.stderr.decode(errors="replace").strip()[-200:] or f"exit status {done.returncode}")
        names += _DECLARED.findall(done.stdout.decode(errors="replace"))
    return names


def read(folder: ForeignFile) -> Trace:
    """The calls of a folder; TargetError where babeltrace2 is not installed, DataError where it refuses the folder."""
    path, tool = folder.path, shutil.which("babeltrace2")
    if tool is None:
        why = "babeltrace2 reads its format, and it is not installed here"
        raise TargetError(f"{path}: a trace of LTTng", why, "apt-get install babeltrace2")
    reader = _Reader(*pairs_of(_declared(tool, path)))
    command = [tool, "--clock-seconds", "--no-delta", "--fields=trace:vpid", str(path)]
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            assert process.stdout
            try:
                for line in process.stdout:
                    reader.take(line.decode(errors="replace"))
            except KeyError:
                process.kill()
                why = "its events do not say of which thread they are"
                raise DataError(
                    f"{path}: no calls in it", why, "lttng add-context --userspace -t vpid -t vtid"
                ) from None
            except BaseException:
                process.kill()
                raise
        errors.seek(0)
        told = errors.read(1 << 16).decode(errors="replace")
    if process.returncode:
        raise _wrong(path, told.strip()[-200:] or f"exit status {process.returncode}")
    for one in list(reader.processes.values())[:1]:
        one.notes.update(reader.notes)
    trace = trace_of("LTTng", reader.processes.values(), 1, LOST if "discarded" in told else "", epoch=True)
    if not trace.processes:
        why = "no function and no pair of tracepoints, such as shop:pay_begin and shop:pay_end"
        raise DataError(f"{path}: no call in it", why, "LD_PRELOAD=liblttng-ust-cyg-profile.so ./program")
    return trace


def recognises(file: ForeignFile) -> bool:
    """Whether a folder is what LTTng writes, or one of its traces."""
    return file.path.is_dir() and bool(_folders(file.path))


FORMAT: Final = Format("traces of LTTng", recognises, read)
