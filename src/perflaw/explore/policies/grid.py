"""Every combination of levels: the brute force of the paper (SPEX, §5.2)."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.explore.policy import Policy
from perflaw.types.studies import Configuration, Trial


class Grid(Policy):
    """Tries all combinations, ``levels`` (an option of the study, 8) settings of each range, in the order of the knobs."""

    _all: list[Configuration] | None = None

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the first combination that was not tried; None after the last."""
        if self._all is None:
            self._all = [*self.space.grid(int(self.study.options.get("levels", 8)))]
        return self.first_untried(self._all, history)
