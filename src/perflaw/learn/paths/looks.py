"""What each observation shows on its own: its borders, and how much of the mass lies below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.learn.modes import MIN_Z
from perflaw.learn.paths.batches import time_within
from perflaw.learn.paths.borders import borders_of, paper_borders
from perflaw.learn.paths.histograms import cdf, merged, quantile, total
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import Histogram, Observation, Observed

# ---- Durations that recording itself has made longer make no claims (§4, RQ5; specs/mining.md, "Nesting").


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What can be used."""

    observed: Observed
    """The same with the perturbed observations left out."""
    notes: tuple[str, ...] = ()
    """What was left out and what to do."""


def undisturbed(observed: Observed, options: MiningOptions) -> Undisturbed:
    """Observations in which probes of nested calls take at most that part of the median duration."""
    kept = tuple(one for one in observed.observations if not _perturbed(one, observed.probe_ns, options.perturbed))
    left = len(observed.observations) - len(kept)
    if left == 0:
        return Undisturbed(observed)
    return Undisturbed(
        replace(observed, observations=kept),
        (
            f"perturbed: in {left} of {len(observed.observations)} observations the probes of calls within take more than "
            f"{options.perturbed:.0%} of the median duration; these are left out: "
            f"record it alone, `perflaw record --collect paths --select {observed.component} -- …`",
        ),
    )


def _perturbed(one: Observation, probe_ns: float, most: float) -> bool:
    """Whether probes take too much of the usual duration."""
    durations = merged(list(one.paths.values()))
    calls = total(durations)
    if calls == 0 or one.nested == 0 or probe_ns <= 0:
        return False
    return one.nested * probe_ns / calls > most * float(quantile(durations, 0.5))


# ---- Matching of borders by the mass between them (Brünink & Rosenblum, FSE'16, Definition 1).


def matched(shares: ArrayLike, epsilon: float) -> NDArray[np.intp]:
    """Places of the borders that stay, (k,), given the shares F of the mass below each, increasing, (m,).

    Scanned from the left, the leftmost of those that match it is kept: no chains. A border with less than ε of the mass on
    one side is dropped.

    >>> matched([0.01, 0.3, 0.34, 0.38, 0.97], 0.05)
    array([1, 3])
    """
    share = np.asarray(shares, dtype=np.float64)
    kept: list[int] = []
    for place in np.flatnonzero((share >= epsilon) & (share <= 1.0 - epsilon)):
        if not kept or share[place] - share[kept[-1]] >= epsilon:
            kept.append(int(place))
    return np.array(kept, dtype=np.intp)


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
    least = max(options.sure, MIN_Z / math.sqrt(max(len(looks), 1)))
    found = []
    for number, look in enumerate(looks):
        places = _borders(look, observed, options, time, least)
        own, common = cdf(look.durations, places), cdf(everything, places)
        sure = cdf(look.durations, _borders(look, observed, options, time, MIN_Z)) if places.size else own
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
