"""Policies: which configuration comes next, when a trial may end, when the study is over (SPEX, §3.2, Pseudocode 1 and 2).

The explorer makes one policy a study and asks it in a fixed order: ``done``, ``next_config``; while the trial runs,
``on_record`` for each reading and ``stop_run`` after it. A policy of one's own needs ``next_config`` alone:

    class Everything(Policy):
        def next_config(self, history):
            tried = self.tried(history)
            return next((c for c in self.space.grid(8) if self.space.key(c) not in tried), None)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perflaw.types.studies import Configuration, Reading, Study, StudyMetric, Trial

if TYPE_CHECKING:
    from perflaw.explore.space import Space


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration to try, and why."""

    configuration: Configuration
    """Knob → setting; must be valid in the space."""
    why: str = ""
    """The reason in words, kept with the trial."""


class Policy:
    """What every policy inherits: all but ``next_config`` has a default.

    ``history`` is all trials so far in order of their numbers, planned and invalid ones too: what is in it is tried. Policies
    are deterministic: the same space, study, seed and history give the same proposal; so what can be computed from the
    history again need not be in ``state``.
    """

    repeats: bool = False
    """Whether it may propose a configuration again that is in the history; the explorer refuses that otherwise."""
    warning: str = ""
    """What a person who chose this policy should know; said once when the study begins."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        self.space, self.study, self.seed = space, study, seed

    def next_config(self, history: Sequence[Trial]) -> Proposal | Configuration | None:
        """Return what to try next; None where nothing is left."""
        raise NotImplementedError

    def on_record(self, reading: Reading) -> None:
        """Take a reading of the trial that runs; readings of a new trial begin again near 0 s."""

    def stop_run(self) -> bool:
        """Whether the trial that runs shall end now; the explorer's own early stop asks apart from this."""
        return False

    def done(self, history: Sequence[Trial]) -> str:
        """Return why the study is over, in words; empty where it is not. Budgets and the margin are the explorer's."""
        return ""

    def state(self) -> dict[str, Any]:
        """Return what is to be kept over a restart, as JSON; called after every proposal."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` returned."""

    @property
    def objective(self) -> StudyMetric:
        """The first metric with a goal; the first metric, to be maximized, where none has one."""
        return next((metric for metric in self.study.metrics if metric.goal), self.study.metrics[0])

    def tried(self, history: Sequence[Trial]) -> set[str]:
        """Keys of all configurations in the history."""
        return {self.space.key(trial.configuration) for trial in history}

    def first_untried(self, candidates: Iterable[Configuration], history: Sequence[Trial]) -> Configuration | None:
        """Return the first candidate that is valid and not in the history."""
        tried = self.tried(history)
        return next((c for c in candidates if self.space.key(c) not in tried and not self.space.valid(c)), None)


def proposal_of(answer: Proposal | Configuration | None) -> Proposal | None:
    """Return what a policy answered as a proposal."""
    return answer if answer is None or isinstance(answer, Proposal) else Proposal(dict(answer))
