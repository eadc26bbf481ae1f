"""One run of a target, recorded: start it with the tracer inside, take in what it appends, keep what came of it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from perflaw.collect.core import Tracer
from perflaw.collect.describe import Process
from perflaw.collect.keep import Outcome, What, conclude
from perflaw.collect.launch import Launch, environment
from perflaw.collect.recorded import Reader
from perflaw.collect.reservoir import scramble
from perflaw.collect.signals import Relay
from perflaw.collect.stdin import StandardInput
from perflaw.errors import StoreError
from perflaw.store.experiment import Experiment

FEW = 4096
"""Fewer new records are left to gather for a while: reading right behind the writer would slow it down."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to record of a target, beside the command."""

    select: tuple[str, ...] = ()
    """Globs of components to record; empty: the default choice."""
    exclude: tuple[str, ...] = ()
    """Globs of components never to record."""
    metrics: tuple[str, ...] = ()
    """Metrics to measure beside the usual ones, as the tracer reads them (``metrics.py``)."""
    clock: str = "real"
    """``real``, or ``fake``: a clock that the program itself advances."""
    varied: Mapping[str, str] = field(default_factory=dict)
    """Values of ``--vary`` in this run."""
    collect: tuple[str, ...] = ()
    """What to collect beside calls: ``branches``."""

    def described(self) -> dict[str, str]:
        """The same for the manifest: only what was asked for."""
        chosen = {
            "select": " ".join(self.select),
            "exclude": " ".join(self.exclude),
            "metrics": " ".join(self.metrics),
            "collect": " ".join(self.collect),
            "clock": self.clock,
        }
        return {**self.varied, **{name: value for name, value in chosen.items() if value and value != "real"}}


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
        process, pid, fed = _run(launch, env, reader, stdin, relay, started)
        what = What(experiment, tracer, settings.described(), _with_stdin(features, fed), bool(settings.select))
        outcome = conclude(what, folder, process, reader.finish(pid))
        return replace(outcome, interrupted=relay.received)


def _with_stdin(features: Mapping[str, float], fed: int | None) -> dict[str, float]:
    return dict(features) if fed is None else {**features, "stdin.bytes": float(fed)}


def _prepare(experiment: Experiment) -> Path:
    try:
        folder = experiment.new_run()
        (folder / "spool").mkdir(mode=0o700)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{experiment.folder}: cannot be written", why, "cd ~ && perflaw record -- …") from error
    return folder


def _environment(launch: Launch, tracer: Tracer, settings: Settings, spool: Path, seed: int) -> dict[str, str]:
    values = {"SPOOL": str(spool.resolve()), "CLOCK": settings.clock, "SEED": str(seed), "RECORDER": str(os.getpid())}
    if settings.select:
        values["SELECT"] = "\n".join(settings.select)
    if settings.exclude:
        values["EXCLUDE"] = "\n".join(settings.exclude)
    if settings.metrics:
        values["METRICS"] = "\n".join(settings.metrics)
    if settings.collect:
        values["COLLECT"] = "\n".join(settings.collect)
    if tracer.file:
        values["TRACER_FILE"] = str(tracer.file)
    return environment(launch, tracer.module, values)


def _run(
    launch: Launch, env: dict[str, str], reader: Reader, stdin: StandardInput, relay: Relay, started: str
) -> tuple[Process, int, int | None]:
    """The ended process, its number, and how many bytes stood on its standard input where that could be counted."""
    descriptor, feeder = stdin.open()
    begun = time.perf_counter_ns()
    process = relay.process = subprocess.Popen(launch.argv, env=env, stdin=descriptor)
    if descriptor is not None:
        os.close(descriptor)
    while process.poll() is None:
        if reader.step() < FEW:
            _wait(process, reader.idle_s)
    wall_ns = time.perf_counter_ns() - begun
    fed = feeder.finish() if feeder else stdin.size
    return Process(launch.argv, launch.name, started, wall_ns, process.returncode), process.pid, fed


def _wait(process: subprocess.Popen[bytes], idle_s: float) -> None:
    """Wait a little, less if the target ends meanwhile."""
    try:
        process.wait(idle_s)
    except subprocess.TimeoutExpired:
        return
