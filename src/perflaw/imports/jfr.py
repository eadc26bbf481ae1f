"""Recordings of the JDK's Flight Recorder: events that have a duration are calls of their threads.

A file is a row of chunks. A chunk describes the types of its events, so any event of any program is read: those of the JDK
(``jdk.FileRead``, ``jdk.GCPhasePause``), and those of a program's own classes of ``jdk.jfr.Event``. Their fields that are
numbers are features. One chunk at a time is in memory; its calls become trace-event JSON, which is read in pieces.

The format is that of JDK 11 and later (jdk.jfr.internal.consumer in its sources): whole numbers of one to nine bytes, seven
bits each, the lowest first; the ninth byte has eight.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Final

from perflaw.bounds import check_size, read_pieces
from perflaw.errors import DataError
from perflaw.imports.formats import ForeignFile
from perflaw.imports.profiles import NO_CALLS
from perflaw.imports.streaming import read_converted
from perflaw.imports.tracks import Trace

INSTANTS: Final = "events without a duration were left out"
UNFINISHED: Final = "its last chunk is not finished: the program was still recording, or the file was cut"
_MAGIC: Final = b"FLR\0"
_HEADER: Final = Struct(">4sHHqqqqqqqi")
"""Magic, version, bytes of the chunk, places of the last constants and of the metadata, begin in ns and duration of the
chunk, begin in ticks of its clock, ticks a second, flags."""
_COMPACT: Final = 1
"""Flag of a chunk whose whole numbers are compact; no JDK since 9 writes others."""
_METADATA: Final = 0
"""Number of the type of a chunk's description."""
_OWN_TYPES: Final = 2
"""Types below are those of the format itself."""
_WIDTHS: Final = {"byte": 8, "short": 16, "int": 32, "long": 64}
_STAMPED: Final = ("startTime", "duration", "eventThread")
"""Fields that an event needs to be a call."""
_EVENTS: Final = 4096
"""Events of a piece of JSON."""
_MAX_DEPTH: Final = 8
"""Structures within each other."""


@dataclass(slots=True)
class _Element:
    """An element of the description of a chunk: a tree as in XML."""

    name: str
    attributes: dict[str, str]
    children: list[_Element] = field(default_factory=list)


class _Bytes:
    """Reads values one after the other. IndexError or ValueError where the data end or are damaged."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place

    def whole(self) -> int:
        """A whole number without a sign."""
        data, place = self.data, self.place
        byte = data[place]
        place += 1
        value, shift = byte & 127, 7
        while byte > 127 and shift < 56:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
        if byte > 127:
            value |= data[place] << 56
            place += 1
        self.place = place
        return value

    def take(self, count: int) -> bytes:
        """So many bytes."""
        found = self.data[self.place : self.place + count]
        if len(found) < count:
            raise ValueError("it ends in the middle")
        self.place += count
        return found

    def text(self) -> str | None:
        """A text; None where it is none, or one of the constants."""
        kind = self.data[self.place]
        self.place += 1
        if kind < 2:
            return "" if kind else None
        size = self.whole()
        if kind == 2:
            return None
        if kind == 4:
            check_size(size, len(self.data))
            return "".join(chr(self.whole() & 0xFFFF) for _ in range(size))
        if kind not in (3, 5):
            raise ValueError(f"a text of kind {kind}")
        return self.take(size).decode("utf-8" if kind == 3 else "latin-1", "replace")


Reader = Callable[[_Bytes], object]
"""Reads a value of a type; numbers and truth values are given, all else is passed over."""


def _number(width: int) -> Reader:
    sign, mask = 1 << width - 1, (1 << width) - 1
    return lambda data: ((data.whole() & mask) ^ sign) - sign


def _float(code: str) -> Reader:
    layout = Struct(code)
    return lambda data: layout.unpack(data.take(layout.size))[0]


_PLAIN: Final[dict[str, Reader]] = {
    "boolean": lambda data: data.take(1) != b"\0",
    "byte": lambda data: data.take(1)[0] - ((data.data[data.place - 1] & 128) << 1),
    "char": lambda data: (data.whole(), None)[1],
    **{name: _number(width) for name, width in _WIDTHS.items() if name != "byte"},
    "float": _float(">f"),
    "double": _float(">d"),
    "java.lang.String": lambda data: (data.text(), None)[1],
}


class _Types:
    """The types that a chunk describes."""

    def __init__(self, description: _Bytes) -> None:
        for _ in range(4):
            description.whole()  # size, type, time and duration
        description.whole()  # its number
        count = description.whole()
        check_size(count, len(description.data))
        strings = [description.text() or "" for _ in range(count)]
        root = self._element(description, strings, 0)
        classes = [
            one for top in root.children if top.name == "metadata" for one in top.children if one.name == "class"
        ]
        self.classes = {int(one.attributes["id"]): one for one in classes}
        self.readers: dict[int, list[tuple[str, Reader]]] = {}

    def _element(self, data: _Bytes, strings: list[str], depth: int) -> _Element:
        if depth > _MAX_DEPTH:
            raise ValueError("its description is too deep")
        name = strings[data.whole()]
        attributes = {strings[data.whole()]: strings[data.whole()] for _ in range(data.whole())}
        return _Element(name, attributes, [self._element(data, strings, depth + 1) for _ in range(data.whole())])

    def name(self, number: int) -> str:
        """Name of an event's type."""
        return self.classes[number].attributes.get("name", "") if number in self.classes else ""

    def fields(self, number: int, depth: int = 0) -> list[tuple[str, Reader]]:
        """Name and reader of each field of a type."""
        if number not in self.readers:
            parts = (
                [one for one in self.classes[number].children if one.name == "field"] if number in self.classes else []
            )
            self.readers[number] = [(one.attributes["name"], self._reader(one.attributes, depth)) for one in parts]
        return self.readers[number]

    def _reader(self, attributes: dict[str, str], depth: int) -> Reader:
        kind = int(attributes["class"])
        if attributes.get("constantPool") == "true":
            one: Reader = _Bytes.whole if attributes["name"] == "eventThread" else lambda data: (data.whole(), None)[1]
        elif (plain := _PLAIN.get(self.name(kind))) is not None:
            one = plain
        elif depth > _MAX_DEPTH:
            raise ValueError("a type within itself")
        else:
            readers = [reader for _, reader in self.fields(kind, depth + 1)]
            one = lambda data: [reader(data) for reader in readers] and None  # noqa: E731 (one of the readers above)
        if attributes.get("dimension", "0") in ("", "0"):
            return one
        return lambda data: [one(data) for _ in range(check_count(data))] and None


def check_count(data: _Bytes) -> int:
    """The number of values of an array; ValueError where there are more than bytes."""
    count = data.whole()
    check_size(count, len(data.data))
    return count


class _JfrReader:
    """Reads a file and gives its calls as trace-event JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: Counter[str] = Counter()
        self.lost = ""
        self.has_samples = False

    def pieces(self) -> Iterator[bytes]:
        """Trace-event JSON; DataError where the file is damaged."""
        yield b'{"traceEvents":['
        separator = b""
        for number, (chunk, header) in enumerate(self._chunks(), 1):
            events = self._events(chunk, header)
            try:
                while some := b",\n".join(islice(events, _EVENTS)):
                    yield separator + some
                    separator = b",\n"
            except (IndexError, ValueError, KeyError) as error:
                why = str(error) if isinstance(error, ValueError) else "it ends in the middle"
                raise DataError(f"{self.path}: chunk {number} is damaged", why, f"jfr summary {self.path}") from None
        yield b"]}"

    def _chunks(self) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """The chunks and the numbers in their headers."""
        held = bytearray()
        wanted = _HEADER.size
        try:
            for piece in read_pieces(self.path):
                held += piece
                while len(held) >= wanted:
                    magic, _, _, *numbers = _HEADER.unpack_from(held)
                    if magic != _MAGIC:
                        raise ValueError("a chunk does not begin as one")
                    if numbers[0] <= _HEADER.size:
                        self.lost = UNFINISHED
                        return
                    check_size(numbers[0])
                    wanted = numbers[0]
                    if len(held) >= wanted:
                        yield bytes(held[:wanted]), tuple(numbers)
                        del held[:wanted]
                        wanted = _HEADER.size
        except ValueError as error:
            raise DataError(f"{self.path}: cannot be read", str(error), f"jfr summary {self.path}") from None
        if held:
            self.lost = UNFINISHED

    def _events(self, chunk: bytes, header: tuple[int, ...]) -> Iterator[bytes]:
        """The calls of a chunk as trace-event JSON."""
        _, _, description, epoch, _, ticks, frequency, flags = header
        if not flags & _COMPACT or frequency <= 0:
            raise ValueError("its numbers are not compact, as no JDK since 9 writes them")
        if not _HEADER.size <= description < len(chunk):
            raise ValueError("its description is not in it")
        types = _Types(_Bytes(chunk, description))
        kinds: dict[int, tuple[bytes, list[tuple[str, Reader]]] | None] = {}
        place = _HEADER.size
        while place < len(chunk):
            data = _Bytes(chunk, place)
            size = data.whole()
            if size < 2 or place + size > len(chunk):
                raise ValueError(f"an event of {size} bytes at byte {place}")
            kind = data.whole()
            if kind not in kinds:
                fields = types.fields(kind) if kind >= _OWN_TYPES else []
                is_call = {name for name, _ in fields}.issuperset(_STAMPED)
                kinds[kind] = (json.dumps(types.name(kind) or f"type {kind}").encode(), fields) if is_call else None
                self.has_samples |= types.name(kind).endswith("ExecutionSample")
            if (known := kinds[kind]) is not None:
                name, fields = known
                values = {key: reader(data) for key, reader in fields}
                begin, duration, thread = (values.pop(key) for key in _STAMPED)
                assert isinstance(begin, int) and isinstance(duration, int) and isinstance(thread, int)
                begin -= ticks
                start = epoch + begin * 10**9 // frequency
                length = epoch + (begin + max(duration, 0)) * 10**9 // frequency - start
                numbers = ",".join(
                    f"{json.dumps(key)}:{int(value) if isinstance(value, bool) else value!r}"
                    for key, value in values.items()
                    if isinstance(value, int | float) and math.isfinite(value)
                )
                yield b'{"ph":"X","name":%b,"ts":%d.%03d,"dur":%d.%03d,"tid":%d,"args":{%b}}' % (
                    name, *divmod(start, 1000), *divmod(length, 1000), thread, numbers.encode(),
                )  # fmt: skip
            elif kind >= _OWN_TYPES:
                self.notes[INSTANTS] += 1
            place += size


def recognises(path: Path) -> bool:
    """Whether a file begins with a chunk."""
    try:
        return path.is_file() and next(read_pieces(path), b"")[:4] == _MAGIC
    except (OSError, ValueError):
        return False  # the other readers say why


def read(path: Path, library: Path | None) -> Trace:
    """The calls of a file; UsageError where it has samples instead, DataError where it is damaged or has none."""
    reader = _JfrReader(path)
    trace = read_converted("JFR", path, reader.pieces(), library, lambda: reader.lost)
    if not trace.processes:
        if reader.has_samples:
            raise NO_CALLS.refusal(ForeignFile(path))
        raise DataError(
            f"{path}: no call in it", "none of its events has a duration and a thread", f"jfr summary {path}"
        )
    trace.processes[0].notes.update(reader.notes)
    return trace
