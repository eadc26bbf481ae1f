"""How far a study is, on a terminal: best so far, the trial that runs, time left. Nothing on a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

from perflaw.cli.progress import words

if TYPE_CHECKING:
    from rich.status import Status

    from perflaw.types.studies import Reading, Study, Trial


class Shown:
    """What is shown; without a terminal nothing is."""

    def __init__(self, study: Study, status: Status | None) -> None:
        self._study, self._status, self._line = study, status, "begins"
        self._metric = next((metric for metric in study.metrics if metric.goal), study.metrics[0])

        self._total = study.budget.trials

    def limit(self, size: int | None) -> None:
        """There are only so many configurations; None: endless."""
        if size is not None:
            most = size * self._study.repetitions
            self._total = most if self._total is None else min(self._total, most)

    def reading(self, reading: Reading) -> None:
        """A value of the trial that runs."""
        if self._status and reading.metric == self._metric.name:
            now = f"now {reading.value:.4g} {self._metric.unit}".rstrip()
            self._status.update(f"{self._line} · {now} after {reading.at_s:.1f} s")

    def trial(self, trial: Trial, trials: Sequence[Trial]) -> None:
        """A trial is over."""
        if self._status:
            self._line = self._words(trial, trials)
            self._status.update(self._line)

    def _words(self, trial: Trial, trials: Sequence[Trial]) -> str:
        made = [one for one in trials if one.started]
        parts = [f"{len(made)} of {self._total or '?'} trials", self._best(made)]
        if not trial.valid:
            parts.append(f"trial {trial.number} is no data point: {trial.reason[:60]}")
        if left := max(0, (self._total or 0) - len(made)):
            parts.append(f"about {words(left * median(one.seconds for one in made))} left")
        return " · ".join(filter(None, parts))

    def _best(self, made: Sequence[Trial]) -> str:
        """The best value so far and the one that a search this long would have to beat."""
        name, sign = self._metric.name, -1 if self._metric.goal == "min" else 1
        values = [(sign * one.metrics[name], one) for one in made if one.valid and name in one.metrics]
        if not values:
            return "no valid trial yet"
        value, best = max(values, key=lambda each: each[0])
        gain = sum(one.number > best.number for one in made)
        since = f", no better one in the last {gain}" if gain > 2 else ""
        return f"best {name} {sign * value:.4g} {self._metric.unit}".rstrip() + f" (trial {best.number}{since})"


@contextmanager
def progress(study: Study) -> Iterator[Shown]:
    """A line that is kept up to date as long as it is entered."""
    if not sys.stderr.isatty():
        yield Shown(study, None)
        return
    from rich.console import Console

    with Console(stderr=True).status(f"exploring {study.name}") as status:
        yield Shown(study, status)
