"""A group of call paths in new recordings: by how much its shares of slow calls differ from the specification, by run."""

from __future__ import annotations

from collections.abc import Sequence
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
    shares_below,
)
from perflaw.learn.paths.durations import cdf, merged, total
from perflaw.types import PathGroup, PathSpec
from perflaw.types.specifications import CallPath, MinedSpec

MIN_PATH_WORTH = 30.0
"""Independent calls that a call path must be worth, old and new, to be looked at on its own."""
MAX_PATHS = 40
"""Number of call paths of a group that are looked at on their own, those of most calls first."""


@dataclass(frozen=True, slots=True)
class ShareLook:
    """The share of calls that are slower than one border, run by run; differences are towards slower calls."""

    paths: tuple[CallPath, ...]
    """The call paths."""
    border: float
    """The border of the specification, ns."""
    expected: float
    """Share of slower calls in the specification."""
    base: Effects
    """Differences of the share in the runs that the specification was mined from."""
    new: Effects
    """Differences of the share in the new runs."""
    whole: bool
    """The look is at all calls of the group."""
    worth: float
    """Number of independent new calls."""


@dataclass(frozen=True, slots=True)
class SpecCase:
    """A group of call paths with all looks at it."""

    mined: MinedSpec
    """The specification."""
    place: int
    """Index of the group in the specification."""
    looks: tuple[ShareLook, ...]
    """Looks at the group as a whole, one for each border, then those at its call paths."""
    runs: int
    """Number of new runs."""
    calls: int
    """Number of new calls."""
    worth: float
    """Number of independent calls that these are worth."""
    outside: float
    """Share of the function's new calls that belong to no group."""

    @property
    def spec(self) -> PathSpec:
        """The specification itself."""
        return self.mined.spec

    @property
    def group(self) -> PathGroup:
        """The group itself."""
        return self.mined.spec.groups[self.place]


def case_of(function: GroupedCalls, place: int, factors: MachineFactors, options: SpecOptions) -> SpecCase:
    """All looks at one group of a function."""
    spec, calls = function.mined.spec, function.groups[place]
    borders = range(len(spec.borders))
    looks = [_look(function, place, border, calls, factors, options) for border in borders]
    by_path: dict[CallPath, list[PathCalls]] = {}
    for one in calls:
        by_path.setdefault(one.path, []).append(one)
    order = sorted(by_path, key=lambda path: (-sum(total(one.histogram) for one in by_path[path]), path))
    for path in order[:MAX_PATHS] if len(order) > 1 else []:
        worth = sum(one.worth for one in by_path[path])
        if worth >= MIN_PATH_WORTH and _worth_before(spec, place, path) >= MIN_PATH_WORTH:
            looks += [_look(function, place, border, by_path[path], factors, options, path) for border in borders]
    return SpecCase(
        function.mined,
        place,
        tuple(looks),
        runs=len({one.run for one in calls}),
        calls=sum(total(one.histogram) for one in calls),
        worth=sum(one.worth for one in calls),
        outside=function.outside,
    )


def _look(
    function: GroupedCalls,
    place: int,
    border: int,
    calls: Sequence[PathCalls],
    factors: MachineFactors,
    options: SpecOptions,
    path: CallPath | None = None,
) -> ShareLook:
    """The look at a group, or at one call path of it."""
    spec = function.mined.spec
    if path is None:
        expected = 1.0 - shares_below(spec, place, None)[border]
        base = _base_of_group(function.mined, place, border, expected)
    else:
        expected = _share_before(spec, spec.groups[place], path, border)
        base = _one_run(expected, _worth_before(spec, place, path))
    measured = [
        _difference(function, place, border, run, expected, factors, options, whole=path is None)
        for run in by_run(calls).values()
    ]
    return ShareLook(
        paths=tuple(dict.fromkeys(one.path for one in calls)),
        border=spec.borders[border],
        expected=expected,
        base=base,
        new=Effects(np.array([value for value, _ in measured]), np.array([variance for _, variance in measured])),
        whole=path is None,
        worth=sum(one.worth for one in calls),
    )


def _difference(
    function: GroupedCalls,
    place: int,
    border: int,
    calls: Sequence[PathCalls],
    expected: float,
    factors: MachineFactors,
    options: SpecOptions,
    *,
    whole: bool,
) -> tuple[float, float]:
    """Share of slow calls in a run minus the specified share, and the variance of the difference.

    The border may lie anywhere within the minimum effect: if that explains the share, the difference is 0.
    """
    spec, worth = function.mined.spec, max(sum(one.worth for one in calls), 1.0)
    histogram, platform = merged([one.histogram for one in calls]), calls[0].platform
    own = function.platforms[platform]
    if whole:
        expected = 1.0 - shares_below(spec, place, own)[border]
    here = borders_on(spec, own)[border] * factors.get((spec.component, platform), 1.0)
    slack = 1.0 if options.absolute else options.min_effect
    largest, smallest = (1.0 - cdf(histogram, [here / slack, here * slack])).tolist()
    share = min(max(expected, smallest), largest)
    return share - expected, _variance(share, worth)


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
    return _one_run(expected, group.effective) if counted_shares else NO_RUNS


def _share_before(spec: PathSpec, group: PathGroup, path: CallPath, border: int) -> float:
    """Share of slow calls that one call path had, shrunk towards the share of its group if it had few calls."""
    usual = sum(group.distribution[border + 1 :])
    if path not in spec.paths:
        return usual
    counts = spec.path_counts[spec.paths.index(path)]
    return (sum(counts[border + 1 :]) + MIN_PATH_WORTH * usual) / (sum(counts) + MIN_PATH_WORTH)


def _worth_before(spec: PathSpec, place: int, path: CallPath) -> float:
    """Independent calls by a call path behind the specification; a file without call paths speaks of all paths."""
    group = spec.groups[place]
    if not group.paths:
        return group.effective
    if path not in spec.paths:
        return 0.0
    return sum(spec.path_counts[spec.paths.index(path)]) * group.effective / max(sum(group.counts), 1)
