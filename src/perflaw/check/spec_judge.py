"""Specifications held against new recordings: a verdict for each group of call paths, false alarms controlled over all.

The evidence is that of laws (``evalues.py``): e-values over runs, whose scatter is estimated from all groups, so that
what differs between any two runs on this machine is no violation; e-BH over the groups (Wang & Ramdas 2022). A look is a
group of call paths in new recordings: by how much its shares of slow calls differ from the specification, by run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.check.evalues import NO_RUNS, ChangeEvidence, Effects, e_bh, e_value, learn_spread
from perflaw.check.spec_calls import (
    MIN_GROUP_WORTH,
    GroupedCalls,
    MachineFactors,
    PathCalls,
    SpecOptions,
    borders_on,
    by_run,
    group_calls,
    machine_factors,
    shares_below,
)
from perflaw.learn.paths.durations import cdf, merged, total
from perflaw.learn.paths.edges import START, edges_of
from perflaw.specs.call_paths import expression_text, path_text
from perflaw.types import Component, Metric, Observed, Outcome, SpecVerdict
from perflaw.types.specifications import CallPath, Edge, MinedSpec, PathGroup, PathSpec

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
        # The share of a call path with few calls is shrunk towards that of its group.
        expected = sum(spec.groups[place].distribution[border + 1 :])
        if path in spec.paths:
            counts = spec.path_counts[spec.paths.index(path)]
            slow = sum(counts[border + 1 :]) + MIN_PATH_WORTH * expected
            expected = slow / (sum(counts) + MIN_PATH_WORTH)
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


def _worth_before(spec: PathSpec, place: int, path: CallPath) -> float:
    """Independent calls by a call path behind the specification; a file without call paths speaks of all paths."""
    group = spec.groups[place]
    if not group.paths:
        return group.effective
    if path not in spec.paths:
        return 0.0
    return sum(spec.path_counts[spec.paths.index(path)]) * group.effective / max(sum(group.counts), 1)


DOUBT = 0.2
"""Shares hold if they are known within the tolerance and so much more."""
CLEAR = 0.9
"""An edge tells calls apart if its share of the deviating calls exceeds its share of the others by this much."""
STRONG_EVIDENCE = 1e6
"""From this e-value on the look at the whole group tells a deviation, even if a call path has a larger one."""

PathWorth = Mapping[CallPath, float]
"""Call path → independent calls."""


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group with the evidence of its looks."""

    case: SpecCase
    """The group."""
    evidence: tuple[ChangeEvidence, ...]
    """Evidence of each look."""

    @property
    def e(self) -> float:
        """Evidence of all looks together: a mean of e-values is an e-value."""
        return float(np.mean([one.e for one in self.evidence]))

    @property
    def telling(self) -> int:
        """Index of the look with the largest e-value; that of the whole group if its evidence is strong."""
        best = max(range(len(self.evidence)), key=lambda place: self.evidence[place].e)
        whole = [place for place, look in enumerate(self.case.looks) if look.whole]
        best_whole = max(whole, key=lambda place: self.evidence[place].e)
        strong = self.evidence[best_whole].e >= min(STRONG_EVIDENCE, self.evidence[best].e)
        return best_whole if strong else best


def judge_specs(
    specs: Sequence[MinedSpec],
    observed: Mapping[tuple[str, str], Observed],
    options: SpecOptions | None = None,
    components: Mapping[str, Component] | None = None,
) -> list[SpecVerdict]:
    """A verdict for every group: violations first.

    ``observed`` has the new calls by function and metric, ``components`` the functions with file and line by name.
    """
    options = options or SpecOptions()
    known = components or {}
    named = {one.spec.component: known.get(one.spec.component, Component(one.spec.component)) for one in specs}
    untested: list[SpecVerdict] = []
    functions = []
    for mined in specs:
        new = observed.get((mined.spec.component, mined.spec.metric))
        reason = _incomparable(mined.spec, new, options)
        if new is None or reason:
            untested.append(_out_of_scope(named[mined.spec.component], mined.spec.metric, "", reason))
        else:
            functions.append(group_calls(mined, new))
    factors = machine_factors(functions, options)
    cases = [case_of(one, place, factors, options) for one in functions for place in range(len(one.groups))]
    testable = [case for case in cases if case.worth >= MIN_GROUP_WORTH and case.group.standing != "quarantined"]
    whole = [look for case in testable for look in case.looks if look.whole]
    spread = learn_spread([effects for look in whole for effects in (look.base, look.new)])
    judged = [
        JudgedGroup(case, tuple(e_value(look.base, look.new, spread, options.tolerance) for look in case.looks))
        for case in testable
    ]
    rejected = e_bh(np.array([one.e for one in judged], dtype=np.float64), options.alpha)
    verdicts = [_verdict(one, bool(no), judged, options, named) for one, no in zip(judged, rejected, strict=True)]
    for case in (case for case in cases if case not in testable):
        if case.group.standing == "quarantined":
            reason = "quarantined: the runs behind it contradict each other"
        elif case.calls:
            reason = f"too few calls by these call paths: {case.calls:,}"
        else:
            reason = "no call by these call paths"
        component = named[case.spec.component]
        untested.append(_out_of_scope(component, case.spec.metric, _group_path(case), reason, case.group.id))
    order = ("violated", "inconclusive", "out of scope", "holds")
    return sorted(
        [*explain(verdicts, judged, options), *untested],
        key=lambda one: (order.index(one.verdict), -abs(one.effect or 0.0), one.component.name, one.path),
    )


def _incomparable(spec: PathSpec, new: Observed | None, options: SpecOptions) -> str:
    """Why a function cannot be held to its specification at all; empty if it can."""
    if new is None or not new.observations:
        return "not in the new recordings: gone, renamed, inlined, or not called"
    if not spec.borders:
        return "its calls are of one kind: there are no shares to compare"
    known_host = {one.host for one in new.platforms} & {one.host for one in spec.platforms}
    if options.absolute and not known_host:
        hosts = ", ".join(sorted({one.host for one in new.platforms}))
        return f"no bounds for {hosts}: check without --absolute, or mine there"
    if len(spec.groups) == 1 and not known_host:
        return "it has one group and the machine differs: there is nothing to compare its times with"
    return ""


def _out_of_scope(component: Component, metric: str, path: str, reason: str, group: str = "") -> SpecVerdict:
    return SpecVerdict(
        component, Metric(metric, "ns"), path, "out of scope", None, None, None, None, group=group, message=reason
    )


def _group_path(case: SpecCase) -> str:
    """The expression of a group; empty for the only group of a function."""
    return expression_text(case.group.expression) if len(case.spec.groups) > 1 else ""


def _verdict(
    group: JudgedGroup,
    rejected: bool,
    judged: Sequence[JudgedGroup],
    options: SpecOptions,
    named: Mapping[str, Component],
) -> SpecVerdict:
    case, place = group.case, group.telling
    look, evidence = case.looks[place], group.evidence[place]
    outcome, message = _outcome(group, evidence, rejected, options)
    path = _group_path(case)
    if rejected:
        sign = 1.0 if evidence.shift > 0 else -1.0
        deviating, steady = deviating_paths(case.spec.component, judged, sign, options)
        path = telling_path(case.group, len(case.spec.groups) > 1, deviating, steady)
    return SpecVerdict(
        named[case.spec.component],
        Metric(case.spec.metric, "ns"),
        path,
        outcome,
        p=min(1.0, 1.0 / max(group.e, 1e-300)),
        effect=evidence.shift,
        effect_low=max(evidence.low, -1.0),
        effect_high=min(evidence.high, 1.0),
        e_value=group.e,
        group=case.group.id,
        border=look.border,
        expected=look.expected,
        runs=case.runs,
        calls=case.calls,
        worth=case.worth,
        outside=case.outside,
        message=message,
    )


def _outcome(group: JudgedGroup, telling: ChangeEvidence, rejected: bool, options: SpecOptions) -> tuple[Outcome, str]:
    """The verdict and why."""
    tolerance = options.tolerance
    if rejected:
        return "violated", "slower than specified" if telling.shift > 0 else "quicker than specified: mine it again"
    if any(abs(one.shift) > tolerance and max(one.low, -one.high) > tolerance for one in group.evidence):
        return "inconclusive", "it looks changed, but not beyond doubt: record more runs"
    whole = [one for one, look in zip(group.evidence, group.case.looks, strict=True) if look.whole]
    if any(one.high > tolerance + DOUBT or one.low < -tolerance - DOUBT for one in whole):
        return "inconclusive", "runs differ too much to tell: record more runs"
    return "holds", "one run" if group.case.runs == 1 else ""


def deviating_paths(
    component: str, judged: Sequence[JudgedGroup], sign: float, options: SpecOptions
) -> tuple[dict[CallPath, float], dict[CallPath, float]]:
    """Call paths of a function that deviate to one side, and those that do not, with their independent calls.

    Paths that deviate by a quarter to half of the largest deviation are neither: they may be as steady as the others.
    """
    deviation: dict[CallPath, float] = {}
    worth: dict[CallPath, float] = {}
    for group in judged:
        if group.case.spec.component != component:
            continue
        looks: list[tuple[ShareLook, ChangeEvidence]] = list(zip(group.case.looks, group.evidence, strict=True))
        for look, evidence in [pair for pair in looks if not pair[0].whole] or looks:
            for path in look.paths:
                deviation[path] = max(deviation.get(path, 0.0), sign * evidence.shift)
                worth[path] = look.worth / len(look.paths)
    largest = max(deviation.values(), default=0.0)
    deviating = {path: worth[path] for path, shift in deviation.items() if shift > max(options.tolerance, largest / 2)}
    steady = {
        path: worth[path]
        for path, shift in deviation.items()
        if shift <= max(options.tolerance, largest / 4) and path not in deviating
    }
    return deviating, steady


def telling_path(group: PathGroup, has_others: bool, deviating: PathWorth, steady: PathWorth) -> str:
    """The call paths that deviate as text: an edge, else the group's expression, else a path; empty for all paths.

    ``deviating`` are the calls that deviate, ``steady`` all calls of the function that keep to their shares.
    """
    if not deviating or not steady:
        return expression_text(group.expression) if has_others and not group.standing else ""
    edge, lead = _telling_edge(deviating, steady)
    if lead >= CLEAR:
        return expression_text([((edge, True),)])
    if group.expression and not group.standing:
        return expression_text(group.expression)
    most: CallPath = max(deviating, key=lambda path: (deviating[path], path))
    return path_text(most)


def _telling_edge(deviating: PathWorth, steady: PathWorth) -> tuple[Edge, float]:
    """The edge that tells the deviating calls from the others best, and by how much its shares of them differ.

    Of equal edges the one nearest to the function is taken.
    """

    def share(edge: Edge, calls: PathWorth) -> float:
        through = sum(n for path, n in calls.items() if edge in edges_of(path))
        return through / max(sum(calls.values()), 1e-9)

    distances: dict[Edge, int] = {}
    for path in deviating:
        for distance, edge in enumerate(reversed(edges_of(path))):
            if edge[0] != START:
                distances[edge] = min(distance, distances.get(edge, distance))
    leads = {edge: share(edge, deviating) - share(edge, steady) for edge in distances}
    if not leads:
        return ("", ""), 0.0
    best = min(leads, key=lambda edge: (-round(leads[edge], 6), distances[edge], edge))
    return best, leads[best]


def explain(verdicts: Sequence[SpecVerdict], judged: Sequence[JudgedGroup], options: SpecOptions) -> list[SpecVerdict]:
    """The verdicts, where a caller whose deviation comes from a violated callee is inconclusive and names the callee."""
    paths: dict[int, tuple[CallPath, ...]] = {}
    violated = []
    for verdict, group in zip(verdicts, judged, strict=True):
        effect = verdict.effect or 0.0
        if verdict.verdict != "violated" and (verdict.verdict != "inconclusive" or abs(effect) <= options.tolerance):
            continue
        deviating, _ = deviating_paths(verdict.component.name, judged, 1.0 if effect > 0 else -1.0, options)
        own = {path for look in group.case.looks for path in look.paths}
        here = tuple(path for path in deviating if path in own)
        paths[id(verdict)] = here or group.case.looks[group.telling].paths
        if verdict.verdict == "violated":
            violated.append(verdict)
    deepest_first = sorted(violated, key=lambda one: -max(map(len, paths[id(one)])))

    def causes(callee: SpecVerdict, caller: SpecVerdict) -> bool:
        same_side = (callee.effect or 0.0) * (caller.effect or 0.0) > 0
        other = callee.component.name != caller.component.name
        return same_side and other and lead_to(paths[id(caller)], paths[id(callee)])

    explained = []
    for verdict in verdicts:
        callees = [one for one in deepest_first if causes(one, verdict)] if id(verdict) in paths else []
        if callees:
            callee = callees[0]
            where = f" where {callee.path}" if callee.path else ""
            message = f"explained by its callee {callee.component.name}{where}"
            verdict = replace(verdict, verdict="inconclusive", message=message, follows=callee.component.name)
        explained.append(verdict)
    return explained


def lead_to(callers: Sequence[CallPath], callees: Sequence[CallPath]) -> bool:
    """Whether every call path of the callers is the beginning of a longer call path of the callees."""
    return all(any(len(path) < len(other) and other[: len(path)] == path for other in callees) for path in callers)
