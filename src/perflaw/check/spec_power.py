"""How much slower the calls of a group have to become for a check to tell it, from what was specified alone."""

from __future__ import annotations

import numpy as np

from perflaw.check.evalues import Effects, e_values
from perflaw.check.spec_calls import SpecOptions
from perflaw.check.spec_location import DEFAULT_SPREAD, LEVELS, MAX_ERRORS, base_effects, specified
from perflaw.types import PathGroup

LARGEST, STEPS = 1000.0, 20
"""The largest slowdown that is asked for, and bisections of its logarithm."""


def smallest_slowdown(
    group: PathGroup, runs: int, worth: float, enough: float, options: SpecOptions, machine: float = 0.0
) -> float:
    """The factor from which on ``runs`` new runs of ``worth`` independent calls each give an e-value of ``enough``.

    It holds for calls that all get slower alike on a machine as quick as when the group was mined; ``machine`` is by how much
    more, as a logarithm, it may explain. Infinite where no slowdown suffices, or no durations are specified.

    A quantile of new runs is compared with the one of the specification at a level that is lower by the tolerance of shares and
    by chance, which is what rare calls lose. How much runs differ is known from the runs behind the specification, but is
    not taken for less than ``DEFAULT_SPREAD``: with few of these, no number of new runs tells a small slowdown.
    """
    if not group.durations:
        return float("inf")
    durations = specified(group)[1]
    base_worth = max(group.effective, 1.0)
    chance = MAX_ERRORS * np.sqrt(LEVELS * (1.0 - LEVELS) * (1.0 / worth + 1.0 / base_worth))
    compared = LEVELS - options.tolerance - chance
    lost = durations - np.interp(compared, LEVELS, durations) + machine
    margin = np.sqrt(LEVELS * (1.0 - LEVELS) / worth)
    ends = [np.interp(LEVELS + side * margin, LEVELS, durations) for side in (-1.0, 1.0)]
    variance = ((ends[1] - ends[0]) / 2.0) ** 2
    base, relevant = base_effects(group, group.runs), float(np.log(options.min_effect))
    # Quantiles below those of the specification are not known.
    known = np.flatnonzero(compared >= LEVELS[0])

    def suffices(log_factor: float) -> bool:
        new = [
            Effects(np.full(runs, max(log_factor - lost[level], 0.0)), np.full(runs, variance[level]))
            for level in known
        ]
        evidence = e_values([(base, one, DEFAULT_SPREAD, relevant, relevant) for one in new])
        return sum(one.e for one in evidence) / LEVELS.size >= enough

    low, high = relevant, float(np.log(LARGEST))
    if not known.size or not suffices(high):
        return float("inf")
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return float(np.exp(high))
