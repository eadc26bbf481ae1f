"""SMAC's random forests by ask and tell (Lindauer et al. 2022); an extra that a person installs: ``pip install smac``."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perflaw.errors import UsageError
from perflaw.explore.policies.evidence import value_of
from perflaw.explore.policy import Policy
from perflaw.types.studies import Configuration, Knob, Study, Trial

if TYPE_CHECKING:
    from perflaw.explore.space import Space

ASKED = 20
"""Proposals in a row that were tried or invalid, after which one is drawn at random."""


class Smac(Policy):
    """Tells the history to a fresh optimizer and asks; its files go to a folder that is removed at once."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        self.library, self.spaces = _library("smac"), _library("ConfigSpace")

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return what the forest wants to know; repeated and invalid proposals are told back as bad and asked again."""
        tried = self.tried(history)
        with tempfile.TemporaryDirectory() as folder:
            optimizer = self._told(history, Path(folder))
            for _ in range(ASKED):
                asked = optimizer.ask()
                found = {knob.name: self._setting(knob, asked.config[knob.name]) for knob in self.space.knobs}
                if self.space.key(found) not in tried and not self.space.valid(found):
                    return found
                optimizer.tell(asked, self.library.runhistory.dataclasses.TrialValue(cost=self._worst(history)))
        generator = np.random.default_rng([self.seed, len(history), 3])
        return self.first_untried((self.space.sample(generator) for _ in range(1000)), history)

    def _told(self, history: Sequence[Trial], folder: Path) -> Any:
        space = self.spaces.ConfigurationSpace(seed=self.seed)
        space.add([self._parameter(knob) for knob in self.space.knobs])
        trials = self.study.budget.trials or 100
        scenario = self.library.Scenario(
            space,
            deterministic=True,
            n_trials=max(trials, len(history) + ASKED + 1),
            seed=self.seed,
            output_directory=folder,
        )
        facade = self.library.HyperparameterOptimizationFacade
        optimizer = facade(scenario, _nothing, overwrite=True, logging_level=False)
        told = self.library.runhistory.dataclasses
        for trial in history:
            value = value_of(trial, self.objective)
            cost = self._worst(history) if value is None else self._cost(value)
            config = self.spaces.Configuration(space, values=self._values(trial))
            optimizer.tell(told.TrialInfo(config, seed=0), told.TrialValue(cost=cost))
        return optimizer

    def _cost(self, value: float) -> float:
        return value if self.objective.goal == "min" else -value

    def _worst(self, history: Sequence[Trial]) -> float:
        costs = [self._cost(v) for trial in history if (v := value_of(trial, self.objective)) is not None]
        return max(costs, default=0.0)

    def _parameter(self, knob: Knob) -> Any:
        if knob.kind == "float":
            return self.spaces.Float(knob.name, (knob.low, knob.high), log=knob.scale != "linear")
        if knob.kind == "int":
            return self.spaces.Integer(knob.name, (int(knob.low or 0), int(knob.high or 0)), log=knob.scale != "linear")
        if knob.kind == "ordinal":
            return self.spaces.Integer(knob.name, (0, len(knob.values) - 1))
        return self.spaces.Categorical(knob.name, [str(value) for value in self.space.levels(knob)])

    def _setting(self, knob: Knob, told: Any) -> Any:
        if knob.kind == "ordinal":
            return knob.values[int(told)]
        if knob.kind in ("int", "float"):
            return told
        return next(value for value in self.space.levels(knob) if str(value) == str(told))

    def _values(self, trial: Trial) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for knob in self.space.knobs:
            value = trial.configuration[knob.name]
            told[knob.name] = value if knob.kind in ("int", "float") else str(value)
            if knob.kind == "ordinal":
                told[knob.name] = knob.values.index(value)
        return told


def _nothing(config: object, seed: int = 0) -> float:
    """SMAC wants a function; asking and telling never calls it."""
    return 0.0


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"policy smac needs {name}", "it is not installed", "pip install smac") from error
