"""Evented profiles in the JSON of speedscope: each call opens and closes. Sampled profiles hold no calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from perflaw.errors import DataError
from perflaw.imports.formats import ForeignFile, Format, mapping, objects
from perflaw.imports.json_pieces import JsonPieces
from perflaw.imports.tracks import BEGUN_EARLIER, ProcessEvents, Trace, nanoseconds, number, trace_of
from perflaw.types import Component

UNITS: Final = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 10**6, "seconds": 10**9}
"""Unit of a profile → ns. Profiles in bytes or without a unit measure no time."""


class _SpeedscopeReader:
    """Reads the profiles of a file: each is a thread of one process."""

    def __init__(self, file: ForeignFile, frames: list[Mapping[str, object]], name: str = "") -> None:
        self.file = file
        self.frames = frames
        self.process = ProcessEvents(name)

    def read(self) -> Trace:
        """The calls of all evented profiles; DataError names the event that is wrong."""
        tick = UNITS["seconds"]
        for place, profile in enumerate(objects(self.file.keys.get("profiles")), 1):
            unit = UNITS.get(str(profile.get("unit")))
            if profile.get("type") == "evented" and unit:
                tick = min(tick, unit)
                self._thread(place, unit, objects(profile.get("events")))
        return trace_of("speedscope", (self.process,), tick)

    def read_pieces(self, text: JsonPieces) -> Trace:
        """The same from a text in pieces; ValueError where the unit of a profile stands after its events."""
        tick, place = UNITS["seconds"], 0
        for key in text.members():
            if key == "name":
                self.process.name = str(text.value() or "")
                continue
            for _ in text.items() if key == "profiles" else text.pass_over():
                place += 1
                about: dict[str, object] = {}
                for part in text.members():
                    if part != "events":
                        about[part] = text.value()
                        continue
                    unit = UNITS.get(str(about.get("unit")), 0)
                    if about.get("type") != "evented" or not unit:
                        raise ValueError("a profile that is not evented, or without a unit before its events")
                    tick = min(tick, unit)
                    self._thread(place, unit, (mapping(text.value()) for _ in text.items()))
        return trace_of("speedscope", (self.process,), tick)

    def _thread(self, profile: int, unit: int, events: Iterable[Mapping[str, object]]) -> None:
        track = self.process.track()
        stack: list[tuple[int, int, int]] = []  # place of its frame, the call's frame number, its code
        for place, event in enumerate(events, 1):
            at, frame = number(event.get("at")), event.get("frame")
            stamp = None if at is None else nanoseconds(at, unit)
            if stamp is None or not isinstance(frame, int) or not 0 <= frame < len(self.frames):
                wrong = "at is not a time" if stamp is None else f"frame is none of the file: {str(frame)[:40]}"
                what = f"{self.file.path}: event {place} of profile {profile}"
                raise DataError(what, wrong, "write the profile anew and import it")
            if event.get("type") == "O":
                code, caller = self._component(frame), stack[-1][2] if stack else 0
                stack.append((frame, self.process.enter(track, stamp, code, caller), code))
            elif any(opened[0] == frame for opened in stack):
                while stack[-1][0] != frame:
                    stack.pop()  # the exit below says that the calls within never ended
                self.process.exit(track, stamp, stack.pop()[1])
            else:
                self.process.notes[BEGUN_EARLIER] += 1

    def _component(self, place: int) -> int:
        frame = self.frames[place]
        line = frame.get("line")
        name, file = str(frame.get("name") or "unknown"), str(frame.get("file") or "")
        return self.process.component(Component(name, file, line if isinstance(line, int) and line > 0 else 0))


def recognises(file: ForeignFile) -> bool:
    """Whether a file has an evented profile in a unit of time."""
    profiles = objects(file.keys.get("profiles"))
    is_speedscope = "speedscope" in str(file.keys.get("$schema", ""))
    return is_speedscope and any(one.get("type") == "evented" and one.get("unit") in UNITS for one in profiles)


def read(file: ForeignFile) -> Trace:
    """The calls of a file."""
    frames = objects(mapping(file.keys.get("shared")).get("frames"))
    return _SpeedscopeReader(file, frames, str(file.keys.get("name") or "")).read()


def _read_pieces(file: ForeignFile, text: JsonPieces) -> Trace:
    """The calls of a file, which is passed twice: for its frames, which may stand at its end, and for its events."""
    frames: list[Mapping[str, object]] = []
    first = JsonPieces.of(file.path)
    for key in first.members():
        if key == "shared":
            frames = objects(mapping(first.value()).get("frames"))
            break
        for _ in first.items() if key == "profiles" else first.pass_over():
            for part in first.members():
                for _ in first.items() if part == "events" else first.pass_over():
                    first.value()
    return _SpeedscopeReader(file, frames).read_pieces(text)


_BEGIN: Final = re.compile(rb'\s*\{(?=.{0,10000}speedscope)(?=.{0,100000}"evented")', re.DOTALL)
FORMAT: Final = Format("evented profiles of speedscope", recognises, read, _BEGIN, _read_pieces)
