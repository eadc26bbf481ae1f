"""The calls of one process of a trace, as the records that our own tracers append."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from struct import pack, unpack
from typing import Final
from zlib import crc32

from perflaw.errors import DataError
from perflaw.record.records import DEAD, ENTER, EXIT, FEATURE, MAX_CODE, Definitions
from perflaw.record.tree.builder import Event
from perflaw.record.tree.reservoir import scramble
from perflaw.types import Component

# ---- Times and numbers of a file, exactly: decimal text to integer nanoseconds, never through a float.

MOST_DIGITS = 19
"""A stamp has at most so many digits before its point: what follows fits into 64 bits or is refused."""
_MOST_NS = 1 << 62
Number = int | Decimal


def number(value: object) -> Number | None:
    """An int or a Decimal of a JSON value, text of a number included; None where it is no finite number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        found: Number = value
    elif isinstance(value, str):
        try:
            found = Decimal(value)
        except InvalidOperation:
            return None
    else:
        return None
    return found if isinstance(found, int) or found.is_finite() else None


def nanoseconds(value: Number, unit_ns: int) -> int | None:
    """The stamp in ns, halves to even; None where it is too large for 64 bits.

    >>> nanoseconds(Decimal("0.0015"), 1000), nanoseconds(7, 1000)
    (2, 7000)
    """
    if isinstance(value, Decimal):
        if value and value.adjusted() > MOST_DIGITS:
            return None
        value = int((value * unit_ns).to_integral_value(ROUND_HALF_EVEN))
    else:
        value *= unit_ns
    return value if -_MOST_NS < value < _MOST_NS else None


MOST_FEATURES: Final = 256
"""Names of arguments that are kept of one process; further ones are counted."""
_KEY = (1 << 31) - 1
_NOT_OF_A_NAME = re.compile(r"\W+")


class ProcessEvents:
    """Tracks of records: calls of a track lie within each other or follow each other."""

    def __init__(self, name: str, pid: int = 0) -> None:
        self.name, self.pid = name, pid
        self.definitions = Definitions()
        self.tracks: list[list[Event]] = []
        self.said: Counter[str] = Counter()
        """What happened to calls that could not be taken as they are → how many."""
        self._components: dict[Component, int] = {}
        self._features: dict[str, int] = {}
        self._sites = [0]
        """By number of the caller: a trace tells no call sites, so each caller has one, the same in every file. Recursion
        is then folded where a caller calls the same callee for the third time, not wherever a function stands there again."""
        self._frame = 0

    def component(self, what: Component) -> int:
        """Number of a component; DataError where there are too many."""
        number = self._components.get(what)
        if number is None:
            number = self._components[what] = len(self._components) + 1
            if number >= MAX_CODE:
                raise DataError(f"{number} different names of calls", f"fewer than {MAX_CODE} are kept apart")
            self._sites.append(crc32(f"{what.name}\0{what.file}\0{what.line}".encode()) & _KEY)
            self.definitions.define(number, what, ())
        return number

    def track(self) -> list[Event]:
        """A new track."""
        self.tracks.append([])
        return self.tracks[-1]

    def enter(
        self, track: list[Event], stamp: int, code: int, caller: int, features: Iterable[tuple[str, Number]] = ()
    ) -> int:
        """A call begins at ``stamp`` ns; gives its frame. ``caller``: number of the component that calls, 0 for none."""
        self._frame += 1
        key = scramble(self._frame) & _KEY  # the order of priorities is random and the same in every import
        track.append((stamp, self._frame, code, self._sites[caller], key, ENTER))
        for name, value in features:
            if (feature := self._feature(name)) is not None:
                bits = unpack("<q", pack("<d", float(value)))[0]
                track.append((bits, self._frame, feature, -1, -1, FEATURE))
        return self._frame

    def exit(self, track: list[Event], stamp: int, frame: int) -> None:
        """The call of this frame ends; what was entered after it and has not ended never does."""
        track.append((stamp, frame, 1, -1, -1, EXIT))

    def bury(self, track: list[Event], stamp: int, frame: int) -> None:
        """What was entered after the call of this frame, or all there is where it is 0, will never end."""
        track.append((stamp, frame, 1, -1, -1, DEAD))

    def ordered(self) -> list[list[Event]]:
        """Tracks that have records, by their first stamp."""
        return sorted(filter(None, self.tracks), key=lambda track: track[0][0])

    def _feature(self, name: str) -> int | None:
        name = _NOT_OF_A_NAME.sub("_", name).lstrip("0123456789_")
        if name not in self._features:
            if not name or len(self._features) == MOST_FEATURES:
                self.said[f"numbers of calls were left out: more than {MOST_FEATURES} names of them"] += 1
                return None
            self._features[name] = len(self._features) + 1
            self.definitions.features[self._features[name]] = name
        return self._features[name]


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object, or an empty one where the value is none."""
    return value if isinstance(value, dict) else {}


# ---- Spans of one thread to calls within calls, by their times alone.

ASIDE: Final = "calls overlap others of their thread: kept on tracks of their own, outside those"
CUT: Final = "calls end one tick of the clock after the call that they lie in: cut to its end"


@dataclass(frozen=True, slots=True)
class Span:
    """One call: when, and of what."""

    start: int
    """ns."""
    end: int | None
    """ns; None where it never ended."""
    code: int
    """Number of its component."""
    features: tuple[tuple[str, Number], ...] = ()
    """Numbers that came with it."""

    @property
    def until(self) -> float:
        """Its end, infinite where there is none."""
        return math.inf if self.end is None else self.end


def nest(process: ProcessEvents, spans: list[Span], tick_ns: int) -> None:
    """Put spans, in the order of the file, on tracks.

    A span lies in the shortest one that holds it. Of two of equal times the outer one is the first, in a file that is
    written as calls end the last. What begins where another ends follows it. Overlaps go to a track of their own.
    """
    last_is_outer = _by_end(spans)
    numbered = sorted(
        enumerate(spans), key=lambda one: (one[1].start, -one[1].until, -one[0] if last_is_outer else one[0])
    )
    left = [span for _, span in numbered]
    first = True
    while left:
        left = _one_track(process, left, tick_ns)
        process.said[ASIDE] += first * len(left)
        first = False


def _one_track(process: ProcessEvents, spans: list[Span], tick_ns: int) -> list[Span]:
    """Put on one track what fits there; gives the others, in order."""
    track, over = process.track(), []
    stack: list[tuple[float, int, int]] = []
    for span in spans:
        while stack and stack[-1][0] <= span.start:
            _leave(process, track, stack)
        until = span.until
        if stack and until > stack[-1][0]:
            if until - stack[-1][0] > tick_ns:
                over.append(span)
                continue
            until = stack[-1][0]
            process.said[CUT] += 1
        frame = process.enter(track, span.start, span.code, stack[-1][2] if stack else 0, span.features)
        stack.append((until, frame, span.code))
    while stack:
        _leave(process, track, stack)
    return over


def _leave(process: ProcessEvents, track: list[Event], stack: list[tuple[float, int, int]]) -> None:
    end, frame, _ = stack.pop()
    if end < math.inf:
        process.exit(track, int(end), frame)


def _by_end(spans: list[Span]) -> bool:
    ends = [span.until for span in spans]
    starts = [span.start for span in spans]
    return ends == sorted(ends) and starts != sorted(starts)


# ---- What a reader of a format gives.


@dataclass(frozen=True, slots=True)
class Trace:
    """All calls of a file."""

    tool: str
    """What wrote it, in words: ``viztracer``."""
    processes: tuple[ProcessEvents, ...]
    """Its processes that have calls, by their first stamp."""
    tick_ns: int
    """Step of its clock, as its stamps show it."""
    lost: str = ""
    """Why it does not reach to its end; empty where it does."""
    epoch: bool = False
    """Whether stamps count from 1970."""

    def first(self) -> int:
        """Its first stamp, ns."""
        return min(process.ordered()[0][0][0] for process in self.processes)
