"""One run of a target, recorded: start it with the tracer inside, drain what it appends, keep the tables."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from perflaw.collect.core import Reader, Tracer
from perflaw.collect.describe import Process, describe
from perflaw.collect.launch import Launch, environment
from perflaw.collect.reservoir import scramble
from perflaw.collect.signals import Relay
from perflaw.collect.stdin import StandardInput
from perflaw.collect.tabulate import tabulate
from perflaw.errors import StoreError, TargetError
from perflaw.store.experiment import Experiment, discard, save
from perflaw.store.schema import Tables
from perflaw.types import Run

IDLE_S = 0.005


@dataclass(frozen=True, slots=True)
class Settings:
    """What to record of a target, beside the command."""

    select: tuple[str, ...] = ()
    """Globs of components to record; empty: the default choice."""
    exclude: tuple[str, ...] = ()
    """Globs of components never to record."""
    clock: str = "real"
    """``real``, or ``fake``: a clock that the program itself advances."""
    varied: Mapping[str, str] = field(default_factory=dict)
    """Values of ``--vary`` in this run."""

    def described(self) -> dict[str, str]:
        """The same for the manifest: only what was asked for."""
        chosen = {"select": " ".join(self.select), "exclude": " ".join(self.exclude), "clock": self.clock}
        return {**self.varied, **{name: value for name, value in chosen.items() if value and value != "real"}}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run."""

    run: Run
    """The manifest."""
    folder: Path | None
    """Where the recording is; None where nothing was recorded and nothing was kept."""
    unselected: tuple[str, ...] = ()
    """Names of some functions that were seen and left out by the selection."""
    interrupted: int | None = None
    """Signal that asked the recorder to end."""


def record_run(
    experiment: Experiment,
    tracer: Tracer,
    launch: Launch,
    features: Mapping[str, float],
    settings: Settings,
    stdin: StandardInput,
) -> Outcome:
    """Run the target once and keep its recording in ``experiment``.

    Raises StoreError where the experiment cannot be written; the target is then not started, or, if the disk filled up
    meanwhile, the recording is kept in the temporary folder and the message says where.
    """
    folder = _prepare(experiment)
    spool, number = folder / "spool", int(folder.name)
    seed = scramble(number + (os.getpid() << 20))
    reader = tracer.reader(spool, seed)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    with Relay() as relay:
        env = _environment(launch, tracer, settings, spool, seed)
        process, fed = _run(launch, env, reader, stdin, relay, started)
        outcome = _conclude(folder, tracer, settings, process, _with_stdin(features, fed), reader)
        return replace(outcome, interrupted=relay.received)


def _with_stdin(features: Mapping[str, float], fed: int | None) -> dict[str, float]:
    return dict(features) if fed is None else {**features, "stdin.bytes": float(fed)}


def _conclude(
    folder: Path, tracer: Tracer, settings: Settings, process: Process, features: Mapping[str, float], reader: Reader
) -> Outcome:
    """The target has ended: build its call tree, describe the run and keep both."""
    builder, known = reader.finish(), reader.definitions.update()
    if known.started is None:
        raise _never_began(folder, process, known.failed)
    unselected = known.ended.names if known.ended else ()
    run = describe(folder.name, process, features, tracer, settings.described(), builder, known)
    if not run.functions and settings.select:
        discard(folder)
        return Outcome(run, None, unselected)
    return Outcome(run, _keep(folder, run, tabulate(f"{run.id}-{secrets.token_hex(4)}", builder, known)), unselected)


def _never_began(folder: Path, process: Process, failed: str) -> TargetError:
    why = failed or "the tracer never began: the program did not start Python, or its environment was replaced"
    if not (folder / "spool").exists():
        why = f"{folder / 'spool'} was removed while the program ran"
    discard(folder)
    what = f"{process.launch.name}: nothing was recorded (exit status {process.status})"
    return TargetError(what, why, "perflaw doctor", status=process.status)


def _prepare(experiment: Experiment) -> Path:
    try:
        folder = experiment.new_run()
        (folder / "spool").mkdir(mode=0o700)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{experiment.folder}: cannot be written", why, "cd ~ && perflaw record -- …") from error
    return folder


def _environment(launch: Launch, tracer: Tracer, settings: Settings, spool: Path, seed: int) -> dict[str, str]:
    values = {"SPOOL": str(spool.resolve()), "CLOCK": settings.clock, "SEED": str(seed)}
    if settings.select:
        values["SELECT"] = "\n".join(settings.select)
    if settings.exclude:
        values["EXCLUDE"] = "\n".join(settings.exclude)
    return environment(launch, tracer.module, values)


def _run(
    launch: Launch, env: dict[str, str], reader: Reader, stdin: StandardInput, relay: Relay, started: str
) -> tuple[Process, int | None]:
    """The ended process, and how many bytes stood on its standard input where that could be counted."""
    descriptor, feeder = stdin.open()
    begun = time.perf_counter_ns()
    process = relay.process = subprocess.Popen(launch.argv, env=env, stdin=descriptor)
    if descriptor is not None:
        os.close(descriptor)
    while process.poll() is None:
        if not reader.step():
            _wait(process)
    wall_ns = time.perf_counter_ns() - begun
    fed = feeder.finish() if feeder else stdin.size
    return Process(launch, started, wall_ns, process.returncode), fed


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait a little, less if the target ends meanwhile."""
    try:
        process.wait(IDLE_S)
    except subprocess.TimeoutExpired:
        return


def _keep(folder: Path, run: Run, tables: Tables) -> Path:
    """Write the recording where it belongs; on a full disk in the room its spool took, or in the temporary folder."""
    for spool_stays in (True, False):
        if not spool_stays:
            shutil.rmtree(folder / "spool", ignore_errors=True)
        try:
            save(folder, run, tables)
        except OSError as error:
            reason = error
        else:
            shutil.rmtree(folder / "spool", ignore_errors=True)
            return folder
    raise _kept_elsewhere(folder, run, tables, reason)


def _kept_elsewhere(folder: Path, run: Run, tables: Tables, reason: OSError) -> StoreError:
    refuge = Path(tempfile.mkdtemp(prefix="perflaw-")) / folder.name
    refuge.mkdir(mode=0o700)
    try:
        save(refuge, run, tables)
    except OSError as error:
        return StoreError(f"{folder} and {refuge}: cannot be written", f"the recording is lost ({error})", "df -h")
    discard(folder)
    why = f"{reason}; the recording is in {refuge}"
    return StoreError(f"{folder}: cannot be written", why, f"mkdir -p {folder.parent} && mv {refuge} {folder}")
