"""Laws held against new recordings: a verdict for each component (Freud §6.1), false alarms controlled over all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from perflaw.check.cases import Case, Found, prepare
from perflaw.check.claims import Claim
from perflaw.check.effect import FEWEST_APART, Margin, View, other_scatter, totals
from perflaw.check.evalues import NOTHING, Effects, Evidence, Spread, e_bh, e_value, learn_spread
from perflaw.check.mix import MIX_CHANGED, changed_mix
from perflaw.check.records import Array, Records
from perflaw.types import CheckVerdict, Outcome

# ---- From which size on a law is violated.

BINS = 12
"""Sizes are told apart in so many groups of equally many records."""


def since(case: Case, base: float, sign: float) -> tuple[str, Records] | None:
    """Size from which on the cost is beyond the minimum effect, and the records from there on.

    ``base`` is the log effect of the law's own runs, ``sign`` the side of the violation. None where small inputs are
    violated as well, or where sizes do not tell.
    """
    records = case.records.take(case.records.inside)
    for name in sorted(case.claim.names):
        column = records.values[name]
        if column.dtype.kind == "U" or np.unique(column).size < 3:
            continue
        values = np.asarray(column, dtype=np.float64)
        start = _start(records, values, base, case.margin.towards(sign), sign)
        if start is not None:
            return f"{name} = {start:.6g}", records.take(values >= start)
    return None


def _start(records: Records, values: Array, base: float, least: float, sign: float) -> float | None:
    """Smallest value from which on every group of sizes is beyond ``least``, and below which none is."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[:-1], method="inverted_cdf"))
    group = np.searchsorted(edges, values, side="right") - 1
    sizes = np.bincount(group, minlength=edges.size)
    if edges.size < 2 or sizes.min() < FEWEST_APART:
        return None
    weight = records.weight
    ratio = np.bincount(group, weight * records.cost) / np.bincount(group, weight * records.expected)
    beyond = sign * (np.log(np.maximum(ratio, 1e-12)) - base) > least
    first = int(np.argmax(beyond))
    return float(edges[first]) if first > 0 and beyond[first:].all() else None


def effects_of(records: Records) -> Effects:
    """Effects of the runs over these records."""
    names, run = np.unique(records.run, return_inverse=True)
    return totals(records, run, names.size)


ALPHA, MIN_EFFECT = 0.01, 1.1
"""False alarms among violated verdicts, and the factor below which a change matters to nobody."""
DOUBT = log(2.0)
"""A law holds where its cost is known within this factor, and does not differ from what the law says."""


@dataclass(frozen=True, slots=True)
class Options:
    """How strict a check is."""

    alpha: float = ALPHA
    """Expected share of false alarms among the violated verdicts of a check, 0 to 1."""
    min_effect: float = MIN_EFFECT
    """Changes by less than this factor are no violation; above 1."""
    single_run: bool = False
    """One run alone may violate a law."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One view of a component, old and new, and what they say."""

    view: View
    """The new runs."""
    base: Effects
    """The runs of the law."""
    spread: Spread
    """How much runs differ."""
    evidence: Evidence
    """E-value, effect and interval."""


def judge(claims: Sequence[Claim], found: Found, options: Options | None = None) -> list[CheckVerdict]:
    """A verdict for every claim: violations first, the largest before others.

    Runs are the replicates. The expected share of false ones among violated verdicts is at most ``options.alpha``,
    at whatever time one looks.
    """
    options = options or Options()
    prepared = [prepare(claim, found, options.min_effect) for claim in claims]
    cases = [one for one in prepared if isinstance(one, Case)]
    spreads = _spreads(cases)
    looks = [_looks(case, spreads) for case in cases]
    e = np.array([np.mean([look.evidence.e for look in some]) for some in looks], dtype=np.float64)
    enough = np.array([not _lonely(some[0], options) for some in looks], dtype=bool)
    rejected = np.zeros(e.size, dtype=bool)
    rejected[enough] = e_bh(e[enough], options.alpha)
    judged = [
        _verdict(case, some, float(value), bool(one), options)
        for case, some, value, one in zip(cases, looks, e, rejected, strict=True)
    ]
    return sorted([one for one in prepared if isinstance(one, CheckVerdict)] + judged, key=_order)


def _order(one: CheckVerdict) -> tuple[int, float, str, str]:
    rank = ("violated", "inconclusive", "out of scope", "holds").index(one.verdict)
    return rank, -abs(log(max(one.effect or 1.0, 1e-12))), one.component.name, one.metric.name


def _spreads(cases: Sequence[Case]) -> dict[str, Spread]:
    """How much runs differ, by statistic: learnt from all components, old runs and new."""
    several: dict[str, list[Effects]] = {"total": [], "typical": []}
    for case in cases:
        for view in case.views:
            if view.name in several:
                several[view.name] += [view.effects, case.baseline.effects.get(view.name, NOTHING)]
    return {name: learn_spread(some) for name, some in several.items()}


def _looks(case: Case, spreads: Mapping[str, Spread]) -> list[_Look]:
    """Every view that old and new runs share; the whole component's total first."""
    found = []
    for view in case.views:
        base = case.baseline.effects.get(view.name, NOTHING)
        if view.name != "total" and case.claim.baseline is not None and not base.value.size:
            continue
        if case.margin.stated and view.name.startswith("typical"):
            continue  # The shape of a wide distribution that nobody measured is no claim.
        spread = spreads[view.name.split(" ", 1)[0]]
        found.append(_Look(view, base, spread, e_value(base, view.effects, spread, case.margin.up, case.margin.down)))
    return found


def _lonely(look: _Look, options: Options) -> bool:
    """Whether too few runs stand on a side for a violation; a law taken at its word needs none on its own."""
    return not options.single_run and (look.view.runs.size < 2 or look.base.value.size == 1)


def _verdict(case: Case, looks: Sequence[_Look], e: float, rejected: bool, options: Options) -> CheckVerdict:
    """What the views of a component together say."""
    suspicious = rejected or any(_beyond(look.evidence, case.margin) for look in looks)
    look = _telling(case, looks, options.alpha) if suspicious else looks[0]
    evidence, sign = look.evidence, 1.0 if look.evidence.shift > 0 else -1.0
    outcome, message = _outcome(case, look, rejected, suspicious, options)
    if outcome == "violated":
        outcome, message = _of_mix(case, look, outcome, message)
    from_size, effects = look.view.since, look.view.effects
    base = looks[0].base
    whole = outcome == "violated" and look.view.clause < 0 and look.view.name.startswith("total")
    found = since(case, _middle(base), sign) if whole else None
    if found:
        from_size, effects = found[0], effects_of(found[1])
        evidence = e_value(base, effects, look.spread, case.margin.up, case.margin.down)
    else:
        base = look.base
    beyond = int((sign * (effects.value - _middle(base)) > case.margin.towards(sign)).sum())
    return CheckVerdict(
        case.evidence.component,
        case.claim.metric,
        case.claim.condition(look.view.clause) if look.view.clause >= 0 else "",
        outcome,
        p=min(1.0, 1.0 / max(e, 1e-300)),
        effect=exp(evidence.shift),
        effect_low=exp(evidence.low),
        effect_high=exp(evidence.high),
        e_value=e,
        since=from_size,
        runs=int(effects.value.size),
        runs_beyond=beyond,
        records=looks[0].view.records,
        outside=case.outside,
        message=message,
    )


def _telling(case: Case, looks: Sequence[_Look], alpha: float) -> _Look:
    """The view that tells a violation: the whole component's where it is evidence enough, else the strongest."""
    whole = looks[0].evidence
    if whole.e >= 1.0 / alpha and _beyond(whole, case.margin):
        return looks[0]
    return max(looks, key=lambda look: look.evidence.e)


def _outcome(case: Case, look: _Look, rejected: bool, suspicious: bool, options: Options) -> tuple[Outcome, str]:
    """The verdict and why."""
    evidence = look.evidence
    if rejected:
        return "violated", "the law holds no more" if evidence.shift > 0 else "cheaper than the law: learn it again"
    if suspicious and _lonely(look, options):
        side = "the new recordings" if look.view.runs.size < 2 else "what the law was learnt from"
        return "inconclusive", f"one run in {side}: runs differ, record another one"
    if suspicious:
        return "inconclusive", "it looks changed, but not beyond doubt: record more runs"
    if not case.margin.within(evidence.low, evidence.high, DOUBT - log(options.min_effect)):
        return "inconclusive", "runs differ too much to tell: record more runs"
    told = ["one run"] if look.view.runs.size == 1 else []
    return "holds", "; ".join(filter(None, [*told, other_scatter(case.claim, case.records)]))


def _of_mix(case: Case, look: _Look, outcome: Outcome, message: str) -> tuple[Outcome, str]:
    """A violation told in the words of a mixture where every mode holds and only their shares changed."""
    if all(len(clause.parts) == 1 for clause in case.claim.clauses):
        return outcome, message
    mix = changed_mix(case.claim, case.evidence, case.records, look.spread, case.margin)
    if mix is None:
        return outcome, message
    if mix.other_inputs:
        return "out of scope", f"{MIX_CHANGED} with the inputs ({mix.other_inputs}), each mode holds: {mix.text}"
    return outcome, f"{MIX_CHANGED}, each mode holds: {mix.text}"


def _beyond(evidence: Evidence, margin: Margin) -> bool:
    """Whether the interval lies beyond the smallest change that matters."""
    return margin.beyond(evidence.low, evidence.high)


def _middle(base: Effects) -> float:
    """Log effect of the law's own runs, 0 for a law taken at its word."""
    return float(base.value.mean()) if base.value.size else 0.0
