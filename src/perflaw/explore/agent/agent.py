"""The agent: a process of its own that applies configurations, runs the target and measures it, verb by verb.

An agent on another machine listens for explorers. It ends with its explorer: when the channel closes, the agent ends the
target, restores its files, and ends.
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
from perflaw.explore.agent.job import AgentJob, TrialSettings, forget, job_of, remember, restore_remembered
from perflaw.explore.agent.measurement import (
    CollectorLost,
    Measurement,
    ProbeReadings,
    Refused,
    Server,
    WatchedCommand,
    start_command,
)
from perflaw.explore.target.files import DiskWatch, Snapshot, opened_by
from perflaw.explore.target.load import end_load, start_load
from perflaw.explore.target.outputs import PrintedOutput
from perflaw.explore.target.proc import ConditionsWatch, family, own_cpu_s
from perflaw.explore.target.process import adopt_orphans, end, end_family, end_marked, is_ready, occupied
from perflaw.explore.values import host
from perflaw.store.files import write_whole
from perflaw.types.studies import Configuration
from perflaw.wire.channel import Channel, Closed, Message, WireError, over
from perflaw.wire.tls import Listener, parse_address, read_token, serving

_PAUSE_S: Final = 0.005
"""Pause between two looks at a server that is not ready."""
_STOP_S: Final = 5.0
"""Time that a server has to end by itself."""
_LOCK_S: Final = 30.0
"""Time for which an agent waits for another one that still restores the target."""
_LOOK_S: Final = 1.0
"""Time for which a listener waits for an explorer at once."""
_MOST_REASON: Final = 2000
"""Characters of a reason that are passed on."""


class AgentTrial:
    """One trial as the agent makes it: apply, start, verify, measure, stop."""

    def __init__(
        self, job: AgentJob, configuration: Configuration, channel: Channel, probes: ProbeReadings | None = None
    ) -> None:
        self._job, self._channel, self._probes = job, channel, probes
        self._settings = TrialSettings(job, configuration)
        self._server: Server | None = None
        self._load: list[subprocess.Popen[bytes]] = []
        self._disk = DiskWatch(job.folder, job.target.disk_bytes)

    def prepare(self) -> None:
        """Run the study's command that prepares the target, once, before the snapshot."""
        target = self._job.target
        if target.prepare and (why := self._run_aside(target.prepare, target.timeout_s)):
            raise Refused(f"prepare: {why}")

    def apply(self) -> None:
        """Apply what is applied before the target starts."""
        if self._probes:
            self._probes.begin_trial()
        self._settings.apply("before")
        end_family(self._helpers())

    def start(self) -> Mapping[str, Any]:
        """Start the server where the target is one, wait until it is ready, and apply what is applied then."""
        target = self._job.target
        if not target.start:
            return {}
        if why := occupied(target.ready):
            raise Refused(why)
        if "file" in target.ready:  # an earlier trial's file would be mistaken for this one's
            (Path(self._job.folder) / str(target.ready["file"])).unlink(missing_ok=True)
        started = start_command(self._job, self._settings, target.start, self._job.probes())
        self._server = (started, PrintedOutput(started))
        printed = self._server[1]
        ready, seconds = self._job.target.ready, self._job.target.ready_s
        deadline = time.monotonic() + seconds
        while not is_ready(ready, self._job.folder, printed.stdout + "\n" + printed.stderr):
            printed.read()
            if started.gone():
                printed.read()
                raise Refused(
                    f"the server {started.end_text()} before it was ready: {printed.last_line()}".rstrip(": ")
                )
            if time.monotonic() > deadline:
                awaited = ", ".join(f"{what} {which}" for what, which in ready.items())
                raise Refused(f"the server did not become ready: no {awaited} within {seconds:g} s (ready_s)")
            if why := self._disk.exceeded():
                self._remove_new()
                raise Refused(why)
            self._channel.receive(0)  # raises Closed where the explorer has gone
            time.sleep(_PAUSE_S)
        self._settings.apply("running")
        return {"pid": started.pid}

    def verify(self) -> Mapping[str, Any]:
        """Read back what can be read before anything is measured."""
        if why := self._settings.verify("running" if self._server else "before"):
            raise Refused(why)
        return {"verified": dict(self._settings.verified)}

    def measure(self, load: Mapping[str, float]) -> Mapping[str, Any]:
        """Run the program or the workload to its end, or until told to stop, and return all that came of it."""
        self._load = start_load(load, str(self._job.state))
        measurement = Measurement(self._job, self._settings, self._channel, self._conditions(), self._probes)
        try:
            answer = measurement.run(self._disk, self._server, self._helpers())
        except Refused as error:
            if "disk" in str(error):
                self._remove_new()
            raise
        finally:
            end_load(self._load)
            self._load = []
        if not self._server:
            end_family(self._helpers())
        return answer

    def stop(self) -> Mapping[str, Any]:
        """End the server and everything that the target started, wherever it went."""
        end_load(self._load)
        self._load = []
        if self._server:
            (started, _), self._server = self._server, None
            how = self._job.target.stop
            by_signal = how.startswith("SIG")
            if not by_signal and not started.ended():
                self._run_aside(how, self._job.target.ready_s)
            end(started, how if by_signal else "SIGTERM", self._helpers(), _STOP_S)
            started.close()
        end_family(self._helpers())
        return {}

    def _run_aside(self, command: str, seconds: float) -> str:
        """Run a command of the study beside its trials; return why it failed, empty if it did not."""
        started = start_command(self._job, self._settings, command)
        watched = WatchedCommand(started, PrintedOutput(started), self._conditions(), self._disk)
        why, _ = watched.run_out(seconds, lambda: "")
        started.close()
        return why

    def _remove_new(self) -> None:
        """End everything, and remove what filled the disk."""
        opened = opened_by(family(os.getpid(), self._helpers()))
        end_family(self._helpers(), (self._server[0],) if self._server else ())
        self._disk.remove_new(opened)

    def _conditions(self) -> ConditionsWatch:
        return ConditionsWatch(lambda: family(os.getpid(), self._helpers()), lambda: own_cpu_s(self._helpers()))

    def _helpers(self) -> set[int]:
        """Return the processes that are no part of the target."""
        return {process.pid for process in self._load} | ({self._probes.pid} if self._probes else set())


class AgentServer:
    """Serves one explorer over a channel."""

    def __init__(self, channel: Channel, root: Path | None = None) -> None:
        """``root`` is the folder in which a remote agent works, whatever the explorer's folder is."""
        self._channel, self._root = channel, root
        self._job: AgentJob | None = None
        self._snapshot: Snapshot | None = None
        self._trial: AgentTrial | None = None
        self._probes: ProbeReadings | None = None
        self._lock = -1
        self._verbs: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
            "hello": self._hello,
            "prepare": self._prepare,
            "apply": self._apply,
            "start": lambda _: self._applied().start(),
            "verify": lambda _: self._applied().verify(),
            "measure": lambda document: self._applied().measure(document.get("load", {})),
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
                # "enough" may arrive after the trial has ended by itself.
                if message is not None and message.kind != "enough":
                    self._answer(message)
        except Closed:
            pass  # the explorer has gone
        finally:
            if self._trial:
                self._trial.stop()
            if self._probes:
                self._probes.close()
            end_family(())
            with suppress(OSError):  # the next agent tries again
                self._restore_target()
            if self._lock >= 0:
                os.close(self._lock)
            self._channel.close()

    def _answer(self, message: Message) -> None:
        try:
            verb = self._verbs.get(message.kind)
            answer = verb(message.document) if verb else {}
        except Closed:
            raise
        except CollectorLost as error:
            self._channel.send("lost", {"reason": str(error)})
        except (Refused, PerflawError) as error:
            self._channel.send("no", {"reason": str(error)[:_MOST_REASON]})
        except OSError as error:
            self._channel.send("no", {"reason": f"{error.strerror or error} ({error.filename or message.kind})"})
        else:
            document = {key: value for key, value in answer.items() if key != "payload"}
            self._channel.send("yes", document, answer.get("payload", b""))

    def _hello(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take the study, wait for an agent that still restores, and restore where one was killed."""
        job = job_of(document, self._root)
        job.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(job.state, os.O_RDONLY | os.O_CLOEXEC)
        deadline = time.monotonic() + _LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    raise Refused("another agent works on this study's target") from None
                time.sleep(0.01)
        self._lock = descriptor
        self._job, self._snapshot = job, Snapshot(job.state, Path(job.folder))
        left = end_marked(job.mark)
        return {"pid": os.getpid(), "left": left, "restored": self._restore_target(), "host": dict(host())}

    def _restore_target(self, files: bool = True) -> int:
        """Restore the target where it may have changed; return the number of files and folders that were restored."""
        if self._job is None or self._snapshot is None or not self._snapshot.changed:
            return 0
        restore_remembered(self._job)
        if files:
            return self._snapshot.restore()
        self._snapshot.keep()
        return 0

    def _prepare(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        """Prepare the target, then take the snapshot."""
        job, snapshot = self._known()
        done = job.state / "prepared"
        if not done.exists() or done.read_text() != job.target.prepare:
            AgentTrial(job, {}, self._channel).prepare()
            write_whole(done, job.target.prepare)
        snapshot.take(job.snapshot)
        remember(job)
        if probes := job.probes():
            self._probes = ProbeReadings(Path(probes[0]), job.metrics)
        return {}

    def _apply(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        job, snapshot = self._known()
        if self._trial:
            self._trial.stop()
        snapshot.change()
        self._trial = AgentTrial(job, document["configuration"], self._channel, self._probes)
        self._trial.apply()
        return {}

    def _stop(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        trial, self._trial = self._trial, None
        return trial.stop() if trial else {}

    def _restore(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        job, snapshot = self._known()
        self._stop(document)
        count = self._restore_target(document.get("files", True))
        if document.get("last"):
            snapshot.drop()
            forget(job)
        return {"restored": count}

    def _known(self) -> tuple[AgentJob, Snapshot]:
        if self._job is None or self._snapshot is None:
            raise Refused("no study was sent")
        return self._job, self._snapshot

    def _applied(self) -> AgentTrial:
        if self._trial is None:
            raise Refused("no configuration was applied")
        return self._trial


def serve(channel: Channel, root: Path | None = None) -> None:
    """Serve one explorer."""
    adopt_orphans()
    with suppress(WireError):  # the explorer has gone
        AgentServer(channel, root).serve()


def main() -> None:
    """Run the process; its argument is the descriptor of the channel."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    serve(over(descriptor, descriptor, "explorer"))


def listen(
    address: str, token: Path, certificate: tuple[Path, Path], folder: Path, once: bool, say: Callable[[str], None]
) -> None:
    """Serve explorers one after the other, each in a process of its own. UsageError where it cannot listen."""
    listener = Listener(parse_address(address), read_token(token), serving(*certificate))
    say(f"agent listens at {listener.address}, targets run in {folder.resolve()}")
    try:
        while True:
            channel = listener.accept(_LOOK_S)
            if channel is None:
                continue
            # A child process serves, whose death does not end the listener.
            child = os.fork()
            if child == 0:
                try:
                    os.setsid()
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    serve(channel, folder.resolve())
                finally:
                    os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            channel.close()
            if once:
                return
            if status:
                say(f"an agent ended with status {status}; the next one restores what it left")
    finally:
        listener.close()


if __name__ == "__main__":
    main()
