"""Which trial is next: repetitions between those of other configurations, at random, never back to back where that can be.

Pure functions of what is planned and done and of the seed, so a study that is resumed goes on as it would have.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from perflaw.types.studies import Configuration, Knob, Trial

_COST: Final = {"none": 0, "restart": 1, "rebuild": 10}
_MOST_WAITING: Final = 3
"""Repetitions wait for those of so many configurations at most; then they come before anything new."""


def generator(seed: int, made: int) -> random.Random:
    """The random numbers of the step after ``made`` trials were made."""
    return random.Random(f"perflaw/{seed}/{made}")


def waits(waiting: int, repetitions: int, can_propose: bool, numbers: random.Random) -> bool:
    """Whether a waiting trial comes now, before something new."""
    if not waiting or not can_propose:
        return waiting > 0
    return waiting >= _MOST_WAITING * max(repetitions - 1, 1) or numbers.random() < 0.5


def choose(
    waiting: Sequence[Trial], last: Configuration | None, knobs: Sequence[Knob], numbers: random.Random
) -> Trial:
    """One of the trials that wait: not of the last configuration, of the rest one that is cheap to switch to."""
    others = [trial for trial in waiting if dict(trial.configuration) != dict(last or {})] or list(waiting)
    costs = [switch_cost(knobs, last, trial.configuration) for trial in others]
    return numbers.choice([trial for trial, cost in zip(others, costs, strict=True) if cost == min(costs)])


def switch_cost(knobs: Sequence[Knob], before: Configuration | None, after: Configuration) -> int:
    """What a change of configuration costs, for comparing: a rebuild weighs more than any number of restarts."""
    if before is None:
        return 0
    changed = {knob.switch_cost for knob in knobs if before.get(knob.name) != after.get(knob.name)}
    return max((_COST[cost] for cost in changed), default=0)


def repetitions_of(number: int, configuration: Configuration, why: str, count: int, before: int) -> list[Trial]:
    """A configuration's trials, numbered from ``number``; ``before``: trials that it has already."""
    return [Trial(number + i, configuration, repetition=before + i, why=why) for i in range(count)]


def room(budget: int | None, planned: int, repetitions: int) -> int:
    """Trials that the next configuration may have."""
    return repetitions if budget is None else max(0, min(repetitions, budget - planned))


def latest(trials: Sequence[Trial], order: Mapping[int, int]) -> Trial | None:
    """The trial made last; ``order``: number → place in the order of making."""
    made = [trial for trial in trials if trial.number in order]
    return max(made, key=lambda trial: order[trial.number], default=None)
