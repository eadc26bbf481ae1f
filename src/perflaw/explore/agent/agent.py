"""The agent's loop: verbs in, answers out. A process of its own, in a session of its own.

It ends with its explorer: when the channel closes it ends the target, restores its files, and goes.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perflaw.errors import PerflawError
from perflaw.explore.agent.measurement import Measurement, Refused, Watched, begin, run_out, target_family
from perflaw.explore.agent.parts import Job, job_of
from perflaw.explore.agent.settings import Settings, forget, put_back, remember
from perflaw.explore.agent.stream import CollectorLost, ProbeStream, probe_stream, told_as_lost
from perflaw.explore.target.conditions import Watch, own_cpu
from perflaw.explore.target.disk import DiskWatch, opened_by
from perflaw.explore.target.load import end_load, start_load
from perflaw.explore.target.outputs import Printed
from perflaw.explore.target.process import Started, adopt_orphans, end, end_family, end_marked
from perflaw.explore.target.ready import clear, is_ready, taken, words
from perflaw.explore.target.snapshot import Snapshot, write_whole
from perflaw.explore.values import host
from perflaw.types.studies import Configuration
from perflaw.wire.channel import Channel, Closed, Message, WireError
from perflaw.wire.streams import over

# ---- One trial as the agent makes it: apply, start, verify, measure, stop.

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


_LOCK_S: Final = 30.0
_REASON: Final = 2000


class Agent:
    """Serves one explorer over a channel."""

    def __init__(self, channel: Channel, root: Path | None = None) -> None:
        """``root``: folder that a remote agent works in, whatever the explorer's is."""
        self._channel, self._root = channel, root
        self._job: Job | None = None
        self._snapshot: Snapshot | None = None
        self._run: Run | None = None
        self._probes: ProbeStream | None = None
        self._lock = -1
        self._verbs: Mapping[str, Callable[[Message], Mapping[str, Any]]] = {
            "hello": self._hello,
            "prepare": self._prepare,
            "apply": self._apply,
            "start": self._start,
            "verify": self._verify,
            "measure": self._measure,
            "stop": self._stop,
            "restore": self._restore,
        }

    def serve(self) -> None:
        """Answer until the explorer has gone; then leave nothing behind."""
        try:
            while True:
                message = self._channel.receive(3600.0)
                if message is not None and message.kind == "bye":
                    return
                if message is not None and message.kind != "enough":  # that one crossed the trial's own end
                    self._answer(message)
        except Closed:
            pass  # the explorer has gone, however that was
        finally:
            self._leave()
            self._channel.close()

    def _answer(self, message: Message) -> None:
        try:
            answer = self._verbs[message.kind](message) if message.kind in self._verbs else {}
        except Closed:
            raise
        except CollectorLost as error:
            self._channel.send("lost", {"reason": str(error)})
        except (Refused, PerflawError) as error:
            self._channel.send("no", {"reason": str(error)[:_REASON]})
        except OSError as error:
            self._channel.send("no", {"reason": f"{error.strerror or error} ({error.filename or message.kind})"})
        else:
            document = {key: value for key, value in answer.items() if key != "payload"}
            self._channel.send("yes", document, answer.get("payload", b""))

    def _leave(self) -> None:
        if self._run:
            self._run.stop()
        if self._probes:
            self._probes.close()
        end_family(())
        with suppress(OSError):  # the next agent tries again
            self._put_back()
        if self._lock >= 0:
            os.close(self._lock)

    def _hello(self, message: Message) -> Mapping[str, Any]:
        """Learn the study; wait for an agent that still restores; restore where one was killed."""
        job = job_of(message.document, self._root)
        job.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _locked(job.state)
        self._job, self._snapshot = job, Snapshot(job.state, Path(job.folder))
        left = end_marked(job.mark)
        restored = self._put_back()
        return {"pid": os.getpid(), "left": left, "restored": restored, "host": dict(host())}

    def _put_back(self, files: bool = True) -> int:
        """The target as it was before the study, where it may not be; how many files and folders that is."""
        if self._job is None or self._snapshot is None or not self._snapshot.changed:
            return 0
        put_back(self._job)
        return self._snapshot.restore() if files else self._snapshot.keep()

    def _prepare(self, _: Message) -> Mapping[str, Any]:
        """Run the study's command for that, then take the snapshot."""
        job, snapshot = self._known()
        done = job.state / "prepared"
        if not done.exists() or done.read_text() != job.target.prepare:
            Run(job, {}, self._channel).prepare()
            write_whole(done, job.target.prepare)
        snapshot.take(job.snapshot)
        remember(job)
        if job.probes():
            self._probes = probe_stream(job)
        return {}

    def _apply(self, message: Message) -> Mapping[str, Any]:
        job, snapshot = self._known()
        if self._run:
            self._run.stop()
        snapshot.change()
        self._run = Run(job, message.document["configuration"], self._channel, self._probes)
        self._run.apply()
        return {}

    def _start(self, _: Message) -> Mapping[str, Any]:
        return self._running().start()

    def _verify(self, _: Message) -> Mapping[str, Any]:
        return self._running().verify()

    def _measure(self, message: Message) -> Mapping[str, Any]:
        return self._running().measure(message.document)

    def _stop(self, _: Message) -> Mapping[str, Any]:
        run, self._run = self._run, None
        return run.stop() if run else {}

    def _restore(self, message: Message) -> Mapping[str, Any]:
        job, snapshot = self._known()
        self._stop(message)
        count = self._put_back(message.document.get("files", True))
        if message.document.get("last"):
            snapshot.drop()
            forget(job)
        return {"restored": count}

    def _known(self) -> tuple[Job, Snapshot]:
        if self._job is None or self._snapshot is None:
            raise Refused("no study was told")
        return self._job, self._snapshot

    def _running(self) -> Run:
        if self._run is None:
            raise Refused("no configuration was applied")
        return self._run


def _locked(state: Path) -> int:
    """Hold the state's folder; wait for an agent that is still restoring."""
    descriptor = os.open(state, os.O_RDONLY | os.O_CLOEXEC)
    deadline = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise Refused("another agent works on this study's target") from None
            time.sleep(0.01)
        else:
            return descriptor


def serve(channel: Channel, root: Path | None = None) -> None:
    """Serve one explorer."""
    adopt_orphans()
    with suppress(WireError):
        Agent(channel, root).serve()


def main() -> None:
    """Entry of the process: its argument is the descriptor of the channel."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    serve(over(number, number, "explorer"))


if __name__ == "__main__":
    main()
