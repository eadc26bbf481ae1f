"""``perflaw.record``: records a part of the program that calls it, as ``perflaw attach`` would from outside.

A recorder process collects; the program gets the tracer for the time of the part, and pays nothing before and after.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from perflaw.errors import TargetError, UsageError
from perflaw.listening import listen, recordings_begun

if TYPE_CHECKING:
    from perflaw.api.experiments import Experiment

P = ParamSpec("P")
R = TypeVar("R")
BEGIN_S: Final = 300.0
"""Time in which a recorder has to begin: it may compile the tracer first."""
_active = threading.Lock()
"""Held while a part of this process is recorded; a process has one tracer."""


class record:  # noqa: N801  # used as a function: with perflaw.record("nightly"): …
    """Records what runs within, in all threads of this process, as one run of an experiment.

    As a context manager it records the body; as a decorator, every outermost call of the function, with its numbers
    and the lengths of its arguments as features. UsageError if a part is being recorded already, or where the settings are
    wrong; TargetError if this process cannot be recorded. An error within ends the recording and goes on.

    ``experiment``: name under ``.perflaw/``. ``features``: sizes of the work, from which laws are learnt. ``metrics``,
    ``select``, ``exclude``, ``collect``, ``per`` and ``budget`` are the options of ``perflaw record``.
    """

    def __init__(
        self,
        experiment: str = "default",
        *,
        features: Mapping[str, float] | None = None,
        metrics: Sequence[str] = (),
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        collect: Sequence[str] = (),
        per: str = "",
        budget: str = "",
    ) -> None:
        self.experiment = experiment
        """Name of the experiment."""
        self.summary = ""
        """What was recorded and where it is, when the recording has ended."""
        self._features = dict(features or {})
        lists = (("--metric", metrics), ("--select", select), ("--exclude", exclude), ("--collect", collect))
        self._options = [word for option, values in lists for value in values for word in (option, value)]
        self._options += [
            word for option, value in (("--per", per), ("--budget", budget)) if value for word in (option, value)
        ]
        self._recorder: subprocess.Popen[str] | None = None
        self._status = 0
        """Exit status of the recorder."""

    def load(self) -> Experiment:
        """The experiment with the recordings made so far."""
        from perflaw.api.experiments import load

        return load(self.experiment)

    def __enter__(self) -> record:
        if not _active.acquire(blocking=False):
            why = "a process has one tracer"
            raise UsageError("a part of this program is being recorded already", why, "with perflaw.record(…) once")
        try:
            listen()
            begun = recordings_begun()
            self._recorder = self._started()
            deadline = time.monotonic() + BEGIN_S
            while recordings_begun() == begun:
                if self._recorder.poll() is not None or time.monotonic() > deadline:
                    raise TargetError("this program cannot be recorded", self._ended(), "perflaw doctor")
                time.sleep(0.002)
        except BaseException:
            self._stop()
            _active.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.summary = self._stop()
        finally:
            _active.release()
        if self._status and error is None:
            raise TargetError("nothing was recorded", self.summary.removeprefix("perflaw: "), "perflaw doctor")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, each of whose outermost calls is recorded."""
        signature = inspect.signature(function)

        @functools.wraps(function)
        def recorded(*arguments: P.args, **named: P.kwargs) -> R:
            if _active.locked():  # within a recorded call
                return function(*arguments, **named)
            again = record(self.experiment)
            again._options = self._options
            again._features = self._features | sizes_of(signature.bind(*arguments, **named).arguments)
            with again:
                return function(*arguments, **named)

        return recorded

    def _started(self) -> subprocess.Popen[str]:
        """The recorder, which has yet to begin."""
        features = [word for name, value in self._features.items() for word in ("--feature", f"{name}={value!r}")]
        command = [sys.executable, "-m", "perflaw", "attach", "-e", self.experiment, "--seconds", "1e9"]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen(
            [*command, *self._options, *features, str(os.getpid())],
            stdin=null, stdout=null, stderr=pipe, text=True, start_new_session=True,
        )  # fmt: skip

    def _stop(self) -> str:
        """End the recording, wait until it is saved, and return what the recorder said."""
        if self._recorder is None:
            return ""
        if self._recorder.poll() is None:
            self._recorder.send_signal(signal.SIGINT)
        return self._ended()

    def _ended(self) -> str:
        assert self._recorder is not None
        if self._recorder.poll() is None:
            _, said = self._recorder.communicate()
        else:
            said = self._recorder.stderr.read() if self._recorder.stderr and not self._recorder.stderr.closed else ""
        self._status = self._recorder.wait()
        self._recorder = None
        return said.strip()


def sizes_of(arguments: Mapping[str, Any]) -> dict[str, float]:
    """Features of a call: its finite numbers, and the lengths of its sized arguments as ``NAME_len``.

    >>> sizes_of({"n": 3, "docs": ["a", "b"], "deep": True, "rate": float("nan")})
    {'n': 3.0, 'docs_len': 2.0}
    """
    features: dict[str, float] = {}
    for name, value in arguments.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            features[name] = float(value)
        elif isinstance(value, Sized):
            features[f"{name}_len"] = float(len(value))
    return features
