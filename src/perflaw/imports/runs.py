"""From a trace to runs of an experiment: one run for each of its processes."""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perflaw.imports.registry import read_trace
from perflaw.imports.tracks import Trace
from perflaw.notices import progress
from perflaw.record.build import BuildError, Tell, build, core
from perflaw.record.manifest import Execution
from perflaw.record.php.trace import CUT, TICK_NS, XdebugTrace, no_functions
from perflaw.record.php.tracer import functions_of
from perflaw.record.reader import RecordedProcess
from perflaw.record.saving import RunContext, save_recording
from perflaw.record.settings import RecordSettings
from perflaw.record.tree.core import TreeTables
from perflaw.record.tree.records import ProcessIdentity, TracerEnd, TracerStart
from perflaw.record.unfinished import RunClaim
from perflaw.store.experiment import Experiment
from perflaw.types import Clock, Run
from perflaw.types.recordings import IMPORTED


def core_file(tell: Tell) -> Path | None:
    """The library of the C core, built if necessary; None where it cannot be built."""
    try:
        return build(core(), tell)
    except BuildError:
        return None


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
        return replace(run, clock=Clock(IMPORTED, self.clock_tick_ns, 0, 0), host="", environment={})


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """The outcome of importing a trace."""

    run: Run
    """Run of its first process."""
    children: tuple[Run, ...]
    """Runs of its other processes."""
    notes: Mapping[str, int]
    """What was decided about calls that could not be taken as they are → number of such calls."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """What a file holds, as a run is saved from it."""

    tool: str
    """The tool that wrote it."""
    tick_ns: int
    """Step of its clock."""
    execution: Execution
    processes: Iterator[RecordedProcess]
    notes: Mapping[str, int]


def import_trace(experiment: Experiment, path: Path, features: Mapping[str, float], tell: Tell) -> ImportedTrace:
    """Add the trace in a file to an experiment.

    Raises the errors of :func:`read_trace`, and StoreError where the experiment cannot be written.
    """
    xdebug = XdebugTrace.of(path)
    library = core_file(tell)
    with progress(f"reading {path.name}"):
        trace = None if xdebug else read_trace(path, library)
    with RunClaim.with_spool(experiment, secrets.token_hex(8), "cd ~ && perflaw import FILE") as claim:
        run = int(claim.folder.name)
        found = _of_xdebug(xdebug, library, run) if xdebug else _of_calls(trace, path, library, run) if trace else None
        assert found
        source = TraceSource(f"{found.tool} in {path.name}")
        about = {"imported": path.name}
        context = _TraceRecording(claim, source, RecordSettings(), features, about, clock_tick_ns=found.tick_ns)
        with progress("making call trees"):
            outcome = save_recording(context, found.execution, found.processes)
    return ImportedTrace(outcome.run, outcome.children, found.notes)


def _of_xdebug(trace: XdebugTrace, library: Path | None, run: int) -> _Contents:
    """A trace of Xdebug: of one process. Where PHP is installed, it reads the names of parameters from the sources."""
    php, path = shutil.which("php"), trace.path
    recorded, cut = trace.recorded(
        library, run, ProcessIdentity(0, 0, (str(path),)), functions_of(php) if php else no_functions
    )
    ended = recorded.definitions.ended
    assert ended
    name, began = path.name.removesuffix(".gz").removesuffix(".xt"), trace.began.isoformat(timespec="milliseconds")
    return _Contents(
        "Xdebug", TICK_NS, Execution((str(path),), name, began, ended.clock, 0), iter([recorded]), {CUT: cut}
    )


def _of_calls(trace: Trace, path: Path, library: Path | None, run: int) -> _Contents:
    """A trace of any other tool."""
    name = trace.processes[0].name or path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".jfr")
    if trace.epoch:
        began = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=trace.first() // 1000)
    else:
        began = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    trees = [process.tree(library, run + (place << 20)) for place, process in enumerate(trace.processes)]
    span_ns = max(process.last_stamp() for process in trace.processes) - trace.first()
    execution = Execution((str(path),), name, began.isoformat(timespec="milliseconds"), span_ns, 0)
    notes = sum((process.notes for process in trace.processes), start=Counter[str]())
    return _Contents(trace.tool, trace.tick_ns, execution, _recorded(trace, trees, str(path)), notes)


def _recorded(trace: Trace, trees: list[TreeTables], command: str) -> Iterator[RecordedProcess]:
    """The processes of a trace as a tracer would have recorded them; all others are children of the first."""
    for place, (process, tree) in enumerate(zip(trace.processes, trees, strict=True)):
        definitions = process.definitions
        definitions.process = ProcessIdentity(process.pid, 0, (command,))
        definitions.started = TracerStart(process.first_stamp(), 0, 0, "")
        definitions.ended = TracerEnd(process.last_stamp(), 0, 0, trace.lost, 0, ())
        yield RecordedProcess(definitions, tree, 0 if place else None)
