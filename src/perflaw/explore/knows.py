"""Knows when it knows: whether anything untried can still be better by more than the margin that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perflaw.explore.policies.candidates import Candidates
from perflaw.explore.policies.evidence import evidence_of
from perflaw.explore.policies.outcomes import scored
from perflaw.learn.exploring.margin import certainty
from perflaw.learn.exploring.surrogate import fit_surrogate
from perflaw.learn.exploring.threads import one_thread
from perflaw.learn.exploring.validity import validity
from perflaw.types.studies import StudyMetric, Trial

if TYPE_CHECKING:
    from perflaw.explore.space import Space

SURE = 0.95
"""Probability from which on the margin counts as reached."""
AROUND = 6
"""Best trials that are looked around in a large space."""


@one_thread
def knows(
    history: Sequence[Trial], space: Space, margin: float, objective: StudyMetric, seed: int = 0
) -> tuple[bool, float, str]:
    """Return whether the margin is reached, the probability, and both in words.

    The probability is that of the law over knobs; where everything was tried it is 1. In a space too large to be listed it is
    about configurations drawn from it and around the best ones.
    """
    candidates = Candidates(space, seed)
    tried = {space.key(trial.configuration) for trial in history}
    sign = -1.0 if objective.goal == "min" else 1.0
    ranked = sorted(scored(history, objective), key=lambda pair: -sign * pair[1])
    untried, at = candidates.untried(tried, [trial.configuration for trial, _ in ranked[:AROUND]], len(history))
    if not ranked:
        return False, 0.0, "no trial is a data point yet"
    if not untried:
        return True, 1.0, "every configuration was tried"
    evidence = evidence_of(history, space, objective)
    law = fit_surrogate(evidence.x, evidence.ordered, evidence.values, evidence.sign, seed, evidence.errors)
    usable = validity(evidence.x, evidence.failed, at, evidence.ordered, seed)
    probability = certainty(law, at, usable, margin, seed)
    return probability >= SURE, probability, _words(probability, margin, candidates.whole is not None)


def _words(probability: float, margin: float, whole: bool) -> str:
    what = "no untried configuration is" if whole else "none of the configurations that were drawn is"
    return f"{what} better by more than {100 * margin:.3g} %, with probability {probability:.2f}"
