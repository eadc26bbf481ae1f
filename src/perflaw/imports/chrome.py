"""Trace-event JSON: Chrome's and Perfetto's, viztracer's, and what ``uftrace dump --chrome`` writes.

Begin and end events (B, E) and complete ones (X) are calls; each thread of each process is by itself. Counters, instants,
flows and metadata are no calls. Asynchronous events (b, e, S, F) belong to no thread: they are left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from perflaw.errors import DataError
from perflaw.imports.tracks import Number, ProcessEvents, Span, Trace, mapping, nanoseconds, nest, number
from perflaw.types import Component

# ---- Begin and end events of one thread: to a track as they stand, or to spans where other spans have to be put
# between.

UNBEGUN: Final = "ends of calls that began before the trace: left out"


@dataclass(frozen=True, slots=True)
class Mark:
    """One such event."""

    stamp: int
    """ns."""
    code: int
    """Number of the component that begins; 0: the end of one."""
    name: str
    """Its name; an end may have none: then it ends what began last."""
    features: tuple[tuple[str, Number], ...] = ()
    """Numbers that came with it."""


def play(process: ProcessEvents, marks: list[Mark]) -> None:
    """Put them on a track, by stamp, those of one stamp in the order of the file."""
    track = process.track()
    stack: list[tuple[str, int]] = []
    codes = [0]
    for mark in sorted(marks, key=lambda one: one.stamp):
        if mark.code:
            stack.append((mark.name, process.enter(track, mark.stamp, mark.code, codes[-1], mark.features)))
            codes.append(mark.code)
        elif (place := _ended(stack, mark.name)) is not None:
            process.exit(track, mark.stamp, stack[place][1])
            del stack[place:], codes[place + 1 :]  # the exit tells the builder that those above never ended
        else:
            process.said[UNBEGUN] += 1


def pair(process: ProcessEvents, marks: list[Mark]) -> list[Span]:
    """The same as spans, in the order in which they begin; what has no end has none."""
    ordered = sorted(marks, key=lambda one: one.stamp)
    ends: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for index, mark in enumerate(ordered):
        if mark.code:
            stack.append((mark.name, index))
        elif (place := _ended(stack, mark.name)) is not None:
            ends[stack[place][1]] = mark.stamp
            del stack[place:]
        else:
            process.said[UNBEGUN] += 1
    begun = [(index, mark) for index, mark in enumerate(ordered) if mark.code]
    return [Span(mark.stamp, ends.get(index), mark.code, mark.features) for index, mark in begun]


def _ended(stack: list[tuple[str, int]], name: str) -> int | None:
    """Place of what an end of this name ends: the innermost call, or the innermost one of the name."""
    if not name:
        return len(stack) - 1 if stack else None
    return next((place for place in range(len(stack) - 1, -1, -1) if stack[place][0] == name), None)


_US: Final = 1000
_ASYNC: Final = frozenset("beSTpF")
_VIZTRACER = re.compile(r"(.*) \((.*):(\d+)\)", re.DOTALL)
_OF_UFTRACE = re.compile(r"^\[\d+\] ")
"""It puts the process's number before its name; runs of one program have one name."""
ASYNC: Final = "asynchronous events belong to no thread: left out"


class _Thread:
    """What stands in the file of one thread, in its order."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.spans: list[Span] = []


class ChromeReader:
    """Reads the events of one file."""

    def __init__(self, file: str, tool: str) -> None:
        self.file, self.tool = file, tool
        self.processes: dict[object, ProcessEvents] = {}
        self.threads: dict[tuple[object, object], _Thread] = {}
        self.codes: dict[tuple[object, str], int] = {}
        self.fine = False
        """Whether a stamp has a fraction of a microsecond."""

    def read(self, events: list[object], lost: str) -> Trace:
        """All of them; DataError names the event that is wrong."""
        for index, event in enumerate(events):
            if not isinstance(event, dict):
                raise self._wrong(index, f"it is no object but {str(event)[:40]!r}")
            self._take(index, event)
        tick = 1 if self.fine else _US
        for (pid, _), thread in self.threads.items():
            process = self.processes[pid]
            if thread.spans:
                nest(process, thread.spans + pair(process, thread.marks), tick)
            else:
                play(process, thread.marks)
        found = [process for process in self.processes.values() if process.ordered()]
        found.sort(key=lambda process: process.ordered()[0][0][0])
        return Trace(self.tool, tuple(found), tick, lost)

    def _take(self, index: int, event: Mapping[str, object]) -> None:
        phase = event.get("ph")
        if not isinstance(phase, str):
            raise self._wrong(index, "it has no phase ph")
        pid, tid = _identity(event.get("pid", 0)), _identity(event.get("tid", 0))
        if phase in ("B", "E", "X"):
            thread = self.threads.setdefault((pid, tid), _Thread())
            process = self._process(pid)
            stamp = self._stamp(index, event, "ts")
            if phase == "E":
                thread.marks.append(Mark(stamp, 0, str(event.get("name", ""))))
                return
            name = event.get("name")
            if not isinstance(name, str) or not name:
                raise self._wrong(index, "it has no name")
            code, numbers = self._code(pid, process, name), tuple(_numbers(event))
            if phase == "B":
                thread.marks.append(Mark(stamp, code, name, numbers))
            else:
                thread.spans.append(Span(stamp, self._end(index, event), code, numbers))
        elif phase in _ASYNC:
            self._process(pid).said[ASYNC] += 1
        elif phase == "M" and event.get("name") == "process_name":
            name = mapping(event.get("args")).get("name")
            self._process(pid).name = _OF_UFTRACE.sub("", name) if isinstance(name, str) else ""

    def _process(self, pid: object) -> ProcessEvents:
        if pid not in self.processes:
            self.processes[pid] = ProcessEvents("", pid if isinstance(pid, int) and 0 <= pid < 1 << 31 else 0)
        return self.processes[pid]

    def _code(self, pid: object, process: ProcessEvents, name: str) -> int:
        code = self.codes.get((pid, name))
        if code is None:
            code = self.codes[pid, name] = process.component(component(name, self.tool))
        return code

    def _stamp(self, index: int, event: Mapping[str, object], field: str) -> int:
        stamp = nanoseconds(self._number(index, event, field), _US)
        if stamp is None:
            raise self._wrong(index, f"{field} is too large: {str(event[field])[:40]}")
        return stamp

    def _end(self, index: int, event: Mapping[str, object]) -> int | None:
        """Rounded after the sum: what lies within another call by the file still does."""
        if event.get("dur") in (None, -1):
            return None
        begin, took = self._number(index, event, "ts"), self._number(index, event, "dur")
        if took < 0:
            raise self._wrong(index, f"dur is negative: {took}")
        end = nanoseconds(Decimal(begin) + Decimal(took), _US)
        if end is None:
            raise self._wrong(index, "dur is too large")
        return end

    def _number(self, index: int, event: Mapping[str, object], field: str) -> Number:
        found = number(event.get(field))
        if found is None:
            why = f"{field} is no number: {str(event[field])[:40]!r}" if field in event else f"it has no {field}"
            raise self._wrong(index, why)
        self.fine = self.fine or (isinstance(found, Decimal) and found != found.to_integral_value())
        return found

    def _wrong(self, index: int, why: str) -> DataError:
        return DataError(f"{self.file}: event {index + 1} of traceEvents", why, "write the trace anew and import it")


def component(name: str, tool: str) -> Component:
    """Viztracer's ``f (/src/app.py:3)`` is ``app.f`` of that file and line; all other names stand for themselves."""
    found = _VIZTRACER.fullmatch(name) if tool == "viztracer" else None
    if found is None:
        return Component(name, language="python" if tool == "viztracer" else "")
    function, file, line = found.groups()
    module = file.rpartition("/")[2].removesuffix(".py")
    return Component(f"{module}.{function}", file, int(line), "python")


def _identity(value: object) -> object:
    return value if isinstance(value, int | str) else str(value)


def _numbers(event: Mapping[str, object]) -> list[tuple[str, Number]]:
    """Arguments that are numbers; viztracer has those of the function as text."""
    args = event.get("args")
    if not isinstance(args, dict):
        return []
    both = [(name, value) for name, value in args.items() if not isinstance(value, str)]
    both += list(mapping(args.get("func_args")).items())
    return [(name, found) for name, value in both if (found := number(value)) is not None]
