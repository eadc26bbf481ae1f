"""One run of a target, recorded: start it with the tracer inside, drain what it appends, keep the tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
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
        status, wall_ns, fed = _run(launch, env, reader, stdin, relay)
    builder, known = reader.finish(), reader.definitions.update()
    if known.started is None:
        discard(folder)
        why = (
            known.failed or "the tracer never began: the program did not start Python, or its environment was replaced"
        )
        raise TargetError(f"{launch.name}: nothing was recorded (exit status {status})", why, "perflaw doctor")
    if fed is not None:
        features = {**features, "stdin.bytes": float(fed)}
    tables = tabulate(folder.name, builder, known)
    process = Process(launch, started, wall_ns, status)
    run = describe(folder.name, process, features, tracer, settings.clock, builder, known)
    unselected = known.ended.names if known.ended else ()
    if not builder.calls and settings.select:
        discard(folder)
        return Outcome(run, None, unselected, relay.received)
    return Outcome(run, _keep(folder, run, tables, spool), unselected, relay.received)


def _prepare(experiment: Experiment) -> Path:
    try:
        folder = experiment.new_run()
        (folder / "spool").mkdir(mode=0o700)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(
            f"{experiment.folder}: cannot be written", why, "perflaw record from a writable folder"
        ) from error
    return folder


def _environment(launch: Launch, tracer: Tracer, settings: Settings, spool: Path, seed: int) -> dict[str, str]:
    values = {"SPOOL": str(spool.resolve()), "CLOCK": settings.clock, "SEED": str(seed)}
    if settings.select:
        values["SELECT"] = "\n".join(settings.select)
    if settings.exclude:
        values["EXCLUDE"] = "\n".join(settings.exclude)
    return environment(launch, tracer.module, values)


def _run(
    launch: Launch, env: dict[str, str], reader: Reader, stdin: StandardInput, relay: Relay
) -> tuple[int, int, int | None]:
    """Exit status (128 + signal), wall time in ns, and bytes on standard input where they could be counted."""
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
    code = process.returncode
    return (128 - code if code < 0 else code), wall_ns, fed


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait a little, less if the target ends meanwhile."""
    try:
        process.wait(IDLE_S)
    except subprocess.TimeoutExpired:
        return


def _keep(folder: Path, run: Run, tables: Tables, spool: Path) -> Path:
    """Write the recording where it belongs; on a full disk in the temporary folder, and say so."""
    shutil.rmtree(spool, ignore_errors=True)
    try:
        save(folder, run, tables)
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="perflaw-")) / folder.name
        refuge.mkdir(mode=0o700)
        save(refuge, run, tables)
        discard(folder)
        raise StoreError(
            f"{folder}: cannot be written", f"{error}; the recording is in {refuge}", f"mv {refuge} {folder}"
        ) from error
    return folder
