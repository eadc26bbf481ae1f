"""What a study would do, and what that costs: read and computed, nothing touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from perflaw.explore.scheduling import repetitions_of, room
from perflaw.explore.space import Space
from perflaw.explore.steering import Steering
from perflaw.types.studies import Configuration, Study, Trial

SHOWN = 8
"""Configurations that are asked for ahead."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A study as it would begin, or go on."""

    study: Study
    """The study with what the command line asks for."""
    size: int | None
    """Valid configurations of the space; None: endless, or too many to count."""
    made: int
    """Trials that are made already."""
    trials: int | None
    """Trials that are still to be made; None where only time or margin ends it."""
    first: tuple[tuple[Configuration, str], ...]
    """Configurations that come first, and why; a policy that learns decides on the others when it knows more."""
    seconds: float | None
    """How long the trials will take as earlier ones did; None where there are none."""
    most_s: float | None
    """How long they can take at most, by the study's own bounds."""
    warning: str
    """What the policy says of itself."""


def plan_of(study: Study, seed: int, trials: Sequence[Trial]) -> Plan:
    """The plan after these trials. UsageError where the policy cannot propose."""
    space = Space(study.knobs, study.constraints)
    steering = Steering(space, study, seed)
    budget, made = study.budget, sum(bool(trial.started) for trial in trials)
    left = None if budget.trials is None else max(0, budget.trials - made)
    ahead = _ahead(study, steering, trials)
    if space.size is not None and left is not None and len(ahead) < SHOWN:
        left = min(left, len(trials) - made + len(ahead) * study.repetitions)
    target = study.target
    bound = target.timeout_s + (target.ready_s if target.start else 0.0)
    usual = [trial.seconds for trial in trials if trial.started]
    most = bound * left if left is not None else None
    if budget.minutes is not None:
        most = min(60 * budget.minutes, most if most is not None else 60 * budget.minutes)
    seconds = median(usual) * left if usual and left is not None else None
    return Plan(study, space.size, made, left, ahead, seconds, most, steering.warning)


def _ahead(study: Study, steering: Steering, trials: Sequence[Trial]) -> tuple[tuple[Configuration, str], ...]:
    """What the policy proposes as long as it learns nothing new."""
    planned = list(trials)
    found: list[tuple[Configuration, str]] = []
    while len(found) < SHOWN and (count := room(study.budget.trials, len(planned), study.repetitions)):
        proposal = steering.next(planned)
        if proposal is None:
            break
        found.append((proposal.configuration, proposal.why))
        more = repetitions_of(len(planned) + 1, proposal.configuration, proposal.why, count, 0)
        planned += [replace(trial, run="") for trial in more]
    return tuple(found)
