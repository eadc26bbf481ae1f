"""Two sets of laws side by side: what changed of each component, and whether it costs more (Freud §6.2).

Where runs stand behind both, one law is the yardstick of the runs of both sides: what the choice of a law leaves open
then cancels out. Texts are taken at their word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from perflaw.check.cases import Found
from perflaw.check.changes import changes_of
from perflaw.check.claims import Claim
from perflaw.check.judge import Options, judge
from perflaw.check.mix import MIX_CHANGED
from perflaw.check.twin import sampled
from perflaw.laws.printing import show
from perflaw.types import Change, CheckVerdict, Component, DiffVerdict, Outcome, Stated

# ---- The laws of both sides beside the verdicts of a diff: what a chart draws.

Claims = Mapping[tuple[str, str], Claim]
"""Laws by component and metric."""


def with_laws(verdicts: Sequence[DiffVerdict], old: Claims, new: Claims) -> list[DiffVerdict]:
    """The verdicts in their order, each with the laws of its component on both sides."""
    keys = [(one.component.name, one.metric.name) for one in verdicts]
    return [
        replace(one, old_laws=stated(old.get(key)), new_laws=stated(new.get(key)))
        for one, key in zip(verdicts, keys, strict=True)
    ]


def stated(claim: Claim | None) -> tuple[Stated, ...]:
    """A claim's laws as texts, parts of mixtures one by one; none where there is no claim."""
    if claim is None:
        return ()
    return tuple(
        Stated(claim.condition(i), part.probability, show(part.distribution), claim.factor)
        for i, clause in enumerate(claim.clauses)
        for part in clause.parts
    )


Key = tuple[str, str]
"""Component and metric."""


@dataclass(frozen=True, slots=True)
class Side:
    """The laws of one side, and the recordings behind them where they are at hand."""

    claims: Sequence[Claim]
    """The laws."""
    evidence: Found | None = None
    """What they were learnt from; None where only the twins' samples are there."""

    def by_key(self) -> dict[Key, Claim]:
        """Laws by component and metric."""
        return {(one.component, one.metric.name): one for one in self.claims}

    def behind(self, claims: Sequence[Claim]) -> Found:
        """Evidence behind some of the laws."""
        if self.evidence is not None:
            return self.evidence
        kept = {(one.component, one.metric.name): sampled(one) for one in claims}
        return {key: one for key, one in kept.items() if one is not None}


def compare(old: Side, new: Side, options: Options | None = None) -> list[DiffVerdict]:
    """A verdict for every component of either side, the worst first; see ``types.DiffVerdict``.

    Of the components said to have changed at most ``options.alpha`` have not, on average.
    """
    options = options or Options()
    before, after = old.by_key(), new.by_key()
    both = sorted(before.keys() & after.keys())
    learnt = [key for key in both if before[key].baseline and after[key].baseline]
    turned = [key for key in learnt if _doubtful(before[key]) and not _doubtful(after[key])]
    straight = [key for key in learnt if key not in turned]
    if turned and straight:
        options = replace(options, alpha=options.alpha / 2)
    verdicts = [
        _told(one, before, after)
        for one in judge([before[key] for key in straight], new.behind([after[key] for key in straight]), options)
    ]
    verdicts += [
        _told(_turned(one), before, after)
        for one in judge([after[key] for key in turned], old.behind([before[key] for key in turned]), options)
    ]
    verdicts += [_at_its_word(before[key], after[key], options) for key in both if key not in learnt]
    verdicts += [_alone(before[key], "only in the old laws") for key in sorted(before.keys() - after.keys())]
    verdicts += [_alone(after[key], "only in the new laws") for key in sorted(after.keys() - before.keys())]
    return with_laws(sorted(verdicts, key=_order), before, after)


def _order(one: DiffVerdict) -> tuple[int, float, str, str]:
    rank = ("violated", "inconclusive", "holds", "out of scope").index(one.verdict)
    return rank, -abs(log(max(one.effect or 1.0, 1e-12))), one.component.name, one.metric.name


def _doubtful(claim: Claim) -> bool:
    """Whether a law is a guess, and so no yardstick where the other side has a better one."""
    return any(scope["law"]["verdict"] == "inconclusive" for scope in (claim.document or {})["scopes"])


def _turned(one: CheckVerdict) -> CheckVerdict:
    """Old runs by the new law, as new runs by the old one."""
    if one.effect is None or one.effect_low is None or one.effect_high is None:
        return one
    return replace(one, effect=1 / one.effect, effect_low=1 / one.effect_high, effect_high=1 / one.effect_low)


def _told(one: CheckVerdict, before: dict[Key, Claim], after: dict[Key, Claim]) -> DiffVerdict:
    """What a check of one side's runs by the other's law says of the difference."""
    key = (one.component.name, one.metric.name)
    changed = one.verdict == "violated"
    worse = changed and (one.effect or 1.0) > 1
    sound = not _doubtful(before[key]) and not _doubtful(after[key])
    changes = tuple(changes_of(before[key], after[key])) if changed and sound else ()
    outcome: Outcome = "holds" if changed and not worse else one.verdict
    message = f"from {one.since} on" if changed and one.since else ""
    if one.verdict in ("inconclusive", "out of scope") or one.message.startswith(MIX_CHANGED):
        message = one.message
    return DiffVerdict(
        _component(after[key]),
        one.metric,
        one.path,
        outcome,
        one.p,
        one.effect,
        one.effect_low,
        one.effect_high,
        changes,
        changed and not worse,
        message,
    )


def _alone(claim: Claim, message: str) -> DiffVerdict:
    return DiffVerdict(_component(claim), claim.metric, "", "out of scope", None, None, None, None, message=message)


def _component(claim: Claim) -> Component:
    document = claim.document or {}
    return Component(claim.component, document.get("file", ""), document.get("line", 0))


def _at_its_word(old: Claim, new: Claim, options: Options) -> DiffVerdict:
    """A pair of which a side is text alone: its numbers are compared as they stand."""
    changes = tuple(changes_of(old, new))
    ratio = _ratio(changes)
    least = options.min_effect
    verdict: Outcome
    if ratio is None:
        verdict, message = "inconclusive", "no number to compare: use laws with their .json twins"
    else:
        verdict = "violated" if ratio > least * (1 + 1e-9) else "holds"
        message = "laws taken at their word: no intervals" if changes else ""
    better = ratio is not None and ratio < 1 / least
    return DiffVerdict(_component(new), new.metric, "", verdict, None, ratio, None, None, changes, better, message)


def _ratio(changes: Sequence[Change]) -> float | None:
    """Ratio of the leading coefficients; 1 where the means do not differ."""
    if all(one.what == "noise" for one in changes):
        return 1.0
    return next((one.ratio for one in changes if one.what == "coefficient"), None)
