"""Which trial is next: repetitions between those of other configurations, at random, never back to back where that can be.

Pure functions of what is planned and done and of the seed, so a study that is resumed goes on as it would have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

from perflaw.explore.policies.candidates import Candidates
from perflaw.explore.policies.evidence import evidence_of, scored
from perflaw.explore.policy import Steering
from perflaw.explore.space import Space
from perflaw.explore.target.proc import TICK_S
from perflaw.learn.exploring.acquisition import certainty, validity
from perflaw.learn.exploring.noise import run_scatter
from perflaw.learn.exploring.stopping import Stopper, steady_from
from perflaw.learn.exploring.surrogate import fit_surrogate
from perflaw.learn.exploring.threads import one_thread
from perflaw.types.studies import Configuration, Goal, Knob, Reading, Study, StudyMetric, Trial

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


# ---- Trials that others disturbed: more CPU used by others than is usual here, or more waiting for a CPU than
# repetitions had.

_FEW: Final = 5
"""Trials from which on it is known what is usual."""
_NORMAL: Final = 1.4826
"""From the median absolute deviation to σ of a normal distribution (Rousseeuw & Croux, JASA 88, 1993)."""
_SIGMAS: Final = 6.0
_LEAST_CORES: Final = 0.25
_LEAST_DELAY: Final = 0.2
_TIMES: Final = 3.0
MOST_ATTEMPTS: Final = 2
"""How often a trial is made at most for this reason."""
MOST_SHARE: Final = 0.2
"""Part of all trials that are repeated for this reason at most."""


def judge(trial: Trial, others: Sequence[Trial]) -> str:
    """What others did to a trial, in words; empty if nothing that stands out from the other valid trials."""
    used, bound = trial.conditions.other_cpu, _bound(trial, others)
    if bound is not None and used > bound:
        return f"others used {used:.2f} CPUs meanwhile, {bound:.2f} are usual at most"
    same = [one.conditions.run_delay for one in others if dict(one.configuration) == dict(trial.configuration)]
    delay = trial.conditions.run_delay
    if len(same) >= 2 and delay > _TIMES * median(same) + _LEAST_DELAY:
        return f"its threads waited {delay:.0%} of their CPU time for a CPU, {median(same):.0%} in its repetitions"
    return ""


def _bound(trial: Trial, others: Sequence[Trial]) -> float | None:
    """CPUs that others use at most where nothing is wrong; None as long as that is not known.

    The median and six σ, at least a quarter of a CPU, and what the clock of /proc/stat leaves uncertain of a short trial.
    """
    seen = [one.conditions.other_cpu for one in others if one.started]
    if len(seen) < _FEW:
        return None
    usual = median(seen)
    spread = _NORMAL * median(abs(one - usual) for one in seen)
    blurred = 4 * TICK_S / max(trial.measured_s, TICK_S)
    return usual + max(_SIGMAS * spread, _LEAST_CORES) + blurred


def may_repeat(attempts: int, repeated: int, trials: int) -> bool:
    """Whether a disturbed trial is made again: bounded, so that a busy machine cannot keep a study from its end."""
    return attempts < MOST_ATTEMPTS and repeated < max(2.0, MOST_SHARE * trials)


# ---- Knows when it knows: whether anything untried can still be better by more than the margin that was asked for.

SURE = 0.95
"""Probability from which on the margin counts as reached."""
AROUND = 6
"""Best trials that are looked around in a large space."""


@one_thread
def knows(
    history: Sequence[Trial], space: Space, margin: float, objective: StudyMetric, seed: int = 0
) -> tuple[bool, float, str]:
    """Return whether the margin is reached, the probability, and both in words.

    The probability is that of the law over knobs; where everything was tried it is 1. In a space too large to be listed it is
    about configurations drawn from it and around the best ones.
    """
    candidates = Candidates(space, seed)
    tried = {space.key(trial.configuration) for trial in history}
    sign = -1.0 if objective.goal == "min" else 1.0
    ranked = sorted(scored(history, objective), key=lambda pair: -sign * pair[1])
    untried, at = candidates.untried(tried, [trial.configuration for trial, _ in ranked[:AROUND]], len(history))
    if not ranked:
        return False, 0.0, "no trial is a data point yet"
    if not untried:
        return True, 1.0, "every configuration was tried"
    evidence = evidence_of(history, space, objective)
    law = fit_surrogate(evidence.x, evidence.ordered, evidence.values, evidence.sign, seed, evidence.errors)
    usable = validity(evidence.x, evidence.failed, at, evidence.ordered, seed)
    probability = certainty(law, at, usable, margin, seed)
    return probability >= SURE, probability, _words(probability, margin, candidates.whole is not None)


def _words(probability: float, margin: float, whole: bool) -> str:
    what = "no untried configuration is" if whole else "none of the configurations that were drawn is"
    return f"{what} better by more than {100 * margin:.3g} %, with probability {probability:.2f}"


# ---- Whether a trial that runs is ended early: the policy is asked, and the stopper that is wrapped around every
# policy.


class TrialJudge:
    """Judges one trial by its record stream."""

    def __init__(self, steering: Steering, metric: str, stopper: Callable[[], Stopper] | None) -> None:
        """``stopper`` makes one, at the first reading: what it is made of costs a second to import."""
        self._steering, self._metric, self._make = steering, metric, stopper
        self._stopper: Stopper | None = None

    def take(self, reading: Reading) -> str:
        """Take a reading; why the trial is to be ended, empty if it is to go on."""
        why = self._steering.take(reading)
        if why or self._make is None or reading.metric != self._metric:
            return why
        self._stopper = self._stopper or self._make()
        self._stopper.add(reading.at_s, reading.value, reading.n)
        return self._stopper.verdict()


def judge_of(
    steering: Steering, study: Study, space: Space, trial: Trial, trials: Sequence[Trial], steady_s: float
) -> TrialJudge:
    """The judge of a trial. ``steady_s``: when earlier trials usually had become steady (``streams.usually_steady``)."""
    metric = objective_of(study)
    done = [
        one for one in trials if one.valid and not one.stopped and not one.contaminated and one.number != trial.number
    ]
    groups: dict[str, list[float]] = {}
    for one in done:
        if metric.name in one.metrics:
            groups.setdefault(space.key(one.configuration), []).append(one.metrics[metric.name])
    if not (study.early_stop and metric.goal and groups):
        return TrialJudge(steering, metric.name, None)
    sign = 1.0 if metric.goal == "max" else -1.0
    best = max(groups, key=lambda key: sign * sum(groups[key]) / len(groups[key]))
    if best == space.key(trial.configuration):
        return TrialJudge(steering, metric.name, None)  # it competes with itself: its value is what is wanted
    total_s = median(one.measured_s for one in done)
    goal = metric.goal
    return TrialJudge(steering, metric.name, lambda: _stopper(goal, groups, best, total_s, steady_s))


def _stopper(goal: Goal, groups: dict[str, list[float]], best: str, total_s: float, steady_s: float) -> Stopper:
    from perflaw.learn.exploring.stopping import Stopper

    return Stopper(goal, groups[best], total_s, run_scatter(list(groups.values()))[0], steady_s)


def objective_of(study: Study) -> StudyMetric:
    """The metric that configurations compete in: the first with a goal."""
    return next((metric for metric in study.metrics if metric.goal), study.metrics[0])


def steady_since(readings: Sequence[Reading], metric: str, goal: Goal | None = None) -> float:
    """When a trial had become steady, in seconds."""
    series = [reading for reading in readings if reading.metric == metric]
    return steady_from([one.at_s for one in series], [one.value for one in series], goal) if series else 0.0
