"""The policy of a study, asked so that whatever it does wrong is told with its name and loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from perflaw.errors import PerflawError, UsageError
from perflaw.explore.policy import Policy, Proposal, proposal_of
from perflaw.explore.registry import find_policy
from perflaw.explore.space import Space
from perflaw.types.studies import Reading, Study, Trial

_T = TypeVar("_T")


class Steering:
    """A policy, its answers checked. UsageError where it raises or proposes what cannot be."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        self._space, self.name = space, study.policy
        made = find_policy(study.policy, study.folder)
        self._policy: Policy = self._asked("be made", lambda: made(space, study, seed))

    @property
    def warning(self) -> str:
        """What a person should know of it."""
        return self._policy.warning

    def next(self, history: Sequence[Trial]) -> Proposal | None:
        """The next proposal, checked; None where nothing is left."""
        answer = self._asked("propose", lambda: proposal_of(self._policy.next_config(history)))
        if answer is None:
            return None
        configuration = self._asked("propose", lambda: dict(answer.configuration))
        if why := self._space.valid(configuration):
            raise self._wrong(f"proposed {configuration}", why)
        proposal = Proposal(self._space.normal(configuration), answer.why)
        if not self._policy.repeats and self._tried(proposal, history):
            why = "it was tried already, and the policy does not say repeats = True"
            raise self._wrong(f"proposed {configuration} again", why)
        return proposal

    def done(self, history: Sequence[Trial]) -> str:
        """Why the study is over for it."""
        return self._asked("say whether it is done", lambda: str(self._policy.done(history) or ""))

    def take(self, reading: Reading) -> str:
        """Show it a reading; why it wants to end the trial."""
        self._asked("take a reading", lambda: self._policy.on_record(reading))
        stop = self._asked("say whether to stop", self._policy.stop_run)
        return f"policy {self.name} had seen enough" if stop else ""

    def state(self) -> Mapping[str, Any]:
        """What it keeps."""
        return self._asked("say its state", self._policy.state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Give it back."""
        self._asked("take its state back", lambda: self._policy.restore(state))

    def _tried(self, proposal: Proposal, history: Sequence[Trial]) -> bool:
        key = self._space.key(proposal.configuration)
        return any(self._space.key(trial.configuration) == key for trial in history)

    def _asked(self, what: str, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except PerflawError:
            raise
        except Exception as error:  # it is foreign code: whatever it raises, the message is one line
            raise self._wrong(f"could not {what}", f"{type(error).__name__}: {error}") from error

    def _wrong(self, what: str, why: str) -> UsageError:
        return UsageError(
            f"policy {self.name} {what}", f"{why}; all trials made are kept", "perflaw explore … --policy law"
        )
