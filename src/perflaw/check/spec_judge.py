"""Specifications held against new recordings: a verdict for each group of call paths, false alarms controlled over all.

The evidence is that of laws (``evalues.py``): e-values over runs, whose scatter is estimated from all groups, so that
what differs between any two runs on this machine is no violation; e-BH over the groups (Wang & Ramdas 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from perflaw.check.evalues import ChangeEvidence, Effects, RunSpread, e_bh, e_values, learn_spread
from perflaw.check.spec_calls import (
    KnownCalls,
    SpecOptions,
    group_calls,
    machine_factors,
    path_as_mined,
)
from perflaw.check.spec_location import (
    LEVELS,
    learn_location_spread,
    machine_speeds,
)
from perflaw.check.spec_looks import (
    LocationLook,
    Looks,
    LookSettings,
    ShareLook,
    SpecCase,
    case_of,
    looks_at,
)
from perflaw.learn.paths.durations import total
from perflaw.learn.paths.edges import START, edges_of, holds
from perflaw.specs.call_paths import expression_text, path_text
from perflaw.types import Component, Metric, Observed, Outcome, SpecVerdict
from perflaw.types.specifications import (
    LOCATION_LEVELS,
    MIN_GROUP_WORTH,
    CallPath,
    Edge,
    MinedSpec,
    PathGroup,
    PathSpec,
    Term,
)

ALL_CALLS: tuple[Term, ...] = ((),)
"""The expression that holds for all calls."""
CLEAR = 0.9
"""An edge tells calls apart if its share of the deviating calls exceeds its share of the others by this much."""
STRONG_EVIDENCE = 1e6
"""From this e-value on the look at the whole group tells a deviation, even if a call path has a larger one."""
STRONG_ENOUGH, CONVINCING, TELLING_PART = 0.1, 100.0, 0.125
"""A plainer look at the group is told if it has this part of the largest e-value; one at shares from this e-value on, if its
difference is this part of the largest, in relevant differences."""

PathWorth = Mapping[CallPath, float]
"""Call path → independent calls."""


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group with the evidence of its looks."""

    case: SpecCase
    """The group."""
    evidence: tuple[ChangeEvidence, ...]
    """Evidence of each look."""
    finer: tuple[ChangeEvidence, ...] = ()
    """Evidence of each finer look."""

    @property
    def e(self) -> float:
        """Evidence of all looks together: a mean of e-values is an e-value.

        Half of the weight is that of the group as a whole, however many call paths it has.
        """
        return mean_e(self.case.looks, self.evidence)

    @property
    def telling(self) -> int:
        """Index of the look that tells most; one at the whole group if its evidence is strong."""
        best = max(range(len(self.evidence)), key=lambda place: self.evidence[place].e)
        whole = [place for place, look in enumerate(self.case.looks) if look.whole]
        best_whole = max(whole, key=lambda place: self.evidence[place].e)
        if self.evidence[best_whole].e < min(STRONG_EVIDENCE, self.evidence[best].e):
            return best
        return whole[plainest([self.case.looks[one] for one in whole], [self.evidence[one] for one in whole])]


def plainest(looks: Sequence[ShareLook | LocationLook], evidence: Sequence[ChangeEvidence]) -> int:
    """Index of the look to tell: one at shares with enough evidence, else at the median, else at another quantile.

    Of several borders it is the one that most calls have changed sides of.
    """
    best = max(range(len(looks)), key=lambda place: evidence[place].e)

    largest = max(abs(one.shift) / look.relevant for one, look in zip(evidence, looks, strict=True))

    def suffices(place: int) -> bool:
        look = looks[place]
        large = abs(evidence[place].shift) / look.relevant >= TELLING_PART * largest
        least = CONVINCING if isinstance(look, ShareLook) and large else STRONG_ENOUGH * evidence[best].e
        return evidence[place].e >= min(least, evidence[best].e) and evidence[place].shift * evidence[best].shift >= 0

    def plainness(place: int) -> tuple[float, float]:
        look = looks[place]
        if isinstance(look, ShareLook):
            return 0.0, -abs(evidence[place].shift)
        return 1.0, abs(float(LEVELS[look.level]) - 0.5)

    return min(filter(suffices, range(len(looks))), key=plainness)


def mean_e(looks: Looks, evidence: Sequence[ChangeEvidence]) -> float:
    """Mean of e-values, half of the weight for looks at the whole group and half for looks at single call paths."""
    kinds = [[one.e for one, look in zip(evidence, looks, strict=True) if look.whole == kind] for kind in (True, False)]
    return float(np.mean([np.mean(some) for some in kinds if some]))


@dataclass(frozen=True, slots=True)
class SpecSpreads:
    """How far runs differ, as all groups show."""

    shares: RunSpread
    """In shares of slow calls."""
    locations: tuple[RunSpread, ...]
    """At each level in logarithms of durations, beyond the common speed of each run."""

    def of(self, look: ShareLook | LocationLook) -> RunSpread:
        """That of what a look compares."""
        return self.shares if isinstance(look, ShareLook) else self.locations[look.level]

    def evidence(self, looks: Sequence[ShareLook | LocationLook]) -> list[ChangeEvidence]:
        """The evidence of each look; of many at once it takes much less time."""
        return e_values([(look.base, look.new, self.of(look), look.relevant, look.relevant) for look in looks])


@dataclass(frozen=True, slots=True)
class NewProgram:
    """What else the new recordings say of the program's functions."""

    components: Mapping[str, Component]
    """Functions by name, with file and line."""
    calls: Mapping[str, int]
    """Function → its calls in all new runs; functions that were not recorded are missing."""
    selected: bool = False
    """Functions were left out by ``--select`` or ``--exclude``."""

    def reason_missing(self, component: str) -> str:
        """Why there are no durations of a function."""
        if calls := self.calls.get(component, 0):
            why = f"{calls:,} call{'s' * (calls != 1)}, but none with durations by call path"
            return f"{why}: perflaw record --paths '{component}' keeps them"
        if self.selected:
            return "not recorded: left out by --select or --exclude, or not called"
        last = component.rpartition(".")[2].rpartition("::")[2]
        alike = sorted(one for one in self.calls if one.rpartition(".")[2].rpartition("::")[2] == last)
        moved = f"; {alike[0]} is: was it moved?" if len(alike) == 1 and last != MODULE else ""
        return f"not in the new recordings: not called, or no longer there{moved}"


NOTHING_KNOWN = NewProgram({}, {})
"""Nothing is known of the program beside its durations."""
MODULE = "<module>"
"""Last part of the names of all Python modules."""


def judge_specs(
    specs: Sequence[MinedSpec],
    observed: Mapping[tuple[str, str], Observed],
    options: SpecOptions | None = None,
    program: NewProgram = NOTHING_KNOWN,
    known_calls: KnownCalls | None = None,
) -> list[SpecVerdict]:
    """A verdict for every group: violations first. ``observed`` has the new calls by function and metric.

    Who judges recordings again gives what is known of their calls (``known_calls``).
    """
    options = options or SpecOptions()
    known = program.components
    named = {one.spec.component: known.get(one.spec.component, Component(one.spec.component)) for one in specs}
    untested: list[SpecVerdict] = []
    functions = []
    for mined in specs:
        new = observed.get((mined.spec.component, mined.spec.metric))
        reason = _incomparable(mined.spec, new, options, program)
        if new is None or reason:
            untested.append(_out_of_scope(named[mined.spec.component], mined.spec.metric, "", reason))
        else:
            functions.append(group_calls(mined, new, known_calls))
    speeds, least_spreads = machine_speeds(functions, options)
    settings = LookSettings(options, machine_factors(functions, options), speeds)
    cases = [case_of(one, place, settings) for one in functions for place in range(len(one.groups))]
    testable = [
        case
        for case in cases
        if case.worth >= MIN_GROUP_WORTH
        and case.group.standing != "quarantined"
        and any(one.whole for one in case.looks)
    ]
    whole = [look for case in testable for look in case.looks if look.whole]
    shares = [look for look in whole if isinstance(look, ShareLook)]
    locations = [look for look in whole if isinstance(look, LocationLook)]
    spreads = SpecSpreads(
        learn_spread([effects for look in shares for effects in (look.base, look.new)]),
        tuple(
            learn_location_spread(
                [effects for look in locations if look.level == level for effects in (look.base, look.new)], least
            )
            for level, least in enumerate(least_spreads)
        ),
    )
    evidence = iter(spreads.evidence([look for case in testable for look in (*case.looks, *case.finer)]))
    judged = [
        JudgedGroup(case, tuple(islice(evidence, len(case.looks))), tuple(islice(evidence, len(case.finer))))
        for case in testable
    ]
    rejected = e_bh(np.array([one.e for one in judged], dtype=np.float64), options.alpha)
    verdicts = [
        _verdict(one, bool(no), judged, settings, spreads, named) for one, no in zip(judged, rejected, strict=True)
    ]
    for case in (case for case in cases if case not in testable):
        if case.group.standing == "quarantined":
            reason = "quarantined: the runs behind it contradict each other"
        elif not case.calls:
            reason = "no call by these call paths"
        elif case.worth < MIN_GROUP_WORTH:
            reason = f"too few calls by these call paths: {case.calls:,}"
        else:
            reason = "another machine, and nothing to compare its times with"
        component = named[case.spec.component]
        untested.append(_out_of_scope(component, case.spec.metric, _group_path(case), reason, case.group.id))
    order = ("violated", "inconclusive", "out of scope", "holds")
    return sorted(
        [*explain(verdicts, judged), *untested],
        key=lambda one: (order.index(one.verdict), one.p if one.p is not None else 1.0, one.component.name, one.path),
    )


def _incomparable(spec: PathSpec, new: Observed | None, options: SpecOptions, program: NewProgram) -> str:
    """Why a function cannot be held to its specification at all; empty if it can."""
    if new is None or not new.observations:
        return program.reason_missing(spec.component)
    if not spec.borders and not any(group.durations for group in spec.groups):
        return "nothing is specified: too few calls when it was mined"
    known_host = {one.host for one in new.platforms} & {one.host for one in spec.platforms}
    if options.absolute and not known_host:
        hosts = ", ".join(sorted({one.host for one in new.platforms}))
        return f"no bounds for {hosts}: check without --absolute, or mine there"
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
    settings: LookSettings,
    spreads: SpecSpreads,
    named: Mapping[str, Component],
) -> SpecVerdict:
    case, place = group.case, group.telling
    look, evidence = case.looks[place], group.evidence[place]
    enough = len(judged) / settings.options.alpha
    outcome, message, more = _outcome(group, evidence, rejected, spreads, enough, settings.options.plan)
    path, calls = _group_path(case), case.new_calls
    if rejected:
        sign = 1.0 if evidence.shift > 0 else -1.0
        deviating, steady = deviating_paths(case.spec.component, judged, sign)
        path, expression = telling_path(case.group, len(case.spec.groups) > 1, deviating, steady)
        if expression != case.group.expression:
            calls = tuple(one for one in calls if holds(expression, one.path)) or calls
        # What is told are the numbers of the calls that are expression.
        looks = looks_at(case.function, case.place, calls, settings, is_whole=len(calls) == len(case.new_calls))
        numbers = spreads.evidence(looks)
        if any(one.shift * sign > 0 for one in numbers):
            place = plainest(looks, [one if one.shift * sign > 0 else replace(one, e=0.0) for one in numbers])
            look, evidence = looks[place], numbers[place]
    shift, low, high = evidence.shift, evidence.low, evidence.high
    if isinstance(look, ShareLook):
        effect, effect_low, effect_high = shift, max(low, -1.0), min(high, 1.0)
    else:
        # What the tolerance or the machine may explain is part of the effect, and of its interval.
        ends = shift, low, high, look.difference, look.difference + high - shift, look.difference + low - shift
        effect, effect_low, effect_high = (float(np.exp(one)) for one in (look.difference, min(ends), max(ends)))
    return SpecVerdict(
        named[case.spec.component],
        Metric(case.spec.metric, "ns"),
        path,
        outcome,
        p=min(1.0, 1.0 / max(group.e, 1e-300)),
        effect=effect,
        effect_low=effect_low,
        effect_high=effect_high,
        e_value=group.e,
        group=case.group.id,
        border=look.border if isinstance(look, ShareLook) else None,
        quantile=LOCATION_LEVELS[look.level] if isinstance(look, LocationLook) else None,
        machine=look.machine if isinstance(look, LocationLook) else None,
        expected=look.expected,
        runs=len({one.run for one in calls}),
        calls=sum(total(one.histogram) for one in calls),
        worth=sum(one.worth for one in calls),
        outside=case.function.outside,
        message=message,
        more_runs=more[0] if more else None,
        more_mined_runs=more[1] if more else None,
    )


def _outcome(
    group: JudgedGroup, telling: ChangeEvidence, rejected: bool, spreads: SpecSpreads, enough: float, plan: bool
) -> tuple[Outcome, str, tuple[int, int] | None]:
    """The verdict, why, and if it is to ``plan`` how many more runs would settle it.

    ``enough`` is an e-value that suffices for a violation.
    """
    if rejected:
        return (
            "violated",
            "slower than specified" if telling.shift > 0 else "quicker than specified: mine it again",
            None,
        )
    is_changed = looks_changed(group.case.looks, group.evidence)
    if not plan and (is_changed or too_uncertain(group.case.looks, group.evidence)):
        return "inconclusive", "it looks changed" if is_changed else "runs differ too much to tell", None
    if is_changed:
        more = runs_needed(group, spreads, lambda looks, evidence: mean_e(looks, evidence) >= enough)
        return "inconclusive", f"it looks changed, but not beyond doubt: {runs_needed_text(more)}", more
    if too_uncertain(group.case.looks, group.evidence):
        more = runs_needed(group, spreads, lambda looks, evidence: not too_uncertain(looks, evidence))
        return "inconclusive", f"runs differ too much to tell: {runs_needed_text(more)}", more
    return "holds", "one run" if group.case.runs == 1 else "", None


def looks_changed(looks: Looks, evidence: Sequence[ChangeEvidence]) -> bool:
    """Whether any look is likely to differ by more than is relevant."""
    pairs = zip(evidence, looks, strict=True)
    return any(abs(one.shift) > look.relevant and max(one.low, -one.high) > look.relevant for one, look in pairs)


def too_uncertain(looks: Looks, evidence: Sequence[ChangeEvidence]) -> bool:
    """Whether a look at the whole group leaves a large difference possible."""
    pairs = zip(evidence, looks, strict=True)
    return any(max(one.high, -one.low) > look.relevant + look.doubt for one, look in pairs if look.whole)


MORE_RUNS = (1, 2, 3, 5, 8, 12, 20)
"""Numbers of further runs that are tried."""


def runs_needed(
    group: JudgedGroup, spreads: SpecSpreads, settled: Callable[[Looks, Sequence[ChangeEvidence]], bool]
) -> tuple[int, int] | None:
    """How many more runs like the new ones, and how many to mine from, would settle a group; None if 20 would not."""
    for mined, new in [*((0, more) for more in MORE_RUNS), *((more, more) for more in MORE_RUNS)]:
        looks = [
            replace(look, base=_with_more_runs(look.base, mined), new=_with_more_runs(look.new, new))
            for look in group.case.looks
        ]
        if settled(looks, spreads.evidence(looks)):
            return new, mined
    return None


def _with_more_runs(effects: Effects, more: int) -> Effects:
    """The runs and more that are like them."""
    places = np.arange(effects.value.size + more) % max(effects.value.size, 1)
    return Effects(effects.value[places], effects.variance[places]) if effects.value.size else effects


def runs_needed_text(more: tuple[int, int] | None) -> str:
    """How many more runs settle a group, in words.

    >>> runs_needed_text((1, 0)), runs_needed_text((3, 3))
    ('1 more run like these would settle it', '3 more runs like these, and 3 more to mine from, would settle it')
    """
    if more is None:
        return f"{MORE_RUNS[-1]} more runs like these would not settle it"
    new, mined = more
    from_more = f", and {mined} more to mine from," if mined else ""
    return f"{new} more run{'s' * (new != 1)} like these{from_more} would settle it"


def deviating_paths(
    component: str, judged: Sequence[JudgedGroup], sign: float
) -> tuple[dict[CallPath, float], dict[CallPath, float]]:
    """Call paths of a function that deviate to one side, and those that do not, with their independent calls.

    Paths that deviate by a quarter to half of the largest deviation are neither: they may be as steady as the others.
    Deviations count in relevant differences, of shares or of durations.
    """
    deviation: dict[CallPath, float] = {}
    worth: dict[CallPath, float] = {}
    for group in judged:
        if group.case.spec.component != component:
            continue
        looks = list(zip(group.case.looks, group.evidence, strict=True))
        finer = list(zip(group.case.finer, group.finer, strict=True))
        divided = {path_as_mined(group.case.spec, path) for look, _ in finer for path in look.paths}
        looks = [pair for pair in looks if not pair[0].whole] or looks
        looks = [
            pair
            for pair in looks
            if not divided.issuperset(path_as_mined(group.case.spec, path) for path in pair[0].paths)
        ]
        for look, evidence in looks + finer:
            for path in look.paths:
                deviation[path] = max(deviation.get(path, 0.0), sign * evidence.shift / look.relevant)
                worth[path] = look.worth / len(look.paths)
    largest = max(deviation.values(), default=0.0)
    deviating = {path: worth[path] for path, shift in deviation.items() if shift > max(1.0, largest / 2)}
    steady = {
        path: worth[path]
        for path, shift in deviation.items()
        if shift <= max(1.0, largest / 4) and path not in deviating
    }
    return deviating, steady


def telling_path(
    group: PathGroup, has_others: bool, deviating: PathWorth, steady: PathWorth
) -> tuple[str, tuple[Term, ...]]:
    """The calls that deviate as text, and as an expression: an edge, else the group's, else a path; empty for all calls.

    ``deviating`` are the calls that deviate, ``steady`` all calls of the function that keep to their shares.
    """
    own = group.expression if has_others and not group.standing else ()
    if not deviating or not steady:
        return expression_text(own), own or ALL_CALLS
    edge, lead = _telling_edge(deviating, steady)
    if lead >= CLEAR:
        return expression_text([((edge, True),)]), (((edge, True),),)
    if own:
        return expression_text(own), own
    most: CallPath = max(deviating, key=lambda path: (deviating[path], path))
    return path_text(most), single_path(most)


def single_path(path: CallPath) -> tuple[Term, ...]:
    """The expression that holds for a call path."""
    return (tuple((edge, True) for edge in edges_of(path)),)


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


def explain(verdicts: Sequence[SpecVerdict], judged: Sequence[JudgedGroup]) -> list[SpecVerdict]:
    """The verdicts, where a caller whose deviation comes from a violated callee is inconclusive and names the callee."""
    paths: dict[int, tuple[CallPath, ...]] = {}
    sign: dict[int, float] = {}
    violated = []
    for verdict, group in zip(verdicts, judged, strict=True):
        look, shift = group.case.looks[group.telling], group.evidence[group.telling].shift
        if verdict.verdict != "violated" and (verdict.verdict != "inconclusive" or abs(shift) <= look.relevant):
            continue
        sign[id(verdict)] = 1.0 if shift > 0 else -1.0
        deviating, _ = deviating_paths(verdict.component.name, judged, sign[id(verdict)])
        own = {path for each in group.case.looks for path in each.paths}
        here = tuple(path for path in deviating if path in own)
        paths[id(verdict)] = here or look.paths
        if verdict.verdict == "violated":
            violated.append(verdict)
    deepest_first = sorted(violated, key=lambda one: -max(map(len, paths[id(one)])))

    def causes(callee: SpecVerdict, caller: SpecVerdict) -> bool:
        same_side = sign[id(callee)] == sign[id(caller)]
        other = callee.component.name != caller.component.name
        return same_side and other and lead_to(paths[id(caller)], paths[id(callee)])

    explained = []
    for verdict in verdicts:
        callees = [one for one in deepest_first if causes(one, verdict)] if id(verdict) in paths else []
        if callees:
            callee = callees[0]
            where = f" where {callee.path}" if callee.path else ""
            message = f"explained by its callee {callee.component.name}{where}"
            verdict = replace(
                verdict,
                verdict="inconclusive",
                message=message,
                follows=callee.component.name,
                more_runs=None,
                more_mined_runs=None,
            )
        explained.append(verdict)
    return explained


def lead_to(callers: Sequence[CallPath], callees: Sequence[CallPath]) -> bool:
    """Whether every call path of the callers is the beginning of a longer call path of the callees."""
    return all(any(len(path) < len(other) and other[: len(path)] == path for other in callees) for path in callers)
