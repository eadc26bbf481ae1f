"""Where a deviation comes from: the call paths that deviate, and the function to blame among callers and callees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.check.evalues import Evidence
from perflaw.check.spec_cases import Case, Look
from perflaw.check.spec_options import SpecOptions
from perflaw.check.spec_paths import leads_to
from perflaw.types import SpecVerdict
from perflaw.types.durations import CallPath


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
