"""The policy of a study, asked so that whatever it does wrong is told with its name and loses nothing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from perflaw.errors import PerflawError, UsageError
from perflaw.explore.space import Space
from perflaw.types.studies import Configuration, Reading, Study, StudyMetric, Trial

# ---- Policies: which configuration comes next, when a trial may end, when the study is over (SPEX, §3.2, Pseudocode
# 1 and 2).
#
# The explorer makes one policy a study and asks it in a fixed order: ``done``, ``next_config``; while the trial runs,
# ``on_record`` for each reading and ``stop_run`` after it. A policy of one's own needs ``next_config`` alone:
#
#     class Everything(Policy):
#         def next_config(self, history):
#             tried = self.tried(history)
#             return next((c for c in self.space.grid(8) if self.space.key(c) not in tried), None)


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


# ---- Policies by name: ours, those of installed packages (entry points ``perflaw.policies``), and ``file.py:Class``.

GROUP = "perflaw.policies"
"""Entry points of packages that bring policies."""
OURS = {
    "grid": "perflaw.explore.policies.grid:Grid",
    "random": "perflaw.explore.policies.random:Random",
    "sobol": "perflaw.explore.policies.sobol:Sobol",
    "lhs": "perflaw.explore.policies.lhs:LatinHypercube",
    "one-at-a-time": "perflaw.explore.policies.one_at_a_time:OneAtATime",
    "racing": "perflaw.explore.policies.racing:Racing",
    "law": "perflaw.explore.policies.law:Law",
    "optuna": "perflaw.explore.policies.optuna:Optuna",
    "smac": "perflaw.explore.policies.smac:Smac",
}
"""Name → module:class. Not by entry points: they must be there in a checkout too."""


def policy_names() -> list[str]:
    """Return the names of all policies that can be chosen, ours first."""
    return [*OURS, *sorted(point.name for point in entry_points(group=GROUP) if point.name not in OURS)]


def find_policy(name: str, folder: Path | str = ".") -> type[Policy]:
    """Return the class of a policy: a name, or ``file.py:Class`` with the file relative to ``folder`` (the study's).

    Raises:
        UsageError: no such policy, file or class, or it cannot be imported.
    """
    if ".py:" in name:
        return _checked(_from_file(name, Path(folder)), name)
    points = {point.name: point for point in entry_points(group=GROUP)} | {
        ours: EntryPoint(ours, place, GROUP) for ours, place in OURS.items()
    }
    if name not in points:
        raise UsageError(f"there is no policy {name!r}", f"there are {', '.join(points)}", "--policy law")
    return _checked(_loaded(points[name], name), name)


def _loaded(point: EntryPoint, name: str) -> object:
    try:
        return point.load()
    except Exception as error:  # whatever a package does when it is imported
        raise UsageError(f"policy {name!r} cannot be loaded", f"{type(error).__name__}: {error}") from error


def _from_file(name: str, folder: Path) -> object:
    file, _, wanted = name.rpartition(":")
    path = (folder / file).resolve()
    if not path.is_file():
        raise UsageError(f"policy {name!r}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"perflaw_policy_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"policy {name!r}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a person's file does when it is imported
        raise UsageError(f"policy {name!r} cannot be loaded", f"{path}: {type(error).__name__}: {error}") from error
    if not hasattr(module, wanted):
        classes = [each for each, value in vars(module).items() if isinstance(value, type) and value is not Policy]
        raise UsageError(f"{path} has no class {wanted!r}", f"it has {', '.join(classes) or 'none'}")
    return getattr(module, wanted)


def _checked(found: object, name: str) -> type[Policy]:
    if isinstance(found, type) and issubclass(found, Policy):
        return found
    raise UsageError(f"policy {name!r} is no policy", "its class must inherit perflaw.explore.policy.Policy")


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
