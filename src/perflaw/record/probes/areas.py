"""Areas of running processes: found, attached, read and switched from outside (layout: :mod:`.layout`)."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError
from perflaw.record.probes import layout

VARIABLE: Final = "PERFLAW_PROBES"
"""Variable that says in which folder programs make their areas."""
ENABLE: Final = "PERFLAW_PROBES_ENABLE"
"""Variable that says which probes are enabled from the start."""
RECORDS: Final = "PERFLAW_PROBES_RECORDS"
"""Variable that says how many records a ring holds."""
_NAME: Final = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")
"""Process and its start; a number where it has several areas: programs one after the other, or languages."""
_MOST_RINGS, _MOST_RECORDS = 1 << 16, 1 << 22


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe as its program registered it."""

    id: int
    """0 … 1023, as the code says."""
    name: str
    """Name beside the id; ``probe7`` where the code gives none."""
    type: str
    """``LAT``, ``SNAPSHOT``, …"""
    unit: str
    """Unit of its values, empty where the code says none."""
    fields: tuple[str, ...]
    """Names of its fields."""
    enabled: bool
    """Whether it writes records now."""
    subsample: int
    """Executions for one record, as set from outside; 0: what the code says."""
    conflict: bool
    """Whether another probe of the program has the same id."""
    every: int = 1
    """Executions for one record that the code asks for."""
    refused: int = 0
    """Executions without a record because a counter cannot be read."""

    @property
    def executions(self) -> int:
        """Executions for one record."""
        return self.subsample or self.every


class Area:
    """The area of one process. Reads without ever making the process wait; what it writes are switches alone."""

    def __init__(self, path: Path) -> None:
        """Attach it; StoreError where the file is no area, damaged, or of another version."""
        self.path = path
        found = _NAME.fullmatch(path.name)
        if not found:
            raise _refused(path, "its name is not that of an area")
        self.pid, self.started = int(found[1]), int(found[2])
        self._descriptor = _open(path)
        try:
            self._check_head()
            size = layout.ring_offset(self.rings, self.ring_records)
            if os.fstat(self._descriptor).st_size < size:
                raise _refused(path, f"it is shorter than its {self.rings} rings")
            self._map = mmap.mmap(self._descriptor, size)
        except (OSError, ValueError, StoreError) as error:
            os.close(self._descriptor)
            raise error if isinstance(error, StoreError) else _refused(path, str(error)) from error
        self.head = np.frombuffer(self._map, layout.HEAD, 1)[0:1]
        self.entries = np.frombuffer(self._map, layout.ENTRY, layout.PROBES, layout.HEAD_BYTES)

    def _check_head(self) -> None:
        data = os.pread(self._descriptor, layout.HEAD_BYTES, 0)
        if len(data) < layout.HEAD_BYTES:
            raise _refused(self.path, "it is shorter than its head")
        head = np.frombuffer(data, layout.HEAD)[0]
        if head["magic"] != layout.MAGIC:
            raise _refused(self.path, "its first bytes are not an area's")
        if head["version"] != layout.VERSION or head["probes"] != layout.PROBES:
            raise _refused(self.path, f"it is of version {head['version']}, this perflaw reads {layout.VERSION}")
        self.rings, self.ring_records = int(head["rings"]), int(head["ring_records"])
        records = self.ring_records
        if not 0 < self.rings <= _MOST_RINGS or not 0 < records <= _MOST_RECORDS or records & (records - 1):
            raise _refused(self.path, f"{self.rings} rings of {records} records cannot be")
        if head["clock"] not in (layout.TSC, layout.NANOSECONDS):
            raise _refused(self.path, f"its clock {head['clock']} is unknown")
        self.clock, self.tsc0, self.ns0 = int(head["clock"]), int(head["tsc0"]), int(head["ns0"])
        self.language = _text(head["language"])

    def used_rings(self, first: int = 0) -> Iterator[int]:
        """Numbers, from ``first`` on, of the rings that a thread has taken so far; those before were taken earlier.

        Read by ``pread``: looking at a ring that nobody took must not allocate it (on a full file system it could not).
        """
        for ring in range(first, self.rings):
            if not any(os.pread(self._descriptor, 4, layout.ring_offset(ring, self.ring_records))):
                return
            yield ring

    def ring(self, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Head, as an array of one, and records of a ring that was taken: views of the shared memory."""
        offset = layout.ring_offset(number, self.ring_records)
        head = np.frombuffer(self._map, layout.RING, 1, offset)
        return head, np.frombuffer(self._map, layout.RECORD, self.ring_records, offset + layout.RING_HEAD_BYTES)

    def probes(self) -> list[Probe]:
        """The probes that are registered, by id."""
        entries = self.entries.copy()
        return [_probe(int(number), entries[number]) for number in np.flatnonzero(entries["registered"])]

    def enable(self, ids: Iterable[int], on: bool = True) -> None:
        """Switch probes; seen at their next execution."""
        for number in ids:
            self.entries["enabled"][number] = on

    def enable_all(self, on: bool = True) -> None:
        """Switch all probes, those included that register later."""
        self.head["enable_all"][0] = on
        self.enable([probe.id for probe in self.probes()], on)

    def subsample(self, ids: Iterable[int], executions: int) -> None:
        """One record for so many executions; 0: what the code says."""
        for number in ids:
            self.entries["subsample"][number] = executions

    @property
    def lost_no_ring(self) -> int:
        """Records so far of threads that found no free ring."""
        return int(self.head["lost_no_ring"][0])

    def alive(self) -> bool:
        """Whether its process still runs the program that made it."""
        return start_time(self.pid) == self.started

    def close(self) -> None:
        """Let go of it. Views of its rings must not be used any more."""
        with suppress(AttributeError):
            del self.head, self.entries
        with suppress(BufferError):  # a view is still held somewhere: the map goes with it
            self._map.close()
        with suppress(OSError):
            os.close(self._descriptor)


def _open(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    if os.fstat(descriptor).st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
        os.close(descriptor)
        raise _refused(path, "it belongs to somebody else")
    return descriptor


def _probe(number: int, entry: np.void) -> Probe:
    kind = int(entry["type"])
    names = tuple(filter(None, (part.strip() for part in _text(entry["fields"]).split(","))))
    return Probe(
        number,
        _text(entry["name"]) or f"probe{number}",
        layout.TYPES.get(kind, f"type {kind}"),
        _text(entry["unit"]),
        (names + layout.FIELD_NAMES.get(kind, ())[len(names) :])[: layout.FIELDS],
        bool(entry["enabled"]),
        int(entry["subsample"]),
        bool(entry["conflict"]),
        max(int(entry["every"]), 1),
        int(entry["refused"]),
    )


def _text(raw: Any) -> str:
    text = bytes(raw).split(b"\0")[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _refused(path: Path, why: str) -> StoreError:
    return StoreError(f"{path}: no area of probes", why, "perflaw probes list")


def start_time(pid: int) -> int:
    """When a process began, in the system's ticks since it was booted; -1 where it has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    fields = text[text.rfind(")") + 2 :].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


# ---- Where areas are: the folder that programs are told of, else one of the user's own in shared memory.

_SHARED: Final = Path("/dev/shm")
_OURS: Final = "record"
"""Folders of recordings are named ``record.<pid>.<start time>-…``: one whose recorder has gone is litter."""


def standing_folder() -> Path:
    """Where programs that nobody tells otherwise make their areas."""
    told = os.environ.get(VARIABLE)
    return Path(told) if told else _SHARED / f"perflaw-{os.getuid()}"


def recording_folder(spool: Path) -> Path:
    """A folder for the areas of one recording, in shared memory, which never reaches a disk; else in its spool."""
    base = _SHARED / f"perflaw-{os.getuid()}"
    prefix = f"{_OURS}.{os.getpid()}.{start_time(os.getpid())}-"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        if base.stat().st_uid != os.geteuid():
            raise PermissionError(base)  # somebody made a folder of this name before us
        _sweep(base)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    except OSError:
        folder = spool / "probes"
        folder.mkdir(mode=0o700)
        return folder


def _sweep(base: Path) -> None:
    """Remove what recorders left that were killed."""
    for folder in base.glob(f"{_OURS}.*.*-*"):
        _, pid, began = folder.name.partition("-")[0].split(".")
        if pid.isdigit() and start_time(int(pid)) != int(began or 0):
            shutil.rmtree(folder, ignore_errors=True)


def folders(base: Path | None = None) -> list[Path]:
    """The standing folder and those of recordings that go on now."""
    base = base or standing_folder()
    with suppress(OSError):
        return [base, *sorted(path for path in base.iterdir() if path.is_dir() and not path.is_symlink())]
    return [base]


def area_files(places: Iterable[Path]) -> list[Path]:
    """Files in these folders that are named as areas are."""
    found: list[Path] = []
    for folder in places:
        with suppress(OSError):
            found += (path for path in folder.iterdir() if path.name.replace(".", "").isdigit() and path.name[0] != ".")
    return sorted(found)
