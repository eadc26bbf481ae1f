"""Laws held against new recordings: a verdict for each component (Freud §6.1), false alarms controlled over all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import TypeVar

import numpy as np

from perflaw.check.claims import Baseline, Claim
from perflaw.check.evalues import NO_RUNS, ChangeEvidence, Effects, RunSpread, e_bh, e_value, e_values, learn_spread
from perflaw.check.law_records import LawRecords, law_records, missing_features
from perflaw.check.mixture_changes import MIX_CHANGED, mix_change
from perflaw.check.run_effects import (
    MIN_PART_RECORDS,
    MIN_RECORDS,
    CostView,
    Margin,
    cuts_of,
    margin_of,
    scatter_note,
    total_effects,
    views,
)
from perflaw.types import CheckVerdict, Component, DiffVerdict, Evidence, Outcome

AnyVerdict = TypeVar("AnyVerdict", CheckVerdict, DiffVerdict)
EvidenceByKey = Mapping[tuple[str, str], Evidence]
"""Evidence by component and metric."""

ALPHA, MIN_EFFECT = 0.01, 1.1
"""Share of false alarms among violated verdicts, and the smallest factor that matters."""
DOUBT = log(2.0)
"""A law holds if its cost is known within this factor and does not differ from the law."""
MAX_OUTSIDE = 0.5
"""If a larger share of the invocations is outside of the law's scope, the law is not tested."""
MAX_LOG = 100.0
"""Logarithms of effects end here, on both sides: a function without cost may cost any number of times what it did."""
SIZE_BINS = 12
"""Number of groups of equally many records by which the size is found from which on a law is violated."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How strict a check is."""

    alpha: float = ALPHA
    """Expected share of false alarms among the violated verdicts of a check, 0 to 1."""
    min_effect: float = MIN_EFFECT
    """Changes by less than this factor are no violation; above 1."""
    single_run: bool = False
    """One run alone may violate a law."""


@dataclass(frozen=True, slots=True)
class LawCase:
    """A claim with the records that it is held against."""

    claim: Claim
    """The law."""
    evidence: Evidence
    """The new evidence."""
    records: LawRecords
    """Its invocations under the law."""
    baseline: Baseline
    """Effects of the law's own runs; none for a law without runs."""
    views: tuple[CostView, ...]
    """Views of the new runs; the total of the whole component comes first."""
    outside: float
    """Share of the invocations outside of the law's scope."""
    margin: Margin
    """The smallest changes that matter."""


@dataclass(frozen=True, slots=True)
class CostLook:
    """One view of a component, in the law's own runs and in the new ones."""

    view: CostView
    """The new runs."""
    base: Effects
    """Effects of the law's own runs."""
    spread: RunSpread
    """How much runs differ."""
    evidence: ChangeEvidence
    """E-value, effect and interval."""


def judge(claims: Sequence[Claim], evidence: EvidenceByKey, options: CheckOptions | None = None) -> list[CheckVerdict]:
    """A verdict for every claim: violations first, the largest before others.

    Runs are the replicates. The expected share of false ones among violated verdicts is at most ``options.alpha``,
    at whatever time one looks.
    """
    options = options or CheckOptions()
    prepared = [prepare(claim, evidence, options.min_effect) for claim in claims]
    cases = [one for one in prepared if isinstance(one, LawCase)]
    by_statistic: dict[str, list[Effects]] = {"total": [], "typical": []}
    for case in cases:
        for view in case.views:
            if view.name in by_statistic:
                by_statistic[view.name] += [view.effects, case.baseline.effects.get(view.name, NO_RUNS)]
    spreads = {name: learn_spread(effects) for name, effects in by_statistic.items()}
    # For each case every view that the law's own runs and the new ones share; the whole component's total first.
    seen: list[list[tuple[CostView, Effects, RunSpread]]] = []
    for case in cases:
        of_case = []
        for view in case.views:
            base = case.baseline.effects.get(view.name, NO_RUNS)
            if view.name != "total" and case.claim.baseline is not None and not base.value.size:
                continue
            if case.margin.stated and view.name.startswith("typical"):
                continue  # The shape of a wide distribution that nobody measured is no claim.
            spread = spreads[view.name.split(" ", 1)[0]]
            of_case.append((view, base, spread))
        seen.append(of_case)
    found = iter(
        e_values(
            [
                (base, view.effects, spread, case.margin.up, case.margin.down)
                for case, of_case in zip(cases, seen, strict=True)
                for view, base, spread in of_case
            ]
        )
    )
    looks = [[CostLook(*look, next(found)) for look in of_case] for of_case in seen]
    e = np.array([np.mean([look.evidence.e for look in of_case]) for of_case in looks], dtype=np.float64)
    testable = np.array([not _too_few_runs(of_case[0], options) for of_case in looks], dtype=bool)
    rejected = np.zeros(e.size, dtype=bool)
    rejected[testable] = e_bh(e[testable], options.alpha)
    judged = [
        _verdict(case, of_case, float(value), bool(violated), options)
        for case, of_case, value, violated in zip(cases, looks, e, rejected, strict=True)
    ]
    untested = [one for one in prepared if isinstance(one, CheckVerdict)]
    return worst_first(untested + judged, ("violated", "inconclusive", "out of scope", "holds"))


def worst_first(verdicts: Iterable[AnyVerdict], order: Sequence[Outcome]) -> list[AnyVerdict]:
    """The verdicts in the order of their outcomes; of equal outcomes the largest effect comes first."""

    def key(one: AnyVerdict) -> tuple[int, float, str, str]:
        effect = abs(log(max(one.effect or 1.0, 1e-12)))
        return order.index(one.verdict), -effect, one.component.name, one.metric.name

    return sorted(verdicts, key=key)


def prepare(claim: Claim, evidence: EvidenceByKey, min_effect: float) -> LawCase | CheckVerdict:
    """A claim with its records, or the verdict if they cannot be compared."""
    new = evidence.get((claim.component, claim.metric.name))

    def untested(verdict: Outcome, message: str, inside: int = 0, outside: float = 0.0) -> CheckVerdict:
        component = new.component if new else Component(claim.component)
        none = (None, None, None, None)
        return CheckVerdict(
            component, claim.metric, "", verdict, *none, records=inside, outside=outside, message=message
        )

    if new is None:
        # The message for a component without evidence, with the components of a similar name.
        names = sorted({component for component, metric in evidence if metric == claim.metric.name})
        last = claim.component.rsplit(".", 1)[-1]
        near = difflib.get_close_matches(claim.component, names, 3)
        near += [name for name in names if name.rsplit(".", 1)[-1] == last and name not in near][:3]
        similar = f"; similar: {', '.join(near[:3])}" if near else ""
        return untested("inconclusive", f"not in the new recordings: never called, renamed or left out{similar}")
    if not new.cost.size:
        return untested("inconclusive", "no call of it was completed in the new recordings")
    if missing := missing_features(claim, new):
        hint = "no argument and no feature of the runs has this name (perflaw annotate --json lists them)"
        if any(name.startswith("branch.") for name in missing):
            hint = "record with --collect branches"
        return untested("inconclusive", f"{', '.join(missing)} was not recorded: {hint}")
    records = law_records(claim, new)
    baseline = claim.baseline or Baseline(cuts_of(claim, records))
    seen = tuple(views(claim, records, baseline.cuts, baseline.scatter))
    inside = int(records.inside.sum())
    outside = float(records.weight[~records.inside].sum() / max(records.weight.sum(), 1e-300))
    if outside > MAX_OUTSIDE:
        # The message for inputs outside of the learnt range.
        sentences = []
        for name in sorted(claim.names):
            column, ends = records.values[name], claim.ranges.get(name)
            if ends is None or column.dtype.kind == "U":
                continue
            values = np.asarray(column, dtype=np.float64)
            low, high = np.nanmin(values), np.nanmax(values)
            if low < ends[0] or high > ends[1]:
                sentences.append(f"{name} {low:.6g}–{high:.6g}, learnt from {ends[0]:.6g}–{ends[1]:.6g}")
        return untested("out of scope", "; ".join(sentences) or "none of the law's conditions is true", inside, outside)
    if not seen or seen[0].name != "total":
        return untested("inconclusive", f"{inside} calls recorded, at least {MIN_RECORDS} are needed", inside, outside)
    return LawCase(claim, new, records, baseline, seen, outside, margin_of(claim, records, min_effect))


def _too_few_runs(look: CostLook, options: CheckOptions) -> bool:
    """Whether one side has too few runs for a violation; a law without runs of its own needs none."""
    return not options.single_run and (look.view.effects.value.size < 2 or look.base.value.size == 1)


def _verdict(case: LawCase, looks: Sequence[CostLook], e: float, rejected: bool, options: CheckOptions) -> CheckVerdict:
    """The verdict on a component, from all of its views."""
    suspicious = rejected or any(case.margin.beyond(look.evidence.low, look.evidence.high) for look in looks)
    look, total = looks[0], looks[0].evidence
    if suspicious and not (total.e >= 1.0 / options.alpha and case.margin.beyond(total.low, total.high)):
        # The total does not tell the violation: the strongest view does.
        look = max(looks, key=lambda one: one.evidence.e)
    outcome, message = _outcome(case, look, rejected, suspicious, options)
    since, effects, evidence, base = look.view.since, look.view.effects, look.evidence, look.base
    sign = 1.0 if evidence.shift > 0 else -1.0
    if outcome == "violated" and look.view.clause < 0 and look.view.name.startswith("total"):
        whole = looks[0].base
        if found := violated_since(case, _mean_effect(whole), sign):
            (since, records), base = found, whole
            effects = total_effects(records)
            evidence = e_value(base, effects, look.spread, case.margin.up, case.margin.down)
    beyond = int((sign * (effects.value - _mean_effect(base)) > case.margin.towards(sign)).sum())
    return CheckVerdict(
        case.evidence.component,
        case.claim.metric,
        case.claim.condition(look.view.clause) if look.view.clause >= 0 else "",
        outcome,
        p=min(1.0, 1.0 / max(e, 1e-300)),
        effect=exp(min(max(evidence.shift, -MAX_LOG), MAX_LOG)),
        effect_low=exp(min(max(evidence.low, -MAX_LOG), MAX_LOG)),
        effect_high=exp(min(max(evidence.high, -MAX_LOG), MAX_LOG)),
        e_value=e,
        since=since,
        runs=int(effects.value.size),
        runs_beyond=beyond,
        records=looks[0].view.records,
        outside=case.outside,
        message=message,
    )


def _outcome(
    case: LawCase, look: CostLook, rejected: bool, suspicious: bool, options: CheckOptions
) -> tuple[Outcome, str]:
    """The verdict and why."""
    evidence = look.evidence
    if rejected:
        if any(len(clause.parts) > 1 for clause in case.claim.clauses):
            change = mix_change(case.claim, case.evidence, case.records, look.spread, case.margin)
            if change and change.other_inputs:
                inputs = f"with the inputs ({change.other_inputs})"
                return "out of scope", f"{MIX_CHANGED} {inputs}, each mode holds: {change.text}"
            if change:
                return "violated", f"{MIX_CHANGED}, each mode holds: {change.text}"
        return "violated", "the law holds no more" if evidence.shift > 0 else "cheaper than the law: learn it again"
    if suspicious and _too_few_runs(look, options):
        side = "the new recordings" if look.view.effects.value.size < 2 else "what the law was learnt from"
        return "inconclusive", f"one run in {side}: runs differ, record another one"
    if suspicious:
        return "inconclusive", "it looks changed, but not beyond doubt: record more runs"
    if not case.margin.within(evidence.low, evidence.high, DOUBT - log(options.min_effect)):
        return "inconclusive", "runs differ too much to tell: record more runs"
    notes = ["one run"] if look.view.effects.value.size == 1 else []
    return "holds", "; ".join(filter(None, [*notes, scatter_note(case.claim, case.records)]))


def _mean_effect(base: Effects) -> float:
    """Mean log effect of the law's own runs, 0 without runs."""
    return float(base.value.mean()) if base.value.size else 0.0


def violated_since(case: LawCase, base: float, sign: float) -> tuple[str, LawRecords] | None:
    """Size from which on the cost is beyond the minimum effect, and the records from there on.

    ``base`` is the mean log effect of the law's own runs, ``sign`` the side of the violation. None if the law is
    violated for small inputs as well, or if no feature separates the sizes.
    """
    records = case.records.take(case.records.inside)
    for name in sorted(case.claim.names):
        column = records.values[name]
        if column.dtype.kind == "U" or np.unique(column).size < 3:
            continue
        values = np.asarray(column, dtype=np.float64)
        # Smallest value from which on every group of sizes is beyond the margin, while none below it is.
        edges = np.unique(np.quantile(values, np.linspace(0, 1, SIZE_BINS + 1)[:-1], method="inverted_cdf"))
        group = np.searchsorted(edges, values, side="right") - 1
        if edges.size < 2 or np.bincount(group, minlength=edges.size).min() < MIN_PART_RECORDS:
            continue
        weight = records.weight
        ratio = np.bincount(group, weight * records.cost) / np.bincount(group, weight * records.expected)
        beyond = sign * (np.log(np.maximum(ratio, 1e-12)) - base) > case.margin.towards(sign)
        first = int(np.argmax(beyond))
        if first > 0 and beyond[first:].all():
            start = float(edges[first])
            return f"{name} = {start:.6g}", records.take(values >= start)
    return None
