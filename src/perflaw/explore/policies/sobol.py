"""Scrambled Sobol points: even in every projection (Owen 1998), each moved to the nearest valid configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scipy.stats import qmc

from perflaw.explore.policy import Policy
from perflaw.types.studies import Configuration, Trial

MOST = 4096
"""Points looked through for one that was not tried."""
BLOCK = 64
"""Points made at a time, a power of two."""


class Sobol(Policy):
    """The sequence of the study's seed from its start, without what was tried."""

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the next point that was not tried; None where all of ``MOST`` were."""
        return self.first_untried(self._points(), history)

    def _points(self) -> Iterator[Configuration]:
        sequence = qmc.Sobol(len(self.space.knobs), scramble=True, seed=self.seed)
        for _ in range(MOST // BLOCK):
            yield from (self.space.configuration(point) for point in sequence.random(BLOCK))
