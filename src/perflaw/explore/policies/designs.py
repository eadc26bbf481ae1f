"""Policies that follow a design: every combination, random, Latin hypercube, Sobol, one knob at a time, racing.

Racing tries many configurations once, then repeats those that may still be the best, until one has won.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from perflaw.confidence import WORDS
from perflaw.explore.policies.even_points import latin_hypercube, sobol_points
from perflaw.explore.policy import Policy, Proposal
from perflaw.learn.exploring.observations import usable
from perflaw.learn.exploring.racing import to_repeat
from perflaw.types.studies import Configuration, Trial

MOST_DRAWS = 1000
"""Draws in a row that were all tried before, after which a large space counts as exhausted."""
HYPERCUBE_POINTS = 32
"""Points of a Latin hypercube where the study has no number of trials."""
HYPERCUBES = 8
"""Further hypercubes, for points of the first that coincide on the levels of knobs."""
SOBOL_POINTS = 4096
"""Points of the sequence that are examined for one that was not tried."""


class Grid(Policy):
    """Every combination of levels, in the order of the knobs: the exhaustive search of the paper (SPEX, §5.2).

    The study's option ``levels`` is the number of settings of a range (8).
    """

    _all: list[Configuration] | None = None

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the first combination that was not tried; None after the last."""
        if self._all is None:
            self._all = [*self.space.grid(int(self.study.options.get("levels", 8)))]
        return self.first_untried(self._all, history)


class Random(Policy):
    """Configurations drawn evenly from the space, none twice."""

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the first draw that was not tried; None where draws give nothing new any more."""
        generator = np.random.default_rng([self.seed, len(history)])
        found = self.first_untried((self.space.sample(generator) for _ in range(MOST_DRAWS)), history)
        size = self.space.size
        if found is not None or size is None or size > MOST_DRAWS:
            return found
        return self.first_untried(self.space.all(), history)


class Sobol(Policy):
    """Scrambled Sobol points, which are even in every projection (Owen 1998), each moved to the nearest valid configuration."""

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the next point of the sequence that was not tried; None where all of ``SOBOL_POINTS`` were."""
        return self.first_untried(self._points(), history)

    def _points(self) -> Iterator[Configuration]:
        points = islice(sobol_points(len(self.space.knobs), self.seed), SOBOL_POINTS)
        return (self.space.configuration(point) for point in points)


class LatinHypercube(Policy):
    """A Latin hypercube with as many points as the study has trials (McKay, Beckman, Conover 1979).

    It has one point in every row and every column. A point that falls on a tried configuration is replaced by one of a further
    hypercube.
    """

    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        """Return the next point; None after as many distinct ones as the hypercube has, or where nothing new comes."""
        if self.made(history) >= self._size() and self.study.budget.trials is not None:
            return None
        return self.first_untried(self._points(), history)

    def _size(self) -> int:
        trials = self.study.budget.trials or HYPERCUBE_POINTS
        return max(1, trials // max(1, self.study.repetitions))

    def _points(self) -> Iterator[Configuration]:
        for number in range(HYPERCUBES):
            points = latin_hypercube(len(self.space.knobs), self._size(), self.seed + number)
            yield from (self.space.configuration(point) for point in points)


class OneAtATime(Policy):
    """One knob after the other from the best so far, until a round changes nothing: what people do by hand."""

    warning = (
        "one-at-a-time does not see interactions: it stops where no single knob helps, however much two together "
        "would (on SQLite's grid it stayed 41 % behind); the policy law sees them"
    )

    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return the next level of the knob that is being varied; None where every single change was tried."""
        start = dict(self.space.defaults())
        if self.space.key(start) not in self.tried(history) and not self.space.valid(start):
            return Proposal(start, "the default")
        objective = self.objective
        complete = [trial for trial in usable(history, objective.name) if not trial.stopped]
        best = max(complete, key=lambda trial: objective.sign * trial.metrics[objective.name], default=None)
        base = dict(best.configuration) if best else start
        names = [knob.name for knob in self.space.knobs]
        varied = [trial.why.split(" alone,")[0] for trial in history if " alone," in trial.why]
        last = names.index(varied[-1]) if varied and varied[-1] in names else 0
        for name in names[last:] + names[:last]:  # the levels of the knob that varied last are finished first
            found = self.first_untried(({**base, name: level} for level in self.space.levels(name)), history)
            if found is not None:
                return Proposal(found, f"{name} alone, from the best so far")
        return None


SHARE, MOST_RACERS = 0.5, 64
"""Share of the budget for the first trial of each racer, and largest number of racers."""


class Racing(Policy):
    """A race of configurations.

    The study's option ``configurations`` is their number; without it they take half of the trials of the budget, but are at
    most 64, or all of a smaller space.
    """

    repeats = True

    def next_config(self, history: Sequence[Trial]) -> Proposal | None:
        """Return a new configuration until all racers were tried, then one to repeat; None where one has won."""
        racers, count = self._racers(), self.made(history)
        if count < racers:
            start = self.space.defaults()
            first = not history and not self.space.valid(start)
            new = start if first else Sobol(self.space, self.study, self.seed).next_config(history)
            if new is not None:
                return Proposal(new, f"racer {count + 1} of {racers}")
        values, configurations = self._values(history)
        left = to_repeat(values, self.objective.sign)
        if not left:
            return None
        running = [self.space.key(trial.wanted) for trial in history if not trial.reason and not trial.valid]
        chosen = min(left, key=lambda key: len(values[key]) + running.count(key))
        return Proposal(configurations[chosen], f"repetition: {len(left)} configurations may still be the best")

    def done(self, history: Sequence[Trial]) -> str:
        """Return that one has won, once all racers were tried and only one may be the best."""
        values, _ = self._values(history)
        if self.made(history) < self._racers() or not values or to_repeat(values, self.objective.sign):
            return ""
        return f"the race is decided: all other configurations are worse (with {WORDS} confidence)"

    def _racers(self) -> int:
        wanted = self.study.options.get("configurations")
        if wanted is not None:
            return int(wanted)
        trials = self.study.budget.trials
        racers = MOST_RACERS if trials is None else max(2, min(MOST_RACERS, round(SHARE * trials)))
        return racers if self.space.size is None else min(racers, self.space.size)

    def _values(self, history: Sequence[Trial]) -> tuple[dict[str, list[float]], dict[str, Configuration]]:
        """Return the values of each configuration, and the configurations, by their keys."""
        values: dict[str, list[float]] = {}
        configurations: dict[str, Configuration] = {}
        for trial in usable(history, self.objective.name):
            key = self.space.key(trial.configuration)
            values.setdefault(key, []).append(trial.metrics[self.objective.name])
            configurations[key] = trial.configuration
        return values, configurations
