"""All runs of one ``record``, one after the other; a failing one is reported and the others go on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

from perflaw.errors import TargetError
from perflaw.record.build import Tell
from perflaw.record.claim import abandoned, alone, marked
from perflaw.record.commands import understood
from perflaw.record.conclude import Outcome
from perflaw.record.manifest import masked
from perflaw.record.plan import Plan, PlannedRun
from perflaw.record.python.interpreter import Interpreter
from perflaw.record.run import Settings, record_run
from perflaw.record.run_features import run_features
from perflaw.record.stdin import StandardInput
from perflaw.record.tracers import Tracer, choose
from perflaw.store.experiment import Experiment, discard

# ---- ``record --resume``: which planned runs an experiment has already, and what a killed recorder left of one.

_REMOVED: Final = ".removed"
"""What a folder that is being removed is called at its end."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is left of a plan."""

    plan: Plan
    """The runs still to be made."""
    done: int
    """Planned runs that are complete already."""
    discarded: int
    """Unfinished runs of killed recorders that were removed, to be made anew."""


def key_of(planned: PlannedRun, plan: Plan, configuration: Mapping[str, str]) -> str:
    """What makes two planned runs the same: command, values, features, standard input, and what is recorded of it.

    Not the time limit, for a run that was complete within one is so within any; nor what the files it reads contain.
    """
    said = [
        *(masked(planned.command), masked(planned.template), dict(planned.varied), dict(planned.declared)),
        *(planned.workload, str(planned.stdin or ""), dict(configuration)),
        sorted((one.name, one.pattern) for one in plan.outputs),
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]


def resume(experiment: Experiment, plan: Plan, configuration: Mapping[str, str]) -> Resumed:
    """Remove what killed recorders left of these runs, and take out of the plan what is complete."""
    keys = [key_of(planned, plan, configuration) for planned in plan.runs]
    discarded = 0
    if experiment.runs_folder.is_dir():
        with alone(experiment):
            discarded = _discard_unfinished(experiment, set(keys))
    there = Counter(run.planned for run in map(experiment.manifest, experiment.ids()) if run and run.complete)
    left = []
    for key, planned in zip(keys, plan.runs, strict=True):
        if there[key] > 0:
            there[key] -= 1
        else:
            left.append(planned)
    return Resumed(replace(plan, runs=tuple(left)), len(keys) - len(left), discarded)


def _discard_unfinished(experiment: Experiment, keys: Collection[str]) -> int:
    """Remove the abandoned runs of these plans with their children; gives how many programs' runs these were."""
    for run in experiment.unfinished():
        with suppress(OSError):  # not empty
            (experiment.runs_folder / run).rmdir()  # killed before the mark was there
    marks = {run: marked(experiment.runs_folder / run) for run in (*experiment.unfinished(), *experiment.ids())}
    programs = {run for run, mark in marks.items() if mark in keys and abandoned(experiment.runs_folder / run)}
    gone = set(programs)
    for leftover in experiment.runs_folder.glob(f"*{_REMOVED}"):  # of us, killed in between
        discard(leftover)
    while more := {run for run in marks.keys() - gone if marks[run] in programs or _parent(experiment, run) in gone}:
        gone |= more
    for run in sorted(gone - programs) + sorted(programs):  # killed meanwhile, we find them again
        _remove(experiment.runs_folder / run)
    return len(programs)


def _remove(folder: Path) -> None:
    """Remove a run's folder. Where we are killed meanwhile, no part of it is taken for a run."""
    discard(folder.rename(folder.with_name(folder.name + _REMOVED)))


def _parent(experiment: Experiment, run: str) -> str:
    manifest = experiment.manifest(run)
    return manifest.parent if manifest else ""


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
