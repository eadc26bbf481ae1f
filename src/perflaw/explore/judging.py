"""Whether a trial that runs is ended early: the policy is asked, and the stopper that is wrapped around every policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from perflaw.explore.space import Space
from perflaw.explore.steering import Steering
from perflaw.learn.exploring.noise import run_scatter
from perflaw.learn.exploring.stopping import Stopper
from perflaw.learn.exploring.streams import steady_from
from perflaw.types.studies import Goal, Reading, Study, StudyMetric, Trial


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
