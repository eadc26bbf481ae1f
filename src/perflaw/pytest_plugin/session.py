"""``pytest --perflaw``: runs the same command under ``perflaw record``, and checks the runs against laws.

pytest has only read its options when this takes over. The recorded pytest runs as the person started it, so its output and
its exit status are its own.
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

from perflaw.errors import PerflawError, UsageError
from perflaw.pytest_plugin import RECORDED_VARIABLE
from perflaw.store.experiment import Experiment, open_experiment


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, output: IO[bytes] | None = None) -> int:
    """Exit status of a command, 128 + signal if a signal killed it; both its outputs may go to a file.

    Signals to this process are handed on to the command. A terminal sends Ctrl-C to the whole process group, so there the
    command stays in ours. Elsewhere Ctrl-C reaches only this process: then the command has its own group, and all of the
    group gets the signal.
    """
    alone = not os.isatty(0)
    errors, group = subprocess.STDOUT if output else None, 0 if alone else None
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors, process_group=group)

    def hand_on(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and alone:
            os.killpg(process.pid, number)
        elif number != signal.SIGINT:
            process.send_signal(number)  # the recorder hands it on to the target by itself

    handed_on: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():  # only there may handlers be set
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handed_on = [one for one in signals if signal.getsignal(one) is not signal.SIG_IGN]  # nohup ignores some
    before = {number: signal.signal(number, hand_on) for number in handed_on}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


CHECK_RUNS = 3
"""Runs of a check by default. A single run does not show how runs differ, so it violates no law."""
EXCLUDED = (
    *("pytest.*", "_pytest.*", "pluggy.*"),
    *("perflaw.pytest_plugin.*", "perflaw.decorator.*", "perflaw.listening.*", "perflaw.<module>"),
)
"""Functions that are not recorded, for they run the suite and are not part of it."""
VIOLATED = 1
"""Exit status of ``perflaw check`` if a law is violated."""


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """How the suite is recorded and checked."""

    command: tuple[str, ...]
    """pytest as the person started it, without our options."""
    experiment: Experiment
    """Experiment that gets the runs."""
    runs: int
    """Number of runs."""
    laws: str | None
    """File of laws to check the runs against; None if there is no check."""


def run_recorded(config: pytest.Config) -> int:
    """Record the suite, and check it if asked; gives pytest's exit status, or 1 if a law is violated.

    Raises pytest.UsageError if the options of perflaw are wrong.
    """
    plan = _plan(config)
    # This pytest stops capturing, so that the recorded one has the terminal, with the keyboard (--pdb).
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:  # -p no:capture
        capture.stop_global_capturing()
    before = set(plan.experiment.ids())
    status = _record(plan, None)
    for number in range(2, plan.runs + 1):
        if status == 0:
            # Make a further run; its output is shown only if it fails.
            with tempfile.TemporaryFile() as output:
                status = _record(plan, output)
                if status != 0:
                    output.seek(0)
                    _say(f"perflaw: run {number} of {plan.runs} ended with status {status}; it said:")
                    _say(output.read().decode(errors="replace").rstrip())
    if plan.laws is None:
        return status
    if status != 0:
        _say(f"perflaw: {plan.laws} not checked: the suite ended with status {status}")
        return status
    made = [name for name in plan.experiment.ids() if name not in before]
    status = run([sys.executable, "-m", "perflaw", "check", plan.laws, "-e", plan.experiment.name, *made])
    return status if status in (0, VIOLATED) else int(pytest.ExitCode.USAGE_ERROR)


def _plan(config: pytest.Config) -> SuitePlan:
    laws, runs = config.option.perflaw_check, config.option.perflaw_runs
    if runs is None:
        runs = CHECK_RUNS if laws else 1
    if runs < 1:
        what = f"--perflaw-runs {runs}"
        raise pytest.UsageError(
            str(UsageError(what, "at least one run is needed", "pytest --perflaw --perflaw-runs 3"))
        )
    if laws and not Path(laws).exists():
        learn = f"perflaw annotate -e {config.option.perflaw_experiment} -o {laws}"
        remedy = f"pytest --perflaw --perflaw-runs 3, then {learn}"
        raise pytest.UsageError(str(UsageError(f"--perflaw-check {laws}", "no such file", remedy)))
    try:
        experiment = open_experiment(config.option.perflaw_experiment)
    except PerflawError as error:
        raise pytest.UsageError(str(error)) from None
    # The command that started this process, or -m pytest if a program called pytest.main.
    words = [os.fspath(word) for word in config.invocation_params.args]
    start = ["", "-m", "pytest"]
    if words == sys.argv[1:]:
        start = sys.orig_argv[: len(sys.orig_argv) - len(words)]
    return SuitePlan((sys.executable, *start[1:], *without_own_options(words)), experiment, runs, laws)


def without_own_options(words: Sequence[str]) -> list[str]:
    """Arguments without the options of perflaw and their values.

    >>> without_own_options(["-q", "--perflaw", "--perflaw-check", "app.law", "--perflaw-runs=2", "tests"])
    ['-q', 'tests']
    """
    kept: list[str] = []
    value_follows = False
    for word in words:
        own = word.partition("=")[0] in ("--perflaw", "--perflaw-check", "--perflaw-runs", "--perflaw-experiment")
        if not own and not value_follows:
            kept.append(word)
        value_follows = own and word != "--perflaw" and "=" not in word
    return kept


def _record(plan: SuitePlan, output: IO[bytes] | None) -> int:
    """Make one run under the recorder; its output goes to the terminal, or to a file."""
    exclude = [word for glob in EXCLUDED for word in ("--exclude", glob)]
    record = [sys.executable, "-m", "perflaw", "record", "-e", plan.experiment.name, *exclude, "--", *plan.command]
    return run(record, {**os.environ, RECORDED_VARIABLE: "1"}, output)


def _say(text: str) -> None:
    """Print a line to standard error, beside pytest's own output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
