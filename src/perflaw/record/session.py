"""All runs of one ``perflaw record``, one after the other; a failing run is reported and the others go on.

A run starts the program with a tracer inside, reads what the tracer appends, and saves the recording.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perflaw.errors import TargetError
from perflaw.record.launch import Launch
from perflaw.record.machine import MachineMeter
from perflaw.record.manifest import Execution
from perflaw.record.plan import Plan, PlannedRun
from perflaw.record.process import KeptOutput, SignalRelay, StandardInput, TimeLimit, printed_features
from perflaw.record.python.native_reader import NativeReader
from perflaw.record.run_features import run_features
from perflaw.record.saving import Outcome, RunContext, save_recording
from perflaw.record.secrets import MASK, is_random, is_secret, masked
from perflaw.record.settings import PATHS, PROBES, RecordSettings
from perflaw.record.tracers import Tracer, TracerChoice
from perflaw.record.tree.reservoir import scramble
from perflaw.record.unfinished import RunClaim, discard_unfinished
from perflaw.record.writer import Writer
from perflaw.store.experiment import Experiment, discard

if TYPE_CHECKING:
    from perflaw.record.probes.session import ProbeSession

FEW: Final = 4096
"""Fewer new records than this are left to accumulate: reading right behind the writer would slow the program down."""


def key_of(planned: PlannedRun, settings: RecordSettings) -> str:
    """Digest of everything that makes two planned runs the same.

    That is the command, its values and features, its standard input, and what is recorded. The time limit is no part of
    it, because a run that was complete within one limit is complete within any; nor is the content of files it reads.
    """
    parts = [
        *(masked(planned.command), masked(planned.template), dict(planned.varied), dict(planned.declared)),
        *(planned.workload, str(planned.stdin or ""), settings.described()),
        sorted((output.name, output.pattern) for output in settings.outputs),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def record_run(
    experiment: Experiment,
    planned: PlannedRun,
    launch: Launch,
    tracer: Tracer,
    settings: RecordSettings,
    stdin: StandardInput,
    writer: Writer,
) -> Outcome:
    """Run the program once and keep its recording in ``experiment``.

    StoreError if the experiment cannot be written. The program is not started then; or, if the disk became full while it
    ran, the recording is kept in the temporary folder and the message says where.
    """
    template = planned.template[len(planned.template) - len(launch.arguments) :]
    hidden = {name: value for name, value in planned.varied.items() if is_secret(name) or is_random(value)}
    arguments = launch.arguments if settings.keeps_arguments else ()
    features = run_features(template[: len(arguments)], arguments, planned.varied, planned.declared)
    claim = RunClaim.with_spool(experiment, key_of(planned, settings), "cd ~ && perflaw record -- …")
    folder = claim.folder
    spool, seed = folder / "spool", scramble(int(folder.name) + (os.getpid() << 20))
    reader = tracer.reader(spool, seed)
    reader.paths = PATHS in settings.collect
    with SignalRelay() as relay, claim, _probe_session(folder, seed, settings) as probes:
        if isinstance(reader, NativeReader):
            relay.tell_senders_by(reader.library)
        env = tracer.environment(launch, settings.for_tracer(spool, seed)) | (probes.environment() if probes else {})
        output = KeptOutput(folder) if settings.keep_output or settings.outputs else None
        steps = [reader.step, probes.step] if probes else [reader.step]
        execution, pid, fed = _execute(launch, env, steps, reader.idle_s, stdin, output, relay, writer, planned.timeout)
        relay.ended = True
        if fed is not None:
            features["stdin.bytes"] = float(fed)
        printed, problems = printed_features(folder, settings.outputs)
        context = RunContext(
            claim,
            tracer,
            settings,
            {**features, **printed},
            configuration={**planned.varied, **dict.fromkeys(hidden, MASK)},
            workload=planned.workload,
            hidden=tuple(hidden.values()),
            writer=writer,
        )
        processes = reader.finish(pid)
        if probes:
            from perflaw.record.probes.session import with_probes

            processes = with_probes(processes, probes, pid)
        outcome = save_recording(context, execution, processes)
        return replace(outcome, interrupted=relay.received, over=bool(execution.over), problems=problems)


def _probe_session(folder: Path, seed: int, settings: RecordSettings) -> AbstractContextManager[ProbeSession | None]:
    """Collects probes if that is asked for; TargetError if it is impossible, and nothing is kept then."""
    if PROBES not in settings.collect:
        return nullcontext()
    from perflaw.record.probes.session import EVERYTHING, ProbeSession

    try:
        return ProbeSession(folder, seed, settings.probes or EVERYTHING, settings.remotes)
    except TargetError:
        discard(folder)
        raise


def _execute(
    launch: Launch,
    env: dict[str, str],
    steps: Sequence[Callable[[], int]],
    idle_s: float,
    stdin: StandardInput,
    output: KeptOutput | None,
    relay: SignalRelay,
    writer: Writer,
    timeout: float | None,
) -> tuple[Execution, int, int | None]:
    """Run the program to its end, calling ``steps`` to read its records meanwhile.

    Returns its execution, its process id, and the size in bytes of its standard input if that could be counted.
    """
    limit = TimeLimit(timeout)
    descriptor, feeder = stdin.open()
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    begun = time.perf_counter_ns()
    out, err = output.targets if output else (None, None)
    meter = MachineMeter(writer.cpu_ns)
    process = relay.process = subprocess.Popen(launch.argv, env=env, stdin=descriptor, stdout=out, stderr=err)
    meter.watch(process)
    if descriptor is not None:
        os.close(descriptor)
    if output:
        output.started()
    writer.start()  # while the program's interpreter starts
    while not meter.wait(process, idle_s if _read(steps) < FEW else 0):
        limit.enforce(process)
        relay.pass_on()
    wall_ns = time.perf_counter_ns() - begun
    machine = meter.read()
    limit.finish()
    if output:
        output.finish()
    fed = feeder.finish() if feeder else stdin.size
    execution = Execution(
        launch.argv, launch.name, started, wall_ns, process.returncode, machine,
        over=limit.message, typed=launch.typed or launch.argv,
    )  # fmt: skip
    return execution, process.pid, fed


def _read(steps: Sequence[Callable[[], int]]) -> int:
    """Number of records that the steps have read; what lacks memory is tried again, for the program runs on."""
    try:
        return sum(step() for step in steps)
    except MemoryError:
        return 0


@dataclass(frozen=True, slots=True)
class ResumedPlan:
    """The part of a plan that is left to run."""

    plan: Plan
    """The runs still to be made."""
    done: int
    """Number of planned runs that are complete already."""
    discarded: int
    """Number of unfinished runs of killed recorders that were removed and will be made anew."""


def resume(experiment: Experiment, plan: Plan, settings: RecordSettings) -> ResumedPlan:
    """Remove the runs of this plan that killed recorders left unfinished, and take the complete ones out of the plan."""
    settings = replace(settings, outputs=plan.outputs)
    keys = [key_of(planned, settings) for planned in plan.runs]
    discarded = discard_unfinished(experiment, set(keys)) if experiment.runs_folder.is_dir() else 0
    complete = Counter(run.planned for run in map(experiment.manifest, experiment.ids()) if run and run.complete)
    left = []
    for key, planned in zip(keys, plan.runs, strict=True):
        if complete[key] > 0:
            complete[key] -= 1
        else:
            left.append(planned)
    return ResumedPlan(replace(plan, runs=tuple(left)), len(keys) - len(left), discarded)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A planned run and its outcome."""

    planned: PlannedRun
    """The planned run."""
    outcome: Outcome | None
    """Its recording; None if the program could not be recorded at all."""
    error: TargetError | None = None
    """Why it could not be recorded."""


def record_all(
    experiment: Experiment, plan: Plan, tracers: TracerChoice, settings: RecordSettings
) -> Iterator[Attempt]:
    """Make the planned runs and yield each as soon as it is kept.

    A signal to the recorder ends the session after the present run. StoreError ends it too, because the next run would
    fail in the same way.
    """
    with Writer() as writer:
        yield from _attempts(experiment, plan, tracers, replace(settings, outputs=plan.outputs), writer)


def _attempts(
    experiment: Experiment, plan: Plan, tracers: TracerChoice, settings: RecordSettings, writer: Writer
) -> Iterator[Attempt]:
    stdin = StandardInput()
    for planned in plan.runs:
        try:
            launch, tracer = tracers.for_command(planned.command, settings)
            with ExitStack() as stack:
                given = stdin
                if planned.stdin is not None:
                    try:
                        given = StandardInput(stack.enter_context(planned.stdin.open("rb")).fileno())
                    except OSError as error:
                        problem = f"{planned.stdin}: cannot be read as standard input"
                        why = (error.strerror or str(error)).lower()
                        raise TargetError(problem, why, f"ls -l {planned.stdin}") from error
                outcome = record_run(experiment, planned, launch, tracer, settings, given, writer)
        except TargetError as error:
            yield Attempt(planned, None, error)
            continue
        yield Attempt(planned, outcome)
        if outcome.interrupted is not None:
            return
