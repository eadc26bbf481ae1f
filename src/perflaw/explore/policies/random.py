"""Configurations drawn evenly from the space, none twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perflaw.explore.policy import Policy
from perflaw.types.studies import Configuration, Trial

GIVE_UP = 1000
"""Draws in a row that were all tried already: the space is as good as exhausted."""


class Random(Policy):
    """Draws until something new comes."""

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the first draw that was not tried; None where nothing new comes any more."""
        found = self.first_untried(self._draws(len(history)), history)
        return found if found is not None else self.first_untried(self._all(), history)

    def _draws(self, number: int) -> Iterator[Configuration]:
        generator = np.random.default_rng([self.seed, number])
        for _ in range(GIVE_UP):
            yield self.space.sample(generator)

    def _all(self) -> Sequence[Configuration]:
        size = self.space.size
        return self.space.all() if size is not None and size <= GIVE_UP else ()
