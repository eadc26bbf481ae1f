"""Policies of other libraries by ask and tell: Optuna's samplers (Akiba et al. 2019), SMAC's forests (Lindauer et al. 2022).

Both are told the whole history anew before each proposal, so a restart changes nothing.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perflaw.errors import UsageError
from perflaw.explore.policy import Policy
from perflaw.explore.space import Space
from perflaw.learn.exploring.observations import usable
from perflaw.types.studies import Configuration, Knob, Study, Trial, Value

SAMPLERS = {"tpe": "TPESampler", "gp": "GPSampler", "cmaes": "CmaEsSampler"}
"""Optuna's class for the study's option ``sampler``; ``tpe`` where the study names none."""
OPTUNA_PROPOSALS, SMAC_PROPOSALS = 100, 20
"""Proposals in a row that were tried before or are invalid, after which a configuration is drawn at random."""
RANDOM_DRAWS = 1000
"""Draws at random after which nothing is proposed."""


def imported(name: str, policy: str, install: str) -> Any:
    """Return a library; UsageError with the command that installs it where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"policy {policy} needs {name}", "it is not installed", install) from error


class LibraryPolicy(Policy):
    """Base of policies that ask another library."""

    def value_of(self, trial: Trial) -> float | None:
        """Return the objective of a trial; None where it is invalid, still runs, or has no finite value."""
        return trial.metrics[self.objective.name] if usable([trial], self.objective.name) else None

    def drawn(self, history: Sequence[Trial]) -> Configuration | None:
        """Return a configuration at random that was not tried."""
        generator = np.random.default_rng([self.seed, len(history), 3])
        return self.first_untried((self.space.sample(generator) for _ in range(RANDOM_DRAWS)), history)


class Optuna(LibraryPolicy):
    """Optuna; an extra: ``pip install 'perflaw[explore]'``."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        sampler = str(study.options.get("sampler", "tpe"))
        if sampler not in SAMPLERS:
            why = f"there are {', '.join(SAMPLERS)}"
            raise UsageError(f"policy optuna: there is no sampler {sampler!r}", why, "sampler: tpe")
        self.library = imported("optuna", "optuna", "pip install 'perflaw[explore]'")
        self.sampler = SAMPLERS[sampler]
        self.library.logging.set_verbosity(self.library.logging.ERROR)
        distributions = {}
        for knob in space.knobs:
            kinds = self.library.distributions
            if knob.kind in ("int", "float"):
                kind = kinds.IntDistribution if knob.kind == "int" else kinds.FloatDistribution
                number = int if knob.kind == "int" else float
                distributions[knob.name] = kind(
                    number(knob.low or 0), number(knob.high or 0), log=knob.scale != "linear"
                )
            elif knob.kind == "ordinal":
                distributions[knob.name] = kinds.IntDistribution(0, len(knob.values) - 1)
            else:
                distributions[knob.name] = kinds.CategoricalDistribution(self.space.levels(knob))
        self.distributions = distributions

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return what the sampler proposes; proposals that were tried or are invalid are reported to it as failed."""
        states = self.library.trial.TrialState
        number = int(np.random.SeedSequence([self.seed, len(history)]).generate_state(1)[0])
        optimizer = self.library.create_study(
            direction="minimize" if self.objective.goal == "min" else "maximize",
            sampler=getattr(self.library.samplers, self.sampler)(seed=number),
        )
        for trial in history:
            value = self.value_of(trial)
            parameters: dict[str, Any] = dict(trial.configuration)
            for knob in self.space.knobs:
                if knob.kind == "ordinal":
                    parameters[knob.name] = knob.values.index(parameters[knob.name])
            known = self.library.trial.create_trial(
                state=states.FAIL if value is None else states.COMPLETE,
                value=value,
                params=parameters,
                distributions=self.distributions,
            )
            optimizer.add_trial(known)
        tried = self.tried(history)
        for _ in range(OPTUNA_PROPOSALS):
            proposed = optimizer.ask(self.distributions)
            found: dict[str, Value] = {
                knob.name: knob.values[proposed.params[knob.name]]
                if knob.kind == "ordinal"
                else proposed.params[knob.name]
                for knob in self.space.knobs
            }
            if self.space.key(found) not in tried and not self.space.valid(found):
                return found
            optimizer.tell(proposed, state=states.FAIL)
        return self.drawn(history)


class Smac(LibraryPolicy):
    """SMAC, which a person installs: ``pip install smac``. Its files go to a folder that is removed at once."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        self.library, self.spaces = (imported(name, "smac", "pip install smac") for name in ("smac", "ConfigSpace"))

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return what the forest proposes; proposals that were tried or are invalid are reported to it as bad."""
        sign = self.objective.sign
        costs = [None if (value := self.value_of(trial)) is None else -sign * value for trial in history]
        worst = max((cost for cost in costs if cost is not None), default=0.0)
        results = self.library.runhistory.dataclasses
        tried = self.tried(history)
        with tempfile.TemporaryDirectory() as folder:
            space = self.spaces.ConfigurationSpace(seed=self.seed)
            parameters = []
            for knob in self.space.knobs:
                logarithmic = knob.scale != "linear"
                if knob.kind == "float":
                    parameters.append(self.spaces.Float(knob.name, (knob.low, knob.high), log=logarithmic))
                elif knob.kind == "int":
                    parameters.append(
                        self.spaces.Integer(knob.name, (int(knob.low or 0), int(knob.high or 0)), log=logarithmic)
                    )
                elif knob.kind == "ordinal":
                    parameters.append(self.spaces.Integer(knob.name, (0, len(knob.values) - 1)))
                else:
                    parameters.append(
                        self.spaces.Categorical(knob.name, [str(value) for value in self.space.levels(knob)])
                    )
            space.add(parameters)
            scenario = self.library.Scenario(
                space,
                deterministic=True,
                n_trials=max(self.study.budget.trials or 100, len(history) + SMAC_PROPOSALS + 1),
                seed=self.seed,
                output_directory=Path(folder),
            )
            facade = self.library.HyperparameterOptimizationFacade
            optimizer = facade(scenario, _no_function, overwrite=True, logging_level=False)
            for trial, cost in zip(history, costs, strict=True):
                values = {}
                for knob in self.space.knobs:
                    setting = trial.configuration[knob.name]
                    values[knob.name] = setting if knob.kind in ("int", "float") else str(setting)
                    if knob.kind == "ordinal":
                        values[knob.name] = knob.values.index(setting)
                config = self.spaces.Configuration(space, values=values)
                value = results.TrialValue(cost=worst if cost is None else cost)
                optimizer.tell(results.TrialInfo(config, seed=0), value)
            for _ in range(SMAC_PROPOSALS):
                proposed = optimizer.ask()
                found = {knob.name: self._setting(knob, proposed.config[knob.name]) for knob in self.space.knobs}
                if self.space.key(found) not in tried and not self.space.valid(found):
                    return found
                optimizer.tell(proposed, results.TrialValue(cost=worst))
        return self.drawn(history)

    def _setting(self, knob: Knob, value: Any) -> Any:
        if knob.kind == "ordinal":
            return knob.values[int(value)]
        if knob.kind in ("int", "float"):
            return value
        return next(level for level in self.space.levels(knob) if str(level) == str(value))


def _no_function(config: object, seed: int = 0) -> float:
    """Stand for the function that SMAC requires; with ask and tell it is never called."""
    return 0.0
