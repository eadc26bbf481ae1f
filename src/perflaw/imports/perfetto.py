"""Traces of Perfetto in their own protobuf form: the slices of tracks.

A trace is a series of packets. A packet begins or ends a slice on a track, describes a track, or defines the numbers that
stand for names. Each sequence of packets (a thread of one producer) has its own numbers, defaults and clocks.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

from perflaw.bounds import MAX_BYTES, check_size, read_pieces
from perflaw.errors import DataError
from perflaw.imports.formats import ForeignFile, Format
from perflaw.imports.protobuf import Value, double, fields, message, messages, signed, text, whole
from perflaw.imports.tracks import BEGUN_EARLIER, Number, ProcessEvents, Trace, trace_of
from perflaw.types import Component

KERNEL: Final = "packets of the kernel's scheduler and counters hold no calls: left out"
LOST: Final = "the tracing service lost packets: record with a larger buffer"
_PACKET: Final = 0x0A
"""First byte of each packet: field 1, bytes."""
_BEGIN, _END = 1, 2
_OWN_CLOCKS: Final = 64
"""Clocks from this number on belong to one sequence; those below are the same for all, and taken as they are."""
_FIRST_FIELDS: Final = frozenset({1, 2, 3, 6, 8, 10, 11, 12, 13, 33, 35, 36, 41, 42, 44, 50, 58, 59, 60, 87, 88, 89})
"""Fields that the first packet of a trace has."""


@dataclass(slots=True)
class _Clock:
    """A clock of one sequence."""

    offset: int
    """What is added to its ns so that they are those of the clock beside it in the snapshot."""
    last: int
    """Its last time, in its own unit."""
    unit_ns: int
    is_incremental: bool
    """Whether its times are steps since the last one."""


@dataclass(slots=True)
class _Sequence:
    """What the packets of a sequence refer to."""

    names: dict[int, str] = field(default_factory=dict)
    annotation_names: dict[int, str] = field(default_factory=dict)
    places: dict[int, tuple[str, int]] = field(default_factory=dict)
    """File and line of source locations."""
    clocks: dict[int, _Clock] = field(default_factory=dict)
    default_clock: int = 0
    default_track: int = 0


@dataclass(frozen=True, slots=True)
class _TrackDescription:
    """A track: of a process, of a thread, or one of neither, which lies in its parent."""

    pid: int
    process_name: str
    parent: int


@dataclass(frozen=True, slots=True)
class _Slice:
    """The begin or the end of a slice."""

    stamp: int
    """ns."""
    begins: bool
    component: Component
    numbers: tuple[tuple[str, Number], ...]


class _OpenSlices:
    """The open slices of a track, put on a track of its process.

    An end ends the innermost one, or the innermost one of its name if it has a name, as in Perfetto itself.
    """

    def __init__(self, pid: int, process: ProcessEvents) -> None:
        self.pid, self.process, self.track = pid, process, process.track()
        self.last = 0
        """The last time stamp, ns."""
        self.open: list[tuple[int, int, str]] = []
        """Frame, code and name of each open slice."""

    def play(self, one: _Slice) -> None:
        """Take in a begin or an end."""
        self.last = one.stamp
        if one.begins:
            code = self.process.component(one.component)
            caller = self.open[-1][1] if self.open else 0
            frame = self.process.enter(self.track, one.stamp, code, caller, one.numbers)
            self.open.append((frame, code, one.component.name))
            return
        place = len(self.open) - 1
        if name := one.component.name:
            place = next((place for place in range(place, -1, -1) if self.open[place][2] == name), -1)
        if place >= 0:
            self.process.exit(self.track, one.stamp, self.open[place][0])
            del self.open[place:]  # the exit says that the slices within never ended
        else:
            self.process.notes[BEGUN_EARLIER] += 1


class _PerfettoReader:
    """Reads the packets of a file, and puts slices on tracks as they come.

    A track whose slices are not in the order of time, or whose process is described after its first slice, is known when
    the file has been read: ``surprises`` tells of it, and another reader begins with that knowledge.
    """

    def __init__(
        self, path: Path, tracks: Mapping[int, _TrackDescription] | None = None, unordered: Collection[int] = ()
    ) -> None:
        self.path = path
        self.sequences: dict[int, _Sequence] = {}
        self.tracks = dict(tracks or {})
        self.unordered = set(unordered)
        self.surprises: set[int] = set()
        """Tracks whose slices are not in order."""
        self.waiting: dict[int, list[_Slice]] = {track: [] for track in unordered}
        """Slices of the tracks that are known to be out of order."""
        self.processes: dict[int, ProcessEvents] = {}
        self.stacks: dict[int, _OpenSlices] = {}
        self.notes: Counter[str] = Counter()
        self.lost = ""

    def read(self, pieces: Iterable[bytes]) -> None:
        """Take in all packets; DataError names the one that is damaged."""
        count = 0
        try:
            for packet in _packets(pieces):
                count += 1
                self._take(packet)
        except (ValueError, zlib.error) as error:
            what = f"{self.path}: packet {count + 1}"
            raise DataError(what, f"its protobuf is damaged: {error}", "write the trace anew and import it") from None
        for track, slices in self.waiting.items():
            for one in sorted(slices, key=lambda one: one.stamp):
                self._stack(track).play(one)

    def is_right(self) -> bool:
        """Whether nothing that came later shows that a slice was put in a wrong place."""
        moved = any(self._process_of(track)[0] != stack.pid for track, stack in self.stacks.items())
        return not moved and not self.surprises

    def trace(self) -> Trace:
        """The calls of all tracks."""
        for track in self.stacks:
            pid, name = self._process_of(track)
            self.processes[pid].name = self.processes[pid].name or name
        for process in list(self.processes.values())[:1]:
            process.notes.update(self.notes)
        return trace_of("Perfetto", self.processes.values(), 1, self.lost)

    def _stack(self, track: int) -> _OpenSlices:
        if track not in self.stacks:
            pid, _ = self._process_of(track)
            process = self.processes.setdefault(pid, ProcessEvents("", pid))
            self.stacks[track] = _OpenSlices(pid, process)
        return self.stacks[track]

    def _play(self, track: int, one: _Slice) -> None:
        if track in self.unordered:
            self.waiting[track].append(one)
            return
        stack = self._stack(track)
        if one.stamp < stack.last:
            self.surprises.add(track)
        stack.play(one)

    def _take(self, packet: bytes) -> None:
        parts = dict(fields(packet))
        sequence_id = whole(parts.get(10, 0))
        if whole(parts.get(13, 0)) & 1 or parts.get(41):
            self.sequences.pop(sequence_id, None)
        sequence = self.sequences.setdefault(sequence_id, _Sequence())
        if 42 in parts and sequence.names:
            self.lost = LOST
        if 59 in parts:
            for key, value in fields(message(parts[59])):
                if key == 58:
                    sequence.default_clock = whole(value)
                elif key == 11:
                    sequence.default_track = whole(dict(fields(message(value))).get(11, 0))
        if 6 in parts:
            self._take_clocks(sequence, message(parts[6]))
        if 60 in parts:
            self._take_track(message(parts[60]))
        if 12 in parts:
            _take_names(sequence, message(parts[12]))
        # Every packet with a time counts where a clock counts in steps, also one that is no event of a track.
        stamp = _stamp(sequence, parts) if 8 in parts or 11 in parts else 0
        if 11 in parts:
            self._take_event(sequence, stamp, message(parts[11]))
        self.notes[KERNEL] += 1 in parts

    def _take_clocks(self, sequence: _Sequence, snapshot: bytes) -> None:
        clocks = [dict(fields(message(value))) for key, value in fields(snapshot) if key == 1]
        common = [whole(one.get(2, 0)) for one in clocks if whole(one.get(1, 0)) < _OWN_CLOCKS]
        for one in clocks:
            number, now = whole(one.get(1, 0)), whole(one.get(2, 0))
            unit = whole(one.get(4, 0)) or 1
            if number >= _OWN_CLOCKS:
                offset = common[0] - now * unit if common else 0
                sequence.clocks[number] = _Clock(offset, now, unit, bool(one.get(3)))

    def _take_track(self, descriptor: bytes) -> None:
        parts = dict(fields(descriptor))
        process = dict(fields(message(parts[3]))) if 3 in parts else {}
        thread = dict(fields(message(parts[4]))) if 4 in parts else {}
        pid = whole(process.get(1, thread.get(1, 0)))
        self.tracks[whole(parts.get(1, 0))] = _TrackDescription(pid, text(process.get(6, b"")), whole(parts.get(5, 0)))

    def _process_of(self, track: int) -> tuple[int, str]:
        """Number and name of the process that a track belongs to."""
        seen: set[int] = set()
        while (described := self.tracks.get(track)) and track not in seen:
            if described.pid:
                names = (one.process_name for one in self.tracks.values() if one.pid == described.pid)
                return described.pid & 0x7FFFFFFF, next(filter(None, names), "")
            seen.add(track)
            track = described.parent
        return 0, ""

    def _take_event(self, sequence: _Sequence, stamp: int, event: bytes) -> None:
        single: dict[int, Value] = {}
        annotations = []
        for key, value in fields(event):
            if key == 4:
                annotations.append(message(value))
            else:
                single[key] = value
        kind = single.get(9)
        if kind not in (_BEGIN, _END):
            return
        if not 0 <= stamp < 1 << 62:
            raise ValueError(f"a time of {stamp} ns")
        file, line = sequence.places.get(whole(single.get(34, 0)), ("", 0))
        if 33 in single:
            file, line = _place(message(single[33]))
        name = text(single[23]) if 23 in single else sequence.names.get(whole(single.get(10, 0)), "")
        numbers = [found for one in annotations if (found := _annotation(sequence, one))]
        track = whole(single.get(11, sequence.default_track))
        component = Component(name or "unnamed" * (kind == _BEGIN), file, line)
        self._play(track, _Slice(stamp, kind == _BEGIN, component, tuple(numbers)))


def _stamp(sequence: _Sequence, packet: dict[int, Value]) -> int:
    """The time of a packet, ns."""
    stamp = whole(packet.get(8, 0))
    clock = sequence.clocks.get(whole(packet.get(58, sequence.default_clock)))
    if clock is not None:
        stamp = clock.last = stamp + clock.last * clock.is_incremental
        stamp = stamp * clock.unit_ns + clock.offset
    return stamp


def _packets(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The packets of a trace, also those that were compressed together."""
    for packet in messages(pieces, 1, MAX_BYTES):
        compressed = dict(fields(packet)).get(50) if packet[:2] == b"\x92\x03" else None
        if compressed is not None:
            inflated = zlib.decompressobj().decompress(message(compressed), MAX_BYTES + 1)
            check_size(len(inflated))
            yield from (message(value) for key, value in fields(inflated) if key == 1)
        elif packet:
            yield packet


def _take_names(sequence: _Sequence, interned: bytes) -> None:
    """The numbers that stand for names and places from now on."""
    for key, value in fields(interned):
        if key in (2, 3, 4):
            one = dict(fields(message(value)))
            number = whole(one.get(1, 0))
            if key == 2:
                sequence.names[number] = text(one.get(2, b""))
            elif key == 3:
                sequence.annotation_names[number] = text(one.get(2, b""))
            else:
                sequence.places[number] = _place(message(value))


def _place(location: bytes) -> tuple[str, int]:
    """File and line of a source location."""
    parts = dict(fields(location))
    return text(parts.get(2, b"")), min(whole(parts.get(4, 0)), (1 << 31) - 1)


def _annotation(sequence: _Sequence, annotation: bytes) -> tuple[str, Number] | None:
    """Name and value of an argument that is a number or a truth value."""
    parts = dict(fields(annotation))
    name = text(parts[10]) if 10 in parts else sequence.annotation_names.get(whole(parts.get(1, 0)), "")
    value: Number | None = None
    if 2 in parts or 3 in parts:
        value = whole(parts.get(2, parts.get(3, 0)))
    elif 4 in parts:
        value = signed(parts[4])
    elif 5 in parts:
        value = Decimal(double(parts[5]))
    return (name, value) if value is not None and Decimal(value).is_finite() else None


def recognises(file: ForeignFile) -> bool:
    """Whether a file begins with a packet of Perfetto. Other messages have other first fields, or text in these."""
    if file.data[:1] != bytes([_PACKET]):
        return False
    try:
        _, value = next(fields(file.data[: 1 << 20]))
    except ValueError:
        return False
    try:
        parts = list(fields(message(value)))
    except ValueError:
        return False
    keys = {key for key, _ in parts}
    described = all(isinstance(one, bytes) for key, one in parts if key in (6, 11, 12, 59, 60))
    numbers = all(isinstance(one, int) for key, one in parts if key in (3, 8, 10, 13, 41, 42, 58))
    return bool(keys) and bool(keys & (_FIRST_FIELDS - {1, 2})) and described and numbers


def read(path: Path, pieces: Callable[[], Iterable[bytes]]) -> Trace:
    """The calls of a file, which is read a second time where slices were not in order; DataError where it is damaged."""
    reader = _PerfettoReader(path)
    reader.read(pieces())
    if not reader.is_right():
        reader = _PerfettoReader(path, reader.tracks, reader.surprises)
        reader.read(pieces())
    return reader.trace()


def _read_bytes(beginning: ForeignFile) -> Trace:
    """The calls of a file that is read in pieces; DataError where it is damaged."""
    path = beginning.path
    try:
        return read(path, lambda: read_pieces(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read", (error.strerror or "").lower(), f"ls -l {path}") from error


FORMAT: Final = Format(
    "traces of Perfetto in protobuf",
    recognises,
    lambda file: read(file.path, lambda: [file.data]),
    read_bytes=_read_bytes,
)
