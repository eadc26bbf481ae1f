"""One trial as the agent makes it: apply, start, verify, measure, stop."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from typing import Any, Final

from perflaw.collect.wire.channel import Channel
from perflaw.explore.agent.commands import Refused, begin
from perflaw.explore.agent.measurement import Measurement
from perflaw.explore.agent.measuring import Watched, run_out, target_family
from perflaw.explore.agent.parts import Job
from perflaw.explore.agent.settings import Settings
from perflaw.explore.agent.stream import ProbeStream, told_as_lost
from perflaw.explore.target.conditions import Watch, own_cpu
from perflaw.explore.target.disk import DiskWatch, opened_by
from perflaw.explore.target.load import end_load, start_load
from perflaw.explore.target.printed import Printed
from perflaw.explore.target.process import Started, end, end_family
from perflaw.explore.target.ready import clear, is_ready, taken, words
from perflaw.types.studies import Configuration

_LOOK_S: Final = 0.005
_STOP_S: Final = 5.0


class Run:
    """A trial of one configuration."""

    def __init__(
        self, job: Job, configuration: Configuration, channel: Channel, probes: ProbeStream | None = None
    ) -> None:
        self._job, self._channel, self._probes = job, channel, probes
        self._settings = Settings(job, configuration)
        self._server: tuple[Started, Printed] | None = None
        self._load: list[subprocess.Popen[bytes]] = []
        self._disk = DiskWatch(job.folder, job.target.disk_bytes)

    def prepare(self) -> None:
        """Run the study's command for it, once, before the snapshot."""
        target = self._job.target
        if target.prepare and (why := self._run_short(target.prepare, target.timeout_s)):
            raise Refused(f"prepare: {why}")

    def apply(self) -> None:
        """Let the injectors set what is set before the target starts."""
        if self._probes:
            with told_as_lost():
                self._probes.begin_trial()
        self._settings.apply("before")
        end_family(self._helpers())

    def start(self) -> Mapping[str, Any]:
        """Start the server, if it is one, wait until it is ready, and set what is set then."""
        target = self._job.target
        if not target.start:
            return {}
        if why := taken(target.ready):
            raise Refused(why)
        clear(target.ready, self._job.folder)
        started = begin(self._job, self._settings, target.start, self._job.probes())
        self._server = (started, Printed(started))
        self._wait_until_ready(*self._server)
        self._settings.apply("running")
        return {"pid": started.pid}

    def _wait_until_ready(self, started: Started, printed: Printed) -> None:
        ready, seconds = self._job.target.ready, self._job.target.ready_s
        deadline = time.monotonic() + seconds
        while not is_ready(ready, self._job.folder, printed.stdout + "\n" + printed.stderr):
            printed.read()
            if started.gone():
                printed.read()
                raise Refused(f"the server {started.told()} before it was ready: {printed.last()}".rstrip(": "))
            if time.monotonic() > deadline:
                raise Refused(f"it never got ready: no {words(ready)} within {seconds:g} s (ready_s)")
            if why := self._disk.over():
                self._remove_new()
                raise Refused(why)
            self._channel.receive(0)  # an explorer that has gone is noticed here
            time.sleep(_LOOK_S)

    def verify(self) -> Mapping[str, Any]:
        """Read back what can be before anything is measured."""
        if why := self._settings.verify("running" if self._server else "before"):
            raise Refused(why)
        return {"verified": dict(self._settings.verified)}

    def measure(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the program or the workload to its end, or until told to stop; all that came of it."""
        self._load = start_load(asked.get("load", {}), str(self._job.state))
        measurement = Measurement(self._job, self._settings, self._channel, self._watch(), self._probes)
        try:
            why = measurement.run(self._disk, [self._server] if self._server else [], self._helpers())
        finally:
            end_load(self._load)
            self._load = []
        if why:
            if "disk" in why:
                self._remove_new()
            raise Refused(why)
        if not self._server:
            end_family(self._helpers())
        return measurement.answer()

    def stop(self) -> Mapping[str, Any]:
        """End the server and everything that the target started, wherever it went."""
        end_load(self._load)
        self._load = []
        if self._server:
            started, _ = self._server
            self._server = None
            self._stop_server(started)
            started.close()
        end_family(self._helpers())
        return {}

    def _stop_server(self, started: Started) -> None:
        how = self._job.target.stop
        if not how.startswith("SIG") and not started.ended():
            self._run_short(how, self._job.target.ready_s)
        end(started, how if how.startswith("SIG") else "SIGTERM", self._helpers(), _STOP_S)

    def _run_short(self, command: str, seconds: float) -> str:
        """A command of the study beside its trials; why it went wrong."""
        started = begin(self._job, self._settings, command)
        why, _ = run_out(Watched(started, Printed(started), self._watch(), self._disk), seconds, lambda: "")
        started.close()
        return why

    def _remove_new(self) -> None:
        """End everything and remove what filled the disk."""
        opened = opened_by(target_family(self._helpers)())
        end_family(self._helpers(), (self._server[0],) if self._server else ())
        self._disk.remove_new(opened)

    def _watch(self) -> Watch:
        return Watch(target_family(self._helpers), lambda: own_cpu(self._helpers()))

    def _helpers(self) -> set[int]:
        return {process.pid for process in self._load} | ({self._probes.pid} if self._probes else set())
