"""Saves a recording: the program, and each child with a recorded call, becomes a run of the experiment."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from perflaw.errors import StoreError, TargetError
from perflaw.notices import notice
from perflaw.record.manifest import Execution, child_execution, describe
from perflaw.record.reader import ExecutionCounts, RecordedProcess, RecordingSource
from perflaw.record.secrets import MASK
from perflaw.record.settings import RecordSettings
from perflaw.record.tree.core import Export
from perflaw.record.tree.records import Definitions
from perflaw.record.tree.tables import tabulate
from perflaw.record.unfinished import RunClaim
from perflaw.record.writer import WriterCrashedError
from perflaw.store.columns import Tables
from perflaw.store.experiment import discard, save
from perflaw.types import Run

UNCERTAIN: Final = 5
"""The mean cost of recording a call is taken out of its callers' time; single costs differ from it by a fifth or more."""
_NEVER_BEGAN: Final = {
    "native": "the tracer never began: the program did not start Python, or its environment was replaced",
    "inject": "no function that can be recorded ran, or the program refuses preloaded libraries (it is setuid)",
    "hooks": "no function with hooks ran, or the program refuses preloaded libraries (it is setuid)",
}
"""Tracer → why a recording may have never begun; other tracers have the reason of ``native``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one recorded run."""

    run: Run
    """The manifest."""
    folder: Path | None
    """Folder of the recording; None if nothing was recorded and nothing was kept."""
    unselected: tuple[str, ...] = ()
    """Names of some functions that ran and were left out by the selection."""
    children: tuple[Run, ...] = ()
    """Runs of its child processes."""
    interrupted: int | None = None
    """Signal that asked the recorder to end."""
    over: bool = False
    """Whether it ran over its time limit."""
    probes: int = 0
    """Number of probes of all its processes from which a record was received."""
    probe_records: int = 0
    """Number of records received from them."""
    lines: int = 0
    """Number of lines whose executions were counted in the program's own process."""
    observations: int = 0
    """Number of calls of all its processes that are kept as observations (``--per``)."""
    problems: tuple[str, ...] = ()
    """Messages about features that could not be read from its output."""


@dataclass(frozen=True, slots=True)
class RunTables:
    """Everything of one process, to be written by a :class:`Writer`."""

    run: Run
    """The manifest."""
    tables: Tables
    """The tables."""
    counted: ExecutionCounts | None
    """Execution counts, which have tables of their own."""

    def write(self, folder: Path) -> None:
        """Write it into a folder; the manifest, which says that the run is whole, comes last. OSError if the disk refuses."""
        if self.counted:
            from perflaw.store.counts import write_counts

            write_counts(folder, self.counted.counts, self.counted.sources)
        save(folder, self.run, self.tables)


class RunWriter(Protocol):
    """Where runs are written to: :class:`Writer` or :class:`RunsInMemory`."""

    def write(self, job: RunTables, folder: Path) -> None:
        """Write a run into its folder; OSError if the disk refuses."""


@dataclass(frozen=True, slots=True)
class RunsInMemory:
    """Keeps runs for whoever asked for them, who need not read them from the disk."""

    on_disk: bool
    """Whether they are written to their folders as well, by this process."""
    runs: dict[Path, RunTables] = field(default_factory=dict)
    """Runs by their folders."""

    def write(self, job: RunTables, folder: Path) -> None:
        """Keep a run; OSError if the disk refuses it."""
        if self.on_disk:
            job.write(folder)
        self.runs[folder] = job


@dataclass(frozen=True, slots=True)
class RunContext:
    """How a run was recorded: the same for all its processes."""

    claim: RunClaim
    """The folders of the run and its children, which are marked until all of them are kept."""
    source: RecordingSource
    """What recorded it."""
    settings: RecordSettings
    """What was asked for. A program in which none of the selected functions ran is not kept."""
    features: Mapping[str, float]
    """Features of the workload. They describe the whole execution, so children have them as well."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """What else the configuration has: values of ``--vary``, the file of a trace."""
    workload: str = ""
    """Name of the workload."""
    hidden: tuple[str, ...] = ()
    """Values of ``--vary`` that look like secrets."""
    writer: RunWriter | None = None
    """Writes the tables; None where this process may: what it saves can be had again."""

    def manifest(self, folder: Path, execution: Execution, recorded: RecordedProcess) -> Run:
        """The manifest of one process of the run."""
        configuration = {**self.configuration, **self.settings.described()}
        run = describe(folder.name, execution, self.features, self.source, configuration, recorded)
        if not self.settings.keeps_arguments:
            run = replace(run, command=run.command[:1], typed=())
        for value in filter(None, self.hidden):
            command, typed = (tuple(word.replace(value, MASK) for word in words) for words in (run.command, run.typed))
            run = replace(run, command=command, typed=typed)
        planned = "" if execution.parent else self.claim.key
        return replace(run, workload=self.workload, planned=planned, sources=sources_of(recorded.definitions))


def save_recording(context: RunContext, execution: Execution, processes: Iterator[RecordedProcess]) -> Outcome:
    """Save the run of an ended program and those of its children. ``processes``: the program first.

    TargetError if the recording never began; StoreError if nothing can be written.
    """
    totals = _Totals()
    processes = totals.counting(processes)
    program, folder = next(processes), context.claim.folder
    known = program.definitions
    if known.started is None:
        why = known.failed or _NEVER_BEGAN.get(context.source.name, _NEVER_BEGAN["native"])
        remedy = "perflaw doctor"
        if execution.over:
            why, remedy = f"it {execution.over}, before the tracer began", "a longer --timeout"
        if not (folder / "spool").exists():
            why = f"{folder / 'spool'} was removed while the program ran"
        discard(folder)
        status = execution.status
        problem = f"{execution.name}: nothing was recorded (exit status {status})"
        raise TargetError(problem, why, remedy, status=status)
    run = context.manifest(folder, execution, program)
    # The program's own run is saved first, whatever happens to those of the children; one that holds nothing is never seen.
    is_empty = _holds_nothing(context.settings, run, program)
    kept = None if is_empty else _save(context.writer, folder, _tabulated(context, run, program))
    children = _save_children(context, run, execution, known.started.clock, processes)
    if is_empty and children:
        kept = _save(context.writer, folder, _tabulated(context, run, program))
    elif is_empty:
        discard(folder)
    places = program.counted.counts.locations if program.counted else ()
    return Outcome(
        run,
        kept,
        known.ended.names if known.ended else (),
        children,
        probes=len(totals.probes),
        probe_records=totals.probe_records,
        lines=sum(place.kind == "line" for place in places),
        observations=totals.observations,
    )


def _holds_nothing(settings: RecordSettings, run: Run, program: RecordedProcess) -> bool:
    """Whether nothing of what was selected ran, or none of the durations that alone were wanted is complete."""
    has_durations = len(program.tree.tables[Export.PATH_CODES]) > 0
    return bool(settings.select) and (not run.functions or (settings.only_paths and not has_durations))


def _save_children(
    context: RunContext, program: Run, execution: Execution, began: int, children: Iterator[RecordedProcess]
) -> tuple[Run, ...]:
    """Save and return the runs of all children in which something was recorded."""
    runs: list[Run] = [program]
    """By the child's index in the recording. If a child is not kept, its parent's run stands for it."""
    for child in children:
        parent = runs[child.parent or 0]
        if child.is_silent:
            runs.append(parent)
            continue
        try:
            folder = context.claim.child()
        except OSError as error:
            problem = f"{context.claim.experiment.folder}: cannot be written"
            why = f"{error.strerror}; the program's own run is kept, a child's is not"
            raise StoreError(problem, why, "df -h") from error
        run = context.manifest(folder, child_execution(child, parent, execution, began), child)
        _save(context.writer, folder, _tabulated(context, run, child))
        runs.append(run)
    return tuple({run.id: run for run in runs if run is not program}.values())


@dataclass(slots=True)
class _Totals:
    """Probes and observations of all processes of a run."""

    probes: set[str] = field(default_factory=set)
    """Names of the probes from which a record was received."""
    probe_records: int = 0
    """Number of records received from them."""
    observations: int = 0
    """Number of observations."""

    def counting(self, processes: Iterator[RecordedProcess]) -> Iterator[RecordedProcess]:
        """The same processes, counting as they pass."""
        for process in processes:
            self.observations += int((process.tree.tables[Export.SAMPLES]["parts"] > 0).sum())
            for probed in process.probed:
                self.probe_records += probed.account.received
                self.probes |= {probe.name for probe in probed.counts if probe.received}
            yield process


def _tabulated(context: RunContext, run: Run, recorded: RecordedProcess) -> RunTables:
    """Everything of a process as tables."""
    key = f"{run.id}-{secrets.token_hex(4)}"
    tables, probes = tabulate(key, recorded.tree, recorded.definitions), None
    if recorded.probed:
        from perflaw.record.probes.session import add_calls_of_probes, probe_tables

        tables, probes = add_calls_of_probes(key, tables, recorded), probe_tables(recorded)
    paths = None
    if len(recorded.tree.tables[Export.PATH_CODES]):  # durations by path compare only within one build and one clock
        from perflaw.record.tree.path_tables import dropped, path_tables
        from perflaw.store.paths import PathsAbout

        build, lost = build_of(recorded.definitions), dropped(recorded.tree)
        tick_ns = context.source.tick_ns() if run.clock.name != "fake" else None
        if tick_ns is None:
            tick_ns = float(run.clock.tick_ns)
        about = PathsAbout(build, tick_ns, run.clock.event_ns / UNCERTAIN if run.clock.name != "fake" else 0.0, lost)
        paths = path_tables(recorded, run, context.settings.paths, about, context.settings.only_paths)
    return RunTables(run, {**(paths or {}), **(probes or {}), **tables}, recorded.counted)


def sources_of(known: Definitions) -> dict[str, str]:
    """Digests of the program's own files whose functions ran, by file; files that are gone are left out.

    A compiled program's are the build ids of its modules.
    """
    if known.addresses:
        return {module: identity for module, identity in _build_ids(known) if identity}
    files = {component.file for component in known.components.values() if component.origin == "own" and component.file}
    digests = {}
    for file in sorted(files):
        with suppress(OSError):
            digests[file] = blake2b(Path(file).read_bytes(), digest_size=8).hexdigest()
    return digests


def build_of(known: Definitions) -> str:
    """Build id of a compiled program; digest of the modules of a Python program; empty if neither is known.

    Durations compare only within one build. A program's modules are its own files whose top level was executed; if that
    was not recorded, all its own files.
    """
    identities = [identity for _, identity in _build_ids(known)]
    if not known.addresses:
        own = [component for component in known.components.values() if component.origin == "own" and component.file]
        modules = {one.file for one in own if one.name.endswith("<module>")} or {one.file for one in own}
        for file in sorted(modules):
            with suppress(OSError):  # code made by the program, or a file removed since
                identities.append(blake2b(Path(file).read_bytes(), digest_size=20).hexdigest())
    identities = [identity for identity in identities if identity]
    if len(identities) < 2:
        return "".join(identities)
    return blake2b("\n".join(identities).encode(), digest_size=20).hexdigest()


def _build_ids(known: Definitions) -> Iterator[tuple[str, str]]:
    """The modules of a compiled program that can be read, with their build ids."""
    from perflaw.record.compiled.elf import identify

    for module in sorted({module for module, _, _ in known.addresses.values()}):
        if found := identify(Path(module)):
            yield module, found[0]


def _save(writer: RunWriter | None, folder: Path, job: RunTables) -> Path:
    """Write the recording to its folder; on a full disk, in the space of its spool, or to the temporary folder.

    What lacked memory, or crashed, is tried again in the same order.
    """
    write, crash = partial(writer.write, job) if writer else job.write, ""
    for spool_stays in (True, False):
        if not spool_stays:
            shutil.rmtree(folder / "spool", ignore_errors=True)
        try:
            write(folder)
        except (OSError, MemoryError) as error:
            reason = str(error) or "there is not enough memory"
            crash = reason if isinstance(error, WriterCrashedError) else ""
        else:
            shutil.rmtree(folder / "spool", ignore_errors=True)
            if crash:
                notice(f"{folder}: {crash} and was written again; nothing of it is lost")
            return folder
    refuge = Path(tempfile.mkdtemp(prefix="perflaw-")) / folder.name
    refuge.mkdir(mode=0o700)
    try:
        write(refuge)
    except (OSError, MemoryError) as error:
        why = f"the recording is lost ({str(error) or 'there is not enough memory'})"
        raise StoreError(f"{folder} and {refuge}: cannot be written", why, "df -h") from error
    discard(folder)
    remedy = f"mkdir -p {folder.parent} && mv {refuge} {folder}"
    raise StoreError(f"{folder}: cannot be written", f"{reason}; the recording is in {refuge}", remedy)
