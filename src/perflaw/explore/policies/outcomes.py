"""What a history says about the objective: values, weights, the best trial."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perflaw.types.studies import StudyMetric, Trial


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
