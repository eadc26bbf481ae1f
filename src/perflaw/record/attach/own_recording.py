"""One recording of a program that asked for it itself and ends it itself, with its children, as ``pytest --perflaw`` does.

The program started this recorder and has one end of a connection. It loads the tracer when it is told which, and says its
exit status when it has ended the recording.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.attach.asking import ask
from perflaw.record.attach.process import RunningProgram
from perflaw.record.attach.session import await_begin
from perflaw.record.build import Tell
from perflaw.record.launch import Launch
from perflaw.record.machine import cpu_ns_of
from perflaw.record.manifest import Execution
from perflaw.record.process import SignalRelay
from perflaw.record.python.native_reader import NativeReader
from perflaw.record.python.tracers import TARGET_FOLDER, NativeTracer
from perflaw.record.saving import Outcome, RunContext, save_recording
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import choose
from perflaw.record.tree.records import TreeLimits
from perflaw.record.tree.reservoir import scramble
from perflaw.record.unfinished import RunClaim
from perflaw.record.writer import Writer
from perflaw.store.experiment import Experiment, discard

SUITE_LIMITS: Final = TreeLimits(links=1 << 15, pairs=1 << 16, spans=1 << 17)
"""A quarter of what is kept between contexts. Each test is a context of its own, so a suite fills all that there is, and
whoever runs tests waits until it is written."""
STATUS_S: Final = 5.0
"""Time in which a program that has ended the recording says its exit status."""
_SETTING: Final = "PERFLAW_TARGET_"


def record_asking(
    experiment: Experiment, program: RunningProgram, connection: socket.socket, settings: RecordSettings, tell: Tell
) -> Outcome | None:
    """Record a program until it ends the recording, or ends; None if no native tracer can record it.

    TargetError if the tracer does not begin; StoreError if the experiment cannot be written.
    """
    tracer = choose("auto", program.interpreter, tell)
    if not isinstance(tracer, NativeTracer):
        return None
    claim = RunClaim.with_spool(experiment, "attach", f"cd ~ && perflaw attach {program.pid}")
    spool, seed = claim.folder / "spool", scramble(int(claim.folder.name) + (os.getpid() << 20))
    reader = NativeReader(spool, seed, tracer.library, limits=SUITE_LIMITS)
    with SignalRelay() as relay, claim, Writer() as writer:
        started, begun = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter_ns()
        try:
            ask(program.pid, connection, tracer.file, _settings(program, tracer, settings.for_tracer(spool, seed)))
            await_begin(reader, program.pid, lambda: "")
        except TargetError:
            discard(claim.folder)
            raise
        writer.start()
        cpu_ns = _read(reader, program.pid, connection)
        wall_ns = time.perf_counter_ns() - begun
        relay.ended = True
        status = _status(connection)
        execution = Execution(program.argv, program.name, started, wall_ns, status, cpu_ns=cpu_ns)
        context = RunContext(claim, tracer, settings, {}, writer=writer)
        return save_recording(context, execution, reader.finish(program.pid))


def _settings(program: RunningProgram, tracer: NativeTracer, given: Mapping[str, str]) -> dict[str, str]:
    """Settings of the tracer, which it hands on to Python processes that the program starts."""
    launch = Launch(program.argv, (), program.name, program.main, program.own)
    env = tracer.environment(launch, dict(given))
    ours = {name.removeprefix(_SETTING): value for name, value in env.items() if name.startswith(_SETTING)}
    return {**ours, "FOLDER": str(TARGET_FOLDER), "PARENT": str(program.pid)}


def _read(reader: NativeReader, pid: int, connection: socket.socket) -> int:
    """Read records until the program has ended the recording, or ends; returns its CPU time meanwhile, ns."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    before = now = cpu_ns_of(pid)
    program = next(iter(reader.processes.values()))
    while program.definitions.definitions.ended is None and not program.gone:
        reader.step()
        now = max(now, cpu_ns_of(pid))
        if poll.poll(reader.pause_s * 1000):  # the program says its status, or something in it closed all descriptors
            poll.unregister(connection)
            program.definitions.update()
    return now - before


def _status(connection: socket.socket) -> int | None:
    """The exit status that the program says; None if it says none, because it was killed or its descriptors closed."""
    connection.settimeout(STATUS_S)
    with suppress(OSError, ValueError):
        return int(connection.makefile().readline())
    return None
