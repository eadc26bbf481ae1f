"""Which probes there are, whether they are enabled, and the ring that each thread writes into.

A thread's ring is claimed with its first record and left when the thread ends. Nothing waits and nothing is raised: what
finds no place is counted in the area.
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
_UNKNOWN_CPU = 0xFFFF << 24  # Python does not tell, and a call to ask would cost more than the record
_ENTRIES, _ENTRY = places.HEAD_BYTES // 8, places.ENTRY_BYTES // 8


class Ring:
    """A ring while it is a thread's."""

    def __init__(self, area: Area, number: int) -> None:
        """Take it; OSError where it cannot be allocated."""
        self.area, self.number, self.begin = area, number, area.ring(number)
        thread = threading.get_native_id()
        self.who = (thread & 0xFFFFFF) << 40 | _UNKNOWN_CPU
        self.head = (self.begin + places.HEAD) // 8
        self.first, self.mask = self.begin + places.RING_HEAD_BYTES, area.records - 1
        self.map, self.words = area.map, area.words
        struct.pack_into("<II", area.map, self.begin, places.IN_USE, thread)

    def append(self, kind: int, probe: int, now: int, fields: tuple[int, ...]) -> None:
        """A record: the slot first, then the head."""
        head = self.words[self.head]
        what = probe | kind << 16 | len(fields) << 20 | self.who
        place = self.first + (head & self.mask) * places.RECORD_BYTES
        _RECORDS[len(fields)].pack_into(self.map, place, now, what, *fields)
        self.words[self.head] = head + 1


class Mine:
    """What a thread has; ends with it, for only its local storage holds this."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.process = writer, os.getpid()
        self.ring: Ring | None = None
        self.busy = False
        """While a record is written: a signal handler's probe then makes none."""
        self.tallies: dict[int, list[int]] = {}
        self.open: dict[tuple[int, int], list[Any]] = {}

    def __del__(self) -> None:
        """Tell what was counted, and leave the ring to the next thread; its records stay."""
        if self.process != os.getpid():
            return
        self.writer.tell(self)
        if ring := self.ring:
            struct.pack_into("<I", ring.area.map, ring.begin, places.ENDED)
            self.writer.claimed.pop(ring.number, None)


class Here(threading.local):
    """What the thread that asks has."""

    def __init__(self, writer: Writer) -> None:
        self.mine = Mine(writer)


class Writer:
    """The probes of this process. The area is made with the first of them."""

    def __init__(self) -> None:
        self.area: Area | None = None
        self.parents: Area | None = None
        self.made = self.busy = False
        self.making = threading.RLock()
        self.claimed: dict[int, object] = {}
        self.types: dict[int, int] = {}
        self.counters: dict[int, int] = {}
        self.here = Here(self)

    def every(self, probe: int, kind: int, said: int) -> int:
        """0 where the probe is disabled, else how many executions make a record."""
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
        """Tell of a probe. What was told first stays; who says otherwise marks the entry. ValueError: an id that cannot be."""
        if not isinstance(probe, int) or not 0 <= probe < places.PROBES:
            raise ValueError(f"ids of probes are whole numbers from 0 to {places.PROBES - 1}, not {probe!r}")
        if not self.made:
            self._make()
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
            if area.map[places.ENABLE_ALL] or asked_for(probe, name):
                area.map[entry] = 1

    def _make(self) -> None:
        with self.making:  # once, by one thread; the others wait this once, for their probes may be enabled
            if not self.made and not self.busy:
                self.busy = True  # a signal handler's probe in here finds none ready
                self.area = self._new_area()
                self.made, self.busy = True, False

    def _new_area(self) -> Area | None:
        area, parents = make_area(), self.parents
        if area and parents:  # a fork's child goes on as its parent was
            front = slice(places.HEAD_BYTES, places.FRONT_BYTES)
            area.map[front] = parents.map[front]
            for place in (places.CONFLICTS, places.ENABLE_ALL):
                area.map[place : place + 4] = parents.map[place : place + 4]
        elif area and asked_for(-1, ""):
            area.map[places.ENABLE_ALL] = 1
        return area

    def write(self, probe: int, kind: int, now: int, fields: tuple[int, ...]) -> None:
        """A record of this thread, or a count of what is lost."""
        self.write_to(self.here.mine, probe, kind, now, fields)

    def write_to(self, mine: Mine, probe: int, kind: int, now: int, fields: tuple[int, ...]) -> None:
        """A record of the thread that ``mine`` is of."""
        area = self.area
        if area is None:
            return
        if mine.busy:
            self._lose(area, mine.ring)
            return
        mine.busy = True
        try:
            ring = mine.ring or self._claim(area, mine)
            if ring:
                ring.append(kind, probe, now, fields)
            else:
                self._lose(area, None)
        finally:
            mine.busy = False

    def _lose(self, area: Area, ring: Ring | None) -> None:
        place = (ring.begin + places.LOST_NESTED if ring else places.LOST_NO_RING) // 8
        area.words[place] += 1

    def _claim(self, area: Area, mine: Mine) -> Ring | None:
        """The first ring that is nobody's, None where there is none or no space for it."""
        number = next((free for free in range(area.rings) if self._take(free)), None)
        if number is None:
            return None
        try:
            mine.ring = Ring(area, number)
        except OSError:
            self.claimed.pop(number, None)
            return None
        area.add(places.USED)
        return mine.ring

    def _take(self, number: int) -> bool:
        """Whether a ring is ours now: look and claim are one call in C, between which no other thread runs."""
        token = object()
        return self.claimed.setdefault(number, token) is token

    def tally(self, probe: int, executions: int = 1, cycles: int = 0) -> list[int]:
        """Executions and ns of this thread since the last record of a probe, these included."""
        counted = self.here.mine.tallies.setdefault(probe, [0, 0])
        counted[0] += executions
        counted[1] += cycles
        return counted

    def tell(self, mine: Mine) -> None:
        """Records of what a thread counted since the last ones, so that sums are exact."""
        for probe, (executions, cycles) in mine.tallies.items():
            kind = self.types.get(probe, 0)
            if executions and kind in (CNT, TPT):
                fields = (executions, cycles) if kind == TPT else (executions,)
                self.write_to(mine, probe, kind, time.monotonic_ns(), fields)
        mine.tallies.clear()

    def refuse(self, probe: int, why: str) -> None:
        """Count an execution that a counter was refused for, and keep the first reason."""
        if area := self.area:
            area.add(places.HEAD_BYTES + probe * places.ENTRY_BYTES + places.REFUSED)
            if not area.map[places.REFUSAL]:
                area.text(places.REFUSAL, 156, why)

    def forked(self) -> None:
        """In a fork's child: its area is made with its next probe."""
        self.parents, self.area, self.made, self.busy = self.area or self.parents, None, False, False
        self.making = threading.RLock()
        self.claimed, self.types, self.here = {}, {}, Here(self)

    def ends(self) -> None:
        """The program ends."""
        self.tell(self.here.mine)
        if self.area:
            self.area.leave()


def asked_for(probe: int, name: str) -> bool:
    """Whether ``$PERFLAW_PROBES_ENABLE`` asks for a probe: ``*``, or ids and names with commas between."""
    return bool({"*", str(probe), name or "*"} & set(os.environ.get("PERFLAW_PROBES_ENABLE", "").split(",")))


_writer = Writer()
os.register_at_fork(after_in_child=_writer.forked)
atexit.register(_writer.ends)


def this_process() -> Writer:
    """Its probes."""
    return _writer
