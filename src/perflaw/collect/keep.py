"""What came of a recorded run: the program and each child that recorded a call become a run of the experiment."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from perflaw.collect.claim import Claim
from perflaw.collect.core import Tracer
from perflaw.collect.describe import Process, child_process, describe
from perflaw.collect.identity import about_paths
from perflaw.collect.paths import path_tables
from perflaw.collect.probes.joining import add_calls_of_probes, probe_tables
from perflaw.collect.recorded import Counted, Recorded
from perflaw.collect.tabulate import tabulate
from perflaw.errors import StoreError, TargetError
from perflaw.store.counts import write_counts
from perflaw.store.experiment import Experiment, discard, save
from perflaw.store.path_tables import write_paths
from perflaw.store.probe_tables import write_probes
from perflaw.store.schema import Tables
from perflaw.types import Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run."""

    run: Run
    """The manifest."""
    folder: Path | None
    """Where the recording is; None where nothing was recorded and nothing was kept."""
    unselected: tuple[str, ...] = ()
    """Names of some functions that were seen and left out by the selection."""
    children: tuple[Run, ...] = ()
    """Runs of its child processes."""
    silent: int = 0
    """Child processes without a recorded call or a counted line: they are not kept."""
    interrupted: int | None = None
    """Signal that asked the recorder to end."""
    over: bool = False
    """Whether it ran over its time."""
    probes: int = 0
    """Probes of all its processes of which a record came, where these were collected."""
    probe_records: int = 0
    """Records of them that came."""
    lines: int = 0
    """Lines whose executions were counted in the program's own process."""
    problems: tuple[str, ...] = ()
    """Features that should have been read from its output, and why they could not."""


@dataclass(frozen=True, slots=True)
class What:
    """What was recorded, how and for which experiment: the same for all processes of a run."""

    experiment: Experiment
    """Where the runs go."""
    tracer: Tracer
    """What recorded them."""
    configuration: Mapping[str, str]
    """What was asked of the recorder."""
    features: Mapping[str, float]
    """Of the workload: they describe the whole execution, so children have them as well."""
    selected: bool
    """Whether functions were selected: then a program in which none ran is not kept."""
    claim: Claim
    """Marks the runs until all of them are kept."""
    workload: str = ""
    """Name of the workload."""
    paths: tuple[str, ...] = ()
    """Globs of functions whose durations by call path are kept, hot or not."""

    def run(self, folder: Path, process: Process, recorded: Recorded) -> Run:
        """The manifest of one of its processes."""
        run = describe(folder.name, process, self.features, self.tracer, self.configuration, recorded)
        return replace(run, workload=self.workload, planned="" if process.parent else self.claim.key)


def conclude(what: What, folder: Path, process: Process, recorded: Iterator[Recorded]) -> Outcome:
    """The target has ended: describe its run and those of its children, and keep them. ``folder`` is that of its run."""
    counted = _Probes()
    recorded = counted.count(recorded)
    program = next(recorded)
    known = program.definitions
    if known.started is None:
        raise _never_began(folder, process, known.failed or _NEVER.get(what.tracer.name, _NEVER["native"]))
    run = what.run(folder, process, program)
    # First of all the program's own, whatever befalls the children.
    kept: Path | None = _keep(folder, run, _all_of(what, run, program))
    children, silent = _keep_children(what, run, process, known.started.clock, recorded)
    if what.selected and not run.functions and not children:
        discard(folder)
        kept = None
    lines = sum(place.kind == "line" for place in program.counted.counts.locations) if program.counted else 0
    names = known.ended.names if known.ended else ()
    return Outcome(
        run, kept, names, children, silent, probes=len(counted.seen), probe_records=counted.records, lines=lines
    )


def _keep_children(
    what: What, program: Run, process: Process, began: int, recorded: Iterator[Recorded]
) -> tuple[tuple[Run, ...], int]:
    """Keep the runs of all children; gives them, and how many had no recorded call."""
    runs: list[Run] = [program]
    """By the child's place in the recording; where a child is not kept, its parent's run stands for it."""
    for child in recorded:
        parent = runs[child.parent or 0]
        if len(child.tree.nodes) < 2 and not _executed(child.counted) and not child.probed:
            runs.append(parent)
            continue
        folder = _new_run(what)
        run = what.run(folder, child_process(child, parent, process, began), child)
        _keep(folder, run, _all_of(what, run, child))
        runs.append(run)
    kept = {run.id: run for run in runs if run is not program}
    return tuple(kept.values()), len(runs) - 1 - len(kept)


@dataclass(slots=True)
class _Probes:
    """What came of the probes of all processes."""

    seen: set[str] = field(default_factory=set)
    records: int = 0

    def count(self, recorded: Iterator[Recorded]) -> Iterator[Recorded]:
        """The same processes; their probes are counted as they pass."""
        for one in recorded:
            for each in one.probed:
                self.records += each.account.received
                self.seen |= {probe.name for probe in each.counts if probe.received}
            yield one


def _executed(counted: Counted | None) -> bool:
    return counted is not None and bool(counted.counts.counts.any())


def _new_run(what: What) -> Path:
    try:
        return what.claim.child()
    except OSError as error:
        why = f"{error.strerror}; the program's own run is kept, a child's is not"
        raise StoreError(f"{what.experiment.folder}: cannot be written", why, "df -h") from error


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is written of a process, beside its manifest."""

    tables: Tables
    """Those that all runs have."""
    counted: Counted | None
    """Its execution counts, if there are any."""
    paths: Tables | None
    """Durations by call path, if they were collected."""
    probes: Tables | None
    """Its probes, if they were collected."""


def _all_of(what: What, run: Run, recorded: Recorded) -> _Kept:
    key = f"{run.id}-{secrets.token_hex(4)}"
    tables = add_calls_of_probes(key, tabulate(key, recorded.tree, recorded.definitions), recorded)
    about = about_paths(recorded, run, what.tracer)
    paths = path_tables(recorded, run, what.paths, about) if about else None
    return _Kept(tables, recorded.counted, paths, probe_tables(recorded))


_NEVER = {
    "native": "the tracer never began: the program did not start Python, or its environment was replaced",
    "hooks": "no function with hooks ran, or the program refuses preloaded libraries (it is setuid)",
}


def _never_began(folder: Path, process: Process, why: str) -> TargetError:
    if not (folder / "spool").exists():
        why = f"{folder / 'spool'} was removed while the program ran"
    discard(folder)
    what = f"{process.name}: nothing was recorded (exit status {process.status})"
    return TargetError(what, why, "perflaw doctor", status=process.status)


def _keep(folder: Path, run: Run, kept: _Kept) -> Path:
    """Write the recording where it belongs; on a full disk in the room its spool took, or in the temporary folder."""
    for spool_stays in (True, False):
        if not spool_stays:
            shutil.rmtree(folder / "spool", ignore_errors=True)
        try:
            _write(folder, run, kept)
        except OSError as error:
            reason = error
        else:
            shutil.rmtree(folder / "spool", ignore_errors=True)
            return folder
    raise _kept_elsewhere(folder, run, kept, reason)


def _write(folder: Path, run: Run, kept: _Kept) -> None:
    """What not all runs have first: the manifest that ``save`` writes says that the run is whole."""
    if kept.counted:
        write_counts(folder, kept.counted.counts, kept.counted.sources)
    if kept.paths:
        write_paths(folder, kept.paths)
    if kept.probes:
        write_probes(folder, kept.probes)
    save(folder, run, kept.tables)


def _kept_elsewhere(folder: Path, run: Run, kept: _Kept, reason: OSError) -> StoreError:
    refuge = Path(tempfile.mkdtemp(prefix="perflaw-")) / folder.name
    refuge.mkdir(mode=0o700)
    try:
        _write(refuge, run, kept)
    except OSError as error:
        return StoreError(f"{folder} and {refuge}: cannot be written", f"the recording is lost ({error})", "df -h")
    discard(folder)
    why = f"{reason}; the recording is in {refuge}"
    return StoreError(f"{folder}: cannot be written", why, f"mkdir -p {folder.parent} && mv {refuge} {folder}")
