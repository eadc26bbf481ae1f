"""Optuna's samplers by ask and tell (Akiba et al. 2019); an extra: ``pip install 'perflaw[explore]'``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perflaw.errors import UsageError
from perflaw.explore.policies.evidence import value_of
from perflaw.explore.policy import Policy
from perflaw.types.studies import Configuration, Knob, Study, Trial, Value

if TYPE_CHECKING:
    from perflaw.explore.space import Space

SAMPLERS = {"tpe": "TPESampler", "gp": "GPSampler", "cmaes": "CmaEsSampler"}
"""Option ``sampler`` of the study → Optuna's class; ``tpe`` where it says none."""
ASKED = 100
"""Proposals in a row that were tried or invalid, after which one is drawn at random."""


class Optuna(Policy):
    """Tells the history to a study in memory and asks; made anew before each proposal, so a restart changes nothing."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        sampler = str(study.options.get("sampler", "tpe"))
        if sampler not in SAMPLERS:
            raise UsageError(f"policy optuna: there is no sampler {sampler!r}", f"there are {', '.join(SAMPLERS)}")
        self.library = _library()
        self.sampler = SAMPLERS[sampler]
        self.library.logging.set_verbosity(self.library.logging.ERROR)
        self.distributions = {knob.name: self._distribution(knob) for knob in space.knobs}

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return what the sampler asks for; repeated and invalid proposals are told back as such and asked again."""
        asked = self._told(history)
        tried = self.tried(history)
        for _ in range(ASKED):
            trial = asked.ask(self.distributions)
            found = {knob.name: self._setting(knob, trial.params[knob.name]) for knob in self.space.knobs}
            if self.space.key(found) not in tried and not self.space.valid(found):
                return found
            asked.tell(trial, state=self.library.trial.TrialState.FAIL)
        generator = np.random.default_rng([self.seed, len(history), 3])
        return self.first_untried((self.space.sample(generator) for _ in range(1000)), history)

    def _told(self, history: Sequence[Trial]) -> Any:
        direction = "minimize" if self.objective.goal == "min" else "maximize"
        number = int(np.random.SeedSequence([self.seed, len(history)]).generate_state(1)[0])
        sampler = getattr(self.library.samplers, self.sampler)(seed=number)
        study = self.library.create_study(direction=direction, sampler=sampler)
        for trial in history:
            value = value_of(trial, self.objective)
            state = self.library.trial.TrialState.FAIL if value is None else self.library.trial.TrialState.COMPLETE
            study.add_trial(
                self.library.trial.create_trial(
                    state=state, value=value, params=self._params(trial), distributions=self.distributions
                )
            )
        return study

    def _distribution(self, knob: Knob) -> Any:
        kinds = self.library.distributions
        if knob.kind in ("int", "float"):
            kind = kinds.IntDistribution if knob.kind == "int" else kinds.FloatDistribution
            number = int if knob.kind == "int" else float
            return kind(number(knob.low or 0), number(knob.high or 0), log=knob.scale != "linear")
        values = self.space.levels(knob)
        if knob.kind == "ordinal":
            return kinds.IntDistribution(0, len(knob.values) - 1)
        return kinds.CategoricalDistribution(values)

    def _setting(self, knob: Knob, told: Any) -> Value:
        found: Value = knob.values[told] if knob.kind == "ordinal" else told
        return found

    def _params(self, trial: Trial) -> dict[str, Any]:
        told = dict(trial.configuration)
        for knob in self.space.knobs:
            if knob.kind == "ordinal":
                told[knob.name] = knob.values.index(told[knob.name])
        return told


def _library() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise UsageError(
            "policy optuna needs Optuna", "it is not installed", "pip install 'perflaw[explore]'"
        ) from error
