"""What came of a recorded run: the program and each child that recorded a call become a run of the experiment."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import StoreError, TargetError
from perflaw.record.claim import Claim
from perflaw.record.compiled.elf import open_elf
from perflaw.record.compiled.hooks import HooksTracer
from perflaw.record.manifest import Process, child_process, describe
from perflaw.record.probes.session import add_calls_of_probes, probe_tables
from perflaw.record.recorded import Counted, Recorded
from perflaw.record.records import Definitions
from perflaw.record.tracers import NativeTracer, PythonTracer, Tracer
from perflaw.record.tree.core import tick
from perflaw.record.tree.core_tables import Export
from perflaw.record.tree.paths import dropped, path_tables
from perflaw.record.tree.tables import tabulate
from perflaw.store.columns import Tables
from perflaw.store.counts import write_counts
from perflaw.store.experiment import Experiment, discard, save
from perflaw.store.paths import PathsAbout, write_paths
from perflaw.store.probe_tables import write_probes
from perflaw.types import Run

# ---- The step of the interpreter's clock, measured: the readable twin of ``clock_tick`` in native/clock.c.

READINGS: Final = 2000
ROUNDING: Final = 2
"""ns by which a difference of two readings may miss a multiple of the step."""
COARSE: Final = 8
"""A step below it is none: multiples of it, give or take the rounding, are nearly all numbers."""
FEW_STEPS: Final = 3
CERTAIN: Final = 0.95
"""Share of the differences that have to be multiples."""


def clock_step(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """What readings of a clock of whole ns differ by multiples of, at least 1.

    Some processors count in steps of ten ns. Readings are taken with pauses of many lengths between them; the tenth of
    longest differences are interruptions.
    """
    passed = np.sort([_passed(clock, turn % 61) for turn in range(READINGS)])[: READINGS * 9 // 10].astype(np.float64)
    passed = np.sort(abs(passed - passed[len(passed) // 2]))  # multiples all the same, and small ones
    gaps = np.diff(passed)
    guess = gaps[gaps > ROUNDING].min(initial=np.inf)
    if not np.isfinite(guess):
        return 1.0
    few = passed[passed <= FEW_STEPS * guess]
    # A guess is off by the rounding, which few steps bear; what they say is good enough for many.
    steps = (_step_near(passed, _step_near(few, guess + off)) for off in range(-ROUNDING, ROUNDING + 1))
    return next((step for step in steps if step >= COARSE), 1.0)


def _passed(clock: Callable[[], int], pause: int) -> int:
    before = clock()
    for _ in range(pause):
        pass
    return clock() - before


def _step_near(passed: NDArray[np.float64], guess: float) -> float:
    """The step near a guess of it; 0 where the differences are no multiples."""
    if not guess:
        return 0.0
    times = np.round(passed / guess)
    right = np.mean(abs(passed - times * guess) <= ROUNDING)
    return float(times @ passed / (times @ times)) if right > CERTAIN and times.any() else 0.0


# ---- Where durations were measured: which build of the program, and by which clock. Absolute times compare within
# one of each.

UNCERTAIN = 5
"""Recording a call is taken out of its callers' time by its mean, which single ones are off by a fifth of and more."""


def about_paths(recorded: Recorded, run: Run, tracer: Tracer) -> PathsAbout | None:
    """What holds for all durations by call path of a process; None where there are none."""
    if not len(recorded.tree.tables[Export.PATH_CODES]):
        return None
    fake = run.clock.name == "fake"
    step = float(run.clock.tick_ns) if fake else _tick(tracer, run)
    probe = 0.0 if fake else run.clock.event_ns / UNCERTAIN
    return PathsAbout(build_of(recorded.definitions), step, probe, dropped(recorded.tree))


def _tick(tracer: Tracer, run: Run) -> float:
    if isinstance(tracer, NativeTracer | HooksTracer):
        return _measured(tracer.library)
    return _interpreters() if isinstance(tracer, PythonTracer) else float(run.clock.tick_ns)


@cache
def _interpreters() -> float:
    return clock_step()


@cache
def _measured(library: Path) -> float:
    return tick(library)


def build_of(known: Definitions) -> str:
    """Build id of a compiled program, a digest of the modules of a Python program; "" where neither is known.

    A program's modules are its own files whose top level was executed; where that is not recorded, all of its own.
    """
    if known.addresses:
        return _one(_identity(Path(module)) for module in sorted({module for module, _, _ in known.addresses.values()}))
    own = [one for one in known.components.values() if one.origin == "own" and one.file]
    modules = {one.file for one in own if one.name.endswith("<module>")} or {one.file for one in own}
    return _one(map(_digest, sorted(modules)))


def _one(identities: Iterable[str]) -> str:
    """A single one as it is; several as one of them all."""
    found = [identity for identity in identities if identity]
    return (
        found[0] if len(found) == 1 else blake2b("\n".join(found).encode(), digest_size=20).hexdigest() if found else ""
    )


def _identity(module: Path) -> str:
    elf = open_elf(module)
    if elf is None:
        return ""
    with elf:
        return elf.identity


def _digest(file: str) -> str:
    try:
        return blake2b(Path(file).read_bytes(), digest_size=20).hexdigest()
    except OSError:
        return ""  # made by the program, or removed since


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
