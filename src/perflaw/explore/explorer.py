"""The main loop of a study (SPEX, Pseudocode 1): propose, plan, make and write down trials, from wherever it was left.

Every step is one transaction of the journal. What comes next is a function of the journal and the seed alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from perflaw.errors import TargetError
from perflaw.explore import judging
from perflaw.explore.agent.client import AgentConnection, InvalidTrial, local_agent
from perflaw.explore.agent.job import document_of
from perflaw.explore.journal import Journal
from perflaw.explore.policy import Steering
from perflaw.explore.space import Space
from perflaw.explore.trials import (
    FinishedTrial,
    begin_run,
    discard_lost,
    finish_run,
    key_of,
    make_trial,
    mark_run,
    write_run,
)
from perflaw.learn.exploring.racing import steady_from, usually_steady
from perflaw.store.experiment import Experiment, discard
from perflaw.types.studies import Configuration, Reading, Study, Trial
from perflaw.wire.channel import WireError

_MOST_LOST: Final = 4
"""Number of agents that may be lost in one trial before the trial is given up."""


class Explorer:
    """A study that is being explored."""

    def __init__(
        self,
        study: Study,
        seed: int,
        experiment: Experiment,
        journal: Journal,
        agent: Callable[[], AgentConnection] = local_agent,
        show: Callable[[Reading], None] = lambda _: None,
    ) -> None:
        """Prepare the study; ``agent`` makes a connection to a new agent, ``show`` is given the readings of trials."""
        self.study, self._seed, self._experiment, self.journal = study, seed, experiment, journal
        self._new_agent, self._show = agent, show
        self._agent: AgentConnection | None = None
        self._greeting: Mapping[str, Any] = {}
        machine: Configuration | None = None  # this machine
        if study.target.remote:
            # ``host.…`` stands for the remote machine in constraints.
            self._agent = self._new_agent()
            self._introduced(self._agent)
            machine = self._greeting["host"]
        self.space = Space(study.knobs, study.constraints, machine)
        self.steering = Steering(self.space, study, seed)
        self.ended = ""
        """Why the study is over; empty as long as it is not."""

    def run(self) -> Iterator[Trial]:
        """Make the trials that are left, and give each one when it is written down. The target is restored at the end."""
        known = {key_of(self.study, trial): trial.run for trial in self.trials() if trial.run}
        discard_lost(self._experiment, known)
        if state := self.journal.get("state"):
            self.steering.restore(state)
        try:
            while (trial := self._next()) is not None:
                yield self._make(trial)
            # Restore the target at the end of the study, unless the study wants that after crashes only.
            if not self.journal.get("restored", True):
                self._agent = self._agent or self._new_agent()
                when = self.study.restore.get("on", ("exit",))
                last = {"last": True, "files": "exit" in when or "trial" in when}
                self._introduced(self._agent).ask("restore", last, self.study.target.timeout_s)
                with self.journal.step():
                    self.journal.put(restored=True)
        finally:
            if self._agent:
                self._agent.close()

    def trials(self) -> list[Trial]:
        """Return all trials so far, with those that are only planned."""
        return self.journal.trials()

    # ---- What is next.

    def _next(self) -> Trial | None:
        """Return the next trial, planned if necessary; None where the study is over."""
        trials, to_run = self.trials(), self.journal.to_run()
        waiting = [trial for trial in trials if trial.number in to_run]
        for trial in waiting:
            if to_run[trial.number] > self.journal.attempts(trial.number):
                return trial  # it was begun and did not come to its end
        numbers = judging.random_numbers(self._seed, self.journal.made())
        if not self.ended:
            budget = self.study.budget
            if not judging.trials_left(budget.trials, len(trials), self.study.repetitions):
                self.ended = f"all {budget.trials} trials are done" if budget.trials != 1 else "its one trial is done"
            elif budget.minutes is not None and self.journal.get("seconds", 0.0) >= 60 * budget.minutes:
                self.ended = f"the time of {budget.minutes:g} minutes is used up"
            else:
                self.ended = self.steering.done(list(trials)) or self._margin_reached(trials)
        proposing = not self.ended
        if not judging.repeats_now(len(waiting), self.study.repetitions, proposing, numbers) and proposing:
            planned = self._propose(trials)
            if planned is not None:
                return planned
        if not waiting:
            return None
        order = self.journal.order()
        last = max(
            (trial for trial in trials if trial.number in order), key=lambda trial: order[trial.number], default=None
        )
        return judging.choose_waiting(waiting, last.configuration if last else None, self.study.knobs, numbers)

    def _margin_reached(self, trials: Sequence[Trial]) -> str:
        """Return in words that nothing untried can be better by more than the budget's margin; empty where it may be."""
        margin, objective = self.study.budget.margin, self.study.objective
        if margin is None or objective is None or not any(trial.valid for trial in trials):
            return ""
        from perflaw.explore.policies.law import margin_reached  # takes a second to import; few studies have a margin

        reached, _, words = margin_reached(trials, self.space, margin, objective, self._seed)
        return words if reached else ""

    def _propose(self, trials: Sequence[Trial]) -> Trial | None:
        """Ask the policy, and write down its proposal and its state in one step; None where nothing is left."""
        proposal = self.steering.next(trials)
        if proposal is None:
            self.ended = f"policy {self.steering.name} has nothing left to propose"
            return None
        key = self.space.key(proposal.configuration)
        before = sum(self.space.key(trial.wanted) == key for trial in trials)
        count = judging.trials_left(self.study.budget.trials, len(trials), self.study.repetitions)
        planned = judging.planned_trials(len(trials) + 1, proposal.configuration, proposal.why, count, before)
        with self.journal.step():
            self.journal.plan(planned)
            self.journal.begin(planned[0].number)
            self.journal.put(state=self.steering.state())
        return planned[0]

    # ---- One trial.

    def _make(self, planned: Trial) -> Trial:
        """Make a trial, and write it down together with its run."""
        began = time.monotonic()
        with self.journal.step():
            self.journal.begin(planned.number)
            self.journal.put(restored=False)
        finished = self._attempt(planned)
        trials = self.trials()
        others = [other for other in trials if other.number != planned.number and other.valid]
        contaminated = judging.disturbance(finished.trial, others) if finished.trial.valid else ""
        trial = replace(finished.trial, contaminated=contaminated)
        again = bool(contaminated) and judging.may_repeat(
            self.journal.attempts(trial.number) + 1, self.journal.repeated(), len(trials)
        )
        folder = None
        if trial.valid:
            folder = begin_run(self._experiment, key_of(self.study, trial))
            trial = replace(trial, run=folder.name)
            # The run stays unfinished until the journal has the trial.
            scales = self.journal.get("scales", {})
            write_run(folder, self.study, trial, finished.raw, finished.readings, scales)
            with self.journal.step():
                self.journal.put(scales=scales)
        replaced = mark_run(self._experiment, planned.run, key_of(self.study, trial)) if planned.run else None
        with self.journal.step():
            self.journal.write(trial, again)
            self.journal.put(seconds=self.journal.get("seconds", 0.0) + time.monotonic() - began)
            steady: list[float] = self.journal.get("steady", [])  # when each complete trial had become so, in seconds
            objective = self.study.objective
            if objective is not None and trial.valid and not trial.stopped and finished.readings:
                series = [reading for reading in finished.readings if reading.metric == objective.name]
                at_s, values = [reading.at_s for reading in series], [reading.value for reading in series]
                steady = [*steady, steady_from(at_s, values, objective.goal) if series else 0.0]
            self.journal.put(state=self.steering.state(), steady=steady)
        if folder is not None:
            finish_run(folder)
        if replaced is not None:
            discard(replaced)
        return trial

    def _attempt(self, planned: Trial) -> FinishedTrial:
        """Make the trial with the agent, or with a new one where that is lost. WireError where none can be reached."""
        for _ in range(_MOST_LOST):
            self._agent = self._agent or self._new_agent()
            try:
                agent = self._introduced(self._agent)
                steady_s = usually_steady(self.journal.get("steady", []))
                judge = judging.judge_of(self.steering, self.study, planned, self.trials(), steady_s)
                return make_trial(agent, self.study, planned, judge, self._show)
            except WireError as error:
                lost = str(error)
                self._agent.kill()
                self._agent = None
                self.steering.restore(self.journal.get("state", {}))
        reason = f"the agent was lost {_MOST_LOST} times: {lost}"
        return FinishedTrial(replace(planned, reason=reason, valid=False), {})

    def _introduced(self, agent: AgentConnection) -> AgentConnection:
        """Return the agent once it has the study. TargetError where the target cannot be prepared or is in use."""
        if not agent.has_study:
            try:
                self._greeting = agent.ask("hello", document_of(self.study, self._experiment.folder / "agent")).document
                agent.ask("prepare", timeout_s=self.study.target.timeout_s)
            except InvalidTrial as error:
                message = f"study {self.study.name}: its target cannot be prepared"
                raise TargetError(message, str(error), "perflaw explore … (goes on)") from error
            agent.has_study = True
        return agent
