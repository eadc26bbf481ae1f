"""Specifications held against new recordings: a verdict for each group of call paths, false alarms controlled over all.

The evidence is that of laws (``evalues.py``): e-values over runs, whose scatter is estimated from all groups, so that
what differs between any two runs on this machine is no violation; e-BH over the groups (Wang & Ramdas 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perflaw.check.evalues import Effects, Evidence, Spread, e_bh, e_value, learn_spread
from perflaw.check.spec_blame import Judged, apart, explained
from perflaw.check.spec_cases import Case, Look, case_of
from perflaw.check.spec_options import SpecOptions
from perflaw.check.spec_paths import telling_path
from perflaw.check.spec_sorting import FEWEST_OF_GROUP, factors_of, sort_calls
from perflaw.language.path_texts import expression_text
from perflaw.types import Component, Metric, Observed, Outcome, SpecVerdict
from perflaw.types.spec_files import MinedSpec

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
