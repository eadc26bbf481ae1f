"""Decisions about the trials of a study: which one is next, which ones were disturbed, and which one is ended early.

All of them are functions of the trials that are planned and done and of the seed, so a study that is resumed goes on as it
would have without the interruption.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median
from typing import Final

from perflaw.explore.policy import Steering
from perflaw.explore.target.proc import TICK_S
from perflaw.learn.exploring.observations import usable
from perflaw.learn.exploring.racing import Stopper, run_scatter
from perflaw.types.studies import Configuration, Knob, Reading, Study, Trial, configuration_key

_SWITCH_COSTS: Final = {"none": 0, "restart": 1, "rebuild": 10}
_MOST_WAITING: Final = 3
"""Number of configurations whose repetitions may wait; at more, repetitions come before anything new."""
_FEWEST_USUAL: Final = 5
"""Number of trials from which on it is known how much CPU other programs usually use."""
_NORMAL: Final = 1.4826
"""Ratio of σ to the median absolute deviation of a normal distribution (Rousseeuw and Croux, JASA 88, 1993)."""
_SIGMAS: Final = 6.0
"""Standard deviations above the median from which on the CPU time of other programs stands out."""
_LEAST_CORES: Final = 0.25
"""Smallest number of cores above the median that stands out."""
_DELAY_FACTOR, _LEAST_DELAY = 3.0, 0.2
"""A trial's run delay stands out where it is above this factor of its repetitions' median plus this share."""
MOST_ATTEMPTS: Final = 2
"""Largest number of times that a disturbed trial is made."""
MOST_REPEATED: Final = 0.2
"""Largest part of all trials that is repeated because it was disturbed."""


# ---- Which trial is next: repetitions are mixed at random with other configurations, and not back to back if possible.


def random_numbers(seed: int, made: int) -> random.Random:
    """Return the random numbers of the step that follows ``made`` trials."""
    return random.Random(f"perflaw/{seed}/{made}")


def repeats_now(waiting: int, repetitions: int, can_propose: bool, numbers: random.Random) -> bool:
    """Return whether one of the ``waiting`` trials is next, rather than a new configuration."""
    if not waiting or not can_propose:
        return waiting > 0
    return waiting >= _MOST_WAITING * max(repetitions - 1, 1) or numbers.random() < 0.5


def choose_waiting(
    waiting: Sequence[Trial], last: Configuration | None, knobs: Sequence[Knob], numbers: random.Random
) -> Trial:
    """Return one of the trials that are cheapest to switch to, and of another configuration than the last if possible."""
    avoided = configuration_key(last or {})
    others = [trial for trial in waiting if configuration_key(trial.configuration) != avoided] or list(waiting)
    costs = [switch_cost(knobs, last, trial.configuration) for trial in others]
    return numbers.choice([trial for trial, cost in zip(others, costs, strict=True) if cost == min(costs)])


def switch_cost(knobs: Sequence[Knob], before: Configuration | None, after: Configuration) -> int:
    """Return the cost of changing the configuration, for comparison: a rebuild outweighs any number of restarts."""
    if before is None:
        return 0
    changed = {knob.switch_cost for knob in knobs if before.get(knob.name) != after.get(knob.name)}
    return max((_SWITCH_COSTS[cost] for cost in changed), default=0)


def planned_trials(number: int, configuration: Configuration, why: str, count: int, before: int) -> list[Trial]:
    """Return ``count`` trials of a configuration, numbered from ``number``; ``before`` is the number it has already."""
    return [Trial(number + i, configuration, repetition=before + i, why=why) for i in range(count)]


def trials_left(budget: int | None, planned: int, repetitions: int) -> int:
    """Return how many trials the next configuration may have after ``planned`` trials."""
    return repetitions if budget is None else max(0, min(repetitions, budget - planned))


# ---- Trials that other programs disturbed.


def disturbance(trial: Trial, others: Sequence[Trial]) -> str:
    """Return how other programs disturbed a trial, in words; empty if it does not stand out from the other valid trials.

    They disturbed it if they used more CPU time than is usual here, or if its threads waited longer for a processor than those
    of its repetitions. Usual is the median plus six σ, at least a quarter of a core, and what the clock of /proc/stat leaves
    uncertain in a short trial.
    """
    seen = [each.conditions.other_cpu for each in others if each.started]
    used = trial.conditions.other_cpu
    if len(seen) >= _FEWEST_USUAL:
        usual = median(seen)
        spread = _NORMAL * median(abs(value - usual) for value in seen)
        bound = usual + max(_SIGMAS * spread, _LEAST_CORES) + 4 * TICK_S / max(trial.measured_s, TICK_S)
        if used > bound:
            return f"other programs used {used:.2f} CPUs, usually at most {bound:.2f}"
    key = configuration_key(trial.configuration)
    delays = [each.conditions.run_delay for each in others if configuration_key(each.configuration) == key]
    delay = trial.conditions.run_delay
    if len(delays) >= 2 and delay > _DELAY_FACTOR * median(delays) + _LEAST_DELAY:
        repetitions = f"in its repetitions {100 * median(delays):.0f} %"
        return f"its threads waited {100 * delay:.0f} % of their CPU time for a CPU, {repetitions}"
    return ""


def may_repeat(attempts: int, repeated: int, trials: int) -> bool:
    """Return whether a disturbed trial is made again; bounded, so that a busy machine cannot keep a study from ending."""
    return attempts < MOST_ATTEMPTS and repeated < max(2.0, MOST_REPEATED * trials)


# ---- Whether a trial that runs is ended early.


class TrialJudge:
    """Judges a trial by its readings: the policy is asked, then the stopper, which works with every policy."""

    def __init__(self, steering: Steering, stopper: Stopper | None = None, metric: str = "") -> None:
        """``stopper`` judges the readings of ``metric``; None: only the policy may end the trial."""
        self._steering, self._stopper, self._metric = steering, stopper, metric

    def take(self, reading: Reading) -> str:
        """Take a reading; return why the trial is to be ended, empty if it is to go on."""
        why = self._steering.take(reading)
        if why or self._stopper is None or reading.metric != self._metric:
            return why
        self._stopper.add(reading.at_s, reading.value, reading.n)
        return self._stopper.verdict()


def judge_of(steering: Steering, study: Study, trial: Trial, trials: Sequence[Trial], steady_s: float) -> TrialJudge:
    """Return the judge of a trial; ``steady_s`` is when earlier trials had usually become steady."""
    objective = study.objective
    if objective is None or not study.early_stop:
        return TrialJudge(steering)
    groups: dict[str, list[float]] = {}
    done = [each for each in usable(trials, objective.name) if not each.stopped and each.number != trial.number]
    for each in done:
        groups.setdefault(configuration_key(each.configuration), []).append(each.metrics[objective.name])
    if not groups:
        return TrialJudge(steering)
    best = max(groups, key=lambda key: objective.sign * sum(groups[key]) / len(groups[key]))
    if best == configuration_key(trial.configuration):  # a repetition of the best is wanted for its value
        return TrialJudge(steering)
    total_s = median(each.measured_s for each in done)
    scatter, _ = run_scatter(list(groups.values()))
    goal = objective.goal or "max"
    return TrialJudge(steering, Stopper(goal, groups[best], total_s, scatter, steady_s), objective.name)
