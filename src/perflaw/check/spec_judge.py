"""Specifications held against new recordings: a verdict for each group of call paths, false alarms controlled over all.

The evidence is that of laws (``evalues.py``): e-values over runs, whose scatter is estimated from all groups, so that
what differs between any two runs on this machine is no violation; e-BH over the groups (Wang & Ramdas 2022).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.check.evalues import Effects, Evidence, Spread, e_bh, e_value, learn_spread
from perflaw.check.spec_cases import Case, Look, case_of
from perflaw.check.spec_tallies import FEWEST_OF_GROUP, SpecOptions, factors_of, sort_calls
from perflaw.learn.paths.edges import START, edges_of
from perflaw.specs.call_paths import expression_text, path_text
from perflaw.types import Component, Metric, Observed, Outcome, SpecVerdict
from perflaw.types.specifications import CallPath, Edge, MinedSpec, PathGroup

# ---- Which call edge a deviation goes through: the one that calls which deviate have in common and others have not.

CLEAR = 0.9
"""An edge is told where it has so much more of the deviating calls than of the others."""


def telling_path(
    group: PathGroup, one_of_several: bool, deviating: Mapping[CallPath, float], others: Mapping[CallPath, float]
) -> str:
    """Where calls deviate, in words: an edge, else the group's expression, else a call path; empty for everywhere.

    Mappings are from call paths to calls; ``others`` are all calls of the function that keep to their shares.
    """
    if not deviating or not others:
        return expression_text(group.expression) if one_of_several and not group.standing else ""
    edge, score = _best_edge(deviating, others)
    if score >= CLEAR:
        return expression_text([((edge, True),)])
    if group.expression and not group.standing:
        return expression_text(group.expression)
    worst: CallPath = max(deviating, key=lambda path: (deviating[path], path))
    return path_text(worst)


def _best_edge(deviating: Mapping[CallPath, float], others: Mapping[CallPath, float]) -> tuple[Edge, float]:
    """The edge nearest to the function among those that tell the calls apart best."""
    edges: dict[Edge, int] = {}
    for path in deviating:
        for distance, edge in enumerate(reversed(edges_of(path))):
            if edge[0] != START:
                edges[edge] = min(distance, edges.get(edge, distance))
    scored = {edge: _share(edge, deviating) - _share(edge, others) for edge in edges}
    if not scored:
        return ("", ""), 0.0
    best = min(scored, key=lambda edge: (-round(scored[edge], 6), edges[edge], edge))
    return best, scored[best]


def _share(edge: Edge, calls: Mapping[CallPath, float]) -> float:
    """Share of the calls that come through the edge."""
    through = sum(n for path, n in calls.items() if edge in edges_of(path))
    return through / max(sum(calls.values()), 1e-9)


def leads_to(callers: Iterable[CallPath], callees: Iterable[CallPath]) -> bool:
    """Whether every call path of the one is the beginning of some longer one of the other."""
    some = list(callees)
    return all(any(len(path) < len(other) and other[: len(path)] == path for other in some) for path in callers)


# ---- Where a deviation comes from: the call paths that deviate, and the function to blame among callers and callees.


@dataclass(frozen=True, slots=True)
class Judged:
    """A group with what its looks say."""

    case: Case
    """The group."""
    evidence: tuple[Evidence, ...]
    """Of each look."""

    @property
    def e(self) -> float:
        """Evidence of all looks together: a mean of e-values is one."""
        return float(np.mean([one.e for one in self.evidence]))

    @property
    def telling(self) -> int:
        """The look that speaks most; that of the whole group where it speaks as clearly as any needs to."""
        best = max(range(len(self.evidence)), key=lambda place: self.evidence[place].e)
        whole = [place for place, look in enumerate(self.case.looks) if look.whole]
        most = max(whole, key=lambda place: self.evidence[place].e)
        return most if self.evidence[most].e >= min(1e6, self.evidence[best].e) else best


def apart(
    component: str, judged: Sequence[Judged], sign: float, options: SpecOptions
) -> tuple[dict[CallPath, float], dict[CallPath, float]]:
    """Call paths of the function that deviate to one side, and those that do not, with their calls.

    Paths that deviate by a quarter to half of what the worst does are neither: they may be as steady as the others.
    """
    shifts: dict[CallPath, float] = {}
    calls: dict[CallPath, float] = {}
    for look, shift in (pair for one in judged if one.case.spec.component == component for pair in _shifts(one, sign)):
        for path in look.paths:
            shifts[path] = max(shifts.get(path, 0.0), shift)
            calls[path] = look.worth / len(look.paths)
    most = max(shifts.values(), default=0.0)
    deviating = {path: calls[path] for path, shift in shifts.items() if shift > max(options.tolerance, most / 2)}
    steady = {path: calls[path] for path, shift in shifts.items() if shift <= max(options.tolerance, most / 4)}
    return deviating, {path: n for path, n in steady.items() if path not in deviating}


def _shifts(one: Judged, sign: float) -> list[tuple[Look, float]]:
    """Looks at single call paths where there are such, else at the group, with how far they are off to one side."""
    every = [(look, sign * some.shift) for look, some in zip(one.case.looks, one.evidence, strict=True)]
    return [pair for pair in every if not pair[0].whole] or every


def explained(verdicts: Sequence[SpecVerdict], judged: Sequence[Judged], options: SpecOptions) -> list[SpecVerdict]:
    """A function is told, not all above it: deviations of callers that are slow because of what they call."""
    deviant = [
        (verdict, one)
        for verdict, one in zip(verdicts, judged, strict=True)
        if verdict.verdict == "violated" or (verdict.verdict == "inconclusive" and _beyond(verdict, options))
    ]
    paths = {id(verdict): _deviating(verdict, one, judged, options) for verdict, one in deviant}
    violated = [verdict for verdict, _ in deviant if verdict.verdict == "violated"]
    deepest = sorted(violated, key=lambda one: -max(map(len, paths[id(one)])))
    return [
        _follows(one, [cause for cause in deepest if _causes(cause, one, paths)]) if id(one) in paths else one
        for one in verdicts
    ]


def _beyond(verdict: SpecVerdict, options: SpecOptions) -> bool:
    return abs(verdict.effect or 0.0) > options.tolerance


def _causes(cause: SpecVerdict, verdict: SpecVerdict, paths: Mapping[int, Sequence[CallPath]]) -> bool:
    """Whether the deviating calls of the one lead to those of the other, to the same side."""
    same_side = (cause.effect or 0.0) * (verdict.effect or 0.0) > 0
    other = cause.component.name != verdict.component.name
    return same_side and other and leads_to(paths[id(verdict)], paths[id(cause)])


def _follows(verdict: SpecVerdict, causes: Sequence[SpecVerdict]) -> SpecVerdict:
    """The verdict on a caller, the first cause told; as it is where nothing it calls is violated."""
    if not causes:
        return verdict
    cause = causes[0]
    where = f" where {cause.path}" if cause.path else ""
    message = f"follows from what it calls: {cause.component.name}{where}"
    return replace(verdict, verdict="inconclusive", message=message, follows=cause.component.name)


def _deviating(
    verdict: SpecVerdict, one: Judged, judged: Sequence[Judged], options: SpecOptions
) -> tuple[CallPath, ...]:
    """Call paths of the group behind a violation."""
    sign = 1.0 if (verdict.effect or 0.0) > 0 else -1.0
    look = one.case.looks[one.telling]
    paths, _ = apart(verdict.component.name, judged, sign, options)
    own = {path for look in one.case.looks for path in look.paths}
    return tuple(path for path in paths if path in own) or look.paths


DOUBT = 0.2
"""Shares hold where they are known within the tolerance and so much more."""
Found = Mapping[tuple[str, str], Observed]
"""(function, metric) → what was observed of it."""


def judge_specs(
    specs: Sequence[MinedSpec],
    found: Found,
    options: SpecOptions | None = None,
    places: Mapping[str, Component] | None = None,
) -> list[SpecVerdict]:
    """A verdict for every group: violations first. ``places`` says where functions are, by name."""
    options = options or SpecOptions()
    named = {one.spec.component: (places or {}).get(one.spec.component, Component(one.spec.component)) for one in specs}
    refused = [verdict for one in specs if (verdict := _refused(one, found, named, options))]
    names = {(one.component.name, one.metric.name) for one in refused}
    sorts = [
        sort_calls(one, found[key]) for one in specs if (key := (one.spec.component, one.spec.metric)) not in names
    ]
    factors = factors_of(sorts, options)
    cases = [case_of(one, place, factors, options) for one in sorts for place in range(len(one.mined.spec.groups))]
    testable = [case for case in cases if case.worth >= FEWEST_OF_GROUP and case.group.standing != "quarantined"]
    spread = learn_spread([effects for case in testable for effects in _effects(case)])
    judged = [Judged(case, tuple(_evidence(look, spread, options) for look in case.looks)) for case in testable]
    rejected = e_bh(np.array([one.e for one in judged], dtype=np.float64), options.alpha)
    verdicts = [_verdict(one, bool(no), judged, options, named) for one, no in zip(judged, rejected, strict=True)]
    rest = [_untested(case, named) for case in cases if case not in testable]
    return sorted([*explained(verdicts, judged, options), *rest, *refused], key=_order)


def _order(one: SpecVerdict) -> tuple[int, float, str, str]:
    rank = ("violated", "inconclusive", "out of scope", "holds").index(one.verdict)
    return rank, -abs(one.effect or 0.0), one.component.name, one.path


def _effects(case: Case) -> list[Effects]:
    """Old and new runs of the group as a whole: what the scatter between runs is learnt from."""
    return [effects for look in case.looks if look.whole for effects in (look.base, look.new)]


def _evidence(look: Look, spread: Spread, options: SpecOptions) -> Evidence:
    return e_value(look.base, look.new, spread, options.tolerance)


def _refused(one: MinedSpec, found: Found, named: Mapping[str, Component], options: SpecOptions) -> SpecVerdict | None:
    """The verdict on a function that cannot be held to its specification at all."""
    spec = one.spec
    new = found.get((spec.component, spec.metric))
    why = ""
    if new is None or not new.observations:
        why = "not in the new recordings: gone, renamed, inlined, or not called"
    elif not spec.borders:
        why = "its calls are of one kind: nothing is said of shares"
    elif options.absolute and not {p.host for p in new.platforms} & {p.host for p in spec.platforms}:
        hosts = ", ".join(sorted({p.host for p in new.platforms}))
        why = f"no bounds for {hosts}: check without --absolute, or mine there"
    elif len(spec.groups) == 1 and not {p.host for p in new.platforms} & {p.host for p in spec.platforms}:
        why = "one group on another machine: there is nothing to compare its times with"
    return _out_of_scope(named[spec.component], spec.metric, "", why) if why else None


def _out_of_scope(component: Component, metric: str, path: str, why: str, group: str = "") -> SpecVerdict:
    return SpecVerdict(
        component, Metric(metric, "ns"), path, "out of scope", None, None, None, None, group=group, message=why
    )


def _untested(case: Case, named: Mapping[str, Component]) -> SpecVerdict:
    path = expression_text(case.group.expression) if len(case.spec.groups) > 1 else ""
    why = "no call came that way"
    if case.group.standing == "quarantined":
        why = "quarantined: the runs behind it contradict each other"
    elif case.calls:
        why = f"{case.calls:,} calls came that way: too few to tell"
    return _out_of_scope(named[case.spec.component], case.spec.metric, path, why, case.group.id)


def _verdict(
    one: Judged, rejected: bool, judged: Sequence[Judged], options: SpecOptions, named: Mapping[str, Component]
) -> SpecVerdict:
    case, place = one.case, one.telling
    look, evidence = case.looks[place], one.evidence[place]
    outcome, message = _outcome(one, evidence, rejected, options)
    path = expression_text(case.group.expression) if len(case.spec.groups) > 1 else ""
    if rejected:
        sign = 1.0 if evidence.shift > 0 else -1.0
        path = telling_path(case.group, len(case.spec.groups) > 1, *apart(case.spec.component, judged, sign, options))
    return SpecVerdict(
        named[case.spec.component], Metric(case.spec.metric, "ns"), path, outcome,
        p=min(1.0, 1.0 / max(one.e, 1e-300)), effect=evidence.shift, effect_low=max(evidence.low, -1.0),
        effect_high=min(evidence.high, 1.0), e_value=one.e, group=case.group.id, border=look.border,
        expected=look.expected, runs=case.runs, calls=case.calls, worth=case.worth, outside=case.outside, message=message,
    )  # fmt: skip


def _outcome(one: Judged, evidence: Evidence, rejected: bool, options: SpecOptions) -> tuple[Outcome, str]:
    tolerance = options.tolerance
    if rejected:
        return "violated", "slower than specified" if evidence.shift > 0 else "quicker than specified: mine it again"
    if any(abs(some.shift) > tolerance and max(some.low, -some.high) > tolerance for some in one.evidence):
        return "inconclusive", "it looks changed, but not beyond doubt: record more runs"
    whole = [some for some, look in zip(one.evidence, one.case.looks, strict=True) if look.whole]
    if any(some.high > tolerance + DOUBT or some.low < -tolerance - DOUBT for some in whole):
        return "inconclusive", "runs differ too much to tell: record more runs"
    return "holds", "one run" if one.case.runs == 1 else ""
