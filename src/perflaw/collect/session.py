"""All runs of one ``record``, one after the other; a failing one is reported and the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from perflaw.collect.core import Tracer
from perflaw.collect.launch import understand
from perflaw.collect.plan import Plan, PlannedRun
from perflaw.collect.record import Outcome, Settings, record_run
from perflaw.collect.stdin import StandardInput
from perflaw.collect.workload import run_features
from perflaw.errors import TargetError
from perflaw.store.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Attempt:
    """A planned run and what came of it."""

    planned: PlannedRun
    """What was to be run."""
    outcome: Outcome | None
    """What was recorded; None where the target could not be recorded at all."""
    error: TargetError | None = None
    """Why not."""


def record_all(experiment: Experiment, plan: Plan, tracer: Tracer, settings: Settings) -> Iterator[Attempt]:
    """Make the planned runs and give each as soon as it is kept.

    A signal to the recorder ends the session after the run it met; StoreError ends it, for the next would fail too.
    """
    stdin = StandardInput()
    for planned in plan.runs:
        try:
            outcome = _record_one(experiment, plan, planned, tracer, settings, stdin)
        except TargetError as error:
            yield Attempt(planned, None, error)
            continue
        yield Attempt(planned, outcome)
        if outcome.interrupted is not None:
            return


def _record_one(
    experiment: Experiment,
    plan: Plan,
    planned: PlannedRun,
    tracer: Tracer,
    settings: Settings,
    stdin: StandardInput,
) -> Outcome:
    launch = understand(planned.command)
    template = plan.template[len(plan.template) - len(launch.arguments) :]
    features = run_features(template, launch.arguments, planned.varied, plan.declared)
    return record_run(experiment, tracer, launch, features, replace(settings, varied=planned.varied), stdin)
