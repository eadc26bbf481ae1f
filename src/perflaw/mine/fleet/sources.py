"""Where a stub's measurements come from: a process that runs on its host, or recordings that were made there."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from perflaw.errors import StoreError
from perflaw.mine.attached import AttachedProcess
from perflaw.mine.budget import Budget, BudgetOf
from perflaw.mine.fleet.client import ControllerClient
from perflaw.mine.fleet.enrolment import Enrolment
from perflaw.mine.fleet.spool import Spool
from perflaw.mine.fleet.stub import ANSWER_S, BATCH_BYTES, Spending, Target, may_measure
from perflaw.mine.knowledge import Decision, KnownFunction
from perflaw.mine.messages import Measurement, Request
from perflaw.record.build import Tell
from perflaw.store.experiment import Recording, discard, open_experiment
from perflaw.store.paths import read_observed
from perflaw.types import Observed, Platform
from perflaw.types.specifications import CallPath

_MOST_SAMPLES: Final = 5_000
"""Samples that are kept until they are asked for; at more of them all are halved."""
_LOOK_S: Final = 1.0
"""Longest time between two looks whether the process has ended."""


class AttachedSource:
    """A running process. Use it as a context manager: at the end the process is as it was."""

    def __init__(self, folder: Path, pid: int, tell: Tell, of: BudgetOf = "throughput") -> None:
        """``folder`` is for what recordings need while they are made; ``of``: what budgets are a part of.

        TargetError if it cannot be recorded.
        """
        experiment = open_experiment("stub", folder)
        experiment.make()
        self._process = AttachedProcess(experiment, pid, tell, samples_on=of == "throughput", keeps=False)
        self._budget = Budget(pid, presumed=self._process.presumed, of=of)
        self._functions: dict[str, KnownFunction] = {}
        self._stacks: Counter[CallPath] = Counter()
        """Samples that were taken while functions were measured; the next measurement of samples has them."""
        self._platform = Platform(socket.gethostname(), "", 0.0)
        self.target = Target(socket.gethostname(), self._process.program.name, pid)

    def __enter__(self) -> AttachedSource:
        self._process.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.__exit__(*error)

    def pause_s(self, budget: float, request: Request) -> float:
        """See :class:`~perflaw.mine.fleet.stub.Source`. Samples take nothing but perflaw's own time."""
        self._budget.target = budget
        self._budget.settle_window(self._functions)
        if not self._process.alive or (request.kind == "samples" and not self._budget.counts_own):
            return 0.0
        decision = self._planned(request)
        needed = (0.0 if request.kind == "samples" else decision.request.seconds), decision.expected_calls
        return min(self._budget.pause_s(*needed), _LOOK_S) if self._budget.must_wait(*needed) else 0.0

    def _planned(self, request: Request) -> Decision:
        """The measurement for as long as the budget permits probes now, and the calls that will probably be recorded."""
        known = [self._functions.setdefault(name, KnownFunction(name, "")) for name in request.functions]
        seconds = request.seconds * request.sampling * max((one.sampling for one in known), default=1.0)
        calls = sum(one.rate for one in known) * seconds if all(one.rate for one in known) else 0.0
        return self._budget.affordable(Decision(replace(request, seconds=seconds), "", 1.0, calls))

    def measure(self, request: Request) -> Measurement | None:
        """See :class:`~perflaw.mine.fleet.stub.Source`."""
        if not self._process.alive:
            return None
        if request.kind == "samples":
            samples = self._process.measure(request)
            self._budget.add_samples(samples.cost)
            stacks, self._stacks = self._stacks, Counter()
            stacks.update(samples.stacks)
            return replace(samples, stacks=stacks)
        decision = self._planned(request)
        sampling = decision.request.seconds / request.seconds if request.seconds else 0.0
        if not sampling:  # detached: that nothing was seen of it does not say that it was not called
            now = time.time_ns()
            return Measurement(request.number, request.kind, now, now, 0.0)
        measurement: Measurement | None = None
        began = time.time_ns()
        self._budget.begin_probes()
        try:
            with suppress(StoreError):  # a program's first function has no durations while it runs
                measurement = self._process.measure(replace(request, sampling=sampling))
        finally:
            self._budget.end_probes(decision, measurement)
            for recording in self._process.experiment.runs_folder.glob("*"):
                discard(recording)
        if measurement is None:
            measurement = Measurement(request.number, request.kind, began, time.time_ns(), sampling)
        for name in request.functions:
            share = measurement.cost.calls / len(request.functions)
            self._functions[name].rate = share / decision.request.seconds
        observed = [of_run(one, measurement.run, str(measurement.start_ns)) for one in measurement.observed]
        missing = set(request.functions) - {one.component for one in observed}
        observed += [Observed(name, "time", "ns", (), (), (self._platform,)) for name in sorted(missing)]  # not called
        # The controller looks for hot functions in measurements of samples alone.
        self._stacks.update(measurement.stacks)
        if self._stacks.total() > _MOST_SAMPLES:
            self._stacks = Counter({path: count // 2 for path, count in self._stacks.items() if count > 1})
        return replace(measurement, stacks={}, observed=tuple(observed), run="")

    def spent(self) -> list[Spending]:
        """See :class:`~perflaw.mine.fleet.stub.Source`."""
        new = [self._budget.windows.popleft() for _ in range(len(self._budget.windows))]
        return [Spending(one.end_ns, one.share, one.own_share) for one in new]


def recorded(recordings: Sequence[Recording], allow: Callable[[str], bool]) -> list[Measurement]:
    """A measurement for each run and function that may be measured; the same recordings always give the same ones."""
    measurements = []
    for one in read_observed(recordings):
        if not allow(one.component):
            continue
        for run in dict.fromkeys(each.run for each in one.observations):
            part = of_run(one, run)
            ends = (min(each.start_ns for each in part.observations), max(each.end_ns for each in part.observations))
            measurements.append(Measurement(0, "paths", *ends, observed=(part,)))
    return measurements


def of_run(observed: Observed, run: str, told: str = "") -> Observed:
    """What one run observed, under the name HOST:RUN (or HOST:told), because every host counts its runs from 1."""
    mine = [each for each in observed.observations if each.run == run]
    hosts = {observed.platforms[each.platform].host for each in mine}
    name = f"{min(hosts, default='')}:{told or run}"
    queued = {name: observed.queued_ns[run]} if run in observed.queued_ns else {}
    return replace(observed, observations=tuple(replace(each, run=name) for each in mine), queued_ns=queued)


def deliver_recorded(
    enrolment: Enrolment, spool: Spool, recordings: Sequence[Recording], say: Callable[[str], None]
) -> int:
    """Deliver all that recordings observed of the functions that may be measured; returns the number of measurements.

    WireError if the controller cannot be reached: what is left stays in the spool, and delivering again counts nothing twice.
    """
    for measurement in recorded(recordings, lambda name: may_measure(name, enrolment.allow)):
        spool.add(measurement)
    client, delivered = ControllerClient(enrolment), 0
    first = recordings[0].run
    target = Target(first.host, first.target, 0)
    client.post("/v1/register", {"id": spool.id, **asdict(target)}, ANSWER_S)
    while batch := spool.oldest(BATCH_BYTES):
        answer = client.deliver(spool.id, batch, ANSWER_S)
        for name, why in dict(answer.get("refused", {})).items():
            say(f"the controller refused measurement {name}: {why}")
        spool.remove(name for name, _ in batch)
        delivered += len(batch)
    client.close()
    return delivered
