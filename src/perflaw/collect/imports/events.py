"""The calls of one process of a trace, as the records that our own tracers append."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from struct import pack, unpack
from typing import Final
from zlib import crc32

from perflaw.collect.definitions import Definitions
from perflaw.collect.imports.numbers import Number
from perflaw.collect.layout import DEAD, ENTER, EXIT, FEATURE, MAX_CODE
from perflaw.collect.reservoir import scramble
from perflaw.collect.tree_builder import Event
from perflaw.errors import DataError
from perflaw.types import Component

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
