"""Policies: which configuration comes next, when a trial may end, and when the study is over (SPEX, §3.2, Pseudocode 1 and 2).

The explorer makes one policy for a study and asks it in a fixed order: ``done``, ``next_config``; while the trial runs,
``on_record`` for each reading and ``stop_run`` after it. A policy of one's own needs ``next_config`` alone::

    class Everything(Policy):
        def next_config(self, history):
            tried = self.tried(history)
            return next((c for c in self.space.grid(8) if self.space.key(c) not in tried), None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from perflaw.errors import PerflawError, UsageError
from perflaw.explore.plugins import find_class
from perflaw.explore.space import Space
from perflaw.types.studies import Configuration, Reading, Study, StudyMetric, Trial

GROUP = "perflaw.policies"
"""Entry points of packages that bring policies."""
POLICIES = {
    "grid": ("perflaw.explore.policies.designs", "Grid"),
    "random": ("perflaw.explore.policies.designs", "Random"),
    "sobol": ("perflaw.explore.policies.designs", "Sobol"),
    "lhs": ("perflaw.explore.policies.designs", "LatinHypercube"),
    "one-at-a-time": ("perflaw.explore.policies.designs", "OneAtATime"),
    "racing": ("perflaw.explore.policies.designs", "Racing"),
    "law": ("perflaw.explore.policies.law", "Law"),
    "optuna": ("perflaw.explore.policies.libraries", "Optuna"),
    "smac": ("perflaw.explore.policies.libraries", "Smac"),
}
"""Module and class of perflaw's own policies, by name."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration to try, and why."""

    configuration: Configuration
    """Setting of every knob; must be valid in the space."""
    why: str = ""
    """Reason in words, which is kept with the trial."""


class Policy:
    """Base of all policies: everything but ``next_config`` has a default.

    ``history`` is all trials so far in the order of their numbers, with planned and invalid ones: what is in it is tried.
    Policies are deterministic: the same space, study, seed and history give the same proposal. What can be computed from the
    history again therefore need not be in ``state``.
    """

    repeats: bool = False
    """Whether the policy may propose a configuration of the history again; the explorer refuses that otherwise."""
    warning: str = ""
    """What a person who chose this policy should know; shown once when the study begins."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        self.space, self.study, self.seed = space, study, seed

    def next_config(self, history: Sequence[Trial]) -> Proposal | Configuration | None:
        """Return what to try next; None where nothing is left."""
        raise NotImplementedError(f"the policy {type(self).__name__} has no next_config")

    def propose(self, history: Sequence[Trial]) -> Proposal | None:
        """Return the answer of ``next_config`` as a proposal."""
        answer = self.next_config(history)
        return answer if answer is None or isinstance(answer, Proposal) else Proposal(dict(answer))

    def on_record(self, reading: Reading) -> None:
        """Take a reading of the trial that runs; readings of a new trial begin again near 0 s."""

    def stop_run(self) -> bool:
        """Return whether the trial that runs should end now; the explorer's own early stop is independent of this."""
        return False

    def done(self, history: Sequence[Trial]) -> str:
        """Return why the study is over, in words; empty where it is not. Budget and margin are the explorer's concern."""
        return ""

    def state(self) -> dict[str, Any]:
        """Return what has to survive a restart, as JSON; called after every proposal."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` returned."""

    @property
    def objective(self) -> StudyMetric:
        """The study's objective; its first metric, to be maximised, where no metric has a goal."""
        return self.study.objective or self.study.metrics[0]

    def tried(self, history: Sequence[Trial]) -> set[str]:
        """Return the keys of all configurations in the history, those that were requested of a target that rounds included."""
        return tried_keys(self.space, history)

    def made(self, history: Sequence[Trial]) -> int:
        """Return the number of configurations that were requested so far."""
        return len({self.space.key(trial.wanted) for trial in history})

    def first_untried(self, candidates: Iterable[Configuration], history: Sequence[Trial]) -> Configuration | None:
        """Return the first candidate that is valid and not in the history."""
        tried = self.tried(history)
        return next((c for c in candidates if self.space.key(c) not in tried and not self.space.valid(c)), None)


def tried_keys(space: Space, history: Sequence[Trial]) -> set[str]:
    """Return the keys of all configurations that were tried, as they were requested and as the target had them."""
    return {space.key(each) for trial in history for each in (trial.wanted, trial.configuration)}


def find_policy(name: str, folder: Path | str = ".") -> type[Policy]:
    """Return the class of a policy: a name, or ``file.py:Class`` relative to ``folder``; UsageError where there is none."""
    found = find_class(name, "policy", GROUP, POLICIES, folder)
    if isinstance(found, type) and issubclass(found, Policy):
        return found
    why = "its class must inherit perflaw.explore.policy.Policy"
    raise UsageError(f"{name!r} is not a policy", why, "docs/policies.md shows a policy")


T = TypeVar("T")


class Steering:
    """The policy of a study, with its answers checked. UsageError where it raises, or proposes what is not allowed."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        self._space, self.name = space, study.policy
        kind = find_policy(study.policy, study.folder)
        self._policy: Policy = self._call("be made", lambda: kind(space, study, seed))

    @property
    def warning(self) -> str:
        """What a person should know about the policy."""
        return self._policy.warning

    def next(self, history: Sequence[Trial]) -> Proposal | None:
        """Return the next proposal; None where nothing is left."""
        proposal = self._call("propose", lambda: self._policy.propose(history))
        if proposal is None:
            return None
        configuration = self._call("propose", lambda: dict(proposal.configuration))
        if invalid := self._space.valid(configuration):
            raise self._refusal(f"proposed {configuration}", invalid)
        key = self._space.key(configuration)
        if not self._policy.repeats and key in tried_keys(self._space, history):
            reason = "it was tried before, and the policy does not say repeats = True"
            raise self._refusal(f"proposed {configuration} again", reason)
        return Proposal(self._space.normal(configuration), proposal.why)

    def done(self, history: Sequence[Trial]) -> str:
        """Return why the policy considers the study over; empty where it does not."""
        return self._call("say whether it is done", lambda: str(self._policy.done(history) or ""))

    def take(self, reading: Reading) -> str:
        """Show the policy a reading; return why it ends the trial, empty where it does not."""
        self._call("take a reading", lambda: self._policy.on_record(reading))
        stop = self._call("say whether to stop", self._policy.stop_run)
        return f"policy {self.name} ended it" if stop else ""

    def state(self) -> Mapping[str, Any]:
        """Return what the policy keeps over a restart."""
        return self._call("say its state", self._policy.state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Give the policy its state back."""
        self._call("take its state back", lambda: self._policy.restore(state))

    def _call(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except PerflawError:
            raise
        except Exception as error:  # a person's policy may raise anything
            raise self._refusal(f"could not {what}", f"{type(error).__name__}: {error}") from error

    def _refusal(self, what: str, why: str) -> UsageError:
        return UsageError(
            f"policy {self.name} {what}", f"{why}; all finished trials are kept", "perflaw explore … --policy law"
        )
