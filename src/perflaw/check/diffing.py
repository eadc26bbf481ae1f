"""Two sets of laws side by side: what changed of each component, and whether it costs more (Freud §6.2).

If runs stand behind both laws, one law is the yardstick of the runs of both sides: what the choice of a law leaves open
cancels out. Laws of texts are compared as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perflaw.check.changes import changes_of
from perflaw.check.claims import Claim
from perflaw.check.judge import CheckOptions, EvidenceByKey, judge, worst_first
from perflaw.check.mixture_changes import MIX_CHANGED
from perflaw.check.program_changes import at_median_speed, compared, with_changes
from perflaw.check.program_summary import ProgramSummary
from perflaw.check.twin import sampled
from perflaw.laws.printing import show
from perflaw.types import CheckVerdict, Component, DiffVerdict, Outcome, Stated

Key = tuple[str, str]
"""Component and metric."""


@dataclass(frozen=True, slots=True)
class DiffSide:
    """The laws of one side, with the evidence behind them if it is known."""

    claims: Sequence[Claim]
    """The laws."""
    evidence: EvidenceByKey | None = None
    """The evidence that they were learnt from; None if only the samples of their twins are known."""
    program: ProgramSummary | None = None
    """Calls and unit costs of the program's runs, where they are known."""

    def evidence_behind(self, claims: Sequence[Claim]) -> EvidenceByKey:
        """The evidence behind some of the laws."""
        if self.evidence is not None:
            return self.evidence
        samples = {(one.component, one.metric.name): sampled(one) for one in claims}
        return {key: sample for key, sample in samples.items() if sample is not None}


def compare(old: DiffSide, new: DiffSide, options: CheckOptions | None = None) -> list[DiffVerdict]:
    """A verdict for every component of either side, the worst first; see ``types.DiffVerdict``.

    Of the components that are reported as changed at most ``options.alpha`` have not changed, on average.
    """
    options = options or CheckOptions()
    comparison = compared(old.program, new.program, options)
    if comparison is not None:
        options = replace(options, alpha=options.alpha / 2)
    before = {(one.component, one.metric.name): one for one in old.claims}
    after = {(one.component, one.metric.name): one for one in new.claims}
    both = sorted(before.keys() & after.keys())
    learnt = [key for key in both if before[key].baseline and after[key].baseline]
    # A doubtful old law is no yardstick if the new one is sound: then the old runs are held against the new law.
    reverse = [key for key in learnt if _doubtful(before[key]) and not _doubtful(after[key])]
    forward = [key for key in learnt if key not in reverse]
    if reverse and forward:
        options = replace(options, alpha=options.alpha / 2)
    new_runs = new.evidence_behind([after[key] for key in forward])
    old_runs = old.evidence_behind([before[key] for key in reverse])
    if comparison is not None and old.program is not None and new.program is not None:
        new_runs = at_median_speed(new_runs, new.program, comparison.speed)
        old_runs = at_median_speed(old_runs, old.program, 1.0 / comparison.speed)
    checks = judge([before[key] for key in forward], new_runs, options)
    for one in judge([after[key] for key in reverse], old_runs, options):
        # The verdict on old runs by the new law, as if it were one on new runs by the old law.
        if one.effect is not None and one.effect_low is not None and one.effect_high is not None:
            low, high = 1 / one.effect_high, 1 / one.effect_low
            one = replace(one, effect=1 / one.effect, effect_low=low, effect_high=high)
        checks.append(one)
    verdicts = [_difference(one, before, after) for one in checks]
    verdicts += [_written_difference(before[key], after[key], options) for key in both if key not in learnt]
    verdicts += [_one_sided(before[key], "only in the old laws") for key in sorted(before.keys() - after.keys())]
    verdicts += [_one_sided(after[key], "only in the new laws") for key in sorted(after.keys() - before.keys())]

    if comparison is not None:
        verdicts = with_changes(verdicts, comparison, [*old.claims, *new.claims])

    with_laws = []
    for verdict in worst_first(verdicts, ("violated", "inconclusive", "holds", "out of scope")):
        key = (verdict.component.name, verdict.metric.name)
        with_laws.append(replace(verdict, old_laws=_stated(before.get(key)), new_laws=_stated(after.get(key))))
    return with_laws


def _stated(claim: Claim | None) -> tuple[Stated, ...]:
    """The laws of a claim as text, with the parts of mixtures one by one; none without a claim."""
    if claim is None:
        return ()
    return tuple(
        Stated(claim.condition(number), part.probability, show(part.distribution), claim.factor)
        for number, clause in enumerate(claim.clauses)
        for part in clause.parts
    )


def _doubtful(claim: Claim) -> bool:
    """Whether a law is inconclusive in some scope."""
    return any(scope["law"]["verdict"] == "inconclusive" for scope in (claim.document or {})["scopes"])


def _difference(check: CheckVerdict, before: Mapping[Key, Claim], after: Mapping[Key, Claim]) -> DiffVerdict:
    """The difference that a check of one side's runs by the other side's law shows."""
    old, new = (claims[check.component.name, check.metric.name] for claims in (before, after))
    changed = check.verdict == "violated"
    worse = changed and (check.effect or 1.0) > 1
    outcome: Outcome = "holds" if changed and not worse else check.verdict
    message = f"from {check.since} on" if changed and check.since else ""
    if check.verdict in ("inconclusive", "out of scope") or check.message.startswith(MIX_CHANGED):
        message = check.message
    return DiffVerdict(
        _component(new),
        check.metric,
        check.path,
        outcome,
        check.p,
        check.effect,
        check.effect_low,
        check.effect_high,
        changes=tuple(changes_of(old, new)) if changed and not _doubtful(old) and not _doubtful(new) else (),
        better=changed and not worse,
        message=message,
    )


def _written_difference(old: Claim, new: Claim, options: CheckOptions) -> DiffVerdict:
    """The difference of two laws of which one is text alone: their numbers are compared as they are written."""
    changes = tuple(changes_of(old, new))
    ratio = (
        1.0
        if all(one.what == "noise" for one in changes)
        else next((one.ratio for one in changes if one.what == "coefficient"), None)
    )
    least = options.min_effect
    verdict: Outcome
    if ratio is None:
        verdict, message = "inconclusive", "no coefficients to compare: use laws with their .json twins"
    else:
        verdict = "violated" if ratio > least * (1 + 1e-9) else "holds"
        message = "compared as written: no intervals" if changes else ""
    better = ratio is not None and ratio < 1 / least
    return DiffVerdict(_component(new), new.metric, "", verdict, None, ratio, None, None, changes, better, message)


def _one_sided(claim: Claim, message: str) -> DiffVerdict:
    return DiffVerdict(_component(claim), claim.metric, "", "out of scope", None, None, None, None, message=message)


def _component(claim: Claim) -> Component:
    document = claim.document or {}
    return Component(claim.component, document.get("file", ""), document.get("line", 0))
