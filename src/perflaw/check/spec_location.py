"""Where the durations of each group of call paths lie: quantiles of runs, and how much slower a machine is as a whole.

The durations of one program change from run to run because the machine does: its clock rate, what the sibling of its core
does, others that want the same cores. All functions share that, so a group's durations are compared after the common factor
of all functions has been taken out, run by run and quantile by quantile: a run that was slow for a part of its time has
other upper quantiles than lower ones. What a caller takes contains what its callees take; so only functions that call no
other specified function say how fast the machine was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from perflaw.check.evalues import MAX_FREEDOM, Effects, RunSpread, learn_spread
from perflaw.check.spec_calls import (
    FACTORS,
    PENALTY_PER_TENTH,
    REMEMBERED,
    GroupedCalls,
    PathCalls,
    RunCalls,
    SpecOptions,
    by_run,
    group_calls,
    group_of,
    put_together,
    tallies_of,
)
from perflaw.learn.paths.durations import cdf, mean_duration, merged, quantile, total
from perflaw.learn.paths.mine import effort
from perflaw.learn.paths.selection import literal_pattern
from perflaw.types import Histogram, Observed, PathGroup, PathSpec
from perflaw.types.specifications import LOCATION_LEVELS, MIN_GROUP_WORTH, CallPath, MinedSpec, Tally

Array = NDArray[np.float64]

LEVELS = np.array(LOCATION_LEVELS)
MEDIAN = LOCATION_LEVELS.index(0.5)
MIN_PATH_WORTH = 30.0
"""Independent calls that a call path must be worth to be looked at on its own."""
MAX_ERRORS = 3.0
"""Standard errors of a share by which quantiles may differ by chance."""
QUEUED_SLACK = 1.05
"""Durations on the CPU are kept beside those on the clock if they are smaller by more than this factor."""
MIN_WITNESSES, MIN_FOREIGN_WITNESSES = 2, 3
"""Functions that must say how fast the machine was: the machine of the specification, and another one."""
OWN_RANGE = float(np.log(2.0))
"""How far the speed of a machine changes by itself (clock rate, the other half of a core), as a logarithm. It is the slack
of durations where no other function says how fast the machine was."""
FOREIGN_RANGE = float(np.log(2.0))
"""How far functions differ in how much slower another machine runs them."""
AGREEMENT = 0.3
"""Functions whose logarithms differ by less may speak of the same speed."""
DEFAULT_SPREAD = RunSpread(0.15, MAX_FREEDOM)
"""Between-run deviation of log durations beyond what all functions share, while nothing else is known. It has no long tail:
how much more a machine slows down one function than another is bounded."""
EXACT = 1e-6
"""Sampling variance of runs whose deviation contains it."""
GROUPED = 0.75
"""Part of the location that is done when the calls of each group are found."""
TINY = 1e-3
"""Shortest duration, ns: calls that took no time by the clock."""


# ---- Quantiles of runs.


@dataclass(frozen=True, slots=True, eq=False)
class RunDurations:
    """Quantiles of some calls in one run; arrays have one element for each level."""

    run: str
    """Id of the run."""
    platform: int
    """Its platform."""
    low: Array
    """Logarithms of the quantiles without what the calls may have queued for a CPU."""
    high: Array
    """Logarithms of the quantiles by the clock."""
    least: Array
    """``low`` if as many calls were quicker as the tolerance of shares and chance explain."""
    most: Array
    """``high`` if as many were slower."""
    variance: Array
    """Sampling variance of the logarithms, from the number of independent calls."""


def durations_by_run(
    calls: Sequence[PathCalls],
    queued_ns: Mapping[str, int],
    tolerance: float,
    levels: Array = LEVELS,
    base_worth: float = np.inf,
) -> list[RunDurations]:
    """The quantiles of calls in every run in which there are enough of them.

    They are compared with quantiles of ``base_worth`` independent calls: where durations are of two kinds, a few calls more
    of one kind move a quantile from the one to the other.
    """
    return [
        _durations_in_run(tuple(here), queued_ns.get(run, 0), tolerance, tuple(levels.tolist()), base_worth)
        for run, here in by_run(calls).items()
        if put_together(tuple(here)).worth >= MIN_GROUP_WORTH
    ]


@lru_cache(maxsize=REMEMBERED)
def _durations_in_run(
    calls: tuple[PathCalls, ...], queued_ns: int, tolerance: float, quantiles: tuple[float, ...], base_worth: float
) -> RunDurations:
    """The quantiles in one run. The speed of the machine, the looks at a group and a watch's next round ask for the same."""
    here, levels = put_together(calls), np.array(quantiles)
    margin = np.sqrt(levels * (1.0 - levels) / here.worth)
    by_chance = tolerance + MAX_ERRORS * np.sqrt(levels * (1.0 - levels) * (1.0 / here.worth + 1.0 / base_worth))
    wanted = np.clip([levels, levels - by_chance, levels + by_chance, levels - margin, levels + margin], 0.0, 1.0)
    high, least, most, *ends = _log_quantiles(here.wall, wanted)  # all at once: most of the time goes into each call
    low, least = _without_queueing(here, queued_ns, wanted[:2], [high, least])
    variance = ((ends[1] - ends[0]) / 2.0) ** 2
    return RunDurations(calls[0].run, calls[0].platform, low, high, least, most, variance)


def _without_queueing(calls: RunCalls, queued_ns: int, levels: Array, by_clock: Sequence[Array]) -> Sequence[Array]:
    """Log quantiles without queueing, from those ``by_clock``: the kernel says how long a run queued in all, not which calls.

    Calls were off the CPU because they waited or because they queued. Of that time, up to ``queued_ns`` may be queueing.
    """
    if calls.on_cpu is None:
        return by_clock
    queued = queued_part(calls.wall, calls.on_cpu, queued_ns)
    by_cpu = np.minimum(by_clock, _log_quantiles(calls.on_cpu, levels))
    return [*np.log((1.0 - queued) * np.exp(by_clock) + queued * np.exp(by_cpu))]


@lru_cache(maxsize=REMEMBERED)
def queued_part(wall: Histogram, cpu: Histogram, queued_ns: int) -> float:
    """Which part of the calls' time off the CPU may be queueing, 0 to 1, in a run that queued so long."""
    off = _sum(wall) - _sum(cpu)
    return min(1.0, queued_ns / off) if off > 0 else 0.0


def _log_quantiles(histogram: Histogram, levels: Array) -> Array:
    return np.asarray(np.log(np.maximum(quantile(histogram, levels), TINY)))


def _sum(histogram: Histogram) -> float:
    """Sum of the durations."""
    return mean_duration(histogram) * total(histogram)


# ---- Specifications.


def locate(
    specs: Sequence[MinedSpec], observed: Sequence[Observed], tell: Callable[[float], None] = lambda part: None
) -> list[MinedSpec]:
    """The specifications with the durations of their groups in the runs that they were mined from.

    ``observed`` has the observations behind each specification. The durations of a group are means over the runs; how much
    runs differ is known after what all functions share in each run has been taken out. ``tell`` is told the part that is
    done.
    """
    grouped: list[GroupedCalls] = []
    efforts = [effort(of_function) for of_function in observed]
    for mined, of_function in zip(specs, observed, strict=True):
        grouped.append(group_calls(mined, of_function))
        tell(GROUPED * sum(efforts[: len(grouped)]) / sum(efforts))
    runs: dict[tuple[int, int], list[RunDurations]] = {}
    for number, of_spec in enumerate(grouped):
        for place, calls in enumerate(of_spec.groups):
            runs[number, place] = durations_by_run(calls, of_spec.queued_ns, 0.0)
        tell(GROUPED + (1.0 - GROUPED) * (number + 1) / len(grouped))
    means = {key: np.mean([one.low for one in some], axis=0) for key, some in runs.items() if some}
    votes: dict[str, dict[int, list[Array]]] = {}
    witnesses = witnesses_of(grouped)
    for (number, place), some in runs.items():
        for one in some if grouped[number].mined.spec.component in witnesses else ():
            votes.setdefault(one.run, {}).setdefault(number, []).append(one.low - means[number, place])
    # A function alone says nothing of the machine: what is taken for the speed of a run would be its own deviation.
    speeds = {
        run: np.median([one for some in of_functions.values() for one in some], axis=0)
        for run, of_functions in votes.items()
        if len(of_functions) >= MIN_WITNESSES
    }

    def residual(number: int, place: int, one: RunDurations) -> Array:
        """What a run deviates beyond the speed of the machine; a witness has a part in that, as a value has in a mean."""
        beyond = one.low - means[number, place] - speeds.get(one.run, 0.0)
        count = len(votes.get(one.run, {}))
        is_part = one.run in speeds and number in votes[one.run]
        return np.asarray(beyond * np.sqrt(count / (count - 1.0))) if is_part else np.asarray(beyond)

    def located(number: int, place: int, group: PathGroup) -> PathGroup:
        some = runs[number, place]
        if not some:
            return group
        low, high = (np.exp(np.mean([getattr(one, name) for one in some], axis=0)) for name in ("low", "high"))
        residuals = [residual(number, place, one) for one in some]
        by_path: dict[CallPath, list[PathCalls]] = {}
        for calls in grouped[number].groups[place]:
            by_path.setdefault(calls.path, []).append(calls)
        large = [
            merged([calls.histogram for calls in of_path])
            for of_path in by_path.values()
            if sum(calls.worth for calls in of_path) >= MIN_PATH_WORTH
        ]
        medians = [float(quantile(one, 0.5)) for one in large]
        slower = [1.0 - cdf(one, grouped[number].mined.spec.borders) for one in large]
        return replace(
            group,
            durations=tuple(high.tolist()),
            cpu_durations=tuple(low.tolist()) if (low * QUEUED_SLACK < high).any() else (),
            path_medians=(min(medians), max(medians)) if medians else (),
            path_shares=tuple(zip(np.min(slower, axis=0).tolist(), np.max(slower, axis=0).tolist(), strict=True))
            if slower
            else (),
            runs=len(some),
            share_spread=_share_spread(grouped[number].mined.tallies[place] if grouped[number].mined.tallies else ()),
            duration_spread=float(np.sqrt(np.mean(np.square(residuals)) * len(some) / (len(some) - 1)))
            if len(some) > 1
            else float(np.sqrt(np.mean(some[0].variance))),
        )

    return [
        replace(
            mined,
            spec=replace(
                mined.spec,
                groups=tuple(located(number, place, group) for place, group in enumerate(mined.spec.groups)),
            ),
        )
        for number, mined in enumerate(specs)
    ]


def _share_spread(tallies: Sequence[Tally]) -> tuple[float, ...]:
    """For each border, the standard deviation between runs of the share of slower calls; empty for fewer than two runs."""
    below = [np.cumsum(one.counts)[:-1] / sum(one.counts) for one in tallies if sum(one.counts)]
    return tuple(np.std(below, axis=0, ddof=1).tolist()) if len(below) > 1 else ()


def reviewable(specs: Sequence[MinedSpec], observed: Sequence[Observed]) -> list[MinedSpec]:
    """The specifications as people review them: without call paths and single runs, only with what rules tell apart.

    The numbers of each group are those of the calls for which its rule alone holds, which is what a check compares. Without
    ``observed`` they are those of the call paths that the specifications have.
    """
    bare = [
        replace(
            mined.spec,
            groups=tuple(replace(one, paths=()) for one in mined.spec.groups if one.expression and not one.standing),
            selected=_telling_callers(mined.spec),
            paths=(),
            path_counts=(),
            unknown=(),
            platform_counts=None,
        )
        for mined in specs
    ]
    counts: list[list[NDArray[np.int64]]] = []
    if observed:
        tallied = [MinedSpec(spec, tallies_of(spec, one)) for spec, one in zip(bare, observed, strict=True)]
        bare = [one.spec for one in locate(tallied, observed)]
        for one in tallied:
            zero = np.zeros(len(one.spec.borders) + 1, np.int64)
            counts.append([sum((np.array(tally.counts) for tally in some), zero) for some in one.tallies])
    else:
        for spec, mined in zip(bare, specs, strict=True):
            table = np.array(mined.spec.path_counts, dtype=np.int64).reshape(
                len(mined.spec.paths), len(spec.borders) + 1
            )
            groups = np.array([group_of(spec, path) for path in mined.spec.paths], dtype=object)
            counts.append([table[groups == place].sum(axis=0) for place in range(len(spec.groups))])
    return [
        MinedSpec(replace(spec, groups=tuple(map(_with_counts, spec.groups, of_groups))))
        for spec, of_groups in zip(bare, counts, strict=True)
    ]


def _telling_callers(spec: PathSpec) -> tuple[str, ...]:
    """What a specification without call paths says was recorded: callers on some of them; empty where all were recorded.

    Callers on all call paths tell none apart.
    """
    if not spec.selected:
        return ()
    on_all = frozenset.intersection(*map(frozenset, spec.paths)) if spec.paths else frozenset()
    names = sorted({name for path in spec.paths for name in path} - on_all)
    return (" ".join(literal_pattern(name) for name in (*names, spec.component)),)


def _with_counts(group: PathGroup, calls: NDArray[np.int64]) -> PathGroup:
    """The group with other calls in each cluster."""
    number, before = int(calls.sum()), sum(group.counts)
    if not number or not before:
        return group
    shares = tuple(float(one) for one in calls / number)
    worth = group.effective * number / before
    return replace(group, counts=tuple(int(one) for one in calls), distribution=shares, effective=worth)


def witnesses_of(functions: Sequence[GroupedCalls]) -> set[str]:
    """Functions that call no other one of them: their durations say how fast the machine was."""
    paths = {path for one in functions for calls in one.groups for path in {call.path for call in calls}}
    callers = {name for path in paths for name in path[:-1] if name != path[-1]}
    return {one.mined.spec.component for one in functions} - callers


# ---- How much slower the machine of each new run is as a whole.


@dataclass(frozen=True, slots=True, eq=False)
class MachineSpeed:
    """How much slower a run was as a whole, as the functions say that call no other one."""

    log_factor: Array
    """Logarithm of the factor at each level."""
    slack: float
    """By how much more, as a logarithm, the machine itself may explain either way."""


def specified(group: PathGroup) -> tuple[Array, Array]:
    """Logarithms of a group's specified durations without and with queueing, at each level."""
    high = np.log(np.maximum(group.durations, TINY))
    return (np.log(np.maximum(group.cpu_durations, TINY)) if group.cpu_durations else high), high


def machine_speeds(
    functions: Sequence[GroupedCalls], options: SpecOptions
) -> tuple[dict[tuple[int, str], MachineSpeed], tuple[RunSpread, ...]]:
    """Platform and run → the speed of the machine; and for each level how far runs differ beyond that.

    Runs of whose machine nothing is known are missing. The speed of the machine that was specified is known up to
    ``OWN_RANGE`` without any function; with ``absolute`` it is taken as it was.
    """
    witnesses = witnesses_of(functions)
    votes: dict[tuple[int, str], dict[str, list[tuple[PathGroup, RunDurations]]]] = {}
    own_machine: dict[tuple[int, str], bool] = {}
    for function in functions:
        name = function.mined.spec.component
        for group, calls in zip(function.mined.spec.groups, function.groups, strict=True):
            if not group.durations:
                continue
            for one in durations_by_run(
                calls, function.queued_ns, options.tolerance, base_worth=max(group.effective, 1.0)
            ):
                key = one.platform, one.run
                # Durations that several machines have in common are those of none of them.
                hosts = {platform.host for platform in function.mined.spec.platforms}
                own_machine[key] = function.platforms[one.platform] is not None and len(hosts) == 1
                if name in witnesses:
                    votes.setdefault(key, {}).setdefault(name, []).append((group, one))
    speeds: dict[tuple[int, str], MachineSpeed] = {}
    residuals: list[Array] = []
    for key, own in own_machine.items():
        of_functions = votes.get(key, {}).values()
        if options.absolute and own:
            speeds[key] = MachineSpeed(np.zeros(LEVELS.size), 0.0)
        elif len(of_functions) >= (MIN_WITNESSES if own else MIN_FOREIGN_WITNESSES):
            medians = [
                np.median([one.low - specified(group)[0] for group, one in some], axis=0) for some in of_functions
            ]
            common = common_log_factors(np.array(medians), own)
            speeds[key] = MachineSpeed(common, 0.0 if own else FOREIGN_RANGE)
            for some in of_functions:
                gaps = [_gap(one.least, one.most, *(side + common for side in specified(group))) for group, one in some]
                residuals.append(np.median(gaps, axis=0))
        elif own:
            speeds[key] = MachineSpeed(np.zeros(LEVELS.size), OWN_RANGE)
    if not residuals:
        return speeds, (DEFAULT_SPREAD,) * LEVELS.size
    # Of two functions one may have changed. A difference of two runs varies twice as much as a run.
    typical = 1.4826 * np.sort(np.abs(residuals), axis=0)[(len(residuals) - 1) // 2] / np.sqrt(2.0)
    spreads = (RunSpread(max(DEFAULT_SPREAD.scale, float(one)), DEFAULT_SPREAD.freedom) for one in typical)
    return speeds, tuple(spreads)


def common_log_factors(votes: Array, own: bool) -> Array:
    """The logarithm that most of the functions' logarithms (F, levels) agree on: one for all levels, then for each (levels,).

    On the machine of the specification a factor needs more evidence the further it is from 1.

    >>> common_log_factors(np.array([[0.5], [0.4], [2.3]]), True), common_log_factors(np.array([[2.3], [0.0]]), True)
    (array([0.45]), array([0.]))
    """
    penalty = PENALTY_PER_TENTH / np.log(1.1)
    overall = _agreed(votes, 0.0, penalty if own else 0.0)
    return np.array([_agreed(column[:, None], overall, penalty) for column in votes.T])


def _agreed(votes: Array, centre: float, penalty: float) -> float:
    """The logarithm that most functions (F, levels) agree on; each is penalised by its distance from ``centre``."""
    grid = np.unique(np.concatenate([np.log(FACTORS), [centre], votes.ravel()]))
    distance = np.abs(grid[:, None, None] - votes)
    loss = np.minimum(distance, AGREEMENT).mean(axis=2).sum(axis=1)
    chosen = grid[int(np.argmin(loss + penalty * np.abs(grid - centre)))]
    agreeing = votes[np.abs(votes - chosen) <= AGREEMENT]
    return float(np.median(agreeing) if agreeing.size else chosen)


# ---- Differences from the specification.


@dataclass(frozen=True, slots=True, eq=False)
class LocationEffects:
    """Differences of the logarithms of durations at one level."""

    beyond: Effects
    """Run by run what neither the machine nor the tolerance of shares explains."""
    whole: float
    """The difference as it is, after the speed of the machine; the median over the runs."""
    expected: float
    """The specified duration, ns."""


def location_effects(
    function: GroupedCalls,
    place: int,
    calls: Sequence[PathCalls],
    speeds: Mapping[tuple[int, str], MachineSpeed],
    options: SpecOptions,
    *,
    part: float | None = None,
) -> dict[int, LocationEffects]:
    """Level → how the durations of a group differ; of some call paths of it only the median is compared.

    Nothing is specified of single call paths; their medians are compared with the least and the largest that the group's
    call paths had. Calls that are only a ``part`` of such call paths, because further callers were recorded, may have had any
    medians that leave the durations of the group as they are specified.
    """
    group = function.mined.spec.groups[place]
    levels = tuple(range(LEVELS.size)) if part is None else (MEDIAN,)
    if not group.durations or (part is not None and not group.path_medians):
        return {}
    base_low, base_high = (one[list(levels)] for one in specified(group))
    if part is not None:
        least, most = _medians_before(group, part)
        base_low, base_high = np.minimum(base_low - base_high, 0.0) + least, np.array([most])
    base_worth = max(group.effective, 1.0)
    beyond, whole, variances = [], [], []
    for one in durations_by_run(calls, function.queued_ns, options.tolerance, LEVELS[list(levels)], base_worth):
        speed = speeds.get((one.platform, one.run))
        if speed is not None:
            low, high = base_low + speed.log_factor[list(levels)], base_high + speed.log_factor[list(levels)]
            beyond.append(_gap(one.least - speed.slack, one.most + speed.slack, low, high))
            whole.append(_gap(one.low, one.high, low, high))
            variances.append(one.variance)
    if not beyond:
        return {}
    middle = np.median(whole, axis=0)
    ends = np.where(middle < 0, base_low, base_high)
    expected = np.exp(np.where(np.isfinite(ends), ends, specified(group)[1][list(levels)]))
    columns = zip(levels, np.transpose(beyond), np.transpose(variances), middle, expected, strict=True)
    return {
        level: LocationEffects(Effects(values, variance), float(difference), float(duration))
        for level, values, variance, difference, duration in columns
    }


def _medians_before(group: PathGroup, part: float) -> tuple[float, float]:
    """Logarithms of the least and the largest median that calls may have had which are this part of specified call paths.

    Of all calls of the group, at least ``part`` / 2 are quicker than such a median, and at most 1 − ``part`` / 2.
    """
    least, most = np.log(np.maximum(group.path_medians, TINY)).tolist()
    if part >= 1.0:
        return least, most
    quantiles = np.r_[-np.inf, specified(group)[1], np.inf]
    lowest = np.searchsorted(LEVELS, part / 2.0, side="right")
    highest = np.searchsorted(LEVELS, 1.0 - part / 2.0) + 1
    return min(least, float(quantiles[lowest])), max(most, float(quantiles[highest]))


def _gap(low: Array, high: Array, base_low: Array, base_high: Array) -> Array:
    """How far intervals lie above (positive) or below others; 0 where they overlap."""
    return np.asarray(np.maximum(low - base_high, 0.0) + np.minimum(high - base_low, 0.0))


def base_effects(group: PathGroup, runs: int) -> Effects:
    """Runs behind a group's durations that differ as the specification says; a single one varies as its calls do."""
    spread = group.duration_spread or 0.0
    if runs < 2:
        return Effects(np.zeros(1), np.array([spread**2]))
    contrast = np.linspace(-1.0, 1.0, runs)
    return Effects(spread * contrast / contrast.std(ddof=1), np.full(runs, EXACT))


def learn_location_spread(effects: Sequence[Effects], least: RunSpread) -> RunSpread:
    """How far runs differ beyond their common speed: as the runs of all groups show, but not less than ``least``."""
    learned = learn_spread(effects) if any(one.value.size > 1 for one in effects) else least
    return RunSpread(max(learned.scale, least.scale), least.freedom)
