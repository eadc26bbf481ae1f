"""What is measured of a trial: the program or the workload run, its record stream told, its settings verified at the end."""

from __future__ import annotations

import json
import os
import select
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from perflaw.explore.agent.parts import Job
from perflaw.explore.agent.settings import Settings
from perflaw.explore.agent.stream import ProbeStream, told_as_lost
from perflaw.explore.injectors.context import Launched
from perflaw.explore.target.commands import command_of
from perflaw.explore.target.conditions import Watch
from perflaw.explore.target.disk import DiskWatch
from perflaw.explore.target.outputs import Printed, document_of, readings_of
from perflaw.explore.target.proc import family
from perflaw.explore.target.process import MARK, Started, end, end_alone
from perflaw.types.studies import Reading
from perflaw.wire.channel import Channel

# ---- One command of a target watched until it is over: by itself, in time, by its disk, or because it was told to
# stop.

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


# ---- Commands of a target as they are started: with the trial's arguments, environment and mark, in the target's
# folder.

PROBES: Final = ("PERFLAW_PROBES", "PERFLAW_PROBES_ENABLE")
"""Variables that say where probes write, and which are enabled from the start."""


class Refused(Exception):  # noqa: N818 (an answer)
    """The trial is no data point; the text says why."""


def begin(job: Job, settings: Settings, template: str, probes: Sequence[str] = ()) -> Started:
    """Start a command; Refused where it is none or cannot be started."""
    context = settings.context
    try:
        command = command_of(template, context.arguments, settings.values)
        environment = {**os.environ, **job.target.environment, **context.environment, MARK: job.mark}
        environment |= dict(zip(PROBES, probes, strict=False))
        started = Started(command, job.folder, environment)
    except ValueError as error:
        raise Refused(f"{template!r} is no command: {error}") from error
    except OSError as error:
        raise Refused(f"{shlex.split(template)[0]} cannot be started: {error.strerror}") from error
    context.launched.append(Launched(started.pid, tuple(command), environment))
    return started


_MOST: Final = 5 << 20
"""Bytes of standard output, standard error and a result file that are passed on, each."""


class Measurement:
    """One run of the program or workload."""

    def __init__(
        self, job: Job, settings: Settings, channel: Channel, watch: Watch, probes: ProbeStream | None
    ) -> None:
        self._job, self._settings, self._channel, self._watch, self._probes = job, settings, channel, watch, probes
        self._began = 0.0
        self._answer: dict[str, Any] = {}
        self._lines: dict[str, Any] = {}

    def run(self, disk: DiskWatch, servers: Sequence[tuple[Started, Printed]], helpers: set[int]) -> str:
        """Run it to its end, or until told to stop; why the trial is no data point. ``helpers`` are left alone."""
        target = self._job.target
        started, printed = self._start()
        watched = Watched(started, printed, self._watch, disk, servers)
        why, stopped = run_out(watched, target.timeout_s, self._tick)
        wall = started.seconds or time.monotonic() - self._began
        conditions = self._watch.end()
        if servers:
            end_alone(started)  # what a server has forked away must live: it is asked to stop afterwards
        else:
            end(started, "SIGTERM", helpers)
        printed.read()
        started.close()
        missing = self._last_readings()
        result = self._result(printed)
        why = why or self._verified(printed, result, stopped)
        texts = [text.encode()[:_MOST] for text in (printed.stdout, printed.stderr, result) if text is not None]
        self._answer = {
            "wall_s": wall,
            "stopped": stopped,
            "status": started.status,
            "conditions": asdict(conditions),
            "verified": dict(self._settings.verified),
            "missing": missing,
            "texts": [len(text) for text in texts],
            "payload": b"".join(texts),
        }
        return why

    def answer(self) -> Mapping[str, Any]:
        """All that came of it."""
        return self._answer

    def _start(self) -> tuple[Started, Printed]:
        """Start it; time and conditions are of what comes from now on."""
        target = self._job.target
        self._remove_old_result()
        if self._probes:
            with told_as_lost():
                self._probes.begin()
        self._watch.begin()
        self._began = time.monotonic()
        started = begin(self._job, self._settings, target.run or target.workload, self._job.probes())
        return started, Printed(started, self._tell_line if "lines" in target.result else None)

    def _tick(self) -> str:
        """Pass on what the probes say; why the trial is to be ended."""
        if self._probes:
            with told_as_lost():
                found = self._probes.readings()
            for reading in found:
                self.tell(reading)
        return self._told_to_stop()

    def _last_readings(self) -> dict[str, str]:
        """Pass on the last of them; metric → why it has none."""
        if self._probes is None:
            return {}
        with told_as_lost():
            found = self._probes.finish()
        for reading in found:
            self.tell(reading)
        return self._probes.missing()

    def _verified(self, printed: Printed, result: str | None, stopped: str) -> str:
        """Read back what the target tells with its result; why the trial is no data point."""
        context = self._settings.context
        context.output = printed.stdout + "\n" + printed.stderr
        context.document = self._lines or document_of(printed.stdout if result is None else result)
        why = self._settings.verify("after")
        return f"{why} (it was ended early: {stopped})" if why and stopped else why

    def _remove_old_result(self) -> None:
        """A result of an earlier trial must not be taken for this one's."""
        if path := self._result_file():
            path.unlink(missing_ok=True)

    def _result_file(self) -> Path | None:
        where = str(self._job.target.result.get("json", "stdout"))
        return None if where == "stdout" else Path(self._job.folder) / where

    def _result(self, printed: Printed) -> str | None:
        """The text of the file that the result is in; None where it is standard output."""
        path = self._result_file()
        if path is None:
            return None
        return path.read_text(errors="replace") if path.is_file() else ""

    def _tell_line(self, line: str) -> None:
        """A streamed line: its readings are told at once; what objects say together is the result's document."""
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if isinstance(found, dict):
            self._lines |= found
        for one in readings_of(self._job.metrics, line, time.monotonic() - self._began):
            self.tell(one)

    def tell(self, reading: Reading) -> None:
        """Pass a reading on."""
        self._channel.send("reading", asdict(reading))

    def _told_to_stop(self) -> str:
        message = self._channel.receive(0)
        return str(message.document.get("why", "asked to")) if message and message.kind == "enough" else ""
