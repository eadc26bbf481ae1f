"""The default policy: a short start that fills the space, then the law over knobs says where to look.

The start takes about two trials a knob, the default first, then where least is known. After that comes the configuration with
the greatest expected improvement under all laws that fit the trials, times the probability that it is a data point at all. The
last trials of a budget take what is predicted best. Nothing is kept beside the history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

import numpy as np

from perflaw.explore.policy import Policy, Proposal, tried_keys
from perflaw.explore.space import Space
from perflaw.learn.exploring.acquisition import acquisition, certainty, fill_space, reference, validity
from perflaw.learn.exploring.gaussian_process import fit_surrogate, one_thread
from perflaw.learn.exploring.observations import Array, evidence_of, units, usable
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Trial, Value, configuration_key

FEWEST_AT_START, MOST_AT_START = 4, 7
"""Number of distinct configurations of the start."""
BEST_TRIALS = 6
"""Number of best configurations whose neighbours are candidates in a large space."""
EXPLOITED = 0.04
"""Last part of the budget, in which nothing is explored any more."""
MOST_LISTED = 2048
"""Largest space whose configurations are all candidates."""
SAMPLED, NEIGHBOUR_LEVELS, PAIR_CHANGES = 400, 8, 200
"""Candidates in a larger space: samples, levels of a range beside a good setting, and changes of two knobs at once."""
SURE = 0.95
"""Probability from which on the margin counts as reached."""
MOST_NAMED = 3
"""Number of changed knobs that a reason names; of more it states the number."""


class Law(Policy):
    """Fits the law anew before each proposal."""

    def __init__(self, space: Space, study: Study, seed: int) -> None:
        super().__init__(space, study, seed)
        self._candidates = Candidates(space, seed)

    @one_thread
    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return the configuration that promises most; None where everything was tried."""
        tried = self.tried(history)
        start = self.space.defaults()
        if self.space.key(start) not in tried and not self.space.valid(start):
            return Proposal(start, "the default, to compare with")
        best = best_configurations(history, self.objective)
        untried, at = self._candidates.untried(tried, best, len(history))
        if not untried:
            return None
        seen = evidence_of(history, self.space, self.objective)
        usable_at = validity(seen.x, seen.failed, at, seen.ordered, self.seed)
        trials, knobs = self.study.budget.trials, len(self.space.knobs)
        start_size = min(MOST_AT_START, max(FEWEST_AT_START, knobs + 2))
        if trials is not None:  # of a small budget a third at most
            start_size = max(2, min(start_size, trials // (3 * max(1, self.study.repetitions))))
        if len(np.unique(seen.x, axis=0)) < start_size:
            running = [trial.configuration for trial in history if not trial.reason and not trial.valid]
            known = np.concatenate([seen.x, seen.failed, units(running, self.space)])
            generator = np.random.default_rng([self.seed, len(history), 0])
            chosen = fill_space(known, at, seen.ordered, generator, usable_at)
            return Proposal(untried[chosen], f"start, trial {len(history) + 1}: least is known here")
        last = trials is not None and trials - len(history) <= max(1, round(EXPLOITED * trials))
        law = fit_surrogate(seen.x, seen.ordered, seen.values, seen.sign, self.seed, seen.errors)
        means, sds = law.predict(at)
        known_best = reference(law, seen.x, at, seen.workload)
        predicted = (means - known_best).mean(axis=0) - 1.0 / usable_at
        criterion = predicted if last else acquisition(means, sds, known_best, usable_at)
        chosen = int(np.argmax(criterion))
        column = min(chosen, known_best.shape[1] - 1)
        gains = law.gains(means[:, chosen] - known_best[:, column], sds[:, chosen])
        configurations = [trial.configuration for trial in history]
        return Proposal(untried[chosen], reason_of(gains, untried[chosen], best[0], configurations, self.space.knobs))


def best_configurations(history: Sequence[Trial], objective: StudyMetric) -> list[Configuration]:
    """Return the configurations of the best trials so far, each once, the best first."""
    ranked = sorted(usable(history, objective.name), key=lambda trial: -objective.sign * trial.metrics[objective.name])
    found: dict[str, Configuration] = {}
    for trial in ranked:
        found.setdefault(configuration_key(trial.configuration), trial.configuration)
    return list(found.values())[:BEST_TRIALS]


@one_thread
def margin_reached(
    history: Sequence[Trial], space: Space, margin: float, objective: StudyMetric, seed: int = 0
) -> tuple[bool, float, str]:
    """Return whether nothing untried is better by more than the margin, the probability of that, and both in words.

    The probability is the law's; where everything was tried it is 1. In a space that is too large to be listed it is about
    configurations sampled from it and around the best ones.
    """
    best = best_configurations(history, objective)
    if not best:
        return False, 0.0, "no trial is a data point yet"
    candidates = Candidates(space, seed)
    tried = tried_keys(space, history)
    untried, at = candidates.untried(tried, best, len(history))
    if not untried:
        return True, 1.0, "every configuration was tried"
    seen = evidence_of(history, space, objective)
    law = fit_surrogate(seen.x, seen.ordered, seen.values, seen.sign, seed, seen.errors)
    usable_at = validity(seen.x, seen.failed, at, seen.ordered, seed)
    probability = certainty(law, at, usable_at, margin, seed)
    which = "untried configuration" if candidates.listed is not None else "sampled configuration"
    words = f"no {which} is better by more than {100 * margin:.3g} %, with probability {probability:.2f}"
    return probability >= SURE, probability, words


class Candidates:
    """Configurations that may come next: all of a small space; of a large one a sample, and neighbours of the best."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self.listed: dict[str, Configuration] | None = None
        """All configurations of a small space by their keys; None for a large one."""
        if space.size is not None and space.size <= MOST_LISTED:
            self.listed = {space.key(each): each for each in space.all()}
            self._units = {key: space.unit(each) for key, each in self.listed.items()}

    def untried(
        self, tried: Collection[str], best: Sequence[Configuration], number: int
    ) -> tuple[list[Configuration], Array]:
        """Return candidates whose key is not in ``tried``, and their places in the unit cube, (m, d).

        ``best`` are good configurations whose neighbours are candidates; ``number`` is that of the proposal.
        """
        if self.listed is not None:
            left = [key for key in self.listed if key not in tried]
            return [self.listed[key] for key in left], np.array([self._units[key] for key in left])
        found: dict[str, Configuration] = {}
        for each in self._generated(best, np.random.default_rng([self.seed, number, 1])):
            key = self.space.key(each)
            if key not in tried and key not in found and not self.space.broken(each):
                found[key] = each
        return list(found.values()), np.array([self.space.unit(each) for each in found.values()])

    def _generated(self, best: Sequence[Configuration], generator: np.random.Generator) -> Iterator[Configuration]:
        """Give neighbours of the best in one knob, then changes of two knobs (drawn, or crossed with another), then samples."""
        names = [knob.name for knob in self.space.knobs]
        for base in best:
            for knob in self.space.knobs:
                yield from ({**base, knob.name: value} for value in self.space.levels(knob, NEIGHBOUR_LEVELS))
        for _ in range(PAIR_CHANGES if best else 0):
            base, other = (best[int(i)] for i in generator.integers(len(best), size=2))
            source = other if generator.uniform() < 0.5 else self.space.sample(generator)
            chosen = generator.choice(names, size=min(2, len(names)), replace=False)
            yield {**base, **{str(name): source[str(name)] for name in chosen}}
        for _ in range(SAMPLED):
            yield self.space.sample(generator)


# ---- Why a configuration is proposed, in words that a person can check.


def reason_of(
    gains: tuple[float, float, float],
    configuration: Configuration,
    best: Configuration,
    tried: Sequence[Configuration],
    knobs: Sequence[Knob],
) -> str:
    """Return what is predicted against the best so far, which knobs differ from it, and what no trial had yet.

    ``gains`` are the predicted relative improvement and the ends of its interval.
    """
    middle, low, high = (f"{100 * gain:.2g}" if abs(gain) < 0.1 else f"{100 * gain:.0f}" for gain in gains)
    if gains[0] > 0.005:
        predicted = f"predicted {middle} % better ({low} to {high})"
    elif gains[2] < 0.005:
        predicted = f"no untried configuration promises more (predicted {middle} %, at best {high} %)"
    else:
        predicted = f"uncertain, may be up to {high} % better (predicted {middle} %)"

    def named(several: Sequence[Knob]) -> str:
        return " with ".join(f"{knob.name} {setting_text(configuration[knob.name], knob)}" for knob in several)

    changed = [knob for knob in knobs if configuration[knob.name] != best[knob.name]]
    words = named(changed)
    if len(changed) > MOST_NAMED:
        words = f"{len(changed)} knobs differ from the best so far"
    new, state = _untried_settings(configuration, changed, tried, knobs)
    if not new:
        return f"{predicted}: {words}"
    return f"{predicted}: {words}{', ' if new == changed else f'; {named(new)} '}{state}"


def setting_text(value: Value, knob: Knob) -> str:
    """Return a setting as a person writes it.

    >>> setting_text(65536, Knob("page_size", "ordinal", unit="B"))
    '64 KiB'
    >>> setting_text(3, Knob("threads", "int"))
    '3'
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if knob.unit not in ("B", "byte", "bytes"):
        return f"{value:.4g} {knob.unit}".strip()
    size, prefixes = float(value), ["", "Ki", "Mi", "Gi", "Ti"]
    while len(prefixes) > 1 and size >= 1024:
        size /= 1024
        prefixes.pop(0)
    return f"{size:.4g} {prefixes[0]}B"


def _untried_settings(
    configuration: Configuration, changed: Sequence[Knob], tried: Sequence[Configuration], knobs: Sequence[Knob]
) -> tuple[list[Knob], str]:
    """Return the first changed knob, else the first pair, whose settings no trial had; of listed settings alone."""
    listed = [knob for knob in knobs if knob.kind not in ("int", "float")]

    def new(several: Sequence[Knob]) -> bool:
        return not any(all(each[knob.name] == configuration[knob.name] for knob in several) for each in tried)

    for knob in changed:
        if knob in listed and new([knob]):
            return [knob], "not tried yet"
    for pair in combinations(listed, 2):
        if (pair[0] in changed or pair[1] in changed) and new(pair):
            return list(pair), "not tried together yet"
    return [], ""
