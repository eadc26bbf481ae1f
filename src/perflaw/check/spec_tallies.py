"""Calls of new or old recordings sorted into the groups of a specification, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.batches import independent, merged_batches
from perflaw.learn.paths.edges import holds
from perflaw.learn.paths.histograms import cdf, clusters, merged, total
from perflaw.types import Batches, Histogram, Observed, PathSpec
from perflaw.types.specifications import CallPath, MinedSpec, Tally

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """Calls that came by one call path in one run."""

    run: str
    """Id of the run."""
    platform: int
    """Place in ``Observed.platforms``."""
    path: CallPath
    """How they came."""
    histogram: Histogram
    """Their durations."""
    batches: Batches
    """Their order."""

    @property
    def worth(self) -> float:
        """Independent calls that they are worth."""
        return worth_of(self.batches, total(self.histogram))


def worth_of(batches: Batches, calls: int) -> float:
    """Independent calls that so many are worth, at most as many; at least one where there are any."""
    return min(float(calls), max(independent(batches, calls), 1.0)) if calls else 0.0


def parts_of(observed: Observed) -> list[Part]:
    """Observations put together by run and call path, in the order of runs and paths."""
    found: dict[tuple[str, int, CallPath], list[tuple[Histogram, Batches | None]]] = {}
    for one in observed.observations:
        for path, histogram in one.paths.items():
            key = (one.run, one.platform, observed.paths[path])
            found.setdefault(key, []).append((histogram, one.path_batches.get(path)))
    return [
        Part(*key, merged([h for h, _ in some]), merged_batches([b for _, b in some if b is not None]))
        for key, some in sorted(found.items(), key=lambda item: (_run_key(item[0][0]), item[0][1:]))
    ]


def _run_key(run: str) -> tuple[int, str]:
    return (int(run) if run.isdecimal() else 0, run)


def group_of(spec: PathSpec, path: CallPath) -> int | None:
    """Group that a call path belongs to: a known one to its own, another to the only one whose expression holds."""
    known = spec.paths.index(path) if path in spec.paths else None
    if known is not None:
        return next((place for place, group in enumerate(spec.groups) if known in group.paths), None)
    fitting = [place for place, group in enumerate(spec.groups) if not group.standing and holds(group.expression, path)]
    return fitting[0] if len(fitting) == 1 else None


def tallies_of(spec: PathSpec, observed: Observed) -> tuple[tuple[Tally, ...], ...]:
    """For every group of the specification what single runs showed of it."""
    parts = parts_of(observed)
    groups = {path: group_of(spec, path) for path in {part.path for part in parts}}
    return tuple(
        _by_run([part for part in parts if groups[part.path] == place], spec) for place in range(len(spec.groups))
    )


def histograms_of(spec: PathSpec, observed: Observed) -> tuple[Histogram, ...]:
    """Durations of each group's calls, all runs together."""
    parts = [(group_of(spec, part.path), part.histogram) for part in parts_of(observed)]
    return tuple(merged([h for group, h in parts if group == place]) for place in range(len(spec.groups)))


def _by_run(parts: Sequence[Part], spec: PathSpec) -> tuple[Tally, ...]:
    runs: dict[str, list[Part]] = {}
    for part in parts:
        runs.setdefault(part.run, []).append(part)
    return tuple(
        Tally(
            run,
            whole(sum((clusters(part.histogram, borders_on(spec, part.platform)) for part in some), np.zeros(1))),
            sum(part.worth for part in some),
        )
        for run, some in runs.items()
    )


def borders_on(spec: PathSpec, platform: int) -> tuple[float, ...]:
    """Borders on one of the specification's own platforms."""
    return spec.borders if spec.platform_borders is None else spec.platform_borders.get(platform, spec.borders)


def whole(values: Array) -> tuple[int, ...]:
    """Whole calls that add up to the same."""
    ends = np.rint(np.cumsum(values)).astype(np.int64)
    return tuple(int(one) for one in np.diff(ends, prepend=0))


# ---- How strict a check of specifications is.


@dataclass(frozen=True, slots=True)
class SpecOptions:
    """Tolerances of shares and times."""

    alpha: float = 0.01
    """Expected share of false alarms among the violated verdicts of a check, 0 to 1."""
    tolerance: float = 0.05
    """Shares that differ by no more do not differ."""
    min_effect: float = 1.1
    """Times that differ by less than this factor do not differ: borders may stand that much lower or higher."""
    absolute: bool = False
    """Hold times to the borders as they were mined on this platform; otherwise only how groups differ counts."""


# ---- How much faster or slower a platform is as a whole, so that specifications are held to relative terms (§3.4,
# end).
#
# A machine under load, or another one, stretches all times alike. The factor is the one at which most groups of all
# functions keep to their shares; a group that does not keep to them at any factor counts no more than a bounded
# amount,
# so that one regression does not pass for a slow machine.

FACTORS = np.exp(np.linspace(-np.log(8.0), np.log(8.0), 175))
"""Factors tried, 2.4 % apart; the middle one is 1."""
BOUND = 0.3
"""A group deviates by no more than this, however far its shares are off."""
DOUBT_PER_TENTH = 0.02
"""What a factor of 1.1 costs, per group: where little speaks for a factor it is 1."""
FEWEST = 3
"""Groups from which on a common factor can be told from a regression, on a platform that is known."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One group of call paths, old and new."""

    below: tuple[float, ...]
    """Share of its calls below each border, as the specification says."""
    borders: tuple[float, ...]
    """The borders."""
    histogram: Histogram
    """Its new calls."""


def common_factor(units: Sequence[Unit], known: bool) -> float:
    """The factor for all of them; 1 where the platform is ``known`` and too few groups speak."""
    if not units or (known and len(units) < FEWEST):
        return 1.0
    loss = sum((np.minimum(_deviation(unit), BOUND) for unit in units), np.zeros(FACTORS.size))
    cost = DOUBT_PER_TENTH * np.abs(np.log(FACTORS)) / np.log(1.1)
    return float(FACTORS[int(np.argmin(loss + cost * len(units) * (1.0 if known else 0.05)))])


def _deviation(unit: Unit) -> Array:
    """Largest difference of the shares below a border, at each factor, (F,)."""
    places = np.multiply.outer(FACTORS, np.array(unit.borders))
    shares = cdf(unit.histogram, places.ravel()).reshape(places.shape)
    return np.asarray(np.abs(shares - np.array(unit.below)).max(axis=1))


# ---- New calls sorted into the groups of specifications, and how much slower their machine is as a whole.

FEWEST_OF_GROUP = 20.0
"""Independent calls that a group must be worth to be looked at."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """New calls of a function sorted into the groups of its specification."""

    mined: MinedSpec
    """The specification."""
    groups: tuple[tuple[Part, ...], ...]
    """Calls of each group, by run and call path."""
    hosts: Mapping[int, int | None]
    """Platform of the new recordings → the specification's own on the same machine; None where it has none."""
    outside: float
    """Share of the calls that belong to no group."""


def sort_calls(mined: MinedSpec, observed: Observed) -> Sorted:
    """Every call path to its group."""
    spec, parts = mined.spec, parts_of(observed)
    groups = {path: group_of(spec, path) for path in {part.path for part in parts}}
    known = {one.host: place for place, one in enumerate(spec.platforms)}
    calls = sum(total(part.histogram) for part in parts)
    left = sum(total(part.histogram) for part in parts if groups[part.path] is None)
    return Sorted(
        mined,
        tuple(tuple(part for part in parts if groups[part.path] == place) for place in range(len(spec.groups))),
        {place: known.get(one.host) for place, one in enumerate(observed.platforms)},
        left / calls if calls else 0.0,
    )


Factors = Mapping[tuple[str, int], float]
"""(function, platform of the new recordings) → how many times slower than specified it is."""


def factors_of(several: Sequence[Sorted], options: SpecOptions) -> dict[tuple[str, int], float]:
    """One factor a known machine over all functions; on another machine one a function, whatever it is."""
    found: dict[tuple[str, int], float] = {}
    if options.absolute:
        return found
    known = [(one, place) for one in several for place, own in one.hosts.items() if own is not None]
    for place in {place for _, place in known}:
        units = [unit for one, other in known if other == place for unit in _units(one, place)]
        factor = common_factor(units, known=True)
        found.update({(one.mined.spec.component, place): factor for one, other in known if other == place})
    for one in several:
        for place, own in one.hosts.items():
            if own is None:
                found[one.mined.spec.component, place] = common_factor(_units(one, place), known=False)
    return found


def _units(one: Sorted, platform: int) -> list[Unit]:
    """Groups with enough calls on a platform."""
    found = []
    for place, parts in enumerate(one.groups):
        here = [part for part in parts if part.platform == platform]
        if sum(part.worth for part in here) >= FEWEST_OF_GROUP and one.mined.spec.borders:
            shares = below(one.mined.spec, place, one.hosts[platform])
            borders = own_borders(one.mined.spec, one.hosts[platform])
            found.append(Unit(shares, borders, merged([part.histogram for part in here])))
    return found


def below(spec: PathSpec, place: int, platform: int | None) -> tuple[float, ...]:
    """Share of a group's calls below each border, on one of the specification's own platforms or over all."""
    group = spec.groups[place]
    shares = (group.behaviours or {}).get(-1 if platform is None else platform, group.distribution)
    return tuple(float(one) for one in np.cumsum(shares)[:-1])


def own_borders(spec: PathSpec, platform: int | None) -> tuple[float, ...]:
    """Borders on one of the specification's own platforms, else those of most calls."""
    return spec.borders if platform is None else borders_on(spec, platform)
