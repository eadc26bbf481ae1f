"""All runs of one ``perflaw record``, one after the other; a failing run is reported and the others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from perflaw.errors import TargetError
from perflaw.record.plan import Plan, PlannedRun
from perflaw.record.process import StandardInput
from perflaw.record.run import key_of, record_run
from perflaw.record.saving import Outcome
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import TracerChoice
from perflaw.record.unfinished import discard_unfinished
from perflaw.store.experiment import Experiment


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
    settings, stdin = replace(settings, outputs=plan.outputs), StandardInput()
    for planned in plan.runs:
        try:
            launch, tracer = tracers.for_command(planned.command, settings)
            if planned.stdin is None:
                outcome = record_run(experiment, planned, launch, tracer, settings, stdin)
            else:
                with _open_input(planned.stdin) as file:
                    own = StandardInput(file.fileno())
                    outcome = record_run(experiment, planned, launch, tracer, settings, own)
        except TargetError as error:
            yield Attempt(planned, None, error)
            continue
        yield Attempt(planned, outcome)
        if outcome.interrupted is not None:
            return


def _open_input(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise TargetError(f"{path}: cannot be read as standard input", why, f"ls -l {path}") from error
