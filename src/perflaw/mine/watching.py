"""Measures specified functions of a running program in rounds, for ``check`` to judge.

A round records all specified functions at once, so that what they have in common is known to be the machine. Functions that
this distorts, because they call others of them, are recorded alone in the same round. Rounds that only watch leave enough of
the budget for those that have to confirm a violation, so that these follow each other at once. Of the callers, those that
expressions name and those up to some levels that samples found are recorded, so that a violation can be told by its edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import PERTURBED, without_perturbed
from perflaw.mine.attached import AttachedProcess
from perflaw.mine.budget import Budget
from perflaw.mine.knowledge import Decision, Knowledge
from perflaw.mine.messages import Measurement, Request

LEVELS: Final = 2
"""Levels of callers that a round records."""
DEEPER: Final = 4
"""Levels that a round records to tell where a violation comes from."""
ROUND_S: Final = 1.0
"""Length of a recording."""
RESERVED_ROUNDS: Final = 6
"""Rounds for which rounds that only watch leave what the budget permits."""
SAMPLES_S: Final = 2.0
"""Length of the first samples, from which callers are known."""


class SpecRounds:
    """The rounds over one process."""

    def __init__(
        self,
        process: AttachedProcess,
        budget: Budget,
        named: Mapping[str, frozenset[str]],
        rest: Callable[[float], None],
        ends: Callable[[], bool],
    ) -> None:
        """``named``: specified function → functions that its expressions name; ``rest`` waits, ``ends``: whether to stop."""
        self.process, self.budget, self.named, self.rest, self.ends = process, budget, named, rest, ends
        self.knowledge = Knowledge()
        self._alone: set[str] = set()
        self._number = 0
        self._left_ns = 0.0

    def sample(self) -> None:
        """Learn from samples who calls whom."""
        self._number += 1
        measurement = self.process.measure(Request(self._number, "samples", seconds=SAMPLES_S))
        self.budget.add_samples(measurement.cost)
        self.knowledge.add_samples(measurement.stacks)

    def round(self, levels: int = LEVELS, *, reserving: bool = False) -> list[str]:
        """Record all functions that are specified; gives the recordings. ``reserving``: leave something for later rounds."""
        chosen = sorted(self.named)
        together = tuple(name for name in chosen if name not in self._alone)
        runs = [self._record(together, levels, reserving)] if together else []
        runs += [self._record((name,), levels, reserving) for name in chosen if name in self._alone and not self.ends()]
        return [run for run in runs if run]

    def _must_wait(self, reserving: bool) -> bool:
        """Whether a recording has to wait; while the reserve is filled, half of what is saved is for recordings."""
        saved_ns, cost_ns = self.budget.saved_ns(), self.budget.expected_ns(ROUND_S)
        is_full = saved_ns - cost_ns >= RESERVED_ROUNDS * (1 + len(self._alone)) * cost_ns
        return saved_ns < cost_ns or (reserving and not is_full and saved_ns - self._left_ns < 2 * cost_ns)

    def _record(self, functions: tuple[str, ...], levels: int, reserving: bool) -> str:
        self.rest(self.budget.pause_s(ROUND_S))
        while self._must_wait(reserving) and not self.ends():
            self.rest(self.budget.pause_s(ROUND_S))
        if self.ends():
            return ""
        callers: dict[str, None] = {}
        for name in functions:
            callers.update(dict.fromkeys((*sorted(self.named[name]), *self.knowledge.callers(name, levels))))
        self._number += 1
        request = Request(
            self._number, "paths", functions, tuple(one for one in callers if one not in functions), ROUND_S
        )
        self.budget.begin_probes()
        measurement: Measurement | None = None
        try:
            measurement = self.process.measure(request)
        finally:
            self.budget.end_probes(Decision(request, "", 1.0, 0.0), measurement)
            self._left_ns = self.budget.saved_ns()
        self.budget.settle_window({})
        self.knowledge.add_samples(measurement.stacks)
        if len(functions) > 1:
            for one in measurement.observed:
                if any(note.startswith(PERTURBED) for note in without_perturbed(one, MiningOptions()).notes):
                    self._alone.add(one.component)
        return measurement.run
