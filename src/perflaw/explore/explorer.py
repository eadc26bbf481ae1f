"""The explorer's main loop (SPEX, Pseudocode 1): propose, plan, make, write down; from wherever it was left.

Every step is one transaction of the journal, and what comes next is a function of the journal and the seed alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from perflaw.errors import TargetError
from perflaw.explore.agent.client import Agent, Invalid, local_agent
from perflaw.explore.agent.parts import document_of
from perflaw.explore.journal import Journal
from perflaw.explore.judging import (
    TrialJudge,
    choose,
    generator,
    judge_of,
    latest,
    may_repeat,
    objective_of,
    repetitions_of,
    room,
    steady_since,
    waits,
)
from perflaw.explore.judging import judge as disturbed
from perflaw.explore.making import Made, make
from perflaw.explore.policy import Steering
from perflaw.explore.space import Space
from perflaw.explore.trial_runs import begin_run, discard_lost, finish_run, key_of, mark_run, write_run
from perflaw.learn.exploring.stopping import usually_steady
from perflaw.store.experiment import Experiment, discard
from perflaw.types.studies import Configuration, Reading, Study, Trial
from perflaw.wire.channel import WireError

_LOST: Final = 4
"""Times that the agent may be lost in one trial, before the trial is given up."""


class Explorer:
    """A study being explored."""

    def __init__(
        self,
        study: Study,
        seed: int,
        experiment: Experiment,
        journal: Journal,
        agent: Callable[[], Agent] = local_agent,
        tell: Callable[[Reading], None] = lambda _: None,
    ) -> None:
        self.study, self._seed, self._experiment, self.journal = study, seed, experiment, journal
        self._new_agent, self._tell = agent, tell
        self._agent: Agent | None = None
        self._hello: Mapping[str, Any] = {}
        self.space = Space(study.knobs, study.constraints, self._machine())
        self.steering = Steering(self.space, study, seed)
        self.ended = ""
        """Why the study is over; empty as long as it is not."""

    def run(self) -> Iterator[Trial]:
        """Make the trials that are still to be made, each given when it is written down. The target is restored at the end."""
        discard_lost(self._experiment, self._known())
        if state := self.journal.get("state"):
            self.steering.restore(state)
        try:
            while (trial := self._next()) is not None:
                yield self._made(trial)
            self._restore()
        finally:
            if self._agent:
                self._agent.close()

    def _machine(self) -> Configuration | None:
        """What ``host.…`` is in constraints: the machine where the target runs; None: this one."""
        if not self.study.target.remote:
            return None
        self._agent = self._new_agent()
        self._ready(self._agent)
        machine: Configuration = self._hello["host"]
        return machine

    def trials(self) -> list[Trial]:
        """All trials so far."""
        return self.journal.trials()

    def _known(self) -> dict[str, str]:
        return {key_of(self.study, trial): trial.run for trial in self.journal.trials() if trial.run}

    def _next(self) -> Trial | None:
        """The trial that is made now, planned if need be; None where the study is over."""
        trials = self.journal.trials()
        to_run = self.journal.to_run()
        waiting = [trial for trial in trials if trial.number in to_run]
        for trial in waiting:
            if to_run[trial.number] > self.journal.over(trial.number):
                return trial  # it was begun and never came to its end
        numbers = generator(self._seed, self.journal.made())
        proposing = self._can_propose(trials)
        if waits(len(waiting), self.study.repetitions, proposing, numbers):
            return self._one_of(waiting, trials, numbers)
        planned = self._propose(trials) if proposing else None
        if planned is None and waiting:
            return self._one_of(waiting, trials, numbers)
        return planned

    def _one_of(self, waiting: Sequence[Trial], trials: Sequence[Trial], numbers: Any) -> Trial:
        last = latest(trials, self.journal.order())
        return choose(waiting, last.configuration if last else None, self.study.knobs, numbers)

    def _can_propose(self, trials: Sequence[Trial]) -> bool:
        """Whether something new may be asked for; why not is then said by ``ended``."""
        if self.ended:
            return False
        budget = self.study.budget
        if not room(budget.trials, len(trials), self.study.repetitions):
            self.ended = f"its {budget.trials} trials are made"
        elif budget.minutes is not None and self.journal.get("seconds", 0.0) >= 60 * budget.minutes:
            self.ended = f"its {budget.minutes:g} minutes are over"
        else:
            self.ended = self.steering.done(list(trials)) or self._known_enough(trials)
        return not self.ended

    def _known_enough(self, trials: Sequence[Trial]) -> str:
        """Why nothing untried can be better by more than the margin that was asked for; empty where it may be."""
        margin = self.study.budget.margin
        if margin is None or not any(trial.valid for trial in trials):
            return ""
        from perflaw.explore.judging import knows  # a second to import, which studies without a margin need not pay

        reached, _, words = knows(trials, self.space, margin, objective_of(self.study), self._seed)
        return words if reached else ""

    def _propose(self, trials: Sequence[Trial]) -> Trial | None:
        """Ask the policy, and write down what it wants and what it keeps, together."""
        proposal = self.steering.next(trials)
        if proposal is None:
            self.ended = f"policy {self.steering.name} has nothing left to propose"
            return None
        key = self.space.key(proposal.configuration)
        before = sum(self.space.key(trial.configuration) == key for trial in trials)
        count = room(self.study.budget.trials, len(trials), self.study.repetitions)
        planned = repetitions_of(len(trials) + 1, proposal.configuration, proposal.why, count, before)
        with self.journal.step():
            self.journal.plan(planned)
            self.journal.begin(planned[0].number)
            self.journal.put(state=self.steering.state())
        return planned[0]

    def _made(self, trial: Trial) -> Trial:
        """Make a trial and write it down with its run."""
        began = time.monotonic()
        with self.journal.step():
            self.journal.begin(trial.number)
            self.journal.put(restored=False)
        made = self._attempts(trial)
        others = [one for one in self.journal.trials() if one.number != trial.number and one.valid]
        over = replace(made.trial, contaminated=disturbed(made.trial, others) if made.trial.valid else "")
        again = bool(over.contaminated) and self._repeat(over)
        folder = None
        if over.valid:
            folder, over = self._keep(replace(made, trial=over))
        before = mark_run(self._experiment, trial.run, key_of(self.study, over)) if trial.run else None
        with self.journal.step():
            self.journal.write(over, again)
            self.journal.put(seconds=self.journal.get("seconds", 0.0) + time.monotonic() - began)
            self.journal.put(state=self.steering.state(), steady=self._steady(over, made.readings))
        if folder is not None:
            finish_run(folder)
        if before is not None:
            discard(before)
        return over

    def _steady(self, trial: Trial, readings: Sequence[Reading]) -> list[float]:
        """When each whole trial so far had become steady."""
        known: list[float] = self.journal.get("steady", [])
        whole = trial.valid and not trial.stopped
        metric = objective_of(self.study)
        return [*known, steady_since(readings, metric.name, metric.goal)] if whole and readings else known

    def _repeat(self, trial: Trial) -> bool:
        attempts = self.journal.over(trial.number) + 1
        return may_repeat(attempts, self.journal.repeated(), len(self.journal.trials()))

    def _keep(self, made: Made) -> tuple[Path, Trial]:
        """The trial as a run of the experiment, not finished before the journal knows it."""
        folder = begin_run(self._experiment, key_of(self.study, made.trial))
        scales = self.journal.get("scales", {})
        trial = replace(made.trial, run=folder.name)
        write_run(folder, self.study, trial, made.raw, made.readings, scales)
        with self.journal.step():
            self.journal.put(scales=scales)
        return folder, trial

    def _attempts(self, trial: Trial) -> Made:
        """Make it with the agent, with a new one where that is lost. WireError where none can be reached at all."""
        for _ in range(_LOST):
            self._agent = self._agent or self._new_agent()
            try:
                return make(self._ready(self._agent), self.study, trial, self._judge(trial), self._tell)
            except WireError as error:
                lost = str(error)
                if self._agent:
                    self._agent.kill()
                self._agent = None
                self.steering.restore(self.journal.get("state", {}))
        return Made(replace(trial, reason=f"the agent was lost {_LOST} times: {lost}", valid=False), {})

    def _judge(self, trial: Trial) -> TrialJudge:
        steady = usually_steady(self.journal.get("steady", []))
        return judge_of(self.steering, self.study, self.space, trial, self.journal.trials(), steady)

    def _ready(self, agent: Agent) -> Agent:
        """The agent, told of the study. TargetError where the target cannot be prepared, or another agent has it."""
        if not agent.knows:
            try:
                self._hello = agent.ask("hello", document_of(self.study, self._experiment.folder / "agent")).document
                agent.ask("prepare", timeout_s=self.study.target.timeout_s)
            except Invalid as error:
                why, once_more = str(error), "perflaw explore … (goes on)"
                raise TargetError(f"study {self.study.name}: its target cannot be prepared", why, once_more) from error
            agent.knows = True
        return agent

    def _restore(self) -> None:
        """The study is over: the target as it was before, unless the study asks for that after crashes only."""
        if self.journal.get("restored", True):
            return
        self._agent = self._agent or self._new_agent()
        when = self.study.restore.get("on", ("exit",))
        last = {"last": True, "files": "exit" in when or "trial" in when}
        self._ready(self._agent).ask("restore", last, self.study.target.timeout_s)
        with self.journal.step():
            self.journal.put(restored=True)
