"""The law as the policy: a short start that fills the space, then the law over knobs and pairs says where to look.

Start: about two trials a knob, the default first, where least is known. Then the configuration with the greatest expected
improvement under all laws that fit the trials, times the probability that it is a data point at all; the last trials of
a budget take what is predicted best. Nothing is kept beside the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perflaw.explore.policies.candidates import Candidates
from perflaw.explore.policies.evidence import Evidence, evidence_of, scored, units
from perflaw.explore.policy import Policy, Proposal
from perflaw.learn.exploring.acquisition import filling, promise, reference, validity
from perflaw.learn.exploring.surrogate import Surrogate, fit_surrogate
from perflaw.learn.exploring.threads import one_thread
from perflaw.types.studies import Configuration, Knob, Study, Trial, Value

if TYPE_CHECKING:
    from perflaw.explore.space import Space


# ---- Why the law proposes a configuration, in words a person can check.

BINARY = ("", "Ki", "Mi", "Gi", "Ti")
"""Prefixes of bytes."""
NAMED = 3
"""Changed knobs that are named; of more their number."""


def filling_words(number: int) -> str:
    """Return why trial ``number`` belongs to the start."""
    return f"start, trial {number}: least is known here"


def improvement_words(
    gains: tuple[float, float, float],
    configuration: Configuration,
    best: Configuration,
    tried: Sequence[Configuration],
    knobs: Sequence[Knob],
) -> str:
    """Return a sentence: what is predicted against the best so far (share, low, high), what differs, what is new."""
    middle, low, high = gains
    changed = [knob for knob in knobs if configuration[knob.name] != best[knob.name]]
    if len(changed) > NAMED:
        what = f"{len(changed)} knobs unlike the best so far"
    else:
        what = " with ".join(f"{knob.name} {setting(configuration[knob.name], knob)}" for knob in changed)
    return f"{_predicted(middle, low, high)}: {what}{_new(configuration, changed, tried, knobs)}"


def setting(value: Value, knob: Knob) -> str:
    """Return a setting as a person writes it.

    >>> setting(65536, Knob("page_size", "ordinal", unit="B"))
    '64 KiB'
    >>> setting(3, Knob("threads", "int"))
    '3'
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if knob.unit in ("B", "byte", "bytes"):
        return _bytes(value)
    return f"{value:.4g} {knob.unit}".strip()


def _bytes(value: float) -> str:
    power = 0
    while power + 1 < len(BINARY) and value >= 1024:
        value, power = value / 1024, power + 1
    return f"{value:.4g} {BINARY[power]}B"


def _predicted(middle: float, low: float, high: float) -> str:
    if middle > 0.005:
        return f"predicted {_percent(middle)} % better ({_percent(low)} to {_percent(high)})"
    if high < 0.005:
        return f"nothing untried promises more (predicted {_percent(middle)} %, at best {_percent(high)} %)"
    return f"may be up to {_percent(high)} % better, is unsure (predicted {_percent(middle)} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if abs(share) < 0.1 else f"{100 * share:.0f}"


def _new(
    configuration: Configuration, changed: Sequence[Knob], tried: Sequence[Configuration], knobs: Sequence[Knob]
) -> str:
    """Name the first setting, or else the first pair, that no trial had; listed ones only: others are always new."""
    listed = [knob for knob in knobs if knob.kind not in ("int", "float")]
    for knob in changed:
        if knob in listed and all(each[knob.name] != configuration[knob.name] for each in tried):
            return _named([knob], changed, configuration) + "not tried yet"
    for one, two in combinations(listed, 2):
        if one not in changed and two not in changed:
            continue
        if not any(all(each[k.name] == configuration[k.name] for k in (one, two)) for each in tried):
            return _named([one, two], changed, configuration) + "not tried together yet"
    return ""


def _named(new: Sequence[Knob], changed: Sequence[Knob], configuration: Configuration) -> str:
    """Name what is new, unless that is all that was named before."""
    if list(new) == list(changed):
        return ", "
    return "; " + " with ".join(f"{knob.name} {setting(configuration[knob.name], knob)}" for knob in new) + " "


Array = NDArray[np.float64]

FEWEST, MOST = 4, 7
"""Distinct configurations of the start."""
GOOD = 6
"""Best trials that are looked around in a large space."""
LAST = 0.04
"""Share of the budget at whose end nothing is explored any more."""


class Law(Policy):
    """Fits the law anew before each proposal."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        self.candidates = Candidates(space, seed)

    @one_thread
    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return what promises most; None where everything was tried."""
        tried = self.tried(history)
        start = self.space.defaults()
        if self.space.key(start) not in tried and not self.space.valid(start):
            return Proposal(start, "the default, to compare with")
        untried, at = self.candidates.untried(tried, self._good(history), len(history))
        if not untried:
            return None
        evidence = evidence_of(history, self.space, self.objective)
        usable = validity(evidence.x, evidence.failed, at, evidence.ordered, self.seed)
        if len(np.unique(evidence.x, axis=0)) < self._start():
            return self._fill(history, untried, at, usable, evidence)
        return self._improve(history, untried, at, usable, evidence)

    def _start(self) -> int:
        """Distinct configurations of the start: of a small budget a third at most."""
        most = min(MOST, max(FEWEST, len(self.space.knobs) + 2))
        trials = self.study.budget.trials
        return most if trials is None else max(2, min(most, trials // (3 * max(1, self.study.repetitions))))

    def _good(self, history: Sequence[Trial]) -> list[Configuration]:
        sign = -1.0 if self.objective.goal == "min" else 1.0
        ranked = sorted(scored(history, self.objective), key=lambda pair: -sign * pair[1])
        return list({self.space.key(trial.configuration): trial.configuration for trial, _ in ranked}.values())[:GOOD]

    def _fill(
        self, history: Sequence[Trial], untried: list[Configuration], at: Array, usable: Array, evidence: Evidence
    ) -> Proposal:
        known = np.concatenate(
            [evidence.x, evidence.failed, units([t for t in history if not t.reason and not t.valid], self.space)]
        )
        generator = np.random.default_rng([self.seed, len(history), 0])
        chosen = filling(known, at, evidence.ordered, generator, usable)
        return Proposal(untried[chosen], filling_words(len(history) + 1))

    def _improve(
        self, history: Sequence[Trial], untried: list[Configuration], at: Array, usable: Array, evidence: Evidence
    ) -> Proposal:
        law = fit_surrogate(evidence.x, evidence.ordered, evidence.values, evidence.sign, self.seed, evidence.errors)
        means, sds = law.predict(at)
        best = reference(law, evidence.x, at, evidence.workload)
        last = (means - best).mean(axis=0) - 1.0 / usable
        chosen = int(np.argmax(last if self._last(history) else promise(means, sds, best, usable)))
        return Proposal(untried[chosen], self._why(history, untried[chosen], law, (means, sds, best), chosen))

    def _last(self, history: Sequence[Trial]) -> bool:
        trials = self.study.budget.trials
        return trials is not None and trials - len(history) <= max(1, round(LAST * trials))

    def _why(
        self,
        history: Sequence[Trial],
        configuration: Configuration,
        law: Surrogate,
        predicted: tuple[Array, Array, Array],
        chosen: int,
    ) -> str:
        means, sds, best = predicted
        column = min(chosen, best.shape[1] - 1)
        good = self._good(history)
        gains = law.gains(means[:, chosen] - best[:, column], sds[:, chosen])
        tried = [trial.configuration for trial in history]
        return improvement_words(gains, configuration, good[0], tried, self.space.knobs)
