"""Trace-event JSON: Chrome's and Perfetto's, viztracer's, and what ``uftrace dump --chrome`` writes.

Begin and end events (B, E) and complete events (X) are calls; each thread of each process is by itself. Counters,
instants, flows and metadata are not calls. Asynchronous events (b, e, S, F) belong to no thread: they are left out and
counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from perflaw.errors import DataError
from perflaw.imports.formats import ForeignFile, Format, mapping
from perflaw.imports.profiles import NO_CALLS
from perflaw.imports.tracks import (
    BEGUN_EARLIER,
    Number,
    ProcessEvents,
    Span,
    Trace,
    nanoseconds,
    nest,
    number,
    trace_of,
)
from perflaw.types import Component

ASYNCHRONOUS: Final = "asynchronous events, which belong to no thread, were left out"
CUT_SHORT: Final = "the array of events has no end: the program was still writing it, or the file was cut"
TOOL, VIZTRACER, UFTRACE = "trace-event JSON", "viztracer", "uftrace"
US: Final = 1000
_ASYNCHRONOUS_PHASES: Final = frozenset("beSTpF")
_VIZTRACER = re.compile(r"(.*) \((.*):([0-9]{1,9})\)", re.DOTALL)
_UFTRACE_PID = re.compile(r"^\[\d+\] ")
"""uftrace puts the number of a process before its name; without it, all runs of a program have one name."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A begin or end event."""

    stamp: int
    """ns."""
    code: int
    """Code of the component that begins; 0 for an end."""
    name: str
    """Name of the event. An end without a name ends the innermost call."""
    features: tuple[tuple[str, Number], ...] = ()
    """Numbers that came with it."""


@dataclass(slots=True)
class _Thread:
    """The events of a thread, in the order of the file."""

    marks: list[Mark] = field(default_factory=list)
    """Begin and end events."""
    spans: list[Span] = field(default_factory=list)
    """Complete events."""

    def first(self) -> float:
        """When its first call begins, ns; infinite where there is none."""
        begins = [mark.stamp for mark in self.marks if mark.code] + [span.start for span in self.spans]
        return min(begins, default=math.inf)


class _ChromeReader:
    """Reads the events of a file."""

    def __init__(self, file: ForeignFile, tool: str) -> None:
        self.file, self.tool = file, tool
        self.processes: dict[object, ProcessEvents] = {}
        self.threads: dict[tuple[object, object], _Thread] = {}
        self.codes: dict[tuple[object, str], int] = {}
        self.has_fractions = False
        """Whether a time stamp has a fraction of a microsecond."""

    def read(self, events: list[object]) -> Trace:
        """The calls of all events; DataError names the event that is wrong."""
        for index, event in enumerate(events):
            if not isinstance(event, dict):
                raise self._wrong(index, f"it is not an object but {str(event)[:40]!r}")
            self._take(index, event)
        tick = 1 if self.has_fractions else US
        for (pid, _), thread in sorted(self.threads.items(), key=lambda item: item[1].first()):
            process = self.processes[pid]
            if thread.spans:
                nest(process, thread.spans, _pair(process, thread.marks), tick)
            else:
                _play(process, thread.marks)
        return trace_of(self.tool, self.processes.values(), tick, CUT_SHORT if self.file.is_cut else "")

    def _take(self, index: int, event: Mapping[str, object]) -> None:
        """Note an event of the file."""
        phase = event.get("ph")
        if not isinstance(phase, str):
            raise self._wrong(index, "it has no phase ph")
        pid, tid = event.get("pid", 0), event.get("tid", 0)
        if not isinstance(pid, (int, str)):
            pid = str(pid)
        if not isinstance(tid, (int, str)):
            tid = str(tid)
        if phase in ("B", "E", "X"):
            thread = self.threads.get((pid, tid))
            if thread is None:
                thread = self.threads[pid, tid] = _Thread()
            process = self._process(pid)
            begin = self._number(index, event, "ts")
            stamp = self._nanoseconds(index, "ts", begin)
            name = event.get("name", "")
            if phase == "E":
                thread.marks.append(Mark(stamp, 0, str(name)))
                return
            if not isinstance(name, str) or not name:
                raise self._wrong(index, "it has no name")
            if (pid, name) not in self.codes:
                self.codes[pid, name] = process.component(component_of(name, self.tool))
            # Arguments that are numbers; viztracer writes those of the function as texts.
            numbers: tuple[tuple[str, Number], ...] = ()
            if args := mapping(event.get("args")):
                given = [pair for pair in args.items() if not isinstance(pair[1], str)] + [
                    *mapping(args.get("func_args")).items()
                ]
                numbers = tuple((key, found) for key, value in given if (found := number(value)) is not None)
                process.name_features(numbers)
            code = self.codes[pid, name]
            if phase == "B":
                thread.marks.append(Mark(stamp, code, name, numbers))
            else:
                # End of a complete event.
                if event.get("dur") in (None, -1):
                    end = None
                else:
                    duration = self._number(index, event, "dur")
                    if duration < 0:
                        raise self._wrong(index, f"dur is negative: {duration}")
                    end = self._nanoseconds(index, "dur", Decimal(begin) + Decimal(duration))
                thread.spans.append(Span(stamp, end, code, numbers))
        elif phase in _ASYNCHRONOUS_PHASES:
            self._process(pid).notes[ASYNCHRONOUS] += 1
        elif phase == "M" and event.get("name") == "process_name":
            name = mapping(event.get("args")).get("name")
            self._process(pid).name = process_name(name) if isinstance(name, str) else ""

    def _process(self, pid: object) -> ProcessEvents:
        if pid not in self.processes:
            self.processes[pid] = ProcessEvents("", pid if isinstance(pid, int) and 0 <= pid < 1 << 31 else 0)
        return self.processes[pid]

    def _nanoseconds(self, index: int, field_name: str, value: Number) -> int:
        stamp = nanoseconds(value, US)
        if stamp is None:
            raise self._wrong(index, f"{field_name} is too large: {str(value)[:40]}")
        return stamp

    def _number(self, index: int, event: Mapping[str, object], field_name: str) -> Number:
        value = number(event.get(field_name))
        if value is None:
            shown = f"{field_name} is not a number: {str(event.get(field_name))[:40]!r}"
            raise self._wrong(index, shown if field_name in event else f"it has no {field_name}")
        if isinstance(value, Decimal) and value != value.to_integral_value():
            self.has_fractions = True
        return value

    def _wrong(self, index: int, why: str) -> DataError:
        return DataError(
            f"{self.file.path}: event {index + 1} of traceEvents", why, "write the trace anew and import it"
        )


def component_of(name: str, tool: str) -> Component:
    """The component of an event. Viztracer's ``f (/src/app.py:3)`` is ``app.f`` of that file and line."""
    place = _VIZTRACER.fullmatch(name) if tool == VIZTRACER else None
    if place is None:
        return Component(name, language="python" if tool == VIZTRACER else "")
    function, file, line = place.groups()
    module = file.rpartition("/")[2].removesuffix(".py")
    return Component(f"{module}.{function}", file, int(line), "python")


def process_name(name: str) -> str:
    """The name of a process as a tool gives it, without what differs from run to run."""
    return _UFTRACE_PID.sub("", name)


def _play(process: ProcessEvents, marks: list[Mark]) -> None:
    """Put the marks of a thread on a track, by time stamp; those of one stamp keep the order of the file."""
    track = process.track()
    stack: list[tuple[str, int]] = []  # name and frame of each open call
    codes = [0]
    for mark in sorted(marks, key=lambda mark: mark.stamp):
        if mark.code:
            stack.append((mark.name, process.enter(track, mark.stamp, mark.code, codes[-1], mark.features)))
            codes.append(mark.code)
        elif (place := _ended(stack, mark.name)) is not None:
            process.exit(track, mark.stamp, stack[place][1])
            del stack[place:], codes[place + 1 :]  # the exit says that the calls within never ended
        else:
            process.notes[BEGUN_EARLIER] += 1


def _pair(process: ProcessEvents, marks: list[Mark]) -> list[Span]:
    """The marks of a thread as spans, in the order in which they begin."""
    ordered = sorted(marks, key=lambda mark: mark.stamp)
    ends: dict[int, int] = {}
    stack: list[tuple[str, int]] = []  # name and index of each open call
    for index, mark in enumerate(ordered):
        if mark.code:
            stack.append((mark.name, index))
        elif (place := _ended(stack, mark.name)) is not None:
            ends[stack[place][1]] = mark.stamp
            del stack[place:]
        else:
            process.notes[BEGUN_EARLIER] += 1
    begun = [(index, mark) for index, mark in enumerate(ordered) if mark.code]
    return [Span(mark.stamp, ends.get(index), mark.code, mark.features) for index, mark in begun]


def _ended(stack: list[tuple[str, int]], name: str) -> int | None:
    """Place on the stack of the call that an end event ends: the innermost call of its name, if it has a name."""
    places = range(len(stack) - 1, -1, -1)
    return next((place for place in places if not name or stack[place][0] == name), None)


def recognises(file: ForeignFile) -> bool:
    """Whether a file is an array of events, or an object with one."""
    document = file.documents[0] if file.documents else None
    if isinstance(document, list):
        return all(isinstance(event, dict) for event in document[:1])
    return isinstance(file.keys.get("traceEvents"), list)


def read(file: ForeignFile) -> Trace:
    """The calls of a file."""
    document = file.documents[0]
    events = document if isinstance(document, list) else file.keys["traceEvents"]
    assert isinstance(events, list)
    tool = TOOL
    if "viztracer_metadata" in file.keys:
        tool = VIZTRACER
    elif "uftrace" in f"{file.keys.get('metadata')} {file.keys.get('otherData')}":
        tool = UFTRACE
    trace = _ChromeReader(file, tool).read(events)
    if not trace.processes and ("stackFrames" in file.keys or any(event.get("ph") == "P" for event in events)):
        raise NO_CALLS.refusal(file)
    return trace


FORMAT: Final = Format("trace-event JSON (Chrome, Perfetto, viztracer, uftrace dump --chrome)", recognises, read)
