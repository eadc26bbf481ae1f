"""Calls of recordings, sorted into the groups of a specification run by run, and how fast each machine is as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.durations import cdf, clusters, independent_calls, merged, merged_batches, total
from perflaw.learn.paths.edges import holds
from perflaw.learn.paths.selection import Selection, is_recorded, without_functions
from perflaw.types import Batches, Histogram, Observed, PathSpec
from perflaw.types.specifications import MIN_GROUP_WORTH, CallPath, MinedSpec, Tally

Array = NDArray[np.float64]

MachineFactors = Mapping[tuple[str, int], float]
"""Function and platform of the new recordings → how many times slower than specified it is there."""

FACTORS = np.exp(np.linspace(-np.log(8.0), np.log(8.0), 175))
"""Factors that are tried, 2.4 % apart; the middle one is 1."""
MAX_DEVIATION = 0.3
"""A group deviates by no more than this, however far its shares are off."""
PENALTY_PER_TENTH = 0.02
"""Penalty of a factor of 1.1 for each group: without evidence for a factor it is 1."""
MIN_FACTOR_GROUPS = 3
"""From so many groups on a common factor differs from a regression, on a known machine."""
REMEMBERED = 4096
"""Results that are remembered of each computation on recorded calls: those of a watch's latest rounds are some hundreds."""


@dataclass(frozen=True, slots=True)
class SpecOptions:
    """How strict a check of specifications is."""

    alpha: float = 0.01
    """Expected share of false alarms among the violated verdicts of a check, 0 to 1."""
    tolerance: float = 0.05
    """Smaller differences of shares are no violation."""
    min_effect: float = 1.1
    """Times that differ by less than this factor are equal: borders may be that much lower or higher."""
    absolute: bool = False
    """Hold times to the borders mined on this machine; otherwise only differences between groups count."""
    plan: bool = True
    """Say how many more runs would settle what is uncertain, which takes as long as the verdicts."""


@dataclass(frozen=True, slots=True, eq=False)
class PathCalls:
    """Calls by one call path in one run."""

    run: str
    """Id of the run."""
    platform: int
    """Index in ``Observed.platforms``."""
    path: CallPath
    """The call path."""
    histogram: Histogram
    """Their durations."""
    batches: Batches
    """Batch means of the durations in the order of the calls, which show their autocorrelation."""
    on_cpu: Histogram | None
    """CPU time of the same calls; None where it is not known beside their time."""
    worth: float
    """Number of independent calls that they are worth: at least one, at most their number."""


@dataclass(frozen=True, slots=True, eq=False)
class RunCalls:
    """Some calls of one run, put together."""

    wall: Histogram
    """Their durations."""
    on_cpu: Histogram | None
    """Their CPU time; None where it is not known of all."""
    worth: float
    """Number of independent calls that they are worth."""


@lru_cache(maxsize=REMEMBERED)
def put_together(calls: tuple[PathCalls, ...]) -> RunCalls:
    """The calls of a run as one; a check asks for the same ones for each look, and a watch again in the next round."""
    on_cpu = [one.on_cpu for one in calls if one.on_cpu is not None]
    return RunCalls(
        merged([one.histogram for one in calls]),
        merged(on_cpu) if len(on_cpu) == len(calls) else None,
        sum(one.worth for one in calls),
    )


PathKey = tuple[str, str, str, int, CallPath]
"""Function, metric, run, platform and call path."""


@dataclass(slots=True)
class KnownCalls:
    """What was found of the recordings that are judged, for whoever judges them again."""

    calls: dict[PathKey, PathCalls] = field(default_factory=dict)
    """The calls by each path."""
    groups: dict[tuple[str, str, CallPath], int | None] = field(default_factory=dict)
    """Function, metric and call path → the group that it belongs to."""

    def forget(self, runs: Collection[str]) -> None:
        """Forget recordings that are judged no more."""
        self.calls = {key: calls for key, calls in self.calls.items() if key[2] not in runs}


def calls_of(observed: Observed, known: KnownCalls) -> list[PathCalls]:
    """The observed calls by run and call path, in this order."""
    pieces: dict[tuple[str, int, CallPath], list[tuple[Histogram, Batches | None, Histogram | None]]] = {}
    for one in observed.observations:
        for path, histogram in one.paths.items():
            key = (one.run, one.platform, observed.paths[path])
            pieces.setdefault(key, []).append((histogram, one.path_batches.get(path), one.cpu_paths.get(path)))
    order = sorted(pieces, key=lambda key: (int(key[0]) if key[0].isdecimal() else 0, *key))

    def path_calls(key: tuple[str, int, CallPath]) -> PathCalls:
        histograms, batches, on_cpu = zip(*pieces[key], strict=True)
        all_on_cpu = [one for one in on_cpu if one is not None]
        together, batches_together = merged(histograms), merged_batches([one for one in batches if one is not None])
        calls = total(together)
        return PathCalls(
            *key,
            together,
            batches_together,
            merged(all_on_cpu) if len(all_on_cpu) == len(on_cpu) else None,
            min(float(calls), max(independent_calls(batches_together, calls), 1.0)) if calls else 0.0,
        )

    found = []
    for key in order:
        name = (observed.component, observed.metric, *key)
        if name not in known.calls:
            known.calls[name] = path_calls(key)
        found.append(known.calls[name])
    return found


@dataclass(frozen=True, slots=True)
class GroupedCalls:
    """New calls of a function in the groups of its specification."""

    mined: MinedSpec
    """The specification."""
    groups: tuple[tuple[PathCalls, ...], ...]
    """Calls of each group, by run and call path."""
    platforms: Mapping[int, int | None]
    """Platform of the new recordings → platform of the specification on the same machine; None for another machine."""
    outside: float
    """Share of the calls that belong to no group."""
    queued_ns: Mapping[str, int] = field(default_factory=dict)
    """Run → time that it queued for a CPU of a busy machine."""

    def shares_comparable(self) -> bool:
        """Whether shares can be compared: on another machine, borders are found by the groups' differences."""
        on_known_machine = any(own is not None for own in self.platforms.values())
        return bool(self.mined.spec.borders) and (on_known_machine or len(self.mined.spec.groups) > 1)


def group_calls(mined: MinedSpec, observed: Observed, known: KnownCalls | None = None) -> GroupedCalls:
    """The observed calls of a function in the groups of its specification; what is ``known`` is not found again."""
    known = known or KnownCalls()
    spec, calls, groups = mined.spec, calls_of(observed, known), {}
    for path in {one.path for one in calls}:
        name = (observed.component, observed.metric, path)
        if name not in known.groups:
            known.groups[name] = group_of(spec, path)
        groups[path] = known.groups[name]
    places = {platform.host: place for place, platform in enumerate(spec.platforms)}
    count = sum(total(one.histogram) for one in calls)
    ungrouped = sum(total(one.histogram) for one in calls if groups[one.path] is None)
    return GroupedCalls(
        mined,
        tuple(tuple(one for one in calls if groups[one.path] == group) for group in range(len(spec.groups))),
        {place: places.get(platform.host) for place, platform in enumerate(observed.platforms)},
        ungrouped / count if count else 0.0,
        observed.queued_ns,
    )


def group_of(spec: PathSpec, path: CallPath) -> int | None:
    """Group that a call path belongs to: a known path to its own, another to the only one whose expression holds.

    An edge of an expression may lead over callers that were not recorded when it was mined.
    """
    if path in spec.paths:
        known = spec.paths.index(path)
        return next((place for place, group in enumerate(spec.groups) if known in group.paths), None)
    as_mined = path_as_mined(spec, path)
    if as_mined in spec.paths:
        return group_of(spec, as_mined)
    fitting = [
        place for place, group in enumerate(spec.groups) if not group.standing and holds(group.expression, as_mined)
    ]
    return fitting[0] if len(fitting) == 1 else None


def path_as_mined(spec: PathSpec, path: CallPath) -> CallPath:
    """The call path as a recording of the specification's callers has it: others may divide what is specified as one."""
    return _as_recorded(path, spec.selected) if spec.selected else path


@lru_cache(maxsize=REMEMBERED)
def _as_recorded(path: CallPath, selected: Selection) -> CallPath:
    return without_functions(path, frozenset(name for name in path[:-1] if not is_recorded(name, selected)))


def tallies_of(spec: PathSpec, observed: Observed) -> tuple[tuple[Tally, ...], ...]:
    """For every group of the specification the calls in each cluster, run by run."""

    def tally(run: str, calls: Sequence[PathCalls]) -> Tally:
        shares = sum((clusters(one.histogram, borders_on(spec, one.platform)) for one in calls), np.zeros(1))
        # Rounded so that they add up to the number of calls.
        ends = np.rint(np.cumsum(shares)).astype(np.int64)
        return Tally(run, tuple(int(count) for count in np.diff(ends, prepend=0)), sum(one.worth for one in calls))

    groups = group_calls(MinedSpec(spec), observed).groups
    return tuple(tuple(tally(run, calls) for run, calls in by_run(group).items()) for group in groups)


def histograms_of(spec: PathSpec, observed: Observed) -> tuple[Histogram, ...]:
    """Durations of each group's calls over all runs."""
    return tuple(merged([one.histogram for one in group]) for group in group_calls(MinedSpec(spec), observed).groups)


def by_run(calls: Sequence[PathCalls]) -> dict[str, list[PathCalls]]:
    """Calls by run, in their order."""
    runs: dict[str, list[PathCalls]] = {}
    for one in calls:
        runs.setdefault(one.run, []).append(one)
    return runs


def borders_on(spec: PathSpec, platform: int | None) -> tuple[float, ...]:
    """Borders on a platform of the specification; for None or an unknown platform those of most calls."""
    if platform is None or spec.platform_borders is None:
        return spec.borders
    return spec.platform_borders.get(platform, spec.borders)


def shares_below(spec: PathSpec, group: int, platform: int | None) -> tuple[float, ...]:
    """Share of a group's calls below each border, on a platform of the specification or (None) over all."""
    one = spec.groups[group]
    shares = (one.behaviours or {}).get(-1 if platform is None else platform, one.distribution)
    return tuple(float(share) for share in np.cumsum(shares)[:-1])


@dataclass(frozen=True, slots=True)
class SpeedGroup:
    """One group of call paths, with its shares in the specification and its new durations."""

    below: tuple[float, ...]
    """Share of its calls below each border, as the specification says."""
    borders: tuple[float, ...]
    """The borders."""
    histogram: Histogram
    """Durations of its new calls."""


def machine_factors(functions: Sequence[GroupedCalls], options: SpecOptions) -> dict[tuple[str, int], float]:
    """How much slower each machine is as a whole, so that specifications hold in relative terms (§3.4, end).

    A machine under load, or another machine, stretches all times alike. On a known machine one factor holds for all
    functions; on another machine each function has a factor of its own.
    """
    factors: dict[tuple[str, int], float] = {}
    if options.absolute:
        return factors
    known = [(one, place) for one in functions for place, own in one.platforms.items() if own is not None]
    for place in {place for _, place in known}:
        groups = [group for one, other in known if other == place for group in _speed_groups(one, place)]
        factor = common_factor(groups, known=True)
        factors.update({(one.mined.spec.component, place): factor for one, other in known if other == place})
    for one in functions:
        for place, own in one.platforms.items():
            if own is None:
                factors[one.mined.spec.component, place] = common_factor(_speed_groups(one, place), known=False)
    return factors


def _speed_groups(function: GroupedCalls, platform: int) -> list[SpeedGroup]:
    """Groups with enough calls on a platform."""
    spec, own = function.mined.spec, function.platforms[platform]
    found = []
    for place, calls in enumerate(function.groups):
        here = [one for one in calls if one.platform == platform]
        if sum(one.worth for one in here) >= MIN_GROUP_WORTH and spec.borders:
            histogram = merged([one.histogram for one in here])
            found.append(SpeedGroup(shares_below(spec, place, own), borders_on(spec, own), histogram))
    return found


def common_factor(groups: Sequence[SpeedGroup], known: bool) -> float:
    """The factor at which most groups keep to their shares; 1 for few groups on a ``known`` machine.

    A group that keeps to its shares at no factor counts no more than ``MAX_DEVIATION``, so that one regression does not
    look like a slow machine.
    """
    if not groups or (known and len(groups) < MIN_FACTOR_GROUPS):
        return 1.0
    loss = np.zeros(FACTORS.size)
    for group in groups:
        places = np.multiply.outer(FACTORS, np.array(group.borders))
        shares = cdf(group.histogram, places.ravel()).reshape(places.shape)
        loss += np.minimum(np.abs(shares - np.array(group.below)).max(axis=1), MAX_DEVIATION)
    penalty = PENALTY_PER_TENTH * np.abs(np.log(FACTORS)) / np.log(1.1)
    return float(FACTORS[int(np.argmin(loss + penalty * len(groups) * (1.0 if known else 0.05)))])
