"""``perflaw mine --attach`` and ``perflaw mine -- COMMAND``: the loop over a running program, from the command line."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from perflaw.cli.progress import note, tell
from perflaw.cli.record_messages import print_build
from perflaw.errors import PerflawError, TargetError, UsageError

if TYPE_CHECKING:
    from perflaw.mine.attached import AttachedProcess
    from perflaw.mine.budget import Budget, BudgetOf
    from perflaw.store.experiment import Experiment
    from perflaw.types import PathSpec

_LOOK_S: Final = 0.05
"""Interval at which it is looked whether a program has ended."""
_START_S: Final = 20.0
"""Time in which a program that was started has to become one that can be attached to."""
_ENDING_S: Final = 1.0
"""Time that a program takes at most from when its memory is gone until its parent is told."""
MOST_OWN: Final = 2.0
"""Part of the program's CPU time up to which perflaw's own is told as such a part."""


@dataclass(frozen=True, slots=True)
class Mined:
    """How measuring a running program ended."""

    status: int
    """Exit status of the COMMAND that was started, negative for a signal; 0 for a program that ran already."""
    functions: int
    """Functions of which something was learnt."""


def mine_running(
    experiment: str,
    pid: int | None,
    command: tuple[str, ...],
    budget: float,
    seconds: float | None,
    budget_of: BudgetOf = "throughput",
) -> Mined:
    """Run the loop until a signal comes, the program ends or the seconds are over.

    A process that comes to run another program, as a shell does by ``exec``, is measured anew.
    """
    from perflaw.mine.budget import Budget, own_cpu_ns
    from perflaw.record.process import Siblings, SignalRelay, busiest_child
    from perflaw.store.experiment import open_experiment

    target = open_experiment(experiment)
    target.make()
    attach = partial(_attached, target, samples_on=budget_of == "throughput")
    process = None if pid is None else attach(pid, None)  # signals end it as usual so far: the program was not touched
    known_specs = _known(target)  # takes its time where there is much, which is no part of the seconds
    with SignalRelay() as relay, _program(pid, command) as (known, started):
        relay.process = started
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        learnt = own_ns = 0
        siblings = Siblings(known)
        while True:
            try:
                process = process or attach(known, started)
                account = Budget(known, budget, process.presumed, of=budget_of, own_before_ns=own_ns)
                learnt += _measure(
                    target,
                    process,
                    account,
                    started,
                    known_specs,
                    lambda: relay.received or time.monotonic() > deadline,
                )
            except TargetError as error:
                if not (status := _status_soon(started)):
                    raise
                # The program failed before it could be measured, or just then: its status says more.
                note(f"{error.what}: {error.why}")
                return Mined(status, learnt)
            if not process.is_replaced or relay.received or time.monotonic() > deadline:
                break
            note(f"process {known} runs another program now, which is measured anew")
            process, own_ns, known_specs = None, own_cpu_ns(), _known(target)
        has_ended = started is None and not process.alive
        if relay.received is None and has_ended and learnt:
            note(f"process {known} ended; what was learnt is kept")
        if started and started.poll() is None and not relay.received:
            note(f"measuring has ended; process {known} goes on, and its end or Ctrl-C is waited for")
        while started and started.poll() is None:
            relay.pass_on()
            time.sleep(_LOOK_S)
        status = started.returncode if started else 0
        if not learnt and not status:
            child, sibling = busiest_child(known), siblings.busiest(account.least_cpu_ns)
            busier = child or (sibling.pid if sibling else None)
            why = (
                f"process {child}, which it has started, has used more CPU time"
                if child
                else f"its sibling {busier} (same parent, same program) has used more CPU time"
                if busier
                else "it ended before a function was known to be hot and had been timed"
                if has_ended
                else "the budget did not yet pay for perflaw's own CPU time, or it was idle"
                if account.counts_own
                else "it was idle or was left before a function was known to be hot and had been timed"
            )
            again = "ps -ef" if has_ended and not busier else f"perflaw mine --attach {busier or known} --seconds 60"
            raise TargetError(f"process {known}: nothing was learnt", why, again)
        return Mined(status, learnt)


def _status_soon(started: subprocess.Popen[bytes] | None) -> int | None:
    """Exit status of a program that has ended, or is about to: whoever looks at it sees that a moment earlier."""
    if started is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        started.wait(_ENDING_S)
    return started.returncode


def _measure(
    target: Experiment,
    process: AttachedProcess,
    account: Budget,
    started: subprocess.Popen[bytes] | None,
    known_specs: Sequence[PathSpec],
    is_over: Callable[[], object],
) -> int:
    """Run the loop over one program, and tell what was spent; gives the number of functions of which something was learnt."""
    from perflaw.mine.journal import Journal, read_journal
    from perflaw.mine.loop import MiningLoop
    from perflaw.report.mine.journal import spent_text

    journal = Journal(target.folder)

    def ends() -> bool:
        return bool(is_over()) or (started is not None and started.poll() is not None)

    waiting = SiblingRemark(account, "perflaw mine --attach {}")
    loop = MiningLoop(process, account, journal, ends, tell, waiting.tell)
    if known_specs:
        loop.knowledge.start_from(known_specs, time.time_ns())
        note(f"{len(known_specs)} functions are known from earlier recordings of {target.name} and measured first")
    try:
        with process:
            loop.run()
    finally:
        journal.close()
    tell(spent_text(read_journal(target.folder), sys.stderr.isatty()).rstrip("\n"))
    learnt = sum(bool(one.observed) for one in loop.knowledge.functions.values())
    tell(f"measured {learnt} functions, {spent_words(account)} · {journal.path}")
    return learnt


def spent_words(account: Budget) -> str:
    """What was spent in all, and what perflaw took itself."""
    own = f"{account.own_ns / 1e9:.1f} s of CPU time, "
    # Beside a program that hardly runs, a part of its time says nothing.
    is_idle = account.own_share > MOST_OWN
    own += "more than the program" if is_idle else f"{100 * account.own_share:.1f} % of the program's"
    counted = "included" if account.counts_own else "not included"
    target = f"target {100 * account.target:.1f} % of {'CPU time' if account.counts_own else 'throughput'}"
    return f"spent {100 * account.share:.1f} % ({target}) · perflaw itself took {own}, {counted}"


class SiblingRemark:
    """Says once that a process is measured which has nothing to do, while a sibling of it works."""

    def __init__(self, account: Budget, again: str) -> None:
        """``again``: the command that measures the sibling, with ``{}`` for its id."""
        from perflaw.record.process import Siblings

        self.account, self.again = account, again
        self._siblings = Siblings(account.pid)
        self._is_told = False

    def tell(self) -> None:
        """Say it if it was so since the last time; call this where nothing could be measured for a while."""
        if self._is_told:
            return
        if busy := self._siblings.busiest(self.account.least_cpu_ns):
            note(f"{busy.words(self.account.pid)}: {self.again.format(busy.pid)}")
            self._is_told = True
        self._siblings.restart()


def _known(experiment: Experiment) -> list[PathSpec]:
    """What the experiment's recordings say already, which tells what to measure first."""
    from perflaw.api.mining import MiningRequest, known_specs
    from perflaw.learn.paths import MiningOptions

    if not experiment.ids():
        return []
    try:
        return known_specs(MiningRequest(experiment.name, "time", (), (), MiningOptions(), time.time_ns()))
    except PerflawError:  # its recordings have no call paths, or cannot be read: others can be made nevertheless
        return []


@contextmanager
def _program(pid: int | None, command: tuple[str, ...]) -> Iterator[tuple[int, subprocess.Popen[bytes] | None]]:
    """The process to measure: one that runs, or a new one, which goes on to its end."""
    if pid is not None:
        yield pid, None
        return
    from perflaw.record.launch import NotPython, understand

    argv = list(command)
    with suppress(NotPython):  # a compiled program is started as it is
        argv = list(understand(command).argv)
    try:
        started = subprocess.Popen(argv)
    except OSError as error:
        raise TargetError(
            f"{command[0]}: cannot be started", error.strerror or "", "perflaw mine -- python app.py"
        ) from error
    try:
        yield started.pid, started
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGTERM)
            started.wait()


def _attached(
    experiment: Experiment, pid: int, started: subprocess.Popen[bytes] | None, *, samples_on: bool
) -> AttachedProcess:
    """The process, as soon as it can be measured: a new one executes its program only after a moment."""
    from perflaw.mine.attached import AttachedProcess

    deadline = time.monotonic() + _START_S
    while True:
        try:
            return AttachedProcess(experiment, pid, print_build, samples_on=samples_on)
        except TargetError:
            if started is None or started.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def parse_share(text: str) -> float:
    """The number of ``2%`` or ``0.02``; UsageError if it is none between 0 and 1.

    >>> parse_share("2%"), parse_share("0.05")
    (0.02, 0.05)
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        why = "it says which part of the program's throughput or CPU time measuring may take"
        raise UsageError(f"--budget {text}", why, "--budget 2%")
    return share
