"""The laws of both sides beside the verdicts of a diff: what a chart draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perflaw.check.claims import Claim
from perflaw.language import show
from perflaw.types import DiffVerdict, Stated

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
