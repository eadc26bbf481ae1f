"""All runs of one ``record``, one after the other; a failing one is reported and the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from perflaw.collect.build import Tell
from perflaw.collect.core import Tracer, choose
from perflaw.collect.interpreter import Interpreter
from perflaw.collect.keep import Outcome
from perflaw.collect.plan import Plan, PlannedRun
from perflaw.collect.record import Settings, record_run
from perflaw.collect.resume import key_of
from perflaw.collect.stdin import StandardInput
from perflaw.collect.understood import understood
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


class Tracers:
    """The tracer for each interpreter of a session: chosen once, for a failed build is slow and does not get better."""

    def __init__(self, wish: str, tell: Tell) -> None:
        self.wish, self.tell = wish, tell
        self.chosen: dict[Interpreter, Tracer] = {}

    def tracer(self, interpreter: Interpreter) -> Tracer:
        """The tracer for targets of this interpreter."""
        if interpreter not in self.chosen:
            self.chosen[interpreter] = choose(self.wish, interpreter, self.tell)
        return self.chosen[interpreter]


def record_all(experiment: Experiment, plan: Plan, tracers: Tracers, settings: Settings) -> Iterator[Attempt]:
    """Make the planned runs and give each as soon as it is kept.

    A signal to the recorder ends the session after the run it met; StoreError ends it, for the next would fail too.
    """
    stdin = StandardInput()
    for planned in plan.runs:
        key = key_of(planned, plan, settings.described())
        here = replace(
            settings,
            varied=planned.varied,
            timeout=planned.timeout,
            workload=planned.workload,
            outputs=plan.outputs,
            key=key,
        )
        try:
            outcome = _record_one(experiment, planned, tracers, here, stdin)
        except TargetError as error:
            yield Attempt(planned, None, error)
            continue
        yield Attempt(planned, outcome)
        if outcome.interrupted is not None:
            return


def _record_one(
    experiment: Experiment, planned: PlannedRun, tracers: Tracers, settings: Settings, stdin: StandardInput
) -> Outcome:
    launch, tracer = understood(planned.command, settings, tracers.tracer)
    template = planned.template[len(planned.template) - len(launch.arguments) :]
    features = run_features(template, launch.arguments, planned.varied, planned.declared)
    if planned.stdin is None:
        return record_run(experiment, tracer, launch, features, settings, stdin)
    with _opened(planned.stdin) as file:
        return record_run(experiment, tracer, launch, features, settings, StandardInput(file.fileno()))


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise TargetError(f"{path}: cannot be read as standard input", why, f"ls -l {path}") from error
