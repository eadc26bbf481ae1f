"""A policy that makes again what it is told: ``policy: {name: "again.py:Again", configurations: [...]}``."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.explore.policy import Policy, Proposal
from perflaw.types.studies import Trial


class Again(Policy):
    """The configurations of the option, in their order."""

    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return the first that was not tried."""
        wanted = [self.space.normal(one) for one in self.study.options["configurations"]]
        found = self.first_untried(wanted, history)
        return Proposal(found, "measured again") if found else None
