"""Function traces of Xdebug in its computer-readable form (``xdebug.trace_format=1``), read line by line.

An entry has the call's depth, its number, the time since the start, the memory in use, the function, the place of the
call and the arguments as text; an exit has depth, number, time and memory. Internal functions of PHP are traced as well,
so the call tree is exact. A trace is of any length: nothing of it is kept but the open calls and the growing call tree.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from struct import pack, unpack
from typing import BinaryIO, Final, Literal

from perflaw.errors import DataError
from perflaw.record.compiled.selection import EVERYTHING, Globs
from perflaw.record.reader import RecordedProcess
from perflaw.record.tree.feed import TreeFeed
from perflaw.record.tree.records import (
    CHANGE,
    DEAD,
    ENTER,
    EVENTS_LANE,
    EXIT,
    FEATURE,
    MAX_CODE,
    Definitions,
    Event,
    ProcessIdentity,
    TracerEnd,
    TracerStart,
)
from perflaw.record.tree.reservoir import scramble
from perflaw.types import Component
from perflaw.types.recordings import METRICS

READABLE: Final = (b"2", b"4")
"""Numbers of the computer-readable form, as the second line of a trace has them."""
TICK_NS: Final = 1000
"""Step of the time stamps."""
LOST: Final = "the trace has no end: the program was killed, or it is still running"
CUT: Final = "strings and arrays were too long to be written whole, so their lengths are not known"
MEMORY_LANE: Final = EVENTS_LANE + 1
"""Lane of the bytes by which PHP's memory grew."""
BATCH: Final = 1 << 14
"""Records that are given to the call tree at once."""
MAX_PROPERTIES: Final = 8
"""Properties of an object that are features."""
_KEY: Final = (1 << 31) - 1
_MOST_LINE: Final = (1 << 31) - 1
_MOST_SECONDS: Final = 1 << 33
"""Beyond it, ns have no room in 64 bits."""
_INCLUDES: Final = frozenset({"include", "include_once", "require", "require_once"})
_ESCAPED: Final = re.compile(rb"\\(?:[0-7]{3}|.)", re.DOTALL)
_STRUCTURE: Final = re.compile(rb"'(?:[^'\\]|\\.)*'|[\[{]|[\]}]|, |; ", re.DOTALL)
_PROPERTY: Final = re.compile(rb"(?:public|protected|private)(?: readonly)? \$(\w+) = (.*)", re.DOTALL)
_OBJECT: Final = re.compile(rb"class (\S+) \{(.*)\}", re.DOTALL)
_CLOSURE: Final = re.compile(r"(?:.*(?:->|::))?(?P<key>(?P<space>.*)\{closure:(?P<file>.*):(?P<line>\d+)-)\d+\}")
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_START: Final = re.compile(rb"TRACE START \[([^\]]+)\]")
_METHOD: Final = re.compile("->|::")
_LIBRARY: Final = re.compile("/vendor/|^/usr/share/php")
"""Folders of packages: Composer's, and Debian's."""


@dataclass(frozen=True, slots=True)
class TracingCosts:
    """What Xdebug adds to the times in a trace, ns."""

    inside: float = 0.0
    """Between the stamps of a call's entry and exit."""
    outside: float = 0.0
    """In the caller, before the entry and after the exit."""
    string_byte: float = 0.0
    """Inside, for each byte of an argument that is a string."""
    other_byte: float = 0.0
    """Inside, for each byte of another argument."""


NO_COSTS: Final = TracingCosts()


@dataclass(frozen=True, slots=True)
class PhpFunction:
    """A function as its source defines it."""

    file: str
    line: int
    parameters: tuple[str, ...]


FunctionsOf = Callable[[Sequence[str], Sequence[str]], Mapping[str, PhpFunction]]
"""Finds what source files define, and functions of PHP itself by name; a closure is named by its file and first line."""


@dataclass(frozen=True, slots=True)
class _OpenCall:
    """A call that has not ended."""

    level: int
    number: bytes
    code: int
    frame: int


def _whole(text: bytes) -> int:
    """A number of a trace; ValueError if it is none, or more than the seconds, bytes or calls that a program may have."""
    if not re.fullmatch(rb"[0-9]{1,18}", text):
        raise ValueError(text)
    return int(text)


def items(text: bytes) -> tuple[list[bytes], bool]:
    """What stands between the separators of an array or object, and whether it was cut.

    >>> items(b"0 => 1, 1 => 'a, b', 2 => [0 => 5, 1 => 6]")
    ([b'0 => 1', b"1 => 'a, b'", b'2 => [0 => 5, 1 => 6]'], False)
    """
    found, depth, start = [], 0, 0
    for mark in _STRUCTURE.finditer(text):
        first = mark[0][:1]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
        elif first in b",;" and depth == 0:
            found.append(text[start : mark.start()])
            start = mark.end()
    last = text[start:].strip()
    if last == b"...":
        return found, True
    return [*found, last] if last else found, False


class TraceReader:
    """Turns the lines of one trace into records of calls."""

    def __init__(
        self,
        feed: TreeFeed,
        costs: TracingCosts = NO_COSTS,
        chosen: Globs = EVERYTHING,
    ) -> None:
        self.feed, self.costs, self.chosen = feed, costs, chosen
        self.events: list[Event] = []
        self.open: list[_OpenCall] = []
        self.codes: dict[tuple[bytes, bytes, bytes], int] = {}
        """Name, whether it is the program's own, and included file of a function → its number; 0: not selected."""
        self.lines: dict[int, set[int]] = {}
        """Lines with calls, by the number of the calling function."""
        self.files: dict[bytes, None] = {}
        """Source files with code that ran, in their order."""
        self.features: dict[tuple[int, int, str], int] = {}
        """Function, place of the argument and what was measured of it → number of the feature."""
        self.types: dict[bytes, int] = {}
        self.unselected: list[str] = []
        self.frame = self.memory = self.now = self.cut = 0
        self.added = 0.0
        """Time that tracing took so far, ns."""
        self.ended = False

    def take(self, line: bytes) -> None:
        """Take in the next line of the trace; ValueError where it is damaged."""
        fields = line.rstrip(b"\r\n").split(b"\t")
        if len(fields) < 5:
            self.ended = self.ended or fields[0].startswith(b"TRACE END")
            return
        level, number, kind, stamp, memory = fields[:5]
        if kind == b"0" and len(fields) > 9:
            self._enter(_whole(level), number, self._stamp(stamp), _whole(memory), fields)
        elif kind == b"1":
            self._exit(number, self._stamp(stamp), _whole(memory))
        if len(self.events) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Give the records so far to the call tree."""
        if self.events:
            self.feed.take(1, self.events)
            self.events = []

    def _stamp(self, text: bytes) -> int:
        """A time stamp in ns without the time that tracing took; it never goes back."""
        whole, _, fraction = text.partition(b".")
        measured = min(_whole(whole), _MOST_SECONDS) * 10**9 + _whole(fraction.ljust(9, b"0")[:9])
        self.now = max(self.now, round(measured - self.added))
        return self.now

    def _grown(self, memory: int) -> None:
        """Note by how much the memory grew since the last record; what is freed is no cost."""
        if memory > self.memory:
            self.events.append((memory - self.memory, 0, MEMORY_LANE, -1, -1, CHANGE))
        self.memory = memory

    def _enter(self, level: int, number: bytes, stamp: int, memory: int, fields: list[bytes]) -> None:
        name, own, included, file, line = fields[5:10]
        self.files[file] = None
        if name == b"{main}":
            included = file
        arguments = fields[11:]
        self.added += self.costs.outside / 2
        while self.open and self.open[-1].level >= level:  # they ended without an exit
            self.open.pop()
            below = self.open[-1].frame if self.open else 0
            self.events.append((stamp, below, 1, -1, -1, DEAD))
        code = self.codes.get((name, own, included))
        if code is None:
            code = self._number(name, own, included)
        if code:
            site, caller = min(_whole(line), _MOST_LINE), self.open[-1].code if self.open else 0
            if caller:
                self.lines[caller].add(site)
            self._grown(memory)
            self.frame += 1
            self.events.append((stamp, self.frame, code, site, scramble(self.frame) & _KEY, ENTER))
            self.open.append(_OpenCall(level, number, code, self.frame))
            for at, argument in enumerate(arguments):
                for what, value in self._measured("", argument):
                    feature = self.features.setdefault((code, at, what), len(self.features) + 1)
                    bits = unpack("<q", pack("<d", value))[0]
                    self.events.append((bits, self.frame, feature, -1, -1, FEATURE))
        strings = sum(len(one) for one in arguments if one[:1] == b"'")
        self.added += self.costs.inside + self.costs.string_byte * strings
        self.added += self.costs.other_byte * (sum(map(len, arguments)) - strings)

    def _exit(self, number: bytes, stamp: int, memory: int) -> None:
        place = next((at for at in range(len(self.open) - 1, -1, -1) if self.open[at].number == number), None)
        if place is not None:
            self._grown(memory)
            self.events.append((stamp, self.open[place].frame, 1, -1, -1, EXIT))
            del self.open[place:]
        self.added += self.costs.outside / 2

    def _number(self, name: bytes, own: bytes, included: bytes) -> int:
        """Number a function at its first call; 0 if it is not selected."""
        text = _name(name, included)
        code = 0
        if self.chosen.wants([text]):
            code = len(self.lines) + 1
            if code >= MAX_CODE:
                why = f"at most {MAX_CODE - 1} are possible"
                raise DataError(f"{code} different functions", why, "record a smaller part of the program")
            self.lines[code] = set()
        else:
            self.unselected.append(text)
        self.codes[name, own, included] = code
        return code

    def define(self, definitions: Definitions, functions: FunctionsOf) -> None:
        """Define what was numbered."""
        parameters: dict[int, tuple[str, ...]] = {}
        files = [file.decode(errors="backslashreplace") for file in self.files]
        known = functions(files, [name.decode(errors="replace") for name, own, _ in self.codes if own != b"1"])
        for (name, own, included), code in self.codes.items():
            text = _name(name, included)
            closure = _CLOSURE.fullmatch(name.decode(errors="backslashreplace"))
            source = known.get(closure["key"] if closure else _METHOD.sub(" ", text))
            file = source.file if source else included.decode(errors="backslashreplace")
            parameters[code] = source.parameters if source else ()
            origin: Literal["own", "library"] = "own" if own == b"1" and not _LIBRARY.search(file) else "library"
            if code:
                component = Component(text, file, source.line if source else 0, "php", origin, parameters[code])
                lines = [(line, line + 1, line) for line in sorted(self.lines[code])]
                definitions.define(code, component, lines)
        for (code, at, what), feature in self.features.items():
            names = parameters[code]
            definitions.features[feature] = (names[at] if at < len(names) else f"arg{at + 1}") + what
        for name, number in self.types.items():
            definitions.types[number] = name.decode(errors="backslashreplace")

    def _measured(self, name: str, value: bytes) -> Iterator[tuple[str, float]]:
        """The features of an argument: a number, a length, the class of an object with its properties."""
        first = value[:1]
        if first == b"'":
            if value.endswith(b"'..."):
                self.cut += 1
            else:
                body = value[1:-1]
                yield f"{name}.len", len(_ESCAPED.sub(b".", body)) if b"\\" in body else len(body)
        elif first == b"[":
            found, cut = items(value[1:-1])
            if not cut:
                yield f"{name}.len", len(found)
            self.cut += cut
        elif value in (b"TRUE", b"FALSE"):
            yield name, value == b"TRUE"
        elif object_ := _OBJECT.fullmatch(value):
            kind, properties = object_.groups()
            yield f"{name}.type", self.types.setdefault(kind, len(self.types) + 1)
            for one in items(properties.strip())[0][:MAX_PROPERTIES]:
                found_property = _PROPERTY.fullmatch(one)
                if found_property and found_property[2][:1] != b"c":
                    yield from self._measured(f"{name}.{found_property[1].decode()}", found_property[2])
        elif first.isdigit() or first == b"-":
            try:
                yield name, float(value)
            except ValueError:  # -INF and its like are no sizes
                return


def _name(name: bytes, included: bytes) -> str:
    """The name of a function as PHP writes it; inclusions and closures have the name of their file, without folders."""
    text = name.decode(errors="backslashreplace")
    if text in _INCLUDES:
        return f"{text} {PurePath(included.decode(errors='backslashreplace')).name}"
    if closure := _CLOSURE.fullmatch(text):
        return f"{closure['space']}{{closure:{PurePath(closure['file']).name}:{closure['line']}}}"
    return text


@dataclass(frozen=True, slots=True)
class XdebugTrace:
    """A trace in a file, gzip or plain."""

    path: Path
    began: datetime = _EPOCH
    """When the program began, by its own clock."""
    file: BinaryIO | None = None
    """The file where it is open already, so that it may be removed; lines can be read once then."""

    @classmethod
    def of(cls, path: Path) -> XdebugTrace | None:
        """The trace in a file; None where it holds something else. DataError for a form that only people read."""
        if path.is_dir():
            return None
        try:
            with closing(cls(path).lines()) as lines:
                version, form, start = (next(lines, b"")[:1000] for _ in range(3))
        except DataError:
            return None  # it is no trace of anything
        if not version.startswith(b"Version: ") or not form.startswith(b"File format: "):
            if version.startswith(b"TRACE START [") or b"xdebug-trace" in version:
                why = "it is a form for people, in which arguments are cut"
                raise DataError(f"{path}: a trace of Xdebug that cannot be read", why, "php -d xdebug.trace_format=1 …")
            return None
        if form.split()[-1] not in READABLE:
            known = ", ".join(number.decode() for number in READABLE)
            what = f"{path}: form {form.decode(errors='replace').split()[-1]} of Xdebug's traces"
            raise DataError(what, f"perflaw reads {known}", "php -d xdebug.trace_format=1 …")
        began = _EPOCH
        if time := _START.match(start):
            # By the clock of the program's time zone, which the trace does not name: taken as this machine's.
            with suppress(ValueError, OverflowError):  # it is no time, and nothing else depends on it
                began = datetime.fromisoformat(time[1].decode()).astimezone(UTC)
        return cls(path, began)

    def lines(self) -> Generator[bytes]:
        """Its lines, one after the other; DataError where it cannot be read."""
        try:
            with self.file or self.path.open("rb") as file:
                packed = file.read(2) == b"\x1f\x8b"
                file.seek(0)
                yield from gzip.GzipFile(fileobj=file) if packed else file
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise DataError(f"{self.path}: cannot be read", why.lower(), f"ls -l {self.path}") from error

    def recorded(
        self,
        library: Path | None,
        seed: int,
        process: ProcessIdentity,
        functions: FunctionsOf,
        costs: TracingCosts = NO_COSTS,
        chosen: Globs = EVERYTHING,
    ) -> tuple[RecordedProcess, int]:
        """The process that wrote it, and the number of arguments that were cut.

        ``functions`` finds what source files define. DataError names the line where the trace is damaged.
        """
        definitions = Definitions(process=process)
        definitions.metrics[MEMORY_LANE] = METRICS["allocated_bytes"]
        reader = TraceReader(TreeFeed(library, seed, definitions.lanes()), costs, chosen)
        for number, line in enumerate(self.lines(), 1):
            try:
                reader.take(line)
            except ValueError:
                raise DataError(
                    f"{self.path}:{number}: damaged", "it is no line of a trace", "perflaw import --help"
                ) from None
        reader.flush()
        reader.define(definitions, functions)
        definitions.started = TracerStart(0, round(costs.inside), 0, "")
        lost, names = "" if reader.ended else LOST, tuple(reader.unselected[:5])
        definitions.ended = TracerEnd(reader.now, round(reader.added), 0, lost, len(reader.unselected), names)
        return RecordedProcess(definitions, reader.feed.finish()), reader.cut


def no_functions(files: Sequence[str], names: Sequence[str]) -> Mapping[str, PhpFunction]:
    """What is known of functions without their sources."""
    return {}
