"""Racing: many configurations once, then repetitions of those that may still be the best, until one has won."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.explore.policies.evidence import scored
from perflaw.explore.policies.sobol import Sobol
from perflaw.explore.policy import Policy, Proposal
from perflaw.learn.exploring.noise import again
from perflaw.types.studies import Configuration, Trial

SHARE, MOST = 0.5, 64
"""Share of the budget that goes to first trials, and configurations that race at most."""


class Racing(Policy):
    """Option ``configurations``: how many race; else half the budget's trials, at most 64, or all of a smaller space."""

    repeats = True

    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return a new configuration while the field fills, then one to repeat; None where one has won."""
        keys = self.tried(history)
        if len(keys) < self._field():
            found = self._new(history)
            if found is not None:
                return Proposal(found, f"racer {len(keys) + 1} of {self._field()}")
        values, configurations = self._values(history)
        left = again(values, -1.0 if self.objective.goal == "min" else 1.0)
        if not left:
            return None
        running = [self.space.key(trial.configuration) for trial in history if not trial.reason and not trial.valid]
        chosen = min(left, key=lambda key: len(values[key]) + running.count(key))
        return Proposal(configurations[chosen], f"repeated: {len(left)} configurations are not told apart yet")

    def done(self, history: Sequence[Trial]) -> str:
        """Return that one has won, once the field is told apart."""
        values, _ = self._values(history)
        if len(self.tried(history)) < self._field() or not values:
            return ""
        sign = -1.0 if self.objective.goal == "min" else 1.0
        return "" if again(values, sign) else "the race is won: all others are worse (95 % sure)"

    def _field(self) -> int:
        asked = self.study.options.get("configurations")
        if asked is not None:
            return int(asked)
        trials = self.study.budget.trials
        field = MOST if trials is None else max(2, min(MOST, round(SHARE * trials)))
        return field if self.space.size is None else min(field, self.space.size)

    def _new(self, history: Sequence[Trial]) -> Configuration | None:
        start = self.space.defaults()
        if not history and not self.space.valid(start):
            return start
        return Sobol(self.space, self.study, self.seed).next_config(history)

    def _values(self, history: Sequence[Trial]) -> tuple[dict[str, list[float]], dict[str, Configuration]]:
        values: dict[str, list[float]] = {}
        configurations: dict[str, Configuration] = {}
        for trial, value in scored(history, self.objective):
            key = self.space.key(trial.configuration)
            values.setdefault(key, []).append(value)
            configurations[key] = trial.configuration
        return values, configurations
