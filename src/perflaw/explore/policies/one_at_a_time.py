"""One knob after the other from the default, keeping what was best: what people do by hand, and why it gets stuck."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.explore.policies.evidence import best_trial
from perflaw.explore.policy import Policy, Proposal
from perflaw.types.studies import Configuration, Trial


class OneAtATime(Policy):
    """Goes through the levels of one knob, keeps the best, goes to the next; until a round changes nothing."""

    warning = (
        "one-at-a-time sees no interactions: it stops where no single knob helps, "
        "however much two together would (on SQLite's grid it stayed 41 % behind); the policy law does not"
    )

    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return the next level of the knob that is being varied; None where no single change is untried."""
        start = dict(self.space.defaults())
        tried = self.tried(history)
        if self.space.key(start) not in tried and not self.space.valid(start):
            return Proposal(start, "the default")
        best = best_trial(history, self.objective)
        base = dict(best.configuration) if best else start
        for knob in self._order(history):
            found = self.first_untried(self._levels(base, knob), history)
            if found is not None:
                return Proposal(found, f"{knob} alone, from the best so far")
        return None

    def _levels(self, base: Configuration, name: str) -> list[Configuration]:
        knob = next(each for each in self.space.knobs if each.name == name)
        return [{**base, name: value} for value in self.space.levels(knob)]

    def _order(self, history: Sequence[Trial]) -> list[str]:
        """Knobs, the one that varied last first: its levels are finished before the next one's begin."""
        names = [knob.name for knob in self.space.knobs]
        words = [trial.why.split(" alone,")[0] for trial in history if " alone," in trial.why]
        last = names.index(words[-1]) if words and words[-1] in names else 0
        return names[last:] + names[:last]
