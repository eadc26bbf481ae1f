"""The law as the policy: a short start that fills the space, then the law over knobs and pairs says where to look.

Start: about two trials a knob, the default first, where least is known. Then the configuration with the greatest expected
improvement under all laws that fit the trials, times the probability that it is a data point at all; the last trials of
a budget take what is predicted best. Nothing is kept beside the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perflaw.explore.policies.candidates import Candidates
from perflaw.explore.policies.evidence import Evidence, evidence_of, units
from perflaw.explore.policies.outcomes import scored
from perflaw.explore.policies.words import filling_words, improvement_words
from perflaw.explore.policy import Policy, Proposal
from perflaw.learn.exploring.acquisition import filling, promise
from perflaw.learn.exploring.surrogate import Surrogate, fit_surrogate
from perflaw.learn.exploring.threads import one_thread
from perflaw.learn.exploring.validity import validity
from perflaw.learn.exploring.workloads import reference
from perflaw.types.studies import Configuration, Study, Trial

if TYPE_CHECKING:
    from perflaw.explore.space import Space

Array = NDArray[np.float64]

FEWEST, MOST = 4, 7
"""Distinct configurations of the start."""
GOOD = 6
"""Best trials that are looked around in a large space."""
LAST = 0.04
"""Share of the budget at whose end nothing is explored any more."""


class Law(Policy):
    """Fits the law anew before each proposal."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        self.candidates = Candidates(space, seed)

    @one_thread
    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return what promises most; None where everything was tried."""
        tried = self.tried(history)
        start = self.space.defaults()
        if self.space.key(start) not in tried and not self.space.valid(start):
            return Proposal(start, "the default, to compare with")
        untried, at = self.candidates.untried(tried, self._good(history), len(history))
        if not untried:
            return None
        evidence = evidence_of(history, self.space, self.objective)
        usable = validity(evidence.x, evidence.failed, at, evidence.ordered, self.seed)
        if len(np.unique(evidence.x, axis=0)) < self._start():
            return self._fill(history, untried, at, usable, evidence)
        return self._improve(history, untried, at, usable, evidence)

    def _start(self) -> int:
        """Distinct configurations of the start: of a small budget a third at most."""
        most = min(MOST, max(FEWEST, len(self.space.knobs) + 2))
        trials = self.study.budget.trials
        return most if trials is None else max(2, min(most, trials // (3 * max(1, self.study.repetitions))))

    def _good(self, history: Sequence[Trial]) -> list[Configuration]:
        sign = -1.0 if self.objective.goal == "min" else 1.0
        ranked = sorted(scored(history, self.objective), key=lambda pair: -sign * pair[1])
        return list({self.space.key(trial.configuration): trial.configuration for trial, _ in ranked}.values())[:GOOD]

    def _fill(
        self, history: Sequence[Trial], untried: list[Configuration], at: Array, usable: Array, evidence: Evidence
    ) -> Proposal:
        known = np.concatenate(
            [evidence.x, evidence.failed, units([t for t in history if not t.reason and not t.valid], self.space)]
        )
        generator = np.random.default_rng([self.seed, len(history), 0])
        chosen = filling(known, at, evidence.ordered, generator, usable)
        return Proposal(untried[chosen], filling_words(len(history) + 1))

    def _improve(
        self, history: Sequence[Trial], untried: list[Configuration], at: Array, usable: Array, evidence: Evidence
    ) -> Proposal:
        law = fit_surrogate(evidence.x, evidence.ordered, evidence.values, evidence.sign, self.seed, evidence.errors)
        means, sds = law.predict(at)
        best = reference(law, evidence.x, at, evidence.workload)
        last = (means - best).mean(axis=0) - 1.0 / usable
        chosen = int(np.argmax(last if self._last(history) else promise(means, sds, best, usable)))
        return Proposal(untried[chosen], self._why(history, untried[chosen], law, (means, sds, best), chosen))

    def _last(self, history: Sequence[Trial]) -> bool:
        trials = self.study.budget.trials
        return trials is not None and trials - len(history) <= max(1, round(LAST * trials))

    def _why(
        self,
        history: Sequence[Trial],
        configuration: Configuration,
        law: Surrogate,
        predicted: tuple[Array, Array, Array],
        chosen: int,
    ) -> str:
        means, sds, best = predicted
        column = min(chosen, best.shape[1] - 1)
        good = self._good(history)
        gains = law.gains(means[:, chosen] - best[:, column], sds[:, chosen])
        tried = [trial.configuration for trial in history]
        return improvement_words(gains, configuration, good[0], tried, self.space.knobs)
