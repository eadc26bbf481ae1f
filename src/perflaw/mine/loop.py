"""The loop: choose the most useful measurement, make it, learn from it, and write all of it down."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from perflaw.errors import StoreError, TargetError
from perflaw.mine.attached import AttachedProcess
from perflaw.mine.budget import Budget, Spent
from perflaw.mine.journal import Journal
from perflaw.mine.knowledge import Decision, Knowledge
from perflaw.mine.messages import Measurement
from perflaw.record.process import busiest_child
from perflaw.store.experiment import discard
from perflaw.store.paths import forget_function

IDLE_S: Final = 0.5
"""Time until it is asked again what to measure, where nothing is worth measuring now."""
LEAST_UTILITY: Final = 0.05
"""Utility below which nothing is measured."""
MOST_FAILURES: Final = 5
"""Measurements in a row that fail, after which the loop ends with the last error."""


class MiningLoop:
    """One loop over one process."""

    def __init__(
        self, process: AttachedProcess, budget: Budget, journal: Journal, is_over: Callable[[], bool],
        told: Callable[[str], None], tell_waiting: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """``is_over``: whether to end now; ``told`` gets each finding in words.

        ``tell_waiting`` is called after each ten seconds in which nothing was hot and nothing was measured.
        """
        self.tell_waiting = tell_waiting
        self.process, self.budget, self.journal, self.is_over, self.told = process, budget, journal, is_over, told
        self.knowledge = Knowledge()
        self._failures = 0
        self._is_child_told = False

    def run(self) -> None:
        """Run until it is over, the program ends, or a signal comes; TargetError if the program cannot be measured."""
        journal = self.journal
        about = {"pid": self.process.pid, "program": self.process.program.name}
        journal.write("begin", {**about, "target": self.budget.target, "of": self.budget.of})
        try:
            while not self._ends():
                decision = self.knowledge.next(time.time_ns())
                if decision is None or decision.utility < LEAST_UTILITY:
                    self._rest(IDLE_S)
                else:
                    self._measure(decision)
                self._settle_window(at_end=False)
        finally:
            self._drop_superseded()
            self._settle_window(at_end=True)
            functions = sum(bool(one.observed) for one in self.knowledge.functions.values())
            journal.write(
                "end",
                {
                    "functions": functions,
                    "share": self.budget.share,
                    "own_ns": self.budget.own_ns,
                    "alive": self.process.alive,
                },
            )

    def _ends(self) -> bool:
        return self.is_over() or not self.process.alive

    def _rest(self, seconds: float) -> None:
        """Wait; nothing of ours is in the program meanwhile."""
        deadline = time.monotonic() + seconds
        while not self._ends() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))

    def _save_for(self, seconds: float, calls: float = 0.0) -> None:
        """Wait until the budget permits a measurement of so many seconds, in which so many calls are expected."""
        self._rest(self.budget.pause_s(seconds, calls))
        while self.budget.must_wait(seconds, calls) and not self._ends():
            self._rest(self.budget.pause_s(seconds, calls))
            self._settle_window(at_end=False)

    def _measure(self, decision: Decision) -> None:
        decision = self.budget.affordable(decision)
        request = decision.request
        if request.kind != "samples":
            self._save_for(request.seconds, decision.expected_calls)
        elif self.budget.counts_own:  # samples take nothing of the program, but of perflaw's own time
            self._save_for(0.0)
        if self._ends():
            return
        # JSON keeps a request in its own form, which is the one that goes to other machines.
        about = {"why": decision.why, "utility": decision.utility, "expected_calls": decision.expected_calls}
        self.journal.write("decision", {**about, **asdict(request)})
        measurement: Measurement | None = None
        if request.kind == "samples":
            measurement = self.process.measure(request)
            self.budget.add_samples(measurement.cost)
        else:
            self.budget.begin_probes()
            try:
                measurement = self.process.measure(request)
                self._failures = 0
            except TargetError as error:
                self._failures += 1
                self.journal.write("failure", {"request": request.number, "why": str(error)})
                if self._failures >= MOST_FAILURES and self.process.alive:
                    raise
            finally:
                spent_ns = self.budget.end_probes(decision, measurement)
        if measurement is None:
            return
        news = self.knowledge.add(measurement, request)
        if request.kind != "samples":
            calls, probed_s = measurement.cost.calls, (measurement.end_ns - measurement.start_ns) / 1e9
            about = {"calls": calls, "spent_ms": spent_ns / 1e6, "seconds": probed_s, "run": measurement.run}
            shares = {name: round(self.knowledge.share(name), 4) for name in request.functions}
            self.journal.write("measurement", {"request": request.number, **about, "shares": shares})
            self._drop_superseded()
        for one in news:
            self.journal.write("finding", {"request": request.number, "what": one})
            self.told(one)

    def _settle_window(self, *, at_end: bool) -> None:
        window = self.budget.settle_window(self.knowledge.functions, at_end=at_end)
        # Samples that found it nowhere say at once that it does nothing; else it takes a window to say so.
        is_idle = bool(self.knowledge.sampled_ns) and not self.knowledge.stacks
        waits = (bool(window) or is_idle) and not at_end and not self.knowledge.functions
        if waits and not self._is_child_told and (child := busiest_child(self.process.pid)):
            self._is_child_told = True
            self.told(f"nothing is hot; process {child}, which it has started, uses more CPU time: --attach {child}")
        elif window and waits and not window.measurements:
            self.tell_waiting()
        if window:
            self.journal.write("budget", {**_rounded(window), "share": window.share})
            if window.action:
                self.told(f"budget: {window.action}")

    def _drop_superseded(self) -> None:
        """Take what later measurements have superseded out of the recordings, and remove those that hold nothing else."""
        superseded, self.knowledge.superseded = self.knowledge.superseded, []
        for name, run in superseded:
            folder = self.process.experiment.runs_folder / run
            with suppress(StoreError, OSError):  # somebody has removed it
                if not forget_function(folder, name):
                    discard(folder)


def _rounded(window: Spent) -> dict[str, object]:
    """A window as the journal has it."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(window).items()}
