"""The record that a tracer appends for each event, and the numbers that builders share.

A test compares the record with the tracer's own packing; the C core (``native/record.h``, ``layout.h``) has the same.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.types import CPU, EVENTS, TIME, Component, Metric

ENTER, EXIT, YIELD, RESUME, FEATURE, DEAD, CHANGE, SWITCH, THREAD, END, TURN = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
ASIDE = 12
"""Kinds of records.

DEAD: every invocation above this frame's has died without an event; frame 0: all of the stack's. CHANGE: the thread's
counter of metric ``code`` rose by ``value`` since the last record. SWITCH: what follows belongs to the thread's stack of
serial number ``frame``, 0 being its first. THREAD: thread ``value`` writes from here on. END: the thread has ended. TURN:
what follows happened in turn ``frame`` of all threads, one thread at a time; ``value`` ns were taken out of the thread's
clock so far. ASIDE: as ENTER, of work that the interpreter does aside: no call, so it is no event and has no sample.
"""

RECORD: Final = np.dtype(
    [("value", "<i8"), ("frame", "<i8"), ("code", "<i4"), ("site", "<i4"), ("key", "<i4"), ("kind", "<i4")]
)
"""32 bytes: value, frame, code, site, key, kind; ``kind`` is written last and 0 where nothing is written yet."""

TIME_LANE, CPU_LANE, EVENTS_LANE = 0, 1, 2
"""Lanes are numbers of metrics.

A CHANGE of the second one says how long the thread was off the CPU; the third is counted by the builder.
"""

ROOT = 0
ELSEWHERE = -2
"""Call site of the nodes that take the calls from contexts beyond the limit of them."""
MAX_DISTANCE = 16
"""Ancestor–descendant moments are kept for the nearest ancestors up to this distance."""
MAX_KIDS_APART = 64
"""Parts of one invocation's cost kept apart in the pair moments; the least beyond fold into OTHER."""
MAX_CODE = 1 << 20
"""Numbers of functions are below."""


# ---- The definitions file of a spool: what the numbers in the records stand for, and how the recording began and
# ended.


@dataclass(frozen=True, slots=True)
class Process:
    """Which process a spool is of."""

    pid: int
    """Its number."""
    ppid: int
    """Its parent's."""
    argv: tuple[str, ...]
    """Its command line."""


@dataclass(frozen=True, slots=True)
class Started:
    """What the tracer says when it begins."""

    clock: int
    """Its clock then."""
    event_ns: int
    """Calibrated cost of a call event beyond the handler's own clock reads."""
    foreign_ns: int
    """Calibrated cost of an event that is no Python call."""
    python: str
    """Version of the interpreter."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What the tracer says when the program ends."""

    clock: int
    """Its clock then."""
    own_ns: int
    """All time it took out, over all threads."""
    missed: int
    """Calls it missed because the program stood at its recursion limit."""
    lost: str
    """Why it stopped before the program did; empty if it did not."""
    library: int
    """Functions of libraries left out."""
    unselected: int
    """Functions left out by the selection."""
    names: tuple[str, ...]
    """Names of some of the latter."""


@dataclass(frozen=True, slots=True)
class CountedCode:
    """Code whose lines are counted, and where its counters are: of each of its lines, then two a branch."""

    component: int
    """Number of its function."""
    file: int
    """Number of the file of counters in the spool."""
    place: int
    """Place of the first counter there."""
    first: int
    """Source line of that counter."""
    span: int
    """Counters of lines; those of outcomes follow: not taken, taken, of each branch."""
    lines: tuple[int, ...]
    """The lines that have code, from the first one on."""
    blocks: tuple[tuple[int, int, int], ...]
    """(branch, line, which branch of the line it is) of the branches that were counted."""


@dataclass(slots=True)
class Definitions:
    """All that the tracer defined so far; grows while the file does."""

    components: dict[int, Component] = field(default_factory=dict)
    """Number of a function → what it is."""
    same: dict[int, int] = field(default_factory=dict)
    """Number of a function → the first number of that component: code made anew (reload, exec) is the same component."""
    lines: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Number of a function → (first offset, last offset, line) of its bytecode."""
    addresses: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """Number of a compiled function → the file it was loaded from, its place there, its symbol if that is exported."""
    unselected: list[tuple[str, int]] = field(default_factory=list)
    """File and place there of some compiled functions that were left out by the selection."""
    features: dict[int, str] = field(default_factory=dict)
    """Number of a feature → its name."""
    types: dict[int, str] = field(default_factory=dict)
    """Number of a dynamic type → its name."""
    metrics: dict[int, Metric] = field(default_factory=lambda: {TIME_LANE: TIME, EVENTS_LANE: EVENTS})
    """Number of a metric that was measured → what it is. Time and events always are."""
    counted: list[CountedCode] = field(default_factory=list)
    """Code whose lines are counted."""
    words: dict[str, str] = field(default_factory=dict)
    """What the tracer has to say for the manifest, by topic: ``clock``, ``cpu``, ``tracer``."""
    process: Process | None = None
    """Which process it is; None where the tracer does not say."""
    started: Started | None = None
    """How the recording began; None if it never did."""
    failed: str = ""
    """Why the tracer could not begin."""
    ended: Ended | None = None
    """How the recording ended; None if the program never reached its end."""
    _known: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def define(self, number: int, what: Component, lines: Sequence[tuple[int, int, int]]) -> None:
        """A function of this number is that component, its code lies on these lines."""
        self.same[number] = self._known.setdefault((what.name, what.file, what.line), number)
        self.components[number] = what
        self.lines[number] = [(a, b, line) for a, b, line in lines if line]

    def take(self, line: str) -> None:
        """Take in one line of the file."""
        try:
            kind, *fields = ast.literal_eval(line)
        except (SyntaxError, ValueError):
            return  # torn by a crash of the machine: what it named is told as unknown
        if kind == "code":
            number, name, file, first_line, origin, parameters, lines = fields
            what = Component(_clean(name), _clean(file), first_line, "python", origin, tuple(map(_clean, parameters)))
            self.define(number, what, lines)
        elif kind == "address":
            number, module, offset, symbol = fields
            self.addresses[number] = (_clean(module), offset, _clean(symbol))
        elif kind == "unselected":
            module, offset, _ = fields
            self.unselected.append((_clean(module), offset))
        elif kind == "feature":
            self.features[fields[0]] = _clean(fields[2])
        elif kind == "type":
            self.types[fields[0]] = _clean(fields[1])
        elif kind == "metric":
            self.metrics[fields[0]] = Metric(_clean(fields[1]), _clean(fields[2]))
        elif kind == "counts":
            self.counted.append(CountedCode(*fields))
        elif kind == "say":
            self.words[fields[0]] = _clean(fields[1])
        elif kind == "process":
            pid, ppid, argv = fields
            self.process = Process(pid, ppid, tuple(map(_clean, argv)))
        elif kind == "start":
            self.started = Started(*fields)
        elif kind == "failed":
            self.failed = fields[0]
        elif kind == "end":
            self.ended = Ended(*fields)

    def lanes(self) -> tuple[str, ...]:
        """Names of the lanes of a call tree. All metrics of a process are defined before its first record."""
        known = {CPU_LANE: CPU, **self.metrics}
        return tuple(known[lane].name if lane in known else "" for lane in range(max(known) + 1))

    def line_at(self, code: int, offset: int) -> int:
        """Source line of a call site, 0 where unknown."""
        if offset < 0:
            return 0
        return next((line for first, last, line in self.lines.get(code, ()) if first <= offset < last), 0)


def _clean(text: str) -> str:
    """A name that every file and terminal can hold: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


class DefinitionsReader:
    """Reads the file as it grows; a line without its end is left for the next time."""

    def __init__(self, path: Path) -> None:
        self.path, self.position, self.definitions = path, 0, Definitions()

    def update(self) -> Definitions:
        """Everything defined until now."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self.position)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self.position += len(whole)
            for line in whole.decode().split("\n"):
                if line:
                    self.definitions.take(line)
        return self.definitions
