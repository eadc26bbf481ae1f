"""Trials that others disturbed: more CPU used by others than is usual here, or more waiting for a CPU than repetitions had."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from perflaw.explore.target.proc import TICK_S
from perflaw.types.studies import Trial

_FEW: Final = 5
"""Trials from which on it is known what is usual."""
_NORMAL: Final = 1.4826
"""From the median absolute deviation to σ of a normal distribution (Rousseeuw & Croux, JASA 88, 1993)."""
_SIGMAS: Final = 6.0
_LEAST_CORES: Final = 0.25
_LEAST_DELAY: Final = 0.2
_TIMES: Final = 3.0
MOST_ATTEMPTS: Final = 2
"""How often a trial is made at most for this reason."""
MOST_SHARE: Final = 0.2
"""Part of all trials that are repeated for this reason at most."""


def judge(trial: Trial, others: Sequence[Trial]) -> str:
    """What others did to a trial, in words; empty if nothing that stands out from the other valid trials."""
    used, bound = trial.conditions.other_cpu, _bound(trial, others)
    if bound is not None and used > bound:
        return f"others used {used:.2f} CPUs meanwhile, {bound:.2f} are usual at most"
    same = [one.conditions.run_delay for one in others if dict(one.configuration) == dict(trial.configuration)]
    delay = trial.conditions.run_delay
    if len(same) >= 2 and delay > _TIMES * median(same) + _LEAST_DELAY:
        return f"its threads waited {delay:.0%} of their CPU time for a CPU, {median(same):.0%} in its repetitions"
    return ""


def _bound(trial: Trial, others: Sequence[Trial]) -> float | None:
    """CPUs that others use at most where nothing is wrong; None as long as that is not known.

    The median and six σ, at least a quarter of a CPU, and what the clock of /proc/stat leaves uncertain of a short trial.
    """
    seen = [one.conditions.other_cpu for one in others if one.started]
    if len(seen) < _FEW:
        return None
    usual = median(seen)
    spread = _NORMAL * median(abs(one - usual) for one in seen)
    blurred = 4 * TICK_S / max(trial.measured_s, TICK_S)
    return usual + max(_SIGMAS * spread, _LEAST_CORES) + blurred


def may_repeat(attempts: int, repeated: int, trials: int) -> bool:
    """Whether a disturbed trial is made again: bounded, so that a busy machine cannot keep a study from its end."""
    return attempts < MOST_ATTEMPTS and repeated < max(2.0, MOST_SHARE * trials)
