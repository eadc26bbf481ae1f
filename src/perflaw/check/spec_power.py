"""How much slower the calls of a group have to become for a check to tell it, from what was specified alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.check.evalues import Comparison, Effects, e_values
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
    return smallest_slowdowns([group], runs, [worth], enough, options, machine)[0]


def smallest_slowdowns(
    groups: Sequence[PathGroup],
    runs: int,
    worth: Sequence[float],
    enough: float,
    options: SpecOptions,
    machine: float = 0.0,
) -> list[float]:
    """:func:`smallest_slowdown` of each group, with its number of independent calls; of many at once it takes less time."""
    found = [float("inf")] * len(groups)
    cases = {
        place: _case(group, worth[place], options, machine) for place, group in enumerate(groups) if group.durations
    }
    relevant, largest = float(np.log(options.min_effect)), float(np.log(LARGEST))

    def suffices(log_factors: dict[int, float]) -> dict[int, bool]:
        """Whether each group's slowdown gives enough evidence."""
        comparisons = {place: cases[place].comparisons(one, runs, relevant) for place, one in log_factors.items()}
        evidence = iter(e_values([one for some in comparisons.values() for one in some]))
        means = {place: sum(next(evidence).e for _ in some) / LEVELS.size for place, some in comparisons.items()}
        return {place: mean >= enough for place, mean in means.items()}

    ends = {place: (relevant, largest) for place, one in suffices(dict.fromkeys(cases, largest)).items() if one}
    for _ in range(STEPS):
        middles = {place: (low + high) / 2.0 for place, (low, high) in ends.items()}
        for place, is_enough in suffices(middles).items():
            low, high = ends[place]
            ends[place] = (low, middles[place]) if is_enough else (middles[place], high)
    for place, (_, high) in ends.items():
        found[place] = float(np.exp(high))
    return found


@dataclass(frozen=True, slots=True)
class _Case:
    """The levels of one group at which its durations are compared."""

    base: Effects
    """The runs that it was mined from."""
    lost: NDArray[np.float64]
    """What of a slowdown is not seen at each level, as a logarithm."""
    variance: NDArray[np.float64]
    """Sampling variance of a new run at each level."""

    def comparisons(self, log_factor: float, runs: int, relevant: float) -> list[Comparison]:
        """What a slowdown of all calls shows at each level."""
        return [
            (
                self.base,
                Effects(np.full(runs, max(log_factor - lost, 0.0)), np.full(runs, variance)),
                DEFAULT_SPREAD,
                relevant,
                relevant,
            )
            for lost, variance in zip(self.lost.tolist(), self.variance.tolist(), strict=True)
        ]


def _case(group: PathGroup, worth: float, options: SpecOptions, machine: float) -> _Case:
    durations = specified(group)[1]
    base_worth = max(group.effective, 1.0)
    chance = MAX_ERRORS * np.sqrt(LEVELS * (1.0 - LEVELS) * (1.0 / worth + 1.0 / base_worth))
    compared = LEVELS - options.tolerance - chance
    lost = durations - np.interp(compared, LEVELS, durations) + machine
    margin = np.sqrt(LEVELS * (1.0 - LEVELS) / worth)
    ends = [np.interp(LEVELS + side * margin, LEVELS, durations) for side in (-1.0, 1.0)]
    variance = ((ends[1] - ends[0]) / 2.0) ** 2
    # Quantiles below those of the specification are not known.
    known = np.flatnonzero(compared >= LEVELS[0])
    return _Case(base_effects(group, group.runs), lost[known], variance[known])
