"""A trace to runs of an experiment: one of each of its processes."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.imports.traces import read_trace
from perflaw.imports.tracks import ProcessEvents, Trace
from perflaw.record.build import BuildError, Tell, build, core
from perflaw.record.claim import Claim
from perflaw.record.conclude import What, conclude
from perflaw.record.manifest import Process
from perflaw.record.recorded import Reader, Recorded
from perflaw.record.records import ENTER, FEATURE, RECORD, THREAD, Ended, Started
from perflaw.record.records import Process as Known
from perflaw.record.tree.builder import Event, TreeBuilder
from perflaw.record.tree.call_tree import columns
from perflaw.record.tree.core import Core
from perflaw.record.tree.core_tables import CoreTree
from perflaw.record.tree.reservoir import scramble
from perflaw.store.columns import Array
from perflaw.store.experiment import Experiment
from perflaw.types import Clock, Run

# ---- A ring file as a tracer writes it (native/ring.h): how records that are no program's reach the C core.

MAGIC: Final = 0x31474E4952465250
VERSION: Final = 1
START: Final = 4096
"""Where the records begin."""
WRITTEN: Final = 64
"""Where the count of written records stands."""


class RingWriter:
    """The writer's end of one ring, for whoever reads it between two calls of ``append``."""

    def __init__(self, path: Path, capacity: int) -> None:
        """Make the file; ``capacity`` is a power of two."""
        self.path, self.capacity, self.count = path, capacity, 0
        head = np.array([MAGIC], "<u8").tobytes() + np.array([VERSION, capacity], "<u4").tobytes()
        path.write_bytes(head.ljust(START + capacity * RECORD.itemsize, b"\0"))
        self.bytes = np.memmap(path, np.uint8, "r+")

    def append(self, rows: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write records, at most ``capacity``; all earlier ones have been read."""
        places = np.arange(self.count, self.count + len(rows)) % self.capacity
        self.bytes[START:].view(RECORD)[places] = rows
        self.count += len(rows)
        self.bytes[WRITTEN : WRITTEN + 8].view("<u8")[0] = self.count


# ---- Records of a process to its call tree: by the C core, by its Python twin where that cannot be built.

CAPACITY: Final = 1 << 14
"""Records that a ring holds."""
_KEYS: Final = (1 << 31) - 1


def core_file(tell: Tell) -> Path | None:
    """The library of the core, built now if it was not; None where it cannot be."""
    try:
        return build(core(), tell)
    except BuildError:
        return None


def tree_of(process: ProcessEvents, library: Path | None, seed: int) -> CoreTree:
    """The call tree of all tracks; each is a thread of its own. ``seed`` says which calls are sampled."""
    lanes, tracks = process.definitions.lanes(), process.ordered()
    if library is None:
        builder = TreeBuilder(seed, lanes)
        for number, track in enumerate(tracks, 1):
            builder.feed(number, _rows(track, seed).tolist())
        return columns(builder.finish())
    reader = Core(library, seed, lanes)
    with tempfile.TemporaryDirectory(prefix="perflaw-") as folder:
        ring = RingWriter(Path(folder) / "import.ring", CAPACITY)
        reader.attach(ring.path)
        for number, track in enumerate(tracks, 1):
            _feed(reader, ring, _rows([(number, 0, 0, -1, -1, THREAD)], 0))
            _feed(reader, ring, _rows(track, seed))
        reader.leave()
        return reader.finish()


def _rows(track: list[Event], seed: int) -> Array:
    """The records, the priorities of their calls mixed with the seed: runs draw their samples independently."""
    rows = np.array(track, RECORD)
    entered = rows["kind"] == ENTER
    rows["key"][entered] ^= scramble(seed) & _KEYS
    return rows


def _feed(reader: Core, ring: RingWriter, rows: Array) -> None:
    for start in range(0, len(rows), CAPACITY):
        ring.append(rows[start : start + CAPACITY])
        while reader.step():
            pass


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """Stands where a tracer's name and reason are told."""

    reason: str
    """What wrote the trace."""
    name: str = "import"
    module: str = ""
    file: Path | None = None

    def reader(self, spool: Path, seed: int) -> Reader:
        """There is none: nothing is running."""
        raise RuntimeError("a trace that was recorded elsewhere has nothing that runs")


@dataclass(frozen=True, slots=True)
class _What(What):
    """A trace says nothing of the machine; its clock is the one that its stamps show."""

    tick_ns: int = 1
    """Step of that clock."""

    def run(self, folder: Path, process: Process, recorded: Recorded) -> Run:
        """See :class:`What`."""
        run = What.run(self, folder, process, recorded)
        return replace(run, clock=Clock("imported", self.tick_ns, 0, 0), host="", environment={})


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one file."""

    run: Run
    """Of its first process."""
    children: tuple[Run, ...]
    """Of the others."""
    said: Mapping[str, int]
    """What had to be decided about calls → how many."""


def import_trace(experiment: Experiment, path: Path, features: Mapping[str, float], tell: Tell) -> Imported:
    """Keep the trace in a file. Raises what :func:`read_trace` does, and StoreError where the experiment takes nothing."""
    trace = read_trace(path)
    first, library = trace.first(), core_file(tell)
    name = trace.processes[0].name or path.name.removesuffix(".gz").removesuffix(".json")
    process = Process((str(path),), name, _began(path, trace, first), _last(trace) - first, 0)
    try:
        claim = Claim(experiment, secrets.token_hex(8))
        (claim.folder / "spool").mkdir(mode=0o700)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{experiment.folder}: cannot be written", why, "cd ~ && perflaw import FILE") from error
    with claim:
        tracer = ImportedTrace(f"{trace.tool} in {path.name}")
        what = _What(experiment, tracer, {"imported": path.name}, features, False, claim, tick_ns=trace.tick_ns)
        outcome = conclude(what, claim.folder, process, _recorded(trace, str(path), library, int(claim.folder.name)))
    said = sum((one.said for one in trace.processes), start=type(trace.processes[0].said)())
    return Imported(outcome.run, outcome.children, said)


def _recorded(trace: Trace, command: str, library: Path | None, run: int) -> Iterator[Recorded]:
    for number, process in enumerate(trace.processes):
        known, tracks = process.definitions, process.ordered()
        last = max(_end(track) for track in tracks)
        known.process = Known(process.pid, 0, (command,))
        known.started = Started(tracks[0][0][0], 0, 0, "")
        known.ended = Ended(last, 0, 0, trace.lost, 0, 0, ())
        yield Recorded(known, tree_of(process, library, run + (number << 20)), 0 if number else None)


def _began(path: Path, trace: Trace, first: int) -> str:
    """When, as far as is known: the first stamp where stamps are dates, else when the file was written."""
    when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=first // 1000) if trace.epoch else _written(path)
    return when.isoformat(timespec="milliseconds")


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _last(trace: Trace) -> int:
    return max(_end(track) for process in trace.processes for track in process.ordered())


def _end(track: list[Event]) -> int:
    """The last stamp of a track; records of features have none."""
    return max(event[0] for event in track if event[5] != FEATURE)
