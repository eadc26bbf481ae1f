"""One run of a target, recorded: start it with the tracer inside, take in what it appends, keep what came of it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from perflaw.collect.claim import Claim
from perflaw.collect.collecting import PATHS, PROBES
from perflaw.collect.core import Tracer
from perflaw.collect.deadline import Deadline
from perflaw.collect.describe import Process
from perflaw.collect.gcov import GcovTracer
from perflaw.collect.gcov_files import Places
from perflaw.collect.hooks import HooksTracer
from perflaw.collect.keep import Outcome, What, conclude
from perflaw.collect.launch import Launch, environment
from perflaw.collect.output import KeptOutput, read_features
from perflaw.collect.plan import OutputPattern
from perflaw.collect.probes.alone import ProbesTracer
from perflaw.collect.probes.joining import with_probes
from perflaw.collect.probes.remote import Remote
from perflaw.collect.probes.session import EVERYTHING, ProbeSession
from perflaw.collect.recorded import Reader
from perflaw.collect.reservoir import scramble
from perflaw.collect.signals import Relay
from perflaw.collect.stdin import StandardInput
from perflaw.errors import StoreError, TargetError
from perflaw.store.experiment import Experiment, discard

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
    paths: tuple[str, ...] = ()
    """Globs of functions whose durations by call path are kept, hot or not."""
    probes: tuple[str, ...] = ()
    """Names or ids of the probes to enable, where probes are collected; empty: all."""
    remotes: tuple[Remote, ...] = ()
    """Collectors on other hosts whose records belong to the run as well."""
    places: Places = field(default_factory=Places)
    """Where the files of a compiled program's build are now."""
    timeout: float | None = None
    """Seconds after which the program is ended; None: never."""
    keep_output: bool = False
    """Whether to keep what it prints."""
    outputs: tuple[OutputPattern, ...] = ()
    """Features to be read from what it prints, which is then kept."""
    workload: str = ""
    """Name of the workload."""
    key: str = ""
    """Digest of the planned run (``resume.py``)."""

    def described(self) -> dict[str, str]:
        """The same for the manifest: only what was asked for."""
        chosen = {
            "select": " ".join(self.select),
            "exclude": " ".join(self.exclude),
            "metrics": " ".join(self.metrics),
            "collect": " ".join(self.collect),
            "paths": " ".join(self.paths),
            "probes": " ".join(self.probes),
            "remote": " ".join(str(one.address) for one in self.remotes),
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
    claim = _prepare(experiment, settings.key)
    folder = claim.folder
    spool, number = folder / "spool", int(folder.name)
    seed = scramble(number + (os.getpid() << 20))
    reader = tracer.reader(spool, seed)
    reader.paths = PATHS in settings.collect
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    with Relay() as relay, claim, _probes(folder, seed, settings) as probes:
        env = _environment(launch, tracer, settings, spool, seed) | (probes.environment() if probes else {})
        output = KeptOutput(folder) if settings.keep_output or settings.outputs else None
        process, pid, fed = _run(
            launch, env, _Both(reader, probes), stdin, relay, started, Deadline(settings.timeout), output
        )
        printed, problems = read_features(folder, settings.outputs)
        known = {**_with_stdin(features, fed), **printed}
        selected = bool(settings.select)
        what = What(experiment, tracer, settings.described(), known, selected, claim, settings.workload, settings.paths)
        recorded = reader.finish(pid)
        outcome = conclude(what, folder, process, with_probes(recorded, probes, pid) if probes else recorded)
        return replace(outcome, interrupted=relay.received, over=bool(process.over), problems=problems)


def _probes(folder: Path, seed: int, settings: Settings) -> AbstractContextManager[ProbeSession | None]:
    """What collects probes, where that is asked for; TargetError where it cannot be had, and nothing is kept then."""
    if PROBES not in settings.collect:
        return nullcontext()
    try:
        return ProbeSession(folder, seed, settings.probes or EVERYTHING, settings.remotes)
    except TargetError:
        discard(folder)
        raise


@dataclass(frozen=True, slots=True)
class _Both:
    """What takes in while the program runs: calls, and records of probes."""

    reader: Reader
    probes: ProbeSession | None

    @property
    def idle_s(self) -> float:
        """See :class:`~perflaw.collect.recorded.Reader`."""
        return self.reader.idle_s

    def step(self) -> int:
        """Take in what has arrived of either; how many records that was."""
        return self.reader.step() + (self.probes.step() if self.probes else 0)


def _with_stdin(features: Mapping[str, float], fed: int | None) -> dict[str, float]:
    return dict(features) if fed is None else {**features, "stdin.bytes": float(fed)}


def _prepare(experiment: Experiment, key: str) -> Claim:
    try:
        claim = Claim(experiment, key)
        (claim.folder / "spool").mkdir(mode=0o700)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{experiment.folder}: cannot be written", why, "cd ~ && perflaw record -- …") from error
    return claim


def _environment(launch: Launch, tracer: Tracer, settings: Settings, spool: Path, seed: int) -> dict[str, str]:
    if isinstance(tracer, GcovTracer | ProbesTracer):
        return tracer.environment(spool)
    values = {"SPOOL": str(spool.resolve()), "CLOCK": settings.clock, "SEED": str(seed), "RECORDER": str(os.getpid())}
    if settings.select:
        values["SELECT"] = "\n".join(settings.select)
    if settings.exclude:
        values["EXCLUDE"] = "\n".join(settings.exclude)
    if settings.metrics:
        values["METRICS"] = "\n".join(settings.metrics)
    if settings.collect:
        values["COLLECT"] = "\n".join(settings.collect)
    if isinstance(tracer, HooksTracer):
        return tracer.environment(values)
    if tracer.file:
        values["TRACER_FILE"] = str(tracer.file)
    return environment(launch, tracer.module, values)


def _run(
    launch: Launch,
    env: dict[str, str],
    reader: _Both,
    stdin: StandardInput,
    relay: Relay,
    started: str,
    deadline: Deadline,
    output: KeptOutput | None,
) -> tuple[Process, int, int | None]:
    """The ended process, its number, and how many bytes stood on its standard input where that could be counted."""
    descriptor, feeder = stdin.open()
    begun = time.perf_counter_ns()
    out, err = output.targets if output else (None, None)
    process = relay.process = subprocess.Popen(launch.argv, env=env, stdin=descriptor, stdout=out, stderr=err)
    if descriptor is not None:
        os.close(descriptor)
    if output:
        output.started()
    while process.poll() is None:
        if reader.step() < FEW:
            _wait(process, reader.idle_s)
        deadline.enforce(process)
    wall_ns = time.perf_counter_ns() - begun
    deadline.finish()
    if output:
        output.finish()
    fed = feeder.finish() if feeder else stdin.size
    ended = Process(launch.argv, launch.name, started, wall_ns, process.returncode, over=deadline.told)
    return ended, process.pid, fed


def _wait(process: subprocess.Popen[bytes], idle_s: float) -> None:
    """Wait a little, less if the target ends meanwhile."""
    try:
        process.wait(idle_s)
    except subprocess.TimeoutExpired:
        return
