"""The measured part of a trial: the program or the workload runs, its readings are passed on, its settings are read back.

For a target with probes, a collector beside the agent drains the probes, and their records become readings.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from perflaw.errors import TargetError
from perflaw.explore.agent.job import AgentJob, TrialSettings
from perflaw.explore.injectors.context import LaunchedProcess
from perflaw.explore.target.files import DiskWatch
from perflaw.explore.target.outputs import PrintedOutput, document_of, readings_of
from perflaw.explore.target.proc import ConditionsWatch
from perflaw.explore.target.process import MARK, StartedCommand, command_of, end, end_alone
from perflaw.types.studies import Reading, StudyMetric
from perflaw.wire.channel import Channel

PROBES: Final = ("PERFLAW_PROBES", "PERFLAW_PROBES_ENABLE")
"""Environment variables that say where probes write, and which ones are enabled from the start."""
_FIRST_PAUSE_S, _PAUSE_S = 0.002, 0.01
"""First and longest pause between two looks at a running command."""
_MOST_BYTES: Final = 5 << 20
"""Bytes that are passed on of standard output, of standard error, and of a result file."""


class Refused(Exception):
    """The trial is no data point; the text says why."""


def start_command(job: AgentJob, settings: TrialSettings, template: str, probes: Sequence[str] = ()) -> StartedCommand:
    """Start a command with the trial's arguments, environment and mark. Refused where it cannot be started."""
    context = settings.context
    try:
        command = command_of(template, context.arguments, settings.values)
        environment = {**os.environ, **job.target.environment, **context.environment, MARK: job.mark}
        environment |= dict(zip(PROBES, probes, strict=False))
        started = StartedCommand(command, job.folder, environment)
    except ValueError as error:
        raise Refused(f"{template!r} is not a command: {error}") from error
    except OSError as error:
        raise Refused(f"{shlex.split(template)[0]} cannot be started: {error.strerror}") from error
    context.launched.append(LaunchedProcess(started.pid, tuple(command), environment))
    return started


Server = tuple[StartedCommand, PrintedOutput]
"""A running server and what it prints."""


@dataclass(slots=True)
class WatchedCommand:
    """A command with everything that is watched while it runs."""

    started: StartedCommand
    """The command."""
    printed: PrintedOutput
    """What it prints."""
    conditions: ConditionsWatch
    """The conditions."""
    disk: DiskWatch
    """The disk."""
    server: Server | None = None
    """The server, which must not end meanwhile."""

    def run_out(self, timeout_s: float, on_tick: Callable[[], str]) -> tuple[str, str]:
        """Wait until the command has ended.

        Returns why the trial is no data point, and why the command was ended early; both are mostly empty. ``on_tick`` is
        asked every few milliseconds whether it is to be ended, and why.
        """
        deadline, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
        outputs = [self.printed, *([self.server[1]] if self.server else [])]
        while True:
            select.select([each for output in outputs for each in output.descriptors()], [], [], pause)
            pause = min(2 * pause, _PAUSE_S)
            for output in outputs:
                output.read()
            if self.started.ended():
                if self.started.usage:
                    self.conditions.reaped(self.started.pid, self.started.usage)
                self.printed.read()
                if self.started.status:
                    last = self.printed.last_line()
                    return f"the command {self.started.end_text()}{f': {last}' if last else ''}", ""
                return self._server_failure(), ""
            self.conditions.look()
            if why := on_tick():
                return "", why
            if time.monotonic() > deadline:
                return f"it did not end within {timeout_s:g} s (timeout_s)", ""
            if why := self.disk.exceeded() or self._server_failure():
                return why, ""

    def _server_failure(self) -> str:
        if self.server and self.server[0].gone():
            last = self.server[1].last_line()
            return f"the server {self.server[0].end_text()} while it was measured{f': {last}' if last else ''}"
        return ""


class Measurement:
    """One run of the program or the workload."""

    def __init__(
        self,
        job: AgentJob,
        settings: TrialSettings,
        channel: Channel,
        conditions: ConditionsWatch,
        probes: ProbeReadings | None,
    ) -> None:
        self._job, self._settings, self._channel = job, settings, channel
        self._conditions, self._probes = conditions, probes
        self._began = 0.0
        self._streamed: dict[str, Any] = {}
        where = str(job.target.result.get("json", "stdout"))
        self._result_file = None if where == "stdout" else Path(job.folder) / where

    def run(self, disk: DiskWatch, server: Server | None, helpers: set[int]) -> dict[str, Any]:
        """Run it to its end, or until it is told to stop, and return all that came of it; ``helpers`` are left alone.

        Refused where the trial is no data point.
        """
        target = self._job.target
        if self._result_file:  # a result of an earlier trial would be mistaken for this one's
            self._result_file.unlink(missing_ok=True)
        if self._probes:
            self._probes.begin()
        self._conditions.begin()
        self._began = time.monotonic()
        started = start_command(self._job, self._settings, target.run or target.workload, self._job.probes())
        printed = PrintedOutput(started, self._take_line if "lines" in target.result else None)
        watched = WatchedCommand(started, printed, self._conditions, disk, server)
        why, stopped = watched.run_out(target.timeout_s, self._tick)
        wall_s = started.seconds or time.monotonic() - self._began
        conditions = self._conditions.end()
        if server:
            end_alone(started)  # processes that the server forked must live: it is asked to stop afterwards
        else:
            end(started, "SIGTERM", helpers)
        printed.read()
        started.close()
        missing: dict[str, str] = {}
        if self._probes:
            self._send(self._probes.finish())
            missing = self._probes.missing()
        result = None
        if self._result_file:
            result = self._result_file.read_text(errors="replace") if self._result_file.is_file() else ""
        if not why:  # what the target says with its result can be read back now
            context = self._settings.context
            context.output = printed.stdout + "\n" + printed.stderr
            context.document = self._streamed or document_of(printed.stdout if result is None else result)
            why = self._settings.verify("after")
            why += f" (it was ended early: {stopped})" if why and stopped else ""
        if why:
            raise Refused(why)
        texts = [text.encode()[:_MOST_BYTES] for text in (printed.stdout, printed.stderr, result) if text is not None]
        return {
            "wall_s": wall_s,
            "stopped": stopped,
            "status": started.status,
            "conditions": asdict(conditions),
            "verified": dict(self._settings.verified),
            "missing": missing,
            "texts": [len(text) for text in texts],
            "payload": b"".join(texts),
        }

    def _tick(self) -> str:
        """Pass on what the probes say; return why the trial is to be ended."""
        if self._probes:
            self._send(self._probes.readings())
        message = self._channel.receive(0)
        return str(message.document.get("why", "requested")) if message and message.kind == "enough" else ""

    def _take_line(self, line: str) -> None:
        """Pass on the readings of a streamed line; all objects that are streamed are together the result's document."""
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if isinstance(found, dict):
            self._streamed |= found
        self._send(readings_of(self._job.metrics, line, time.monotonic() - self._began))

    def _send(self, readings: Sequence[Reading]) -> None:
        for reading in readings:
            self._channel.send("reading", asdict(reading))


_WINDOW_S: Final = 0.02
"""Time behind a reading; trials of a second then have enough readings to be judged while they run."""


class CollectorLost(Exception):
    """The collector has gone, and the trial has to be made again."""


@contextmanager
def lost_if_it_fails() -> Iterator[None]:
    """Raise CollectorLost for whatever goes wrong with a process in the block: the collector was killed, or never started."""
    try:
        yield
    except TargetError as error:
        raise CollectorLost(str(error)) from error


class ProbeReadings:
    """Readings of the probes of one agent's targets. CollectorLost from any method but ``close``."""

    def __init__(self, folder: Path, metrics: Sequence[StudyMetric]) -> None:
        """Start the collector of the probes that write to ``folder``."""
        from perflaw.record.probes.client import start_collector  # NumPy takes its time; few studies have probes
        from perflaw.record.probes.metrics import ProbeMetrics

        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._new_metrics = partial(ProbeMetrics, metrics, _WINDOW_S)
        self._metrics = self._new_metrics()
        with lost_if_it_fails():
            self._collecting = start_collector(folder)

    @property
    def pid(self) -> int:
        """The collector's process; 0 where there is none."""
        return self._collecting.process.pid if self._collecting.process else 0

    def begin_trial(self) -> None:
        """Forget the processes of the previous trial, which have ended."""
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)
        with lost_if_it_fails():
            self._collecting.ask("collect", {"remove": True})
            self._collecting.poll_waiting()
        self._metrics = self._new_metrics()

    def begin(self) -> None:
        """Begin the measurement."""
        self.readings()
        self._metrics.begin(time.monotonic_ns())

    def readings(self) -> list[Reading]:
        """Return the readings that are complete."""
        with lost_if_it_fails():
            batches = list(self._collecting.poll())
        return [reading for batch in batches for reading in self._metrics.take(batch)]

    def finish(self) -> list[Reading]:
        """Return the last readings, when the target has ended."""
        with lost_if_it_fails():
            batches = list(self._collecting.finish())
        found = [reading for batch in batches for reading in self._metrics.take(batch)]
        return found + self._metrics.flush(time.monotonic_ns())

    def missing(self) -> dict[str, str]:
        """Return why metrics have no reading, by metric."""
        return dict(self._metrics.missing)

    def close(self) -> None:
        """End the collector."""
        self._collecting.close()
        shutil.rmtree(self._folder, ignore_errors=True)
