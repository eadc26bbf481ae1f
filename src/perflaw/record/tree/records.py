"""The records that a tracer appends, one an event, and the definitions of the numbers in them.

A test compares the layout with the packing of the pure-Python tracer; the C core has the same layout in
``native/core/base/record.h``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from perflaw.record.rights import PASSING, read_regular
from perflaw.types import CPU, EVENTS, TIME, Collections, Component, Metric

ENTER, EXIT, YIELD, RESUME, FEATURE, DEAD, CHANGE, SWITCH, THREAD, END, TURN = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
ASIDE, COUNT, LIBRARY, OBSERVE = 12, 13, 14, 15
"""Kinds of records.

ENTER, EXIT: a call begins, ends; ``site`` of the end counts calls within it of functions that are not recorded and cost
the tracer's time all the same, if it is positive. YIELD, RESUME: a generator or coroutine is suspended, continued;
``site`` is 0 where an async generator hands a value to its consumer. FEATURE: a feature of the call that was entered
last. DEAD: all invocations above this frame's ended without an event; frame 0: all of the stack. CHANGE: the thread's
counter of metric ``code`` rose by ``value`` since the last record. SWITCH: the following records belong to the thread's
stack with serial number ``frame``; 0 is its first stack. THREAD: thread ``value`` writes from here on. END: the thread
has ended. TURN: the following records belong to turn ``frame``, a number that all threads share; ``value`` is the time
in ns that the tracer has taken out of the thread's clock so far, ``code`` how many rings there are. ASIDE: like ENTER,
for work of the interpreter itself, such as garbage collection: it is not a call, so it is no event and is not sampled.
COUNT: a call of a function that is counted and not timed: an event without a time, which begins and ends at once; what
it took is its caller's own time. LIBRARY: ``code`` is a function of a library, whose contexts are put together first;
it comes before the function's first call. OBSERVE: each outermost invocation of function ``code`` is an observation by
itself, of which the calls and own costs of all functions within it are kept; it comes before the function's first call
as well.
"""
RECORD: Final = np.dtype(
    [("value", "<i8"), ("frame", "<i8"), ("code", "<i4"), ("site", "<i4"), ("key", "<i4"), ("kind", "<i4")]
)
"""A record has 32 bytes: value, frame, code, site, key, kind. ``kind`` is written last; 0 means not yet written."""
Event = tuple[int, int, int, int, int, int]
"""One record as a tuple: value, frame, code, site, key, kind."""
TIME_LANE, CPU_LANE, EVENTS_LANE = 0, 1, 2
"""A lane is the number of a metric.

CHANGE records of the CPU lane give the time that the thread was off the CPU; the tree builder counts the events itself.
"""
DEFAULT_LANES: Final = ("time", "cpu", "events")
"""Metrics of the lanes that every call tree has."""
ROOT = 0
"""Number of the root node, which stands for everything outside recorded calls."""
ELSEWHERE = -2
"""Call site of the nodes that take the calls from new contexts once the limit of contexts is reached."""
MAX_DISTANCE = 16
"""Moments of ancestor and descendant are kept up to this distance in the call tree."""
MAX_KIDS_APART = 64
"""Number of cost parts of one invocation that the pair moments keep apart; smaller parts are added to OTHER."""
MAX_OBSERVED_FEATURES = 512
"""Features that an observation has, those of the calls within it included."""
MAX_CODE = 1 << 20
"""Numbers of functions are smaller than this."""
MAX_LANES = 32
"""Lanes that a call tree has at most."""


@dataclass(frozen=True)
class TreeLimits:
    """Bounds of a builder's memory, whatever the program does. The C core has the same limits in native/core/tree/tree.h."""

    nodes: int = 1 << 15
    """Beyond it, a call from a new context goes to the node (root, site -2, function)."""
    links: int = 1 << 17
    """Beyond it, no new link is made; existing links continue."""
    pairs: int = 1 << 18
    """Beyond it, the product of a new pair is added to the node's pair (OTHER, OTHER), twice if i != j."""
    components: int = 256
    """Beyond it, every function keeps a quarter of the samples, and half of that each time the number doubles."""
    spans: int = 1 << 19
    """Beyond it, functions of least total time drop the spans of their longest calls until half remains."""


_FEATURE_OR_TYPE: Final = re.compile(
    r"\('(?:feature', ([0-9]{1,7}), ([0-9]{1,7})|type', ([0-9]{1,18})), '([ -&(-\[\]-~]*)'\)"
)
"""Definition of a feature or type whose name is plain ASCII."""
_PLAIN: Final = r"'([ -&(-\[\]-~]*)'"
_CODE: Final = re.compile(
    rf"\('code', ([0-9]{{1,6}}), {_PLAIN}, {_PLAIN}, ([0-9]{{1,9}}), '(own|library)', \(((?:'\w+', )*)\), "
    r"\(((?:\([0-9]{1,9}, [0-9]{1,9}, (?:[0-9]{1,9}|None)\), )*)\)\)",
    re.ASCII,
)
"""Definition of code whose names are plain ASCII: number, name, file, line, origin, parameters, lines."""
_LINES: Final = re.compile(r"\(([0-9]+), ([0-9]+), ([0-9]+)\)")
"""Part of code with its line; parts without one are left out anyway."""


# The definitions file of a spool: one line a definition, written by the tracer as it goes. The program has it in its memory
# and may write over it, so what a line must hold is checked before anything is taken from it.

_FIELDS: Final = {
    "code": "fttitT*",
    "address": "ftit",
    "unselected": "tit",
    "earlier": "f",
    "feature": "nft",
    "type": "nt",
    "vtable": "ntit",
    "sample": "fb",
    "metric": "ltt",
    "coroutine": "f",
    "mark": "lt",
    "counts": "fnnnnNB",
    "say": "tt",
    "process": "nnT",
    "collections": "iiiiiii",
    "cpu": "ti",
    "start": "iiit",
    "failed": "t",
    "end": "iiitiT",
}
"""Kind of definition → its fields, a letter each: see ``_check``."""
_BOUNDS: Final = {
    "i": (-(1 << 63), (1 << 63) - 1),
    "n": (0, (1 << 31) - 1),
    "f": (0, MAX_CODE),
    "b": (0, 62),
    "l": (0, MAX_LANES - 1),
}
"""Letter of a whole number → its bounds: any number, the number or place of something, a function, bits, a lane."""


def _check(kind: object, fields: Sequence[object]) -> None:
    """TypeError or ValueError if a definition cannot be of its kind. Other kinds than those known are ignored later.

    Letters: ``t`` a text, ``T`` several texts, ``N`` several places, ``*`` parts of code with their lines, ``B`` branches;
    and those of ``_BOUNDS``.
    """
    if not isinstance(kind, str):
        raise TypeError(kind)
    for letter, value in zip(_FIELDS.get(kind, ""), fields, strict=kind in _FIELDS):
        if letter in _BOUNDS:
            least, most = _BOUNDS[letter]
            fine = isinstance(value, int) and least <= value <= most
        elif letter == "t":
            fine = isinstance(value, str)
        else:
            fine = isinstance(value, tuple | list) and all(map(_OF_SEVERAL[letter], value))
        if not fine:
            raise ValueError(value)


def _is_place(*values: object) -> bool:
    """Whether all are numbers or places of something."""
    least, most = _BOUNDS["n"]
    return all(isinstance(value, int) and least <= value <= most for value in values)


def _is_triple(value: object) -> bool:
    """Whether it is two places and the number of a line, which may be none."""
    return isinstance(value, tuple | list) and len(value) == 3 and _is_place(*value[:2], value[2] or 0)


_OF_SEVERAL: Final[dict[str, Callable[[Any], bool]]] = {
    "T": lambda one: isinstance(one, str),
    "N": _is_place,
    "*": _is_triple,
    "B": lambda one: _is_triple(one) and one[2] is not None,
}


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The process that a spool belongs to."""

    pid: int
    """Process id."""
    ppid: int
    """Process id of its parent."""
    argv: tuple[str, ...]
    """Command line."""


@dataclass(frozen=True, slots=True)
class TracerStart:
    """State of the tracer when it begins."""

    clock: int
    """Its clock, ns."""
    event_ns: int
    """Calibrated cost of a call event beyond the handler's own clock readings."""
    foreign_ns: int
    """Calibrated cost of an event that is no Python call."""
    python: str
    """Version of the interpreter; empty for a compiled program."""


@dataclass(frozen=True, slots=True)
class TracerEnd:
    """State of the tracer when the program ends."""

    clock: int
    """Its clock, ns."""
    own_ns: int
    """Time that it took out of the clocks of all threads."""
    missed: int
    """Calls it missed because the program was at its recursion limit."""
    lost: str
    """Why it stopped before the program did; empty if it did not."""
    unselected: int
    """Number of functions left out by the selection."""
    names: tuple[str, ...]
    """Names of some functions left out by the selection."""


@dataclass(frozen=True, slots=True)
class CountedCode:
    """A code object whose lines are counted, and the place of its counters: one a line, then two a branch."""

    component: int
    """Number of its function."""
    file: int
    """Number of the counter file in the spool."""
    place: int
    """Index of the first counter in that file."""
    first: int
    """Source line of that counter."""
    span: int
    """Number of line counters. The branch counters follow: not taken, taken, for each branch."""
    lines: tuple[int, ...]
    """Lines that have code, relative to ``first``."""
    blocks: tuple[tuple[int, int, int], ...]
    """(branch, line, rank of the branch on its line) of the counted branches."""


@dataclass(slots=True)
class Definitions:
    """All definitions of a tracer so far; they grow while the program runs."""

    components: dict[int, Component] = field(default_factory=dict)
    """Number of a function → component."""
    same: dict[int, int] = field(default_factory=dict)
    """Number of a function → first number of the same component, for code that was made again by reload or exec."""
    lines: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Number of a function → (first offset, offset behind the last, line) of its bytecode or machine code."""
    addresses: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """Number of a compiled function → loaded file, offset in it, exported symbol or an empty text."""
    unselected: list[tuple[str, int]] = field(default_factory=list)
    """File and offset of some compiled functions that the selection left out."""
    earlier: list[int] = field(default_factory=list)
    """Numbers of compiled functions that were open when the program was attached to."""
    features: dict[int, str] = field(default_factory=dict)
    """Number of a feature → name."""
    owners: dict[int, int] = field(default_factory=dict)
    """Number of a feature → number of the function that it is a feature of, where that is known."""
    types: dict[int, str] = field(default_factory=dict)
    """Number of a dynamic type → name."""
    virtual_tables: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """Number of a dynamic type of a compiled program → loaded file, offset of its virtual table, symbol or an empty text."""
    sample_bounds: dict[int, int] = field(default_factory=dict)
    """Number of a function → bound of the priorities in its uniform sample, where the tracer made that sample smaller."""
    metrics: dict[int, Metric] = field(default_factory=lambda: {TIME_LANE: TIME, EVENTS_LANE: EVENTS})
    """Number of a measured metric → metric. Time and events are always measured."""
    coroutines: set[int] = field(default_factory=set)
    """Numbers of coroutines and async generators."""
    marks: dict[int, str] = field(default_factory=dict)
    """Number of a lane → the part of the time off the CPU that it holds: ``queued``, ``sleep``, ``lock``, …"""
    counted: list[CountedCode] = field(default_factory=list)
    """Code whose lines are counted."""
    words: dict[str, str] = field(default_factory=dict)
    """Messages of the tracer for the manifest, by topic: ``clock``, ``cpu``, ``tracer``, ``end``, …"""
    cpu_ns: dict[str, int] = field(default_factory=dict)
    """CPU time of the process when the tracer was ``entered``, when the recording had ``begun`` and ``ended``, and when the
    tracer had ``released`` what it held.

    And the wall time that its threads ``waited`` within the tracer, for the recorder or a CPU, the time of ``counting``
    lines, and that of the ``counted`` code without counting.
    """
    collections: Collections | None = None
    """Full garbage collections of the process; None if the tracer does not know them."""
    process: ProcessIdentity | None = None
    """The process; None if the tracer does not name it."""
    started: TracerStart | None = None
    """How the recording began; None if it never began."""
    failed: str = ""
    """Why the tracer could not begin."""
    damaged: int = 0
    """Lines that were not readable."""
    ended: TracerEnd | None = None
    """How the recording ended; None if the program never reached its end."""
    _known: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def define(self, number: int, component: Component, lines: Sequence[tuple[int, int, int]]) -> None:
        """Define the function of this number; ``lines`` as in the field of that name."""
        self.same[number] = self._known.setdefault((component.name, component.file, component.line), number)
        self.components[number] = component
        self.lines[number] = [(a, b, line) for a, b, line in lines if line]

    def feature_of(self, number: int, function: int) -> str:
        """Name of a feature of an invocation of a function; of a call within it, after the name of the called function."""
        name, owner = self.features.get(number, "(unknown)"), self.owners.get(number, function)
        if self.same.get(owner, owner) == self.same.get(function, function) or owner not in self.components:
            return name
        return f"{self.components[owner].name}.{name}"

    def take(self, line: str) -> None:
        """Read one line of the definitions file.

        A line that is torn, or that the program has written over, is skipped and counted: its numbers stay unknown.
        """
        if short := _FEATURE_OR_TYPE.fullmatch(line):  # most lines; ast.literal_eval takes ten times as long
            feature, function, type_number, name = short.groups()
            if feature:
                self.features[int(feature)] = name
                self.owners[int(feature)] = int(function)
            else:
                self.types[int(type_number)] = name
            return
        if code := _CODE.fullmatch(line):
            number, name, file, first_line, origin, names, parts = code.groups()
            whose: Literal["own", "library"] = "own" if origin == "own" else "library"
            component = Component(name, file, int(first_line), "python", whose, tuple(re.findall(r"\w+", names)))
            self.define(int(number), component, [(int(a), int(b), int(c)) for a, b, c in _LINES.findall(parts)])
            return
        try:
            kind, *fields = ast.literal_eval(line)
            _check(kind, fields)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):  # all of them come of a wild line
            self.damaged += 1
            return
        if kind == "code":
            number, name, file, first_line, origin, parameters, lines = fields
            known = Component(_clean(name), _clean(file), first_line, "python", origin, tuple(map(_clean, parameters)))
            self.define(number, known, lines)
        elif kind == "address":
            number, module, offset, symbol = fields
            self.addresses[number] = (_clean(module), offset, _clean(symbol))
        elif kind == "unselected":
            module, offset, _ = fields
            self.unselected.append((_clean(module), offset))
        elif kind == "earlier":
            self.earlier.append(fields[0])
        elif kind == "feature":
            self.features[fields[0]] = _clean(fields[2])
            self.owners[fields[0]] = fields[1]
        elif kind == "type":
            self.types[fields[0]] = _clean(fields[1])
        elif kind == "vtable":
            number, module, offset, symbol = fields
            self.virtual_tables[number] = _clean(module), offset, _clean(symbol)
        elif kind == "sample":
            # Threads of a compiled program have samples of their own: the smallest bound holds for all.
            self.sample_bounds[fields[0]] = min(1 << fields[1], self.sample_bounds.get(fields[0], 1 << 62))
        elif kind == "metric":
            self.metrics[fields[0]] = Metric(_clean(fields[1]), _clean(fields[2]))
        elif kind == "coroutine":
            self.coroutines.add(fields[0])
        elif kind == "mark":
            self.marks[fields[0]] = _clean(fields[1])
        elif kind == "counts":
            self.counted.append(CountedCode(*fields))
        elif kind == "say":
            self.words[fields[0]] = _clean(fields[1])
        elif kind == "process":
            pid, ppid, argv = fields
            self.process = ProcessIdentity(pid, ppid, tuple(map(_clean, argv)))
        elif kind == "collections":
            self.collections = Collections(*fields)
        elif kind == "cpu":
            self.cpu_ns[fields[0]] = fields[1]
        elif kind == "start":
            self.started = TracerStart(*fields)
        elif kind == "failed":
            self.failed = fields[0]
        elif kind == "end":
            self.ended = TracerEnd(*fields)

    def lanes(self) -> tuple[str, ...]:
        """Metric or mark of each lane of the call tree. All metrics of a process are defined before its first record."""
        known = {CPU_LANE: CPU.name} | {lane: metric.name for lane, metric in self.metrics.items()} | self.marks
        return tuple(known.get(lane, "") for lane in range(max(known) + 1))

    def line_at(self, code: int, offset: int) -> int:
        """Source line of a call site, 0 if unknown."""
        if offset < 0:
            return 0
        return next((line for first, last, line in self.lines.get(code, ()) if first <= offset < last), 0)


def definitions_without_tracer(pid: int, parent: int = 0, command: tuple[str, ...] = ()) -> Definitions:
    """Definitions of a process without a tracer, which began and ended regularly."""
    known = Definitions(process=ProcessIdentity(pid, parent, command))
    known.started, known.ended = TracerStart(0, 0, 0, ""), TracerEnd(0, 0, 0, "", 0, ())
    return known


def _clean(text: str) -> str:
    """A name that every file and terminal can hold: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


class DefinitionsReader:
    """Reads a definitions file while it grows; incomplete lines are left for the next reading.

    The native tracer writes to a mapped file, which is zero behind its last line. While this reads, the tracer may write a
    line that was read as zeros already and go on with lines that were not, so a zero byte ends what was read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.position, self.definitions = path, 0, Definitions()

    def update(self) -> Definitions:
        """Everything defined until now."""
        try:
            data, _, _ = read_regular(self.path, self.position).partition(b"\0")
        except OSError as error:  # nothing is defined yet, or the program has put something else there
            if error.errno in PASSING:
                raise
            return self.definitions
        whole = data[: data.rfind(b"\n") + 1]
        self.position += len(whole)
        for line in whole.decode(errors="replace").split("\n"):
            if line:
                self.definitions.take(line)
        return self.definitions
