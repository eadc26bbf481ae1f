"""``pytest --perflaw``: the same command again under ``perflaw record``, and its runs held against laws.

pytest has done nothing but read its options when this takes over; the recorded pytest then is the interpreter's own
process as the person started it, so what it prints and how it exits is its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import pytest

from perflaw.errors import PerflawError
from perflaw.pytest_plugin.inner import INNER
from perflaw.store.experiment import Experiment, open_experiment

# ---- A process that stands in for this one: signals meant for us reach it, and its end is ours.


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, output: IO[bytes] | None = None) -> int:
    """Exit status of a command, 128 + signal where one killed it; both its outputs may go to a file.

    A terminal sends Ctrl-C to the whole process group, so there the command stays in ours. Elsewhere it comes to us
    alone: the command has a group of its own then, and all of that is sent what we are sent.
    """
    alone = not os.isatty(0)
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        process_group=0 if alone else None,
    )

    def hand_on(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and alone:
            os.killpg(process.pid, number)
        elif number != signal.SIGINT:
            process.send_signal(number)  # the recorder hands it on to the target by itself

    before = {number: signal.signal(number, hand_on) for number in _ours()}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _ours() -> list[signal.Signals]:
    """Signals to hand on: none outside of the main thread, and none that nohup made us ignore."""
    if threading.current_thread() is not threading.main_thread():
        return []
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]


CHECK_RUNS = 3
"""Runs of a check: one alone says nothing of how runs differ, so it violates no law."""

EXCLUDED = ("pytest.*", "_pytest.*", "pluggy.*", "perflaw.pytest_plugin.*", "perflaw.decorator.*", "perflaw.<module>")
"""Functions that are not recorded: what runs the suite is nobody's code here."""

VIOLATED = 1
"""Exit status of ``perflaw check`` where a law is violated."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    command: tuple[str, ...]
    """pytest as the person started it, without our options."""
    experiment: Experiment
    """Where the runs go."""
    runs: int
    """How many."""
    laws: str | None
    """File of laws to hold them against."""


def run_recorded(config: pytest.Config) -> int:
    """Record the suite, check it where asked; gives pytest's exit status, or 1 where a law is violated.

    Raises pytest.UsageError where our options cannot be followed.
    """
    plan = _plan(config)
    # What pytest captured so far is over: the recorded one has the terminal, the keyboard (--pdb) included.
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:  # -p no:capture
        capture.stop_global_capturing()
    before = set(plan.experiment.ids())
    status = _record(plan, None)
    for number in range(2, plan.runs + 1):
        if status == 0:
            status = _repeat(plan, number)
    if plan.laws is None:
        return status
    if status != 0:
        _say(f"perflaw: {plan.laws} not checked: the suite ended with status {status}")
        return status
    return _check(plan.laws, plan, [name for name in plan.experiment.ids() if name not in before])


def _plan(config: pytest.Config) -> Plan:
    laws, runs = config.option.perflaw_check, config.option.perflaw_runs
    if runs is None:
        runs = CHECK_RUNS if laws else 1
    if runs < 1:
        raise pytest.UsageError(f"--perflaw-runs {runs}: at least one run is needed")
    if laws and not Path(laws).exists():
        raise pytest.UsageError(
            f"--perflaw-check {laws}: no such file · try: pytest --perflaw --perflaw-runs 3,"
            f" then perflaw annotate -e {config.option.perflaw_experiment} -o {laws}"
        )
    try:
        experiment = open_experiment(config.option.perflaw_experiment)
    except PerflawError as error:
        raise pytest.UsageError(str(error)) from None
    return Plan(_command(config.invocation_params.args), experiment, runs, laws)


def _command(arguments: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The command that started this process, or ``-m pytest`` where a program called ``pytest.main``."""
    words = [os.fspath(word) for word in arguments]
    start = ["", "-m", "pytest"]
    if words == sys.argv[1:]:
        start = sys.orig_argv[: len(sys.orig_argv) - len(words)]
    return (sys.executable, *start[1:], *without_ours(words))


def without_ours(words: Sequence[str]) -> list[str]:
    """Arguments without our options and their values.

    >>> without_ours(["-q", "--perflaw", "--perflaw-check", "app.law", "--perflaw-runs=2", "tests"])
    ['-q', 'tests']
    """
    kept: list[str] = []
    value_follows = False
    for word in words:
        ours = word.partition("=")[0] in ("--perflaw", "--perflaw-check", "--perflaw-runs", "--perflaw-experiment")
        if not ours and not value_follows:
            kept.append(word)
        value_follows = ours and word != "--perflaw" and "=" not in word
    return kept


def _record(plan: Plan, output: IO[bytes] | None) -> int:
    """One run under the recorder; its output goes to the terminal, or to a file."""
    exclude = [word for glob in EXCLUDED for word in ("--exclude", glob)]
    record = [sys.executable, "-m", "perflaw", "record", "-e", plan.experiment.name, *exclude, "--", *plan.command]
    return run(record, {**os.environ, INNER: "1"}, output)


def _repeat(plan: Plan, number: int) -> int:
    """A further run, shown only where it fails."""
    with tempfile.TemporaryFile() as output:
        status = _record(plan, output)
        if status != 0:
            output.seek(0)
            _say(f"perflaw: run {number} of {plan.runs} ended with status {status}; it said:")
            _say(output.read().decode(errors="replace").rstrip())
    return status


def _check(laws: str, plan: Plan, runs: Sequence[str]) -> int:
    """``perflaw check`` of the runs; its verdicts are shown, and fail the session where one is violated."""
    check = [sys.executable, "-m", "perflaw", "check", laws, "-e", plan.experiment.name, *runs]
    status = run(check)
    return status if status in (0, VIOLATED) else int(pytest.ExitCode.USAGE_ERROR)


def _say(text: str) -> None:
    """A line of ours, beside pytest's own output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
