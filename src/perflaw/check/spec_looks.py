"""Looks at specified groups: some calls of a group in new recordings, compared with their specification run by run.

A look is at the share of calls that are slower than a border, or at a quantile of the durations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.check.evalues import NO_RUNS, Effects
from perflaw.check.spec_calls import (
    GroupedCalls,
    MachineFactors,
    PathCalls,
    SpecOptions,
    borders_on,
    by_run,
    path_as_mined,
    put_together,
    shares_below,
)
from perflaw.check.spec_location import (
    MIN_PATH_WORTH,
    MachineSpeed,
    base_effects,
    location_effects,
    queued_part,
)
from perflaw.learn.paths.durations import cdf, total
from perflaw.types.specifications import CallPath, MinedSpec, PathGroup, PathSpec

SHARE_DOUBT, LOCATION_DOUBT = 0.2, float(np.log(2.0))
"""A specification holds if it is known that shares differ by no more than this, and durations by no more than this factor,
beyond what is relevant."""
MAX_PATHS = 40
"""Number of call paths of a group that are looked at on their own, those of most calls first."""


@dataclass(frozen=True, slots=True)
class Look:
    """Some calls of a group compared with their specification, run by run; differences are towards slower calls."""

    calls: tuple[PathCalls, ...]
    """The new calls."""
    base: Effects
    """Differences in the runs that the specification was mined from."""
    new: Effects
    """Differences in the new runs."""
    whole: bool
    """The look is at all calls of the group."""
    relevant: float
    """The smallest difference that matters."""
    doubt: float
    """A specification holds if no difference is likely that is larger than the relevant one by this."""

    @property
    def paths(self) -> tuple[CallPath, ...]:
        """Their call paths."""
        return tuple(dict.fromkeys(one.path for one in self.calls))

    @property
    def worth(self) -> float:
        """Number of independent calls that they are worth."""
        return sum(one.worth for one in self.calls)


@dataclass(frozen=True, slots=True)
class ShareLook(Look):
    """The share of calls that are slower than one border."""

    place: int
    """Place of the border among those of the specification."""
    border: float
    """The border of the specification, ns."""
    expected: float
    """Share of slower calls in the specification."""


@dataclass(frozen=True, slots=True)
class LocationLook(Look):
    """Logarithms of a quantile of the durations over the specified one, after the speed of the machine."""

    level: int
    """Place of the quantile in ``LEVELS``."""
    expected: float
    """The specified duration, ns."""
    difference: float
    """The difference as it is, also as far as the tolerance or the unknown speed of the machine explains it."""
    machine: float
    """How many times slower the machine is as a whole in the new runs."""


Looks = Sequence[ShareLook | LocationLook]


@dataclass(frozen=True, slots=True)
class SpecCase:
    """A group of call paths with all looks at it."""

    function: GroupedCalls
    """The function with its new calls."""
    place: int
    """Index of the group in the specification."""
    looks: tuple[ShareLook | LocationLook, ...]
    """Looks at the group as a whole, then those at its call paths as they were specified."""
    finer: tuple[ShareLook | LocationLook, ...] = ()
    """Looks at call paths that further callers divide. They tell where a deviation is, and are no evidence for one."""

    @property
    def spec(self) -> PathSpec:
        """The specification itself."""
        return self.function.mined.spec

    @property
    def group(self) -> PathGroup:
        """The group itself."""
        return self.spec.groups[self.place]

    @property
    def new_calls(self) -> tuple[PathCalls, ...]:
        """The new calls of the group."""
        return self.function.groups[self.place]

    @property
    def calls(self) -> int:
        """Number of new calls."""
        return sum(total(one.histogram) for one in self.new_calls)

    @property
    def worth(self) -> float:
        """Number of independent calls that these are worth."""
        return sum(one.worth for one in self.new_calls)

    @property
    def runs(self) -> int:
        """Number of new runs."""
        return len({one.run for one in self.new_calls})


@dataclass(frozen=True, slots=True)
class LookSettings:
    """What all looks need to know."""

    options: SpecOptions
    """How strict the check is."""
    factors: MachineFactors
    """How much slower each machine is, by the shares of the groups: borders are scaled by it."""
    speeds: Mapping[tuple[int, str], MachineSpeed]
    """How much slower each run is, by the durations of the functions that call no other one."""

    def border_range(self, function: GroupedCalls, platform: int, run: str) -> tuple[float, float]:
        """Factors between which a function's borders may lie in a run."""
        if self.options.absolute:
            return 1.0, 1.0
        factor = self.factors.get((function.mined.spec.component, platform), 1.0)
        speed, effect = self.speeds.get((platform, run)), self.options.min_effect
        if speed is None or function.platforms[platform] is None:
            return factor / effect, factor * effect
        slowest, quickest = float(speed.log_factor.max()) + speed.slack, float(speed.log_factor.min()) - speed.slack
        return min(factor, float(np.exp(quickest))) / effect, max(factor, float(np.exp(slowest))) * effect


def case_of(function: GroupedCalls, place: int, settings: LookSettings) -> SpecCase:
    """All looks at one group of a function."""
    spec, calls = function.mined.spec, function.groups[place]
    looks = looks_at(function, place, calls, settings)
    of_paths: dict[CallPath, dict[CallPath, list[PathCalls]]] = {}
    for one in calls:
        of_paths.setdefault(path_as_mined(spec, one.path), {}).setdefault(one.path, []).append(one)
    by_path = {path: [one for some in finer.values() for one in some] for path, finer in of_paths.items()}
    finer_looks: list[ShareLook | LocationLook] = []
    order = sorted(by_path, key=lambda path: (-sum(total(one.histogram) for one in by_path[path]), path))
    for path in order[:MAX_PATHS]:
        if _worth(by_path[path]) < MIN_PATH_WORTH or _worth_before(spec, place, {path}) < MIN_PATH_WORTH:
            continue
        if len(order) > 1:
            looks += looks_at(function, place, by_path[path], settings, is_whole=False)
        for some in of_paths[path].values() if len(of_paths[path]) > 1 else ():
            if _worth(some) >= MIN_PATH_WORTH:
                finer_looks += looks_at(function, place, some, settings, is_whole=False)
    return SpecCase(function, place, tuple(looks), tuple(finer_looks))


def _worth(calls: Sequence[PathCalls]) -> float:
    """Number of independent calls."""
    return sum(one.worth for one in calls)


def part_of_paths(function: GroupedCalls, place: int, calls: Sequence[PathCalls]) -> float:
    """Which part some calls are of all new calls by the same call paths as they were specified, 0 to 1."""
    spec, own = function.mined.spec, {one.path for one in calls}
    specified = {path_as_mined(spec, path) for path in own}
    alike = [
        one for one in function.groups[place] if one.path not in own and path_as_mined(spec, one.path) in specified
    ]
    here, others = (sum(total(one.histogram) for one in some) for some in (calls, alike))
    return here / (here + others) if others else 1.0


def looks_at(
    function: GroupedCalls,
    place: int,
    calls: Sequence[PathCalls],
    settings: LookSettings,
    *,
    is_whole: bool = True,
) -> list[ShareLook | LocationLook]:
    """All looks at the calls of a group, or at those by some of its call paths."""
    borders = range(len(function.mined.spec.borders)) if function.shares_comparable() else ()
    part = None if is_whole else part_of_paths(function, place, calls)
    looks: list[ShareLook | LocationLook] = [
        share_look(function, place, border, calls, settings, part) for border in borders
    ]
    return looks + location_looks(function, place, calls, settings, part)


def share_look(
    function: GroupedCalls,
    place: int,
    border: int,
    calls: Sequence[PathCalls],
    settings: LookSettings,
    part: float | None,
) -> ShareLook:
    """The look at the share of slow calls of a group, or of those that are a ``part`` of some of its call paths."""
    spec, options = function.mined.spec, settings.options
    expected, ends = 1.0 - shares_below(spec, place, None)[border], None
    if part is None:
        base = _base_of_group(function.mined, place, border, expected)
    else:
        paths = {path_as_mined(spec, one.path) for one in calls}
        expected, ends = _shares_before(spec, place, border, paths, part)
        base = _one_run(expected, _worth_before(spec, place, paths))
    measured = [_difference(function, place, border, run, expected, settings, ends) for run in by_run(calls).values()]
    values = np.array([value for value, _ in measured])
    middle = float(values.mean()) if ends else 0.0
    return ShareLook(
        calls=tuple(calls),
        base=base,
        new=Effects(values, np.array([variance for _, variance in measured])),
        whole=part is None,
        relevant=options.tolerance,
        doubt=SHARE_DOUBT,
        place=border,
        border=spec.borders[border],
        expected=ends[middle > 0] if ends and middle else expected,
    )


def _shares_before(
    spec: PathSpec, place: int, border: int, paths: Collection[CallPath], part: float
) -> tuple[float, tuple[float, float]]:
    """The usual share of slow calls by call paths of a group, and the least and the largest that they may have had.

    A ``part`` of their calls, which further callers divide, may have had any share that leaves theirs as it is specified.
    """
    group = spec.groups[place]
    usual = sum(group.distribution[border + 1 :])
    known = [spec.paths.index(path) for path in paths if path in spec.paths]
    least = most = usual
    if known:
        # The share of call paths with few calls is shrunk towards that of their group.
        counts = np.array([spec.path_counts[path] for path in known], dtype=np.float64).sum(axis=0)
        usual = float((counts[border + 1 :].sum() + MIN_PATH_WORTH * usual) / (counts.sum() + MIN_PATH_WORTH))
        least = most = usual
    elif len(group.path_shares) > border:
        least, most = group.path_shares[border]
    least, most = max((least - 1.0 + part) / part, 0.0), min(most / part, 1.0)
    return min(max(usual, least), most), (least, most)


def location_looks(
    function: GroupedCalls,
    place: int,
    calls: Sequence[PathCalls],
    settings: LookSettings,
    part: float | None,
) -> list[LocationLook]:
    """The looks at the durations of a group, one for each level, or at the median of a ``part`` of some call paths of it."""
    group, options = function.mined.spec.groups[place], settings.options
    effects = location_effects(function, place, calls, settings.speeds, options, part=part)
    if not effects:
        return []
    base = base_effects(group, group.runs)
    known = {(one.platform, one.run) for one in calls} & settings.speeds.keys()
    machine = np.exp(np.median([settings.speeds[key].log_factor for key in known], axis=0)).tolist()
    return [
        LocationLook(
            calls=tuple(calls),
            base=base,
            new=effect.beyond,
            whole=part is None,
            relevant=float(np.log(options.min_effect)),
            doubt=LOCATION_DOUBT,
            level=level,
            expected=effect.expected,
            difference=effect.whole,
            machine=machine[level],
        )
        for level, effect in effects.items()
    ]


def _difference(
    function: GroupedCalls,
    place: int,
    border: int,
    calls: Sequence[PathCalls],
    expected: float,
    settings: LookSettings,
    ends: tuple[float, float] | None,
) -> tuple[float, float]:
    """Share of slow calls in a run minus the specified share, and the variance of the difference.

    The border may lie anywhere within the minimum effect and within the speeds that the machine had in this run: if that
    explains the share, the difference is 0. It is also 0 if the share lies between ``ends``, which are None for a whole group.
    """
    spec, platform, here = function.mined.spec, calls[0].platform, put_together(tuple(calls))
    own = function.platforms[platform]
    if ends is None:
        expected = 1.0 - shares_below(spec, place, own)[border]
        ends = expected, expected
    low, high = settings.border_range(function, platform, calls[0].run)
    place_ns = borders_on(spec, own)[border]
    largest, smallest = (1.0 - cdf(here.wall, [place_ns * low, place_ns * high])).tolist()
    if here.on_cpu is not None:
        # Calls that queued for a CPU of a busy machine may be as quick as they were on it.
        part = queued_part(here.wall, here.on_cpu, function.queued_ns.get(calls[0].run, 0))
        smallest -= part * max(smallest - 1.0 + float(cdf(here.on_cpu, [place_ns * high])[0]), 0.0)
    nearest = min(max(expected, smallest), largest)
    expected = min(max(nearest, ends[0]), ends[1])
    share = min(max(expected, smallest), largest)
    return share - expected, _variance(share, max(here.worth, 1.0))


def _variance(share: float, worth: float) -> float:
    """Sampling variance of a share of ``worth`` independent calls, smoothed by half a call on each side."""
    smooth = (share * worth + 0.5) / (worth + 1.0)
    return smooth * (1.0 - smooth) / max(worth, 1.0)


def _one_run(share: float, worth: float) -> Effects:
    """The runs behind a share taken as one run."""
    return Effects(np.zeros(1), np.array([_variance(share, worth)]))


def _base_of_group(mined: MinedSpec, place: int, border: int, expected: float) -> Effects:
    """Differences in the runs behind the specification, each with its sampling variance.

    Without single runs all calls count as one run; shares that a person wrote have no runs.
    """
    group = mined.spec.groups[place]
    tallies = mined.tallies[place] if mined.tallies else ()
    if len(tallies) > 1:
        counted = [tally for tally in tallies if sum(tally.counts)]
        shares = np.array([sum(tally.counts[border + 1 :]) / sum(tally.counts) for tally in counted])
        worth = np.maximum(np.array([tally.worth for tally in counted]), 1.0)
        smooth = (shares * worth + 0.5) / (worth + 1.0)
        return Effects(shares - expected, smooth * (1.0 - smooth) / worth)
    calls = sum(group.counts)
    counted_shares = calls and all(
        abs(share - count / calls) < 1e-4 for share, count in zip(group.distribution, group.counts, strict=True)
    )
    if not counted_shares:
        return NO_RUNS
    if len(group.share_spread) > border:
        # Runs that scatter as the specification says.
        contrast = np.linspace(-1.0, 1.0, max(group.runs, 2))
        variance = _variance(expected, group.effective / contrast.size)
        return Effects(group.share_spread[border] * contrast / contrast.std(ddof=1), np.full(contrast.size, variance))
    return _one_run(expected, group.effective)


def _worth_before(spec: PathSpec, place: int, paths: Collection[CallPath]) -> float:
    """Independent calls by call paths behind the specification; a file without call paths speaks of all paths."""
    group = spec.groups[place]
    if not group.paths:
        return group.effective
    calls = sum(sum(spec.path_counts[spec.paths.index(path)]) for path in paths if path in spec.paths)
    return calls * group.effective / max(sum(group.counts), 1)
