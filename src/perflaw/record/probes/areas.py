"""Areas of running processes: how they are found, attached, read and switched from outside (layout: :mod:`.layout`)."""

from __future__ import annotations

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
from perflaw.record.machine import stat_of
from perflaw.record.probes import layout
from perflaw.record.probes.rings import RingFile, plausible

VARIABLE: Final = "PERFLAW_PROBES"
"""Environment variable with the folder in which programs make their areas."""
ENABLE: Final = "PERFLAW_PROBES_ENABLE"
"""Environment variable with the probes that are enabled from the start."""
RECORDS: Final = "PERFLAW_PROBES_RECORDS"
"""Environment variable with the number of records that a ring holds."""
_NAME: Final = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")
"""Process and its start; a third number if it has several areas, for several programs (``exec``) or languages."""
_MOST_RINGS, _MOST_RECORDS = 1 << 16, 1 << 22


@dataclass(frozen=True, slots=True)
class RegisteredProbe:
    """A probe as its program registered it."""

    id: int
    """Id from 0 to 1023, as in the code."""
    name: str
    """Name; ``probe7`` if the code gives none."""
    type: str
    """``LAT``, ``SNAPSHOT``, …"""
    unit: str
    """Unit of its values; empty if the code gives none."""
    fields: tuple[str, ...]
    """Names of its fields."""
    enabled: bool
    """Whether it writes records."""
    subsample: int
    """Executions for one record, as set from outside; 0 for the number in the code."""
    conflict: bool
    """Whether another probe of the program has the same id."""
    every: int = 1
    """Executions for one record by the code."""
    refused: int = 0
    """Executions without a record because a counter cannot be read."""

    @property
    def executions(self) -> int:
        """Executions for one record."""
        return self.subsample or self.every


class AttachedArea:
    """The area of a process, attached by a reader. Reading never makes the process wait; only switches are written.

    It is not mapped: its owner may make the file shorter at any moment (:mod:`.rings`).
    """

    def __init__(self, path: Path) -> None:
        """Attach the area; StoreError if the file is no area, damaged, or of another version."""
        self.path = path
        found = _NAME.fullmatch(path.name)
        if not found:
            raise _refused(path, "its name is not that of an area")
        self.pid, self.started = int(found[1]), int(found[2])
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise _refused(path, error.strerror or str(error)) from error
        if os.fstat(descriptor).st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
            os.close(descriptor)
            raise _refused(path, "it belongs to somebody else")
        self._descriptor = descriptor
        try:
            data = os.pread(self._descriptor, layout.HEAD_BYTES, 0)
            if len(data) < layout.HEAD_BYTES:
                raise _refused(path, "it is shorter than its head")
            head = np.frombuffer(data, layout.HEAD)[0]
            if head["magic"] != layout.MAGIC:
                raise _refused(path, "its first bytes are not an area's")
            if head["version"] != layout.VERSION or head["probes"] != layout.PROBES:
                raise _refused(path, f"it is of version {head['version']}, this perflaw reads {layout.VERSION}")
            self.rings, self.ring_records = int(head["rings"]), int(head["ring_records"])
            records = self.ring_records
            if not 0 < self.rings <= _MOST_RINGS or not 0 < records <= _MOST_RECORDS or records & (records - 1):
                raise _refused(path, f"{self.rings} rings of {records} records cannot be")
            if head["clock"] not in (layout.TSC, layout.NANOSECONDS):
                raise _refused(path, f"its clock {head['clock']} is unknown")
            self.clock, self.tsc0, self.ns0 = int(head["clock"]), int(head["tsc0"]), int(head["ns0"])
            self.language = _text(head["language"])
            self._size = layout.ring_offset(self.rings, self.ring_records)
            if os.fstat(self._descriptor).st_size < self._size:
                raise _refused(path, f"it is shorter than its {self.rings} rings")
        except (OSError, ValueError, StoreError) as error:
            os.close(self._descriptor)
            raise error if isinstance(error, StoreError) else _refused(path, str(error)) from error
        self._entries: NDArray[Any] = np.zeros(layout.PROBES, layout.ENTRY)
        self._lost_no_ring = 0

    def used_rings(self, first: int = 0) -> Iterator[int]:
        """Numbers, from ``first`` on, of the rings that threads have taken so far; those before were taken earlier.

        Reading does not allocate a ring that no thread took, which would fail on a full file system.
        """
        for ring in range(first, self.rings):
            if not any(os.pread(self._descriptor, 4, layout.ring_offset(ring, self.ring_records))):
                return
            yield ring

    def ring(self, number: int) -> RingFile:
        """A ring that was taken, to be read until the area is closed."""
        return RingFile(self._descriptor, layout.ring_offset(number, self.ring_records), self.ring_records)

    def probes(self) -> list[RegisteredProbe]:
        """The registered probes, by id; the last ones known if the file has become shorter."""
        data = os.pread(self._descriptor, layout.ENTRY_BYTES * layout.PROBES, layout.HEAD_BYTES)
        if len(data) == layout.ENTRY_BYTES * layout.PROBES:
            self._entries = np.frombuffer(data, layout.ENTRY)
        entries = self._entries
        probes = []
        for number in np.flatnonzero(entries["registered"]).tolist():
            entry = entries[number]
            kind = int(entry["type"])
            names = tuple(filter(None, (part.strip() for part in _text(entry["fields"]).split(","))))
            probes.append(
                RegisteredProbe(
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
            )
        return probes

    def enable(self, ids: Iterable[int], on: bool = True) -> None:
        """Enable or disable probes, from their next execution on."""
        for number in ids:
            self._switch(layout.ENTRY, "enabled", on, layout.HEAD_BYTES + number * layout.ENTRY_BYTES)

    def enable_all(self, on: bool = True) -> None:
        """Enable or disable all probes, those included that register later."""
        self._switch(layout.HEAD, "enable_all", on)
        self.enable([probe.id for probe in self.probes()], on)

    def subsample(self, ids: Iterable[int], executions: int) -> None:
        """Set the number of executions for one record; 0 for the number in the code."""
        for number in ids:
            self._switch(layout.ENTRY, "subsample", executions, layout.HEAD_BYTES + number * layout.ENTRY_BYTES)

    def _switch(self, structure: np.dtype[Any], name: str, value: int, begin: int = 0) -> None:
        """Write a field of a structure that begins at byte ``begin``, unless the file has become shorter."""
        kind, offset, *_ = structure.fields[name]  # type: ignore[index]  # a structure has fields
        if os.fstat(self._descriptor).st_size >= self._size:
            os.pwrite(self._descriptor, kind.type(value).tobytes(), begin + offset)

    @property
    def lost_no_ring(self) -> int:
        """Records so far of threads that found no free ring."""
        count = int(self._head()["lost_no_ring"])
        if plausible(count, 0):
            self._lost_no_ring = max(self._lost_no_ring, count)
        return self._lost_no_ring

    @property
    def refusal(self) -> str:
        """Why a hardware counter cannot be read; empty if none was refused."""
        return _text(self._head()["refusal"])

    def _head(self) -> Any:
        """The present head; zeros beyond the end of a file that has become shorter."""
        return np.frombuffer(
            os.pread(self._descriptor, layout.HEAD_BYTES, 0).ljust(layout.HEAD_BYTES, b"\0"), layout.HEAD
        )[0]

    def alive(self) -> bool:
        """Whether its process still runs the program that made it."""
        return start_time(self.pid) == self.started

    def close(self) -> None:
        """Let go of it. Its rings must not be read any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def _text(raw: Any) -> str:
    text = bytes(raw).split(b"\0")[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _refused(path: Path, why: str) -> StoreError:
    return StoreError(f"{path}: no area of probes", why, "perflaw probes list")


def start_time(pid: int) -> int:
    """Start of a process, in the system's ticks since it was booted; -1 if it has ended."""
    fields = stat_of(pid)
    return -1 if not fields or fields[0] in "ZX" else int(fields[19])


_SHARED: Final = Path("/dev/shm")
_OURS: Final = "record"
"""Folders of recordings are named ``record.<pid>.<start time>-…``; one whose recorder has ended can be removed."""


def standing_folder() -> Path:
    """The folder in which programs make their areas by default."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else _SHARED / f"perflaw-{os.getuid()}"


def recording_folder(spool: Path) -> Path:
    """A new folder for the areas of one recording: in shared memory, which is never written to a disk, or in its spool."""
    base = _SHARED / f"perflaw-{os.getuid()}"
    prefix = f"{_OURS}.{os.getpid()}.{start_time(os.getpid())}-"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        if base.stat().st_uid != os.geteuid():
            raise PermissionError(base)  # another user made a folder of this name
        # Remove the folders of recorders that were killed.
        for folder in base.glob(f"{_OURS}.*.*-*"):
            _, pid, began = folder.name.partition("-")[0].split(".")
            if pid.isdigit() and start_time(int(pid)) != int(began or 0):
                shutil.rmtree(folder, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    except OSError:
        folder = spool / "probes"
        folder.mkdir(mode=0o700)
        return folder


def folders(base: Path | None = None) -> list[Path]:
    """The standing folder and those of present recordings."""
    base = base or standing_folder()
    with suppress(OSError):  # no program with probes has run: there is no folder
        return [base, *sorted(path for path in base.iterdir() if path.is_dir() and not path.is_symlink())]
    return [base]


def area_files(places: Iterable[Path]) -> list[Path]:
    """Files in these folders that have the name of an area."""
    found: list[Path] = []
    for folder in places:
        with suppress(OSError):  # the recording of this folder has ended
            found += (path for path in folder.iterdir() if path.name.replace(".", "").isdigit() and path.name[0] != ".")
    return sorted(found)
