"""From a trace to runs of an experiment: one run for each of its processes."""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.imports.registry import read_trace
from perflaw.imports.tracks import ProcessEvents, Trace
from perflaw.record.build import BuildError, Tell, build, core
from perflaw.record.manifest import Execution
from perflaw.record.reader import RecordedProcess
from perflaw.record.saving import RunContext, save_recording
from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.call_tree import to_tables
from perflaw.record.tree.core import RING_CAPACITY, Core, RingWriter, TreeTables
from perflaw.record.tree.records import ENTER, FEATURE, RECORD, THREAD, Event, ProcessIdentity, TracerEnd, TracerStart
from perflaw.record.tree.reservoir import scramble
from perflaw.record.unfinished import RunClaim
from perflaw.store.columns import Array
from perflaw.store.experiment import Experiment
from perflaw.types import Clock, Run

_KEYS: Final = (1 << 31) - 1


def core_file(tell: Tell) -> Path | None:
    """The library of the C core, built if necessary; None where it cannot be built."""
    try:
        return build(core(), tell)
    except BuildError:
        return None


def tree_of(process: ProcessEvents, library: Path | None, seed: int) -> TreeTables:
    """The call tree of a process; each track is a thread of its own.

    The C core builds it, or its Python twin where there is no ``library``. ``seed`` decides which calls are sampled.
    """
    lanes, tracks = process.definitions.lanes(), process.ordered()
    if library is None:
        builder = TreeBuilder(seed, lanes)
        for thread, track in enumerate(tracks, 1):
            builder.feed(thread, _rows(track, seed).tolist())
        return to_tables(builder.finish())
    reader = Core(library, seed, lanes)
    with tempfile.TemporaryDirectory(prefix="perflaw-") as folder:
        ring = RingWriter(Path(folder) / "import.ring")
        reader.attach(ring.path)
        for thread, track in enumerate(tracks, 1):
            rows = np.concatenate((np.array([(thread, 0, 0, -1, -1, THREAD)], RECORD), _rows(track, seed)))
            for start in range(0, len(rows), RING_CAPACITY):
                ring.append(rows[start : start + RING_CAPACITY])
                while reader.step():
                    pass
        reader.leave()
        return reader.finish()


def _rows(track: list[Event], seed: int) -> Array:
    """The records of a track. The seed changes the priorities of its calls, so that runs draw independent samples."""
    rows = np.array(track, RECORD)
    entered = rows["kind"] == ENTER
    rows["key"][entered] ^= scramble(seed) & _KEYS
    return rows


@dataclass(frozen=True, slots=True)
class TraceSource:
    """The source of an imported recording; implements :class:`perflaw.record.reader.RecordingSource`."""

    reason: str
    """What wrote the trace."""
    name: str = "import"

    def tick_ns(self) -> None:
        """The manifest has the clock of the trace."""


@dataclass(frozen=True, slots=True)
class _TraceRecording(RunContext):
    """How the runs of a trace are described: it says nothing of the machine, and its clock is that of its time stamps."""

    clock_tick_ns: int = 1
    """Step of that clock."""

    def manifest(self, folder: Path, execution: Execution, recorded: RecordedProcess) -> Run:
        """See :class:`RunContext`."""
        run = RunContext.manifest(self, folder, execution, recorded)
        return replace(run, clock=Clock("imported", self.clock_tick_ns, 0, 0), host="", environment={})


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """The outcome of importing a trace."""

    run: Run
    """Run of its first process."""
    children: tuple[Run, ...]
    """Runs of its other processes."""
    notes: Mapping[str, int]
    """What was decided about calls that could not be taken as they are → number of such calls."""


def import_trace(experiment: Experiment, path: Path, features: Mapping[str, float], tell: Tell) -> ImportedTrace:
    """Add the trace in a file to an experiment.

    Raises the errors of :func:`read_trace`, and StoreError where the experiment cannot be written.
    """
    trace = read_trace(path)
    library = core_file(tell)
    name = trace.processes[0].name or path.name.removesuffix(".gz").removesuffix(".json")
    if trace.epoch:
        began = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=trace.first() // 1000)
    else:
        began = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    span_ns = max(map(_last_stamp, trace.processes)) - trace.first()
    process = Execution((str(path),), name, began.isoformat(timespec="milliseconds"), span_ns, 0)
    with RunClaim.with_spool(experiment, secrets.token_hex(8), "cd ~ && perflaw import FILE") as claim:
        source, configuration = TraceSource(f"{trace.tool} in {path.name}"), {"imported": path.name}
        context = _TraceRecording(claim, source, configuration, features, clock_tick_ns=trace.tick_ns)
        recorded = _recorded(trace, str(path), library, int(claim.folder.name))
        outcome = save_recording(context, process, recorded)
    notes = sum((process.notes for process in trace.processes), start=Counter[str]())
    return ImportedTrace(outcome.run, outcome.children, notes)


def _recorded(trace: Trace, command: str, library: Path | None, run: int) -> Iterator[RecordedProcess]:
    """The processes of a trace as a tracer would have recorded them; all others are children of the first."""
    for place, process in enumerate(trace.processes):
        definitions = process.definitions
        definitions.process = ProcessIdentity(process.pid, 0, (command,))
        definitions.started = TracerStart(process.ordered()[0][0][0], 0, 0, "")
        definitions.ended = TracerEnd(_last_stamp(process), 0, 0, trace.lost, 0, ())
        yield RecordedProcess(definitions, tree_of(process, library, run + (place << 20)), 0 if place else None)


def _last_stamp(process: ProcessEvents) -> int:
    """The last time stamp of a process; records of features have none."""
    return max(event[0] for track in process.ordered() for event in track if event[5] != FEATURE)
