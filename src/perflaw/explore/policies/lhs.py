"""A Latin hypercube of as many points as the study has trials (McKay, Beckman, Conover 1979)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scipy.stats import qmc

from perflaw.explore.policy import Policy
from perflaw.types.studies import Configuration, Trial

POINTS = 32
"""Where the study has no number of trials."""
CUBES = 8
"""Further cubes where points of the first coincide on the levels of knobs."""


class LatinHypercube(Policy):
    """One point in every row and every column; points that fall on a tried configuration come from further cubes."""

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the next point; None after as many distinct ones as the cube has, or where nothing new comes."""
        if len(self.tried(history)) >= self._size() and self.study.budget.trials is not None:
            return None
        return self.first_untried(self._points(), history)

    def _size(self) -> int:
        trials = self.study.budget.trials or POINTS
        return max(1, trials // max(1, self.study.repetitions))

    def _points(self) -> Iterator[Configuration]:
        for cube in range(CUBES):
            sampler = qmc.LatinHypercube(len(self.space.knobs), seed=self.seed + cube)
            yield from (self.space.configuration(point) for point in sampler.random(self._size()))
