"""One command of a target watched until it is over: by itself, in time, by its disk, or because it was told to stop."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from perflaw.explore.target.conditions import Watch
from perflaw.explore.target.disk import DiskWatch
from perflaw.explore.target.printed import Printed
from perflaw.explore.target.proc import family
from perflaw.explore.target.process import Started

_TICK_S: Final = 0.01
_AFTER_S: Final = 0.002


@dataclass(slots=True)
class Watched:
    """What is looked after while a command runs."""

    started: Started
    """The command."""
    printed: Printed
    """What it prints."""
    watch: Watch
    """The conditions."""
    disk: DiskWatch
    """The disk."""
    others: Sequence[tuple[Started, Printed]] = ()
    """Commands that must go on meanwhile: the server."""


def run_out(watched: Watched, timeout_s: float, on_tick: Callable[[], str]) -> tuple[str, str]:
    """Wait until the command is over. Gives why the trial is no data point, and why it was ended early; both mostly "".

    ``on_tick`` is asked every few milliseconds whether it is to be ended, and why.
    """
    deadline = time.monotonic() + timeout_s
    pause = _AFTER_S
    while True:
        _wait(watched, pause)
        pause = min(2 * pause, _TICK_S)
        watched.printed.read()
        for _, printed in watched.others:
            printed.read()
        if watched.started.ended():
            return _over(watched), ""
        watched.watch.look()
        if why := on_tick():
            return "", why
        if why := _wrong(watched, deadline, timeout_s):
            return why, ""


def _wait(watched: Watched, seconds: float) -> None:
    descriptors = watched.printed.descriptors()
    for _, printed in watched.others:
        descriptors += printed.descriptors()
    select.select(descriptors, [], [], seconds)


def _over(watched: Watched) -> str:
    """What is to be said of a command that ended by itself."""
    if watched.started.usage:
        watched.watch.reaped(watched.started.pid, watched.started.usage)
    watched.printed.read()
    if watched.started.status:
        last = watched.printed.last()
        return f"{watched.started.told()}{f': {last}' if last else ''}"
    return _dead(watched)


def _wrong(watched: Watched, deadline: float, timeout_s: float) -> str:
    """What keeps a running trial from being a data point."""
    if time.monotonic() > deadline:
        return f"it did not end within {timeout_s:g} s (timeout_s)"
    return watched.disk.over() or _dead(watched)


def _dead(watched: Watched) -> str:
    for started, printed in watched.others:
        if started.gone():
            last = printed.last()
            return f"the server {started.told()} while it was measured{f': {last}' if last else ''}"
    return ""


def target_family(helpers: Callable[[], set[int]]) -> Callable[[], list[int]]:
    """Gives the processes of the target: all descendants of this one but its helpers."""
    return lambda: family(os.getpid(), helpers())
