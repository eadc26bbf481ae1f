"""Racing: many configurations once, then repetitions of those that may still be the best, until one has won."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.confidence import WORDS
from perflaw.explore.policies.designs import Sobol
from perflaw.explore.policy import Policy, Proposal
from perflaw.learn.exploring.observations import usable
from perflaw.learn.exploring.racing import to_repeat
from perflaw.types.studies import Configuration, Trial

SHARE, MOST_RACERS = 0.5, 64
"""Share of the budget for the first trial of each racer, and largest number of racers."""


class Racing(Policy):
    """A race of configurations.

    The study's option ``configurations`` is their number; without it they take half of the trials of the budget, but are at
    most 64, or all of a smaller space.
    """

    repeats = True

    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return a new configuration until all racers were tried, then one to repeat; None where one has won."""
        racers, count = self._racers(), len(self.tried(history))
        if count < racers:
            start = self.space.defaults()
            first = not history and not self.space.valid(start)
            new = start if first else Sobol(self.space, self.study, self.seed).next_config(history)
            if new is not None:
                return Proposal(new, f"racer {count + 1} of {racers}")
        values, configurations = self._values(history)
        left = to_repeat(values, self.objective.sign)
        if not left:
            return None
        running = [self.space.key(trial.configuration) for trial in history if not trial.reason and not trial.valid]
        chosen = min(left, key=lambda key: len(values[key]) + running.count(key))
        return Proposal(configurations[chosen], f"repetition: {len(left)} configurations may still be the best")

    def done(self, history: Sequence[Trial]) -> str:
        """Return that one has won, once all racers were tried and only one may be the best."""
        values, _ = self._values(history)
        if len(self.tried(history)) < self._racers() or not values or to_repeat(values, self.objective.sign):
            return ""
        return f"the race is decided: all other configurations are worse (with {WORDS} confidence)"

    def _racers(self) -> int:
        wanted = self.study.options.get("configurations")
        if wanted is not None:
            return int(wanted)
        trials = self.study.budget.trials
        racers = MOST_RACERS if trials is None else max(2, min(MOST_RACERS, round(SHARE * trials)))
        return racers if self.space.size is None else min(racers, self.space.size)

    def _values(self, history: Sequence[Trial]) -> tuple[dict[str, list[float]], dict[str, Configuration]]:
        """Return the values of each configuration, and the configurations, by their keys."""
        values: dict[str, list[float]] = {}
        configurations: dict[str, Configuration] = {}
        for trial in usable(history, self.objective.name):
            key = self.space.key(trial.configuration)
            values.setdefault(key, []).append(trial.metrics[self.objective.name])
            configurations[key] = trial.configuration
        return values, configurations
