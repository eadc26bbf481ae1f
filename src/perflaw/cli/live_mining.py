"""``perflaw mine --attach`` and ``perflaw mine -- COMMAND``: the loop over a running program, from the command line."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from perflaw.cli.progress import note, tell
from perflaw.cli.record_messages import print_build
from perflaw.errors import PerflawError, TargetError, UsageError

if TYPE_CHECKING:
    from perflaw.mine.attached import AttachedProcess
    from perflaw.types import PathSpec

_START_S: Final = 20.0
"""Time in which a program that was started has to become one that can be attached to."""


def mine_running(
    experiment: str, pid: int | None, command: tuple[str, ...], budget: float, seconds: float | None
) -> int | None:
    """Run the loop until a signal comes, the program ends or the seconds are over.

    Gives the exit status of the COMMAND that was started; None for a program that ran already.
    """
    from perflaw.mine.budget import Budget
    from perflaw.mine.journal import Journal
    from perflaw.mine.loop import MiningLoop
    from perflaw.record.process import SignalRelay
    from perflaw.store.experiment import open_experiment

    target = open_experiment(experiment)
    target.make()
    with SignalRelay() as relay, _program(pid, command) as (known, started):
        relay.process = started
        try:
            process = _attached(target, known, started)
        except TargetError as error:
            status = started.poll() if started else None
            if not status:
                raise
            note(f"{error.what}: {error.why}")  # the program failed before it could be measured: its status says more
            return status
        journal = Journal(target.folder)
        deadline = math.inf if seconds is None else time.monotonic() + seconds

        def is_over() -> bool:
            ended = started is not None and started.poll() is not None
            return relay.received is not None or ended or time.monotonic() > deadline

        account = Budget(known, budget, process.presumed)
        loop = MiningLoop(process, account, journal, is_over, tell)
        if known_specs := _known(experiment):
            loop.knowledge.start_from(known_specs, time.time_ns())
            note(f"{len(known_specs)} functions are known from earlier recordings of {experiment} and measured first")
        try:
            with process:
                loop.run()
        finally:
            journal.close()
        if relay.received is None and started is None and not process.alive:
            note(f"process {known} ended; what was learnt is kept")
        from perflaw.mine.journal import read_journal
        from perflaw.report.mine.journal import spent_text

        tell(spent_text(read_journal(target.folder), sys.stderr.isatty()).rstrip("\n"))
        share, learnt = loop.budget.share, sum(bool(one.observed) for one in loop.knowledge.functions.values())
        told = f"measured {learnt} functions, spent {100 * share:.1f} % of the program's CPU time (target {100 * budget:.1f} %)"
        tell(f"{told} · {journal.path}")
        status = None if started is None else started.wait()
        if not learnt and not status:
            why = "it was idle, ended or was left before a function was known to be hot and had been timed"
            raise TargetError(
                f"process {known}: nothing was learnt", why, f"perflaw mine --attach {known} --seconds 60"
            )
        return status


def _known(experiment: str) -> list[PathSpec]:
    """What the experiment's recordings say already, which tells what to measure first."""
    from perflaw.api.mining import MiningRequest, mine_specs
    from perflaw.learn.paths import MiningOptions
    from perflaw.store.experiment import open_experiment

    if not open_experiment(experiment).ids():
        return []
    try:
        mined = mine_specs(MiningRequest(experiment, "time", (), (), MiningOptions(), time.time_ns()))
    except PerflawError:  # its recordings have no call paths, or cannot be read: others can be made nevertheless
        return []
    return [one.spec for one in mined.file.specs]


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


def _attached(experiment: object, pid: int, started: subprocess.Popen[bytes] | None) -> AttachedProcess:
    """The process, as soon as it can be measured: a new one executes its program only after a moment."""
    from perflaw.mine.attached import AttachedProcess
    from perflaw.store.experiment import Experiment

    assert isinstance(experiment, Experiment)
    deadline = time.monotonic() + _START_S
    while True:
        try:
            return AttachedProcess(experiment, pid, print_build)
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
        why = "it says which part of the program's CPU time measuring may take"
        raise UsageError(f"--budget {text}", why, "--budget 2%")
    return share
