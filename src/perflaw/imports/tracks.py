"""What readers of traces give: the calls of each process, as the records that perflaw's own tracers write."""

from __future__ import annotations

import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from struct import pack, unpack
from typing import IO, Final, Protocol
from zlib import crc32

import numpy as np

from perflaw.bounds import check_digits
from perflaw.errors import DataError
from perflaw.record.tree.core import TreeTables
from perflaw.record.tree.feed import TreeFeed
from perflaw.record.tree.records import DEAD, ENTER, EXIT, FEATURE, MAX_CODE, RECORD, Definitions, Event
from perflaw.record.tree.reservoir import scramble
from perflaw.store.columns import Array
from perflaw.types import Component

MAX_DIGITS: Final = 19
"""Digits of a time stamp before its decimal point; more do not fit into 64 bits."""
MAX_FEATURES: Final = 256
"""Names of arguments that are kept for a process; the others are counted in its notes."""
BEGUN_EARLIER: Final = "calls that began before the trace were left out"
MAX_TRACKS: Final = 1024
"""Calls of a thread that may overlap at one time."""
OVERLAPS: Final = "calls overlap another call of their thread: kept on tracks of their own, outside it"
TOO_MANY_FEATURES: Final = f"numbers of calls were left out: they have more than {MAX_FEATURES} names"
CUT: Final = "calls end one tick of the clock after the call that they lie in: cut to its end"
CATEGORY: Final = ".type"
"""End of the names of features whose values are texts."""
MAX_NEWEST: Final = 1 << 15
"""Records of a process that are kept in memory; the older ones lie in a temporary file, so memory does not grow with calls."""
_MAX_NS = 1 << 62
_KEY = (1 << 31) - 1
_MAX_FEATURE = int(sys.float_info.max)
"""Larger numbers are left out: they would be infinite as features."""
Number = int | Decimal


def number(value: object) -> Number | None:
    """A JSON value, or the text of a number, as an exact number; None where it is not a finite number."""
    if isinstance(value, str):
        try:
            value = Decimal(check_digits(value))
        except (InvalidOperation, ValueError):
            return None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def nanoseconds(value: Number, unit_ns: int) -> int | None:
    """A time stamp in ns, halves rounded to even; None where it is too large for 64 bits.

    >>> nanoseconds(Decimal("0.0015"), 1000), nanoseconds(7, 1000)
    (2, 7000)
    """
    if isinstance(value, Decimal):
        if value and value.adjusted() > MAX_DIGITS:
            return None
        value = int((value * unit_ns).to_integral_value(ROUND_HALF_EVEN))
    else:
        value *= unit_ns
    return value if -_MAX_NS < value < _MAX_NS else None


def _is_feature(value: Number | str) -> bool:
    """Whether a value is a text, or a number that is finite as a feature."""
    return isinstance(value, str) or -_MAX_FEATURE <= value <= _MAX_FEATURE


class TraceProcess(Protocol):
    """A process of a trace, whose call tree can be built once."""

    name: str
    """Its name; empty where the trace has none."""
    pid: int
    definitions: Definitions
    notes: Counter[str]
    """What was decided about calls that could not be taken as they are → number of such calls; whole after ``tree``."""

    def first_stamp(self) -> int:
        """The first time stamp of a call, ns."""

    def last_stamp(self) -> int:
        """The last time stamp of a call, ns. Asked after ``tree``."""

    def tree(self, library: Path | None, seed: int) -> TreeTables:
        """Its call tree. The C core builds it, or its Python twin where there is no ``library``.

        ``seed`` decides which calls are sampled.
        """


@dataclass(slots=True)
class Track:
    """The records of a track, in order."""

    newest: list[Event] = field(default_factory=list)
    """The records that are not in the file yet."""
    pieces: list[tuple[int, int]] = field(default_factory=list)
    """Place in the file and number of records of each piece that was written."""
    first: int = 0
    """The first time stamp, ns."""
    last: int = 0
    """The last time stamp, ns."""

    def append(self, event: Event) -> None:
        """Add a record that has a time stamp."""
        if not self.newest and not self.pieces:
            self.first = self.last = event[0]
        self.last = max(self.last, event[0])
        self.newest.append(event)


class ProcessEvents:
    """The calls of a process, on tracks. Calls of one track lie within each other or follow each other."""

    def __init__(self, name: str, pid: int = 0) -> None:
        self.name, self.pid = name, pid
        self.definitions = Definitions()
        self.tracks: list[Track] = []
        self._file: IO[bytes] | None = None
        """Takes the records beyond the newest."""
        self._newest = 0
        """Records that are in memory, some more at most."""
        self.notes: Counter[str] = Counter()
        """What was decided about calls that could not be taken as they are → number of such calls."""
        self._codes: dict[Component, int] = {}
        self._features: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._sites = [0]
        """Call site of each caller, by its code. A trace has no call sites, so each caller has one, the same in every
        file. Recursion is then folded where a caller calls the same callee for the third time."""
        self._frame = 0

    def __del__(self) -> None:
        if getattr(self, "_file", None):
            self._file.close()  # type: ignore[union-attr]  # it is open here

    def component(self, component: Component) -> int:
        """Code of a component; DataError where there are too many components."""
        code = self._codes.get(component)
        if code is None:
            code = self._codes[component] = len(self._codes) + 1
            if code >= MAX_CODE:
                why = f"at most {MAX_CODE - 1} are possible; do the names hold numbers or ids?"
                raise DataError(f"{code} different names of calls", why, "write the trace with names without ids")
            identity = f"{component.name}\0{component.file}\0{component.line}"
            self._sites.append(crc32(identity.encode()) & _KEY)
            self.definitions.define(code, component, ())
        return code

    def track(self) -> Track:
        """A new track."""
        self.tracks.append(Track())
        return self.tracks[-1]

    def enter(
        self, track: Track, stamp: int, code: int, caller: int, features: Iterable[tuple[str, Number | str]] = ()
    ) -> int:
        """Begin a call at ``stamp`` ns; gives its frame. ``caller`` is the code of the calling component, 0 for none.

        A feature that is a text is a category, kept as the names of dynamic types are: ``card`` becomes ``card.type``.
        """
        self._frame += 1
        self._newest += 2  # with its end
        if self._newest >= MAX_NEWEST:
            self._write_newest()
        key = scramble(self._frame) & _KEY  # the order of priorities is random, and the same in every import
        track.append((stamp, self._frame, code, self._sites[caller], key, ENTER))
        for name, value in features:
            if not _is_feature(value):
                continue
            if (feature := self.feature(name, CATEGORY * isinstance(value, str))) is None:
                self.notes[TOO_MANY_FEATURES] += 1
            else:
                plain = self.category(value) if isinstance(value, str) else float(value)
                bits = unpack("<q", pack("<d", plain))[0]
                track.newest.append((bits, self._frame, feature, -1, -1, FEATURE))
                self._newest += 1
        return self._frame

    def exit(self, track: Track, stamp: int, frame: int) -> None:
        """End the call of a frame; calls that were entered after it and are still open never end."""
        track.append((stamp, frame, 1, -1, -1, EXIT))

    def abandon(self, track: Track, stamp: int, frame: int) -> None:
        """Note that calls entered after the call of a frame (all open calls if it is 0) never end."""
        track.append((stamp, frame, 1, -1, -1, DEAD))

    def _write_newest(self) -> None:
        """Move the records in memory to the file; DataError where it takes no more."""
        self._newest = 0
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="perflaw-")  # noqa: SIM115 (it lives as long as this)
            for track in self.tracks:
                if track.newest:
                    track.pieces.append((self._file.tell(), len(track.newest)))
                    self._file.write(np.array(track.newest, RECORD).tobytes())
                    track.newest.clear()
        except OSError as error:
            why = f"a file in {tempfile.gettempdir()} takes its calls: {(error.strerror or '').lower()}"
            raise DataError("the trace cannot be read", why, "TMPDIR=FOLDER perflaw import FILE") from error

    def _records(self, track: Track) -> Iterator[Array]:
        """The records of a track, in pieces."""
        for place, count in track.pieces:
            assert self._file
            self._file.seek(place)
            yield np.frombuffer(self._file.read(count * RECORD.itemsize), RECORD)
        if track.newest:
            yield np.array(track.newest, RECORD)

    def ordered(self) -> list[Track]:
        """Tracks that have records, by their first time stamp."""
        return sorted((track for track in self.tracks if track.newest or track.pieces), key=lambda track: track.first)

    def first_stamp(self) -> int:
        """See :class:`TraceProcess`."""
        return self.ordered()[0].first

    def last_stamp(self) -> int:
        """See :class:`TraceProcess`."""
        return max(track.last for track in self.ordered())

    def tree(self, library: Path | None, seed: int) -> TreeTables:
        """See :class:`TraceProcess`; each track is a thread of its own."""
        feed = TreeFeed(library, seed, self.definitions.lanes())
        for thread, track in enumerate(self.ordered(), 1):
            for records in self._records(track):
                feed.take(thread, records)
        return feed.finish()

    def sites(self) -> list[int]:
        """Call site of each caller, by its code."""
        return self._sites

    def name_features(self, features: Iterable[tuple[str, Number]]) -> None:
        """Give features their codes in the order of the file, where calls are put on tracks in another one.

        So the names that are kept, if there are more than ``MAX_FEATURES``, are the first ones of the file.
        """
        for name, value in features:
            if _is_feature(value):
                self.feature(name)

    def category(self, text: str) -> int:
        """Number of a text that is the value of a category."""
        if text not in self._categories:
            self._categories[text] = len(self._categories) + 1
            self.definitions.types[self._categories[text]] = text
        return self._categories[text]

    def feature(self, name: str, suffix: str = "") -> int | None:
        """Code of a feature; None where it has no usable name or there are too many."""
        name = re.sub(r"\W+", "_", name).lstrip("0123456789_")
        name += suffix * bool(name)
        if name not in self._features:
            if not name or len(self._features) == MAX_FEATURES:
                return None
            self._features[name] = len(self._features) + 1
            self.definitions.features[self._features[name]] = name
        return self._features[name]


@dataclass(frozen=True, slots=True)
class Trace:
    """All calls of a file."""

    tool: str
    """The tool that wrote it: ``viztracer``."""
    processes: tuple[TraceProcess, ...]
    """Its processes that have calls, by their first time stamp."""
    tick_ns: int
    """Step of its clock, as the time stamps show it."""
    lost: str = ""
    """Why its end is missing; empty where it is complete."""
    epoch: bool = False
    """Whether time stamps count from 1970."""

    def first(self) -> int:
        """The first time stamp, ns."""
        return min(process.first_stamp() for process in self.processes)


def trace_of(tool: str, processes: Iterable[ProcessEvents], tick_ns: int, lost: str = "", epoch: bool = False) -> Trace:
    """The trace of these processes: those that have calls, in order of their first time stamp."""
    recorded = [process for process in processes if process.ordered()]
    recorded.sort(key=ProcessEvents.first_stamp)
    return Trace(tool, tuple(recorded), tick_ns, lost, epoch)


@dataclass(frozen=True, slots=True)
class Span:
    """One call of a thread."""

    start: int
    """ns."""
    end: int | None
    """ns; None where it never ended."""
    code: int
    """Code of its component."""
    features: tuple[tuple[str, Number], ...] = ()
    """Numbers that came with it."""

    @property
    def until(self) -> float:
        """Its end; infinite where there is none."""
        return math.inf if self.end is None else self.end


def nest(process: ProcessEvents, spans: list[Span], paired: list[Span], tick_ns: int) -> None:
    """Put the spans of a thread, in the order of the file, and those of pairs of marks on tracks by their times alone.

    A span lies in the shortest span that holds it. Of two spans with equal times the outer one is the first in the file;
    in a file that is written as calls end, it is the last. A span that begins where another ends follows it. Spans that
    overlap others go to the first track of their own where they fit.
    """
    starts, ends = [span.start for span in spans], [span.until for span in spans]
    outer_is_last = ends == sorted(ends) and starts != sorted(starts)
    spans = spans + paired
    places = sorted(
        range(len(spans)),
        key=lambda place: (spans[place].start, -spans[place].until, -place if outer_is_last else place),
    )
    tracks: list[_Track] = []
    for place in places:
        fitting = next(
            (number for number, track in enumerate(tracks) if track.take(spans[place], tick_ns)), len(tracks)
        )
        process.notes[OVERLAPS] += fitting > 0
        if fitting == len(tracks):
            if fitting == MAX_TRACKS:
                why, remedy = "calls of a thread lie within each other", "give each task a thread id (tid) of its own"
                raise DataError(f"{MAX_TRACKS} calls of a thread overlap", why, remedy)
            tracks.append(_Track(process))
            tracks[-1].take(spans[place], tick_ns)
    for track in tracks:
        track.leave_until(math.inf)


class _Track:
    """A track that spans are put on, in the order of their begins."""

    def __init__(self, process: ProcessEvents) -> None:
        self.process, self.events = process, process.track()
        self.stack: list[tuple[float, int, int]] = []
        """End, frame and code of each open call."""

    def leave_until(self, stamp: float) -> None:
        """End the calls that end until then."""
        while self.stack and self.stack[-1][0] <= stamp:
            end, frame, _ = self.stack.pop()
            if end < math.inf:
                self.process.exit(self.events, int(end), frame)

    def take(self, span: Span, tick_ns: int) -> bool:
        """Put a span here; False where it overlaps another one. What is only a tick of the clock is cut off."""
        self.leave_until(span.start)
        until = span.until
        if self.stack and until > (limit := self.stack[-1][0]):
            if until - limit > tick_ns:
                return False
            until = limit
            self.process.notes[CUT] += 1
        caller = self.stack[-1][2] if self.stack else 0
        frame = self.process.enter(self.events, span.start, span.code, caller, span.features)
        self.stack.append((until, frame, span.code))
        return True
