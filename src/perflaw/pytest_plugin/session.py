"""``pytest --perflaw``: records this pytest while it runs its tests, has further ones do the same, and checks the runs.

pytest has only read its options when this takes over. It starts a recorder, which has it load the tracer, and runs its
tests as always; so pytest starts once, and its output and its exit status are its own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import pytest

from perflaw.errors import PerflawError, UsageError
from perflaw.listening import begin
from perflaw.pytest_plugin import RECORDED_VARIABLE


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


UNSUITED = 3
"""Exit status of ``perflaw attach`` if this process cannot be recorded while it runs."""
CHECK_RUNS = 3
"""Runs of a check by default. A single run does not show how runs differ, so it violates no law."""
EXCLUDED = (
    *("pytest.*", "_pytest.*", "pluggy.*"),
    *("perflaw.pytest_plugin.*", "perflaw.decorator.*", "perflaw.listening.*", "perflaw.<module>"),
)
"""Functions that are not recorded, for they run the suite and are not part of it."""
_OWN_OPTIONS = ("--perflaw", "--perflaw-libraries", "--perflaw-check", "--perflaw-runs", "--perflaw-experiment")
VIOLATED = 1
"""Exit status of ``perflaw check`` if a law is violated."""


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """How the suite is recorded and checked."""

    command: tuple[str, ...]
    """pytest as the person started it, without our options."""
    experiment: str
    """Name of the experiment that gets the runs."""
    runs: int
    """Number of runs."""
    laws: str | None
    """File of laws to check the runs against; None if there is no check."""
    own: tuple[str, ...] | None
    """Packages under test, of which the functions are recorded beside those of the tests; None: of all libraries."""


def run_recorded(config: pytest.Config) -> int:
    """Record the suite, and check it if asked; gives pytest's exit status, or 1 if a law is violated.

    Raises pytest.UsageError if the options of perflaw are wrong.
    """
    plan = _plan(config)
    before = run_ids(plan.experiment) if plan.laws else set()
    status = _record_here(config, plan)
    for number in range(2, plan.runs + 1):
        if status == 0:
            # Make a further run in the same way; its output is shown only if it fails.
            with tempfile.TemporaryFile() as output:
                status = run((*plan.command, *_once_more(plan)), output=output)
                if status != 0:
                    output.seek(0)
                    _say(f"perflaw: run {number} of {plan.runs} ended with status {status}; it said:")
                    _say(output.read().decode(errors="replace").rstrip())
    if plan.laws is None:
        return status
    if status != 0:
        _say(f"perflaw: {plan.laws} not checked: the suite ended with status {status}")
        return status
    made = sorted(run_ids(plan.experiment) - before)
    status = run([sys.executable, "-m", "perflaw", "check", plan.laws, "-e", plan.experiment, *made])
    return status if status in (0, VIOLATED) else int(pytest.ExitCode.USAGE_ERROR)


def _plan(config: pytest.Config) -> SuitePlan:
    laws, runs = config.option.perflaw_check or None, config.option.perflaw_runs
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
    experiment = config.option.perflaw_experiment
    if not experiment.isalnum():  # only then it can be no name
        try:
            run_ids(experiment)
        except PerflawError as error:
            raise pytest.UsageError(str(error)) from None
    own = None if config.option.perflaw_libraries else packages_under_test(config.rootpath, config.getini("pythonpath"))
    # The command that started this process, or -m pytest if a program called pytest.main.
    words = [os.fspath(word) for word in config.invocation_params.args]
    start = ["", "-m", "pytest"]
    if words == sys.argv[1:]:
        start = sys.orig_argv[: len(sys.orig_argv) - len(words)]
    return SuitePlan((sys.executable, *start[1:], *without_own_options(words)), experiment, runs, laws, own)


def run_ids(experiment: str) -> set[str]:
    """Ids of the runs of an experiment; UsageError if it is no name."""
    from perflaw.store.experiment import open_experiment  # NumPy comes with it: a tenth of a second, of a check only

    return set(open_experiment(experiment).ids())


def packages_under_test(root: Path, search: Sequence[Path] = ()) -> tuple[str, ...]:
    """Names of the packages and modules in a project's folder, its ``src`` and ``lib``, and in the folders of ``search``.

    A suite may test the installed copy of the package instead of the sources beside it; both have these names.
    """
    found = set()
    for folder in (root, root / "src", root / "lib", *search):
        for entry in folder.iterdir() if folder.is_dir() else ():
            is_package = entry.is_dir() and ((entry / "__init__.py").is_file() or folder != root)
            if entry.stem.isidentifier() and (is_package or entry.suffix == ".py"):
                found.add(entry.stem)
    return tuple(sorted(found))


def without_own_options(words: Sequence[str]) -> list[str]:
    """Arguments without the options of perflaw and their values.

    >>> without_own_options(["-q", "--perflaw", "--perflaw-check", "app.law", "--perflaw-runs=2", "tests"])
    ['-q', 'tests']
    """
    kept: list[str] = []
    value_follows = False
    for word in words:
        own = word.partition("=")[0] in _OWN_OPTIONS
        if not own and not value_follows:
            kept.append(word)
        value_follows = own and word not in ("--perflaw", "--perflaw-libraries") and "=" not in word
    return kept


def _record_here(config: pytest.Config, plan: SuitePlan) -> int:
    """Make the run in this process, where the native tracer can begin while it runs; else in another, from its start."""
    ours, theirs = socket.socketpair()
    options = (*_options(plan), "--asked", str(theirs.fileno()), str(os.getpid()))
    with ours:
        with theirs:
            recorder = subprocess.Popen(
                [sys.executable, "-m", "perflaw", "attach", *options],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        tracer = begin(ours)
        if tracer is None:
            status = recorder.wait()
            if status != UNSUITED:
                return status
            capture = config.pluginmanager.getplugin("capturemanager")
            if capture is not None:  # -p no:capture
                capture.stop_global_capturing()  # the recorded pytest has the terminal, with the keyboard (--pdb)
            record = (sys.executable, "-m", "perflaw", "record", *_options(plan), "--", *plan.command)
            return run(record, {**os.environ, RECORDED_VARIABLE: "1"})
        try:
            ours.sendall(b"\n")
            config.option.perflaw, config.option.perflaw_check = False, None
            status = int(config.hook.pytest_cmdline_main(config=config) or 0)
        except BaseException:
            status = int(pytest.ExitCode.INTERNAL_ERROR)
            raise
        finally:
            tracer.finish()
            with suppress(OSError):  # a test closed all descriptors
                ours.sendall(b"%d\n" % status)
        recorder.wait()
    return status


def _options(plan: SuitePlan) -> tuple[str, ...]:
    """Options of ``perflaw record`` and ``perflaw attach`` that say what is recorded."""
    exclude = [word for glob in EXCLUDED for word in ("--exclude", glob)]
    own = () if plan.own is None else ("--own", ",".join(plan.own))
    return ("-e", plan.experiment, *own, *exclude)


def _once_more(plan: SuitePlan) -> tuple[str, ...]:
    """Options of a pytest that makes one more run; they override those of a configuration file."""
    libraries = () if plan.own is not None else ("--perflaw-libraries",)
    return ("--perflaw", *libraries, "--perflaw-runs=1", "--perflaw-check=", "--perflaw-experiment", plan.experiment)


def _say(text: str) -> None:
    """Print a line to standard error, beside pytest's own output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
