"""The writer's side of the area: registered probes, and the ring that each thread writes into.

A thread claims a ring with its first record and leaves it when the thread ends. Nothing waits and nothing is raised: records
without room are counted in the area.
"""

from __future__ import annotations

import atexit
import os
import struct
import threading
import time
from typing import Any

from perflaw.probes import area as places
from perflaw.probes.area import Area, make_area

CNT, LAT, TPT, LLC, FLT, CTXSW, PERFCNTR, SNAPSHOT = 1, 2, 3, 4, 5, 6, 7, 8
_RECORDS = [struct.Struct(f"{2 + count}Q") for count in range(7)]
_UNKNOWN_CPU = 0xFFFF << 24  # Python does not know it, and asking the system would cost more than the record
_ENTRIES, _ENTRY = places.HEAD_BYTES // 8, places.ENTRY_BYTES // 8


class Ring:
    """The ring of a thread."""

    def __init__(self, area: Area, number: int) -> None:
        """Take the ring; OSError if it cannot be allocated."""
        self.area, self.number, self.begin = area, number, area.ring(number)
        thread = threading.get_native_id()
        self.who = (thread & 0xFFFFFF) << 40 | _UNKNOWN_CPU
        self.head = (self.begin + places.HEAD) // 8
        self.first, self.mask = self.begin + places.RING_HEAD_BYTES, area.records - 1
        self.map, self.words = area.map, area.words
        struct.pack_into("<II", area.map, self.begin, places.IN_USE, thread)

    def append(self, kind: int, probe: int, now: int, fields: tuple[int, ...]) -> None:
        """Write a record: the slot first, then the head."""
        head = self.words[self.head]
        what = probe | kind << 16 | len(fields) << 20 | self.who
        place = self.first + (head & self.mask) * places.RECORD_BYTES
        _RECORDS[len(fields)].pack_into(self.map, place, now, what, *fields)
        self.words[self.head] = head + 1


class ThreadState:
    """The state of a thread; it ends with the thread, for only the thread's local storage holds it."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.process = writer, os.getpid()
        self.ring: Ring | None = None
        self.busy = False
        """Whether a record is being written; a probe of a signal handler then makes none."""
        self.tallies: dict[int, list[int]] = {}
        self.open: dict[tuple[int, int], list[Any]] = {}

    def __del__(self) -> None:
        """Record the remaining counts, and leave the ring to the next thread; its records stay."""
        if self.process != os.getpid():
            return
        self.writer.record_counts(self)
        if ring := self.ring:
            struct.pack_into("<I", ring.area.map, ring.begin, places.ENDED)
            self.writer.claimed.pop(ring.number, None)


class ThreadLocalState(threading.local):
    """Holds the state of the calling thread."""

    def __init__(self, writer: Writer) -> None:
        self.state = ThreadState(writer)


class Writer:
    """The probes of this process. The area is made with the first probe."""

    def __init__(self) -> None:
        self.area: Area | None = None
        self.parents: Area | None = None
        self.made = self.busy = False
        self.making = threading.RLock()
        self.claimed: dict[int, object] = {}
        self.types: dict[int, int] = {}
        self.counters: dict[int, int] = {}
        self.here = ThreadLocalState(self)

    def every(self, probe: int, kind: int, said: int) -> int:
        """Executions for one record; 0 if the probe is disabled. ``said`` is the number in the code."""
        if self.types.get(probe) != kind:
            self.register(probe, kind)
        if (area := self.area) is None:
            return 0
        control = area.words[_ENTRIES + probe * _ENTRY]  # enabled in the lowest byte, subsample in the upper half
        if not control & 0xFF:
            return 0
        if said > 1:
            struct.pack_into("<I", area.map, places.HEAD_BYTES + probe * places.ENTRY_BYTES + places.EVERY, said)
        return control >> 32 or max(said, 1)

    def register(self, probe: int, kind: int = 0, name: str = "", unit: str = "", fields: str = "") -> None:
        """Register a probe, its type, name, unit and fields. The first values stay; different ones mark a conflict.

        ValueError if the id is not possible.
        """
        if not isinstance(probe, int) or not 0 <= probe < places.PROBES:
            raise ValueError(f"ids of probes are whole numbers from 0 to {places.PROBES - 1}, not {probe!r}")
        if not self.made:
            with self.making:  # by one thread; the others wait, for their probes may be enabled
                if not self.made and not self.busy:
                    self.busy = True  # a probe of a signal handler finds no area yet
                    area, parents = make_area(), self.parents
                    if area and parents:  # a forked child continues with the parent's entries
                        front = slice(places.HEAD_BYTES, places.FRONT_BYTES)
                        area.map[front] = parents.map[front]
                        for place in (places.CONFLICTS, places.ENABLE_ALL):
                            area.map[place : place + 4] = parents.map[place : place + 4]
                    elif area and is_enabled_at_start(-1, ""):
                        area.map[places.ENABLE_ALL] = 1
                    self.area = area
                    self.made, self.busy = True, False
        if kind:
            self.types[probe] = kind
        if (area := self.area) is None:
            return
        entry = places.HEAD_BYTES + probe * places.ENTRY_BYTES
        differs = kind != 0 and area.map[entry + places.TYPE] not in (0, kind)
        if kind and not differs:
            area.map[entry + places.TYPE] = kind
        differs |= area.text(entry + places.NAME, 48, name)
        differs |= area.text(entry + places.UNIT, 16, unit)
        differs |= area.text(entry + places.FIELDS, 48, fields)
        if differs and not area.map[entry + places.CONFLICT]:
            area.map[entry + places.CONFLICT] = 1
            area.add(places.CONFLICTS)
        if not area.map[entry + places.REGISTERED] or name:
            area.map[entry + places.REGISTERED] = 1
            if area.map[places.ENABLE_ALL] or is_enabled_at_start(probe, name):
                area.map[entry] = 1

    def write(self, probe: int, kind: int, now: int, fields: tuple[int, ...]) -> None:
        """Write a record of this thread, or count it as lost."""
        self.write_to(self.here.state, probe, kind, now, fields)

    def write_to(self, state: ThreadState, probe: int, kind: int, now: int, fields: tuple[int, ...]) -> None:
        """Write a record of the thread with this state, or count it as lost."""
        area = self.area
        if area is None:
            return
        if state.busy:
            self._lose(area, state.ring)
            return
        state.busy = True
        try:
            ring = state.ring or self._claim(area, state)
            if ring:
                ring.append(kind, probe, now, fields)
            else:
                self._lose(area, None)
        finally:
            state.busy = False

    def _lose(self, area: Area, ring: Ring | None) -> None:
        place = (ring.begin + places.LOST_NESTED if ring else places.LOST_NO_RING) // 8
        area.words[place] += 1

    def _claim(self, area: Area, state: ThreadState) -> Ring | None:
        """Claim the first free ring; None if there is none, or no space for it."""
        token = object()  # check and claim are one call in C, during which no other thread runs
        number = next((free for free in range(area.rings) if self.claimed.setdefault(free, token) is token), None)
        if number is None:
            return None
        try:
            state.ring = Ring(area, number)
        except OSError:
            self.claimed.pop(number, None)
            return None
        area.add(places.USED)
        return state.ring

    def tally(self, probe: int, executions: int = 1, cycles: int = 0) -> list[int]:
        """Add to the executions and ns of this thread since the last record of a probe; gives the sums, which may be reset."""
        counted = self.here.state.tallies.setdefault(probe, [0, 0])
        counted[0] += executions
        counted[1] += cycles
        return counted

    def record_counts(self, state: ThreadState) -> None:
        """Record what a thread counted since the last records, so that sums are exact."""
        for probe, (executions, cycles) in state.tallies.items():
            kind = self.types.get(probe, 0)
            if executions and kind in (CNT, TPT):
                fields = (executions, cycles) if kind == TPT else (executions,)
                self.write_to(state, probe, kind, time.monotonic_ns(), fields)
        state.tallies.clear()

    def refuse(self, probe: int, why: str) -> None:
        """Count an execution for which a counter was refused, and keep the first reason."""
        if area := self.area:
            area.add(places.HEAD_BYTES + probe * places.ENTRY_BYTES + places.REFUSED)
            if not area.map[places.REFUSAL]:
                area.text(places.REFUSAL, 156, why)

    def forked(self) -> None:
        """In a forked child: its area is made with its next probe."""
        self.parents, self.area, self.made, self.busy = self.area or self.parents, None, False, False
        self.making = threading.RLock()
        self.claimed, self.types, self.here = {}, {}, ThreadLocalState(self)

    def finish(self) -> None:
        """Record the remaining counts when the program ends."""
        self.record_counts(self.here.state)
        if self.area:
            self.area.leave()


def is_enabled_at_start(probe: int, name: str) -> bool:
    """Whether ``$PERFLAW_PROBES_ENABLE`` has a probe: ``*``, or ids and names separated by commas."""
    return bool({"*", str(probe), name or "*"} & set(os.environ.get("PERFLAW_PROBES_ENABLE", "").split(",")))


_writer = Writer()
os.register_at_fork(after_in_child=_writer.forked)
atexit.register(_writer.finish)


def this_process() -> Writer:
    """The probes of this process."""
    return _writer
