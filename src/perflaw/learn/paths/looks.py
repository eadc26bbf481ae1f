"""What each observation shows on its own: its borders, and how much of the mass lies below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.modes import SUREST
from perflaw.learn.paths.batches import time_within
from perflaw.learn.paths.borders import borders_of, paper_borders
from perflaw.learn.paths.histograms import cdf, merged, total
from perflaw.learn.paths.matching import matched
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import Histogram, Observation, Observed

Array = NDArray[np.float64]

FEWEST_WORTH = 200.0
"""Independent calls of which little is found, and below which hardly anything is."""
WHOLE_NS = 1.0
"""Durations are kept in whole ns, however fine the clock is."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One observation of enough calls, or several of one platform that have enough together."""

    platform: int
    """Where: place in ``Observed.platforms``."""
    start_ns: int
    """When it began."""
    end_ns: int
    """When it was closed."""
    durations: Histogram
    """Of all calls, whatever their path."""
    observations: tuple[Observation, ...]
    """What it is made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A border that one look shows."""

    look: int
    """Which of them."""
    platform: int
    """Where that was."""
    place: float
    """The border, ns."""
    own: float
    """Share of the look's calls below it."""
    common: float
    """Share of all calls of all looks below it."""
    sure: bool
    """Whether the look alone is evidence enough."""


def looks_at(observed: Observed, fewest: int) -> list[Look]:
    """Observations in order; too small ones together with what follows on the same platform, until they are large enough.

    That is ``fewest`` calls and, if there are so many on the platform, as many as ``FEWEST_WORTH`` independent ones.
    """
    calls = [sum(total(h) for h in one.paths.values()) for one in observed.observations]
    on: dict[int, int] = {}
    for one, some in zip(observed.observations, calls, strict=True):
        on[one.platform] = on.get(one.platform, 0) + some
    wanted = FEWEST_WORTH * time_within([one.batches for one in observed.observations])
    looks: list[Look] = []
    waiting: dict[int, list[int]] = {}
    for number, one in enumerate(observed.observations):
        together = waiting.setdefault(one.platform, [])
        together.append(number)
        if sum(calls[each] for each in together) >= max(fewest, min(wanted, on[one.platform])):
            looks.append(_look([observed.observations[each] for each in waiting.pop(one.platform)]))
    return looks


def _look(some: Sequence[Observation]) -> Look:
    """Observations of one platform, together."""
    durations = merged([h for one in some for h in one.paths.values()])
    return Look(some[0].platform, some[0].start_ns, max(one.end_ns for one in some), durations, tuple(some))


def found_in(looks: Sequence[Look], observed: Observed, options: MiningOptions) -> list[Found]:
    """Borders of each look on its own; of those that match the leftmost (§3.2).

    What many looks show need not be sure in each: z of m looks adds up to √m·z (Stouffer 1949).
    """
    everything = merged([look.durations for look in looks])
    time = time_within([one.batches for look in looks for one in look.observations])
    least = max(options.sure, SUREST / math.sqrt(max(len(looks), 1)))
    found = []
    for number, look in enumerate(looks):
        places = _borders(look, observed, options, time, least)
        own, common = cdf(look.durations, places), cdf(everything, places)
        sure = cdf(look.durations, _borders(look, observed, options, time, SUREST)) if places.size else own
        for i in matched(own, options.epsilon):
            evident = bool(np.abs(sure - own[i]).min(initial=1.0) < options.epsilon)
            found.append(Found(number, look.platform, float(places[i]), float(own[i]), float(common[i]), evident))
    return found


def _borders(look: Look, observed: Observed, options: MiningOptions, time: float, surest: float) -> Array:
    """Of one look."""
    if options.paper:
        return paper_borders(look.durations)
    tick = tick_of(observed, look.platform)
    return borders_of(look.durations, tick, total(look.durations) / time, surest)


def tick_of(observed: Observed, platform: int) -> float:
    """Step of the durations measured there, ns; 0 where the clock's is unknown."""
    tick = observed.platforms[platform].tick if platform < len(observed.platforms) else 0.0
    return max(tick, WHOLE_NS) if tick > 0 else 0.0
