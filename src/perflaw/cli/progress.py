"""What stands beside the output, on standard error: remarks, steps with their times, and progress on a terminal.

``--quiet`` leaves the answer and errors alone; ``--verbose`` also says what is done and how long each step took.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

import click

from perflaw.notices import Show, ignore_progress

QUIET: Final = -1
NORMAL: Final = 0
VERBOSE: Final = 1
_CLEAR: Final = "\r\x1b[K"

_lock = threading.Lock()
"""Held while standard error is written: the thread that draws progress shares it with remarks."""
_verbosity = NORMAL
_drawn = False
"""Whether a line of progress stands on the terminal."""
_depth = 0
"""How many steps enclose the present one."""


def set_verbosity(level: int) -> None:
    """QUIET, NORMAL or VERBOSE, for the rest of this command."""
    global _verbosity
    _verbosity = level


def verbosity() -> int:
    """What was chosen by ``--quiet`` or ``--verbose``."""
    return _verbosity


def write_error(text: str) -> None:
    """Write one line to standard error, above a line of progress; the user needs it, so ``--quiet`` leaves it."""
    with _lock:
        _erase()
        click.echo(text, err=True)


def tell(text: str) -> None:
    """Write one line to standard error that says what was done; not with ``--quiet``."""
    if _verbosity > QUIET:
        write_error(text)


def note(text: str) -> None:
    """Say something beside the output: one line on standard error; not with ``--quiet``."""
    tell(f"perflaw: {text}")


def problem(text: str) -> None:
    """Say what went wrong while the work goes on: one line on standard error, also with ``--quiet``."""
    write_error(f"perflaw: {text}")


def detail(text: str) -> None:
    """Say what was done, with ``--verbose`` alone."""
    if _verbosity >= VERBOSE:
        write_error(f"perflaw: {'  ' * _depth}{text}")


def shows_progress() -> bool:
    """Whether progress is drawn: standard error is a terminal that can, and neither --quiet nor NO_COLOR asks for silence."""
    return (
        _verbosity > QUIET
        and sys.stderr.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )


@contextmanager
def step(label: str, clock: Callable[[], float] = monotonic, *, ticking: bool = True) -> Iterator[Show]:
    """A step of the work: progress on a terminal from the second second on, and its time with ``--verbose``.

    Gives the function that tells how far it is. Without ``ticking`` the line is drawn only when that is told: for
    programs that write to the same terminal meanwhile.
    """
    global _depth
    began, shown = clock(), shows_progress()
    work = None
    if shown:
        from perflaw.progress import Work

        work = Work(label, _draw, clock, ticking=ticking)
    _depth += 1
    try:
        yield work.show if work else ignore_progress
    finally:
        _depth -= 1
        if work:
            work.close()
            with _lock:
                _erase()
        if _verbosity >= VERBOSE:
            detail(f"{label}: {seconds_words(clock() - began)}")


def seconds_words(seconds: float) -> str:
    """A time that was measured.

    >>> seconds_words(0.0123), seconds_words(1.234), seconds_words(75.2)
    ('12 ms', '1.23 s', '75.2 s')
    """
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _draw(text: str) -> None:
    """Put a line of progress in the place of the last one, cut to the terminal's width."""
    global _drawn
    width = shutil.get_terminal_size().columns
    with _lock:
        sys.stderr.write(_CLEAR + f"{text} "[: width - 1])  # a program may write behind it
        sys.stderr.flush()
        _drawn = True


def _erase() -> None:
    """Take the line of progress away, if there is one; the caller holds the lock."""
    global _drawn
    if _drawn:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
        _drawn = False
