"""The borders that each observation shows on its own, and the share of the calls below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.learn.modes import MIN_Z
from perflaw.learn.paths.borders import borders_of, paper_borders
from perflaw.learn.paths.durations import autocorrelation_time, cdf, merged, quantile, total
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import Histogram, Observation, Observed

MIN_INDEPENDENT_CALLS = 200.0
"""Number of independent calls from which on borders are found as a rule; below, hardly any is found."""
MIN_TICK_NS = 1.0
"""Step of recorded durations, which are whole ns however fine the clock is."""


def without_perturbed(observed: Observed, options: MiningOptions) -> Observed:
    """The observations whose durations recording itself did not lengthen, with a note of those left out.

    Probes of nested calls may take at most ``options.perturbed`` of the median duration (§4, RQ5; specs/mining.md,
    "Nesting").
    """

    def perturbed(one: Observation) -> bool:
        durations = merged(list(one.paths.values()))
        calls = total(durations)
        if calls == 0 or one.nested == 0 or observed.probe_ns <= 0:
            return False
        return one.nested * observed.probe_ns / calls > options.perturbed * float(quantile(durations, 0.5))

    kept = tuple(one for one in observed.observations if not perturbed(one))
    left_out = len(observed.observations) - len(kept)
    if left_out == 0:
        return observed
    note = (
        f"perturbed: in {left_out} of {len(observed.observations)} observations the probes of calls within take more than "
        f"{options.perturbed:.0%} of the median duration; these are left out: "
        f"record it alone, `perflaw record --collect paths --select {observed.component} -- …`"
    )
    return replace(observed, observations=kept, notes=(*observed.notes, note))


@dataclass(frozen=True, slots=True, eq=False)
class PooledObservation:
    """An observation with enough calls, or several of one platform that have enough together."""

    platform: int
    """Place of its platform in ``Observed.platforms``."""
    start_ns: int
    """When it began."""
    end_ns: int
    """When it was closed."""
    durations: Histogram
    """Durations of all calls, whatever their path."""
    observations: tuple[Observation, ...]
    """The observations that it consists of."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedBorder:
    """A border that one pooled observation shows."""

    observation: int
    """Number of the pooled observation."""
    platform: int
    """Its platform."""
    place: float
    """The border, ns."""
    own: float
    """Share of the observation's calls below it."""
    common: float
    """Share of the calls of all observations below it."""
    sure: bool
    """Whether this observation alone is sufficient evidence."""


def pool_observations(observed: Observed, fewest: int) -> list[PooledObservation]:
    """Observations in order; one that is too small is put together with the following ones on its platform.

    A pooled observation has at least ``fewest`` calls and, if the platform has so many, as many as are worth
    ``MIN_INDEPENDENT_CALLS`` independent ones.
    """
    calls = [sum(total(h) for h in one.paths.values()) for one in observed.observations]
    on_platform: dict[int, int] = {}
    for one, n in zip(observed.observations, calls, strict=True):
        on_platform[one.platform] = on_platform.get(one.platform, 0) + n
    wanted = MIN_INDEPENDENT_CALLS * autocorrelation_time([one.batches for one in observed.observations])
    pooled: list[PooledObservation] = []
    waiting: dict[int, list[int]] = {}
    for number, one in enumerate(observed.observations):
        together = waiting.setdefault(one.platform, [])
        together.append(number)
        if sum(calls[each] for each in together) >= max(fewest, min(wanted, on_platform[one.platform])):
            some = tuple(observed.observations[each] for each in waiting.pop(one.platform))
            durations = merged([h for each in some for h in each.paths.values()])
            end_ns = max(each.end_ns for each in some)
            pooled.append(PooledObservation(one.platform, some[0].start_ns, end_ns, durations, some))
    return pooled


def observed_borders(
    pooled: Sequence[PooledObservation], observed: Observed, options: MiningOptions
) -> list[ObservedBorder]:
    """Borders of each observation on its own; of borders that match, the leftmost (§3.2).

    A border that many observations show need not be sure in each: z of m observations adds up to √m·z (Stouffer 1949).
    """
    everything = merged([each.durations for each in pooled])
    time = autocorrelation_time([one.batches for each in pooled for one in each.observations])
    least = max(options.sure, MIN_Z / math.sqrt(max(len(pooled), 1)))

    def borders(one: PooledObservation, min_z: float) -> NDArray[np.float64]:
        if options.paper:
            return paper_borders(one.durations)
        tick = observed.platforms[one.platform].tick if one.platform < len(observed.platforms) else 0.0
        step = max(tick, MIN_TICK_NS) if tick > 0 else 0.0
        return borders_of(one.durations, step, total(one.durations) / time, min_z)

    found = []
    for number, one in enumerate(pooled):
        places = borders(one, least)
        own, common = cdf(one.durations, places), cdf(everything, places)
        sure = cdf(one.durations, borders(one, MIN_Z)) if places.size else own
        for i in distinct_shares(own, options.epsilon):
            is_sure = bool(np.abs(sure - own[i]).min(initial=1.0) < options.epsilon)
            row = ObservedBorder(number, one.platform, float(places[i]), float(own[i]), float(common[i]), is_sure)
            found.append(row)
    return found


def distinct_shares(shares: ArrayLike, epsilon: float) -> NDArray[np.intp]:
    """Places of the borders that stay, (k,), given the increasing shares F (m,) of the mass below each border.

    Scanned from the left, the leftmost of the borders that match it is kept, so matches form no chains. A border with less
    than ε of the mass on one side is dropped (Definition 1).

    >>> distinct_shares([0.01, 0.3, 0.34, 0.38, 0.97], 0.05)
    array([1, 3])
    """
    share = np.asarray(shares, dtype=np.float64)
    kept: list[int] = []
    for place in np.flatnonzero((share >= epsilon) & (share <= 1.0 - epsilon)):
        if not kept or share[place] - share[kept[-1]] >= epsilon:
            kept.append(int(place))
    return np.array(kept, dtype=np.intp)
