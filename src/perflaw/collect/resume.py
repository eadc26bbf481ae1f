"""``record --resume``: which planned runs an experiment has already, and what a killed recorder left of one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perflaw.collect.claim import abandoned, alone, marked
from perflaw.collect.plan import Plan, PlannedRun
from perflaw.collect.privacy import masked
from perflaw.store.experiment import Experiment, discard

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
