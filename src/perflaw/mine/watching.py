"""Measures specified functions of a running program in rounds, for ``check`` to judge.

A round records all specified functions at once, so that what they have in common is known to be the machine. Functions that
this distorts, because they call others of them, are recorded alone in the same round. Rounds that only watch leave enough of
the budget for those that have to confirm a violation, so that these follow each other at once. Rounds that only watch record
the callers that the specification was mined with; those that confirm record callers up to some levels that samples found as
well, so that a violation can be told by its edge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import PERTURBED, without_perturbed
from perflaw.learn.paths.selection import Selection, is_recorded
from perflaw.mine.attached import AttachedProcess
from perflaw.mine.budget import Budget
from perflaw.mine.knowledge import MOST_LEVELS, Decision, Knowledge
from perflaw.mine.messages import Measurement, Request
from perflaw.types import PathSpec

LEVELS: Final = 2
"""Levels of callers that a round records where it is not known which ones were recorded when the program was mined."""
DEEPER: Final = 4
"""Levels that a round records to tell where a violation comes from."""
ROUND_S: Final = 1.0
"""Length of a recording."""
RESERVED_ROUNDS: Final = 6
"""Rounds for which rounds that only watch leave what the budget permits."""
SAMPLES_S: Final = 2.0
"""Length of the first samples, from which callers are known."""
WITNESSES: Final = 3
"""Functions that call none of the others and say how fast the machine is: of two, one may have changed."""


@dataclass(frozen=True, slots=True)
class SpecCallers:
    """Which callers of a specified function are recorded with it."""

    named: frozenset[str]
    """Functions that its expressions name."""
    selected: Selection
    """What was recorded when it was mined, as ``PathSpec.selected``; empty if that is not known."""
    is_written: bool = False
    """A person wrote the specification, who may have wanted to say how long the program waits until somebody asks."""

    @classmethod
    def of(cls, spec: PathSpec) -> SpecCallers:
        """Those of a specification."""
        edges = [edge for group in spec.groups for term in group.expression for edge, _ in term]
        is_written = not any(group.runs for group in spec.groups)
        return cls(frozenset(name for edge in edges for name in edge), spec.selected, is_written)


class SpecRounds:
    """The rounds over one process."""

    def __init__(
        self,
        process: AttachedProcess,
        budget: Budget,
        callers: Mapping[str, SpecCallers],
        rest: Callable[[float], None],
        ends: Callable[[], bool],
        tell_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        """``callers``: by specified function, in the order of their use; ``rest`` waits, ``ends``: whether to stop.

        ``tell_waiting`` is called after each ten seconds in which the program did too little for anything to be recorded.
        """
        self.process, self.budget, self.callers, self.rest, self.ends = process, budget, dict(callers), rest, ends
        self.tell_waiting = tell_waiting
        self.knowledge = Knowledge()
        self._alone: set[str] = set()
        self._number = 0
        self._left_ns = 0.0

    @property
    def idle(self) -> set[str]:
        """Functions that are not watched, because they wait until somebody asks: how long is decided by whoever asks."""
        return {name for name in self.knowledge.idle if name in self.callers and not self.callers[name].is_written}

    def sample(self) -> None:
        """Learn from samples who calls whom."""
        self._number += 1
        measurement = self.process.measure(Request(self._number, "samples", seconds=SAMPLES_S))
        self.budget.add_samples(measurement.cost)
        self._learn(measurement)

    def _learn(self, measurement: Measurement) -> None:
        """Learn from the samples of a measurement."""
        self.knowledge.add_samples(measurement.stacks)
        self.knowledge.idle.update(measurement.idle)

    def restrict(self, watched: Collection[str]) -> None:
        """Record only these functions, and as many others as are needed to know how fast the machine is."""

        def witnesses(chosen: Collection[str]) -> int:
            return sum(not any(self.knowledge.is_above(one, other) for other in chosen) for one in chosen)

        chosen = [name for name in self.callers if name in watched]
        for name in self.callers:
            if witnesses(chosen) >= WITNESSES:
                break
            if name not in watched and name not in self.idle and witnesses([*chosen, name]) > witnesses(chosen):
                chosen.append(name)
        self.callers = {name: self.callers[name] for name in chosen}

    def round(self, levels: int = LEVELS, *, reserving: bool = False) -> list[str]:
        """Record all specified functions but the ``idle`` ones; gives the recordings.

        ``levels`` of callers are recorded, 0 for those that the specification was mined with. ``reserving``: leave something
        for later rounds.
        """
        chosen = sorted(self.callers.keys() - self.idle)
        if not chosen:
            self.rest(ROUND_S)
        together = tuple(name for name in chosen if name not in self._alone)
        runs = [self._record(together, levels, reserving)] if together else []
        runs += [self._record((name,), levels, reserving) for name in chosen if name in self._alone and not self.ends()]
        return [run for run in runs if run]

    def _must_wait(self, reserving: bool) -> bool:
        """Whether a recording has to wait; while the reserve is filled, half of what is saved is for recordings."""
        saved_ns, cost_ns = self.budget.saved_ns(), self.budget.expected_ns(ROUND_S)
        is_full = saved_ns - cost_ns >= RESERVED_ROUNDS * (1 + len(self._alone)) * cost_ns
        return saved_ns < cost_ns or (reserving and not is_full and saved_ns - self._left_ns < 2 * cost_ns)

    def _found(self, name: str, levels: int) -> tuple[str, ...]:
        """Callers of a function that samples found and that are recorded."""
        selected = self.callers[name].selected
        if levels or not selected:
            return self.knowledge.callers(name, levels or LEVELS)
        return tuple(one for one in self.knowledge.callers(name, MOST_LEVELS) if is_recorded(one, selected))

    def _record(self, functions: tuple[str, ...], levels: int, reserving: bool) -> str:
        self.rest(self.budget.pause_s(ROUND_S))
        while self._must_wait(reserving) and not self.ends():
            self.rest(self.budget.pause_s(ROUND_S))
            window = self.budget.settle_window({})
            if window and not window.measurements:
                self.tell_waiting()
        if self.ends():
            return ""
        callers: dict[str, None] = {}
        for name in functions:
            callers.update(dict.fromkeys((*sorted(self.callers[name].named), *self._found(name, levels))))
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
        self._learn(measurement)
        if len(functions) > 1:
            for one in measurement.observed:
                if any(note.startswith(PERTURBED) for note in without_perturbed(one, MiningOptions()).notes):
                    self._alone.add(one.component)
        return measurement.run
