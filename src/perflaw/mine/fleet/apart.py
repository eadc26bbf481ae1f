"""Calls functions in a process of their own, whose memory ends with it.

Mining takes several times as much memory as what is kept of it, and what is kept lies among it, so that a process which mines
again and again grows. Here a server process that has imported the learner is forked for each call.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Collection
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from perflaw.errors import PerflawError

T = TypeVar("T")
_CONTEXT: Final = multiprocessing.get_context("forkserver")


class ProcessLost(PerflawError):
    """A process of perflaw's own has ended before it answered."""


def import_ahead(modules: Collection[str]) -> None:
    """Have the server process import these modules when it begins, so that no call has to."""
    _CONTEXT.set_forkserver_preload(list(modules))


def apart(function: Callable[..., T], *arguments: object) -> T:
    """What a function of a module gives for these arguments; all of them can be pickled.

    PerflawError as the function raises it; ProcessLost if its process ends before it has answered.
    """
    receiving, sending = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_answer, args=(sending, function, arguments), daemon=True)
    with receiving:
        with sending:  # closed here once the process has it, so that its end is noticed
            process.start()
        try:
            given, error = receiving.recv()
        except EOFError:  # it has ended, which its status says
            given, error = None, None
        process.join()
    if process.exitcode:
        name = signal.Signals(-process.exitcode).name if process.exitcode < 0 else f"exit status {process.exitcode}"
        raise ProcessLost("a process that mines has ended before it answered", f"it ended by {name}", "free -m")
    if error:
        raise error
    return given  # type: ignore[no-any-return]  # what the function gave went through a pipe


def _answer(to: Connection, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the controller, which then ends
    answer: tuple[object, PerflawError | None]
    try:
        answer = function(*arguments), None
    except PerflawError as error:
        answer = None, error
    try:
        to.send(answer)
    except BrokenPipeError:  # the controller was killed
        return
