"""A history as arrays: what the learners take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perflaw.types.studies import StudyMetric, Trial

if TYPE_CHECKING:
    from perflaw.explore.space import Space


# ---- What a history says about the objective: values, weights, the best trial.


def value_of(trial: Trial, objective: StudyMetric) -> float | None:
    """Return the objective of a trial; None where it is invalid, still runs, or has no finite value."""
    value = trial.metrics.get(objective.name, math.nan) if trial.valid else math.nan
    return float(value) if math.isfinite(value) else None


def scored(history: Sequence[Trial], objective: StudyMetric) -> list[tuple[Trial, float]]:
    """Return the trials that have a value, and it; clean ones alone where there are any of that configuration."""
    pairs = [(trial, value) for trial in history if (value := value_of(trial, objective)) is not None]
    clean = {_settings(trial) for trial, _ in pairs if not trial.contaminated}
    return [(trial, value) for trial, value in pairs if not trial.contaminated or _settings(trial) not in clean]


def failed(history: Sequence[Trial]) -> list[Trial]:
    """Return trials that ran and were no data points."""
    return [trial for trial in history if not trial.valid and trial.reason and not trial.contaminated]


def best_trial(history: Sequence[Trial], objective: StudyMetric) -> Trial | None:
    """Return the trial with the best value that ran to its end."""
    whole = [(trial, value) for trial, value in scored(history, objective) if not trial.stopped]
    sign = -1.0 if objective.goal == "min" else 1.0
    return max(whole, key=lambda pair: sign * pair[1])[0] if whole else None


def _settings(trial: Trial) -> frozenset[tuple[str, object]]:
    return frozenset(trial.configuration.items())


Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STOPPED, CONTAMINATED = 0.1, 0.3
"""Errors, relative to the value, of trials that were ended early or that others disturbed."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Trials of one objective in the unit cube."""

    x: Array
    """Configurations with a value, (n, d)."""
    values: Array
    """The objective, (n,), in its unit."""
    errors: Array
    """Standard errors, (n,), nan where nothing is known."""
    failed: Array
    """Configurations that were no data points, (k, d)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    workload: Mask
    """Which knobs describe the workload, (d,)."""
    sign: float
    """1 where more is better, −1 where less is."""


def evidence_of(history: Sequence[Trial], space: Space, objective: StudyMetric) -> Evidence:
    """Return what the history says about the objective."""
    pairs = scored(history, objective)
    return Evidence(
        x=units([trial for trial, _ in pairs], space),
        values=np.array([value for _, value in pairs], dtype=np.float64),
        errors=np.array([_error(trial, value, objective) for trial, value in pairs], dtype=np.float64),
        failed=units(failed(history), space),
        ordered=np.array([knob.kind in ("int", "float", "ordinal") for knob in space.knobs]),
        workload=np.array([knob.workload for knob in space.knobs]),
        sign=-1.0 if objective.goal == "min" else 1.0,
    )


def units(trials: Sequence[Trial], space: Space) -> Array:
    """Return the trials' configurations in the unit cube, (n, d)."""
    rows = [space.unit(trial.configuration) for trial in trials]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(space.knobs))


def _error(trial: Trial, value: float, objective: StudyMetric) -> float:
    known = float(trial.scatter.get(objective.name, np.nan))
    extra = STOPPED * bool(trial.stopped) + CONTAMINATED * bool(trial.contaminated)
    return known if not extra else float(np.hypot(np.nan_to_num(known), extra * abs(value)))
