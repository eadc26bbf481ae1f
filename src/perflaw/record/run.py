"""One run of a target, recorded: start it with the tracer inside, take in what it appends, keep what came of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen
from types import FrameType, TracebackType
from typing import Any

from perflaw.errors import StoreError, TargetError
from perflaw.record.claim import Claim
from perflaw.record.compiled.gcov import GcovTracer
from perflaw.record.compiled.gcov_files import Places
from perflaw.record.compiled.hooks import HooksTracer
from perflaw.record.conclude import Outcome, What, conclude
from perflaw.record.launch import Launch, environment
from perflaw.record.manifest import Process
from perflaw.record.metrics import PATHS, PROBES
from perflaw.record.output import KeptOutput, read_features
from perflaw.record.plan import OutputPattern
from perflaw.record.probes.client import Remote
from perflaw.record.probes.session import EVERYTHING, ProbeSession, ProbesTracer, with_probes
from perflaw.record.recorded import Reader
from perflaw.record.stdin import StandardInput
from perflaw.record.tracers import Tracer
from perflaw.record.tree.reservoir import scramble
from perflaw.store.experiment import Experiment, discard

# ---- A program's time limit: when it is over, the program and all it started get SIGTERM, and later what is left
# SIGKILL.

GRACE_S = 3.0
"""Seconds between SIGTERM and SIGKILL."""
Family = dict[int, str]
"""Processes by number, with when they began: a number is given again to another process later."""


class Deadline:
    """The limit of one run. Like ``timeout``, which signals its whole group; ours is also the recorder's."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.begun = time.monotonic()
        self.family: Family = {}
        """Whom SIGTERM was sent to."""
        self.sent: signal.Signals | None = None
        """The gravest signal that was sent."""

    @property
    def told(self) -> str:
        """What it did, in words; empty where the run kept to its time."""
        return f"ran over its {self.seconds:g} s, ended by {self.sent.name}" if self.sent else ""

    def enforce(self, process: Popen[bytes]) -> None:
        """To be called often while the program runs."""
        if self.seconds is None:
            return
        passed = time.monotonic() - self.begun
        if self.sent is None and passed >= self.seconds:
            self.family = _family(process.pid)
            self._send(signal.SIGTERM)
        elif self.sent is signal.SIGTERM and passed >= self.seconds + GRACE_S:
            self._send(signal.SIGKILL)

    def finish(self) -> None:
        """The program has ended: what it started has the rest of the grace to end as well."""
        while self.sent and _alive(self.family) and time.monotonic() < self.begun + (self.seconds or 0) + GRACE_S:
            time.sleep(0.01)
        if self.sent and _alive(self.family):
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        self.sent = number
        for pid in _alive(self.family):
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or is another user's by now
                os.kill(pid, number)


def _alive(family: Family) -> list[int]:
    """Those that still are what they were and have not ended."""
    return [pid for pid, began in family.items() if (now := _status(pid)) and now[1] == began and now[2] != "Z"]


def _family(pid: int) -> Family:
    """A process and its descendants."""
    everyone = {
        int(entry.name): status for entry in Path("/proc").glob("[0-9]*") if (status := _status(int(entry.name)))
    }
    found: Family = {}
    waiting = [pid]
    while waiting:
        number = waiting.pop()
        if number in everyone and number not in found:
            found[number] = everyone[number][1]
            waiting += [child for child, (parent, _, _) in everyone.items() if parent == number]
    return found


def _status(pid: int) -> tuple[int, str, str] | None:
    """Parent, start and state of a process, None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[1]), fields[19].decode(), fields[0].decode()


# ---- Signals to the recorder while a target runs: the target gets them, and we stay to keep what it completed.

RELAYED = (signal.SIGTERM, signal.SIGHUP)
"""Sent to us alone, so we pass them on. Ctrl-C reaches the target by itself: it is in our process group."""


class Relay:
    """While entered, signals end the recording in order instead of ending us."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.process: Popen[bytes] | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Relay:
        """Take the signals over."""
        for number in (signal.SIGINT, *RELAYED):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asked for that: it stays
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        if number in RELAYED and self.process is not None:
            self.process.send_signal(number)


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
        """See :class:`~perflaw.record.recorded.Reader`."""
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
