"""One recording of a program that runs already: begin it, read its records for a while, end it, and save it."""

from __future__ import annotations

import fcntl
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from perflaw.errors import StoreError, TargetError
from perflaw.record.attach.asking import ask, connect
from perflaw.record.attach.injection import start_thread
from perflaw.record.attach.process import DELETED, NativeProgram, RunningProgram, ended, mapped_files
from perflaw.record.attach.spool import Spool, shared_folder, spool_of
from perflaw.record.build import Tell
from perflaw.record.cache import distrust
from perflaw.record.machine import RunningMeter, cpu_ns_of
from perflaw.record.manifest import Execution
from perflaw.record.process import SignalRelay
from perflaw.record.python.native_reader import NativeReader, is_running
from perflaw.record.python.tracers import TARGET_FOLDER, NativeTracer
from perflaw.record.saving import Outcome, RunContext, RunWriter, save_recording
from perflaw.record.settings import PATHS, RecordSettings
from perflaw.record.tracers import choose
from perflaw.record.tree.records import Definitions
from perflaw.record.tree.reservoir import scramble
from perflaw.record.unfinished import RunClaim
from perflaw.record.writer import Writer
from perflaw.store.experiment import Experiment, discard
from perflaw.types import Machine

BEGIN_S: Final = 10.0
"""Time in which the new thread has to get the interpreter's lock and begin."""
END_S: Final = 10.0
"""Time in which it has to end the recording."""
_FEW: Final = 4096
"""Fewer new records than this are left to accumulate, as in ``record``."""
_CALIBRATE: Final = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("_perflaw_native", sys.argv[1])
tracer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tracer)
tracer.start(json.loads(sys.argv[2]))
print(json.dumps([tracer.costs().hex(), tracer.offsets()]))
tracer.finish()
"""


@dataclass(frozen=True, slots=True)
class Attached:
    """A recording of a running program."""

    outcome: Outcome
    """What was kept."""
    stopped_ms: float
    """How long one of its threads was stopped."""
    alive: bool
    """Whether the program goes on."""


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    """A running Python program, and what is known of its interpreter from another process of it."""

    program: RunningProgram
    """The program."""
    tracer: NativeTracer
    """The tracer, built for its interpreter."""
    costs: str
    """What the tracer costs: the setting COSTS."""
    offsets: Mapping[str, int]
    """Where the interpreter keeps the frames of its threads."""


def prepare(program: RunningProgram, settings: RecordSettings, tell: Tell) -> PreparedTarget:
    """What recordings of a program with these metrics need; TargetError if it cannot be recorded.

    The program is not touched.
    """
    tracer = _tracer(program, tell)
    return PreparedTarget(program, tracer, *_measured(program, tracer, settings.for_tracer(Path("unused"), 0)))


def record_running(
    experiment: Experiment,
    program: RunningProgram,
    settings: RecordSettings,
    features: Mapping[str, float],
    seconds: float | None,
    tell: Tell,
) -> Attached:
    """Record a running program for some seconds, or until a signal comes or the program ends, and keep the recording.

    TargetError if it cannot be recorded; it goes on as before then. StoreError if the experiment cannot be written.
    """
    return record_prepared(experiment, prepare(program, settings, tell), settings, features, seconds)


def record_prepared(
    experiment: Experiment,
    target: PreparedTarget,
    settings: RecordSettings,
    features: Mapping[str, float],
    seconds: float | None,
    writer: RunWriter | None = None,
) -> Attached:
    """:func:`record_running` of a program that was prepared for settings with the same metrics.

    ``writer``: what the runs go to; without it a process that is forked for it writes them.
    """
    program, tracer = target.program, target.tracer
    claim = RunClaim.with_spool(experiment, "attach", f"cd ~ && perflaw attach {program.pid}")
    seed = scramble(int(claim.folder.name) + (os.getpid() << 20))
    with SignalRelay() as relay, claim, unless_refused(claim), spool_of(program, claim.folder) as spool:
        reader = NativeReader(spool.folder, seed, tracer.library, spool.rights)
        reader.paths = PATHS in settings.collect
        with lock(spool) as held, ExitStack() as stack:
            names = {"MAIN": program.main, "OWN": program.own, "FOLDER": str(TARGET_FOLDER), "LOCK": str(held)}
            given = {**settings.for_tracer(spool.told, seed), **names, "COSTS": target.costs}
            started, begun = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter_ns()
            stopped_ms = _begin(program, _extension(program, tracer, spool), given, reader, stack)
            meter = RunningMeter(program.pid)
            cpu_ns = read_on(reader, program.pid, relay, seconds)
            machine = meter.read()
        wall_ns = time.perf_counter_ns() - begun
        read_until(reader, lambda: definitions(reader).ended is not None or not is_running(program.pid), END_S)
        with nullcontext(writer) if writer else Writer() as writing:
            context = RunContext(claim, tracer, settings, features, writer=writing)
            return keep(context, program, reader, relay, Elapsed(started, wall_ns, cpu_ns, stopped_ms, machine))


@dataclass(frozen=True, slots=True)
class Elapsed:
    """When a running program was recorded, and for how long."""

    started: str
    """When it began."""
    wall_ns: int
    """How long it was recorded."""
    cpu_ns: int
    """CPU time of the program meanwhile."""
    stopped_ms: float
    """How long its threads were stopped at most."""
    machine: Machine | None
    """What it got of the machine meanwhile; None if it ended."""


def keep(
    context: RunContext, program: RunningProgram | NativeProgram, reader: NativeReader, relay: SignalRelay,
    elapsed: Elapsed,
) -> Attached:  # fmt: skip
    """Keep the recording of a program from which the tracer has gone, or which has ended."""
    relay.ended, alive = True, is_running(program.pid)
    execution = Execution(
        program.argv,
        program.name,
        elapsed.started,
        elapsed.wall_ns,
        None,
        cpu_ns=elapsed.cpu_ns,
        machine=elapsed.machine,
    )
    outcome = save_recording(context, execution, reader.finish(program.pid))
    return Attached(replace(outcome, interrupted=relay.received), elapsed.stopped_ms, alive)


def _tracer(program: RunningProgram, tell: Tell) -> NativeTracer:
    """The native tracer, built for the program's interpreter; TargetError if it cannot be."""
    if program.user and (why := _distrusted(program)):
        remedy = f"sudo -u '#{program.user.uid}' perflaw attach {program.pid}"
        raise TargetError(f"process {program.pid}", f"root compiles nothing for its Python: {why}", remedy)
    try:
        tracer = choose("native", program.interpreter, tell)
    except TargetError as error:
        raise TargetError(f"process {program.pid}", error.why, error.next_command) from error
    assert isinstance(tracer, NativeTracer)
    return tracer


def _distrusted(program: RunningProgram) -> str:
    """Why another user could change the program's interpreter or its headers, in words; empty if only root could."""
    for path in (program.interpreter.path, program.interpreter.include):
        with suppress(OSError):  # the headers are not installed, which is said where they are needed
            if why := distrust(Path(path).resolve()):
                return why
    return ""


@contextmanager
def unless_refused(claim: RunClaim) -> Iterator[None]:
    """Keep the folders of a run unless a TargetError says that nothing was recorded."""
    try:
        yield
    except TargetError:
        discard(claim.folder)
        raise


@contextmanager
def lock(spool: Spool) -> Iterator[Path]:
    """A file that is locked while entered; the new thread waits for its lock to end the recording."""
    path = spool.put("attached", b"")
    with spool.rights:
        file = (spool.folder / path.name).open("r+b")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            why = f"{error.strerror}; its end would not be noticed by the program"
            raise StoreError(f"{path}: cannot be locked", why, "cd ~ && perflaw attach …") from error
        yield path


def _extension(program: RunningProgram, tracer: NativeTracer, spool: Spool) -> Path:
    """The extension as the program reaches it; another user's gets a copy, once."""
    if program.user is None:
        return tracer.file
    for path in mapped_files(program.pid):
        known = Path(path.removesuffix(DELETED))
        if known.name == tracer.file.name:  # the loader knows a library by its name, also where the file is gone
            return known
    return spool.put(tracer.file.name, tracer.file.read_bytes())


def _measured(
    program: RunningProgram, tracer: NativeTracer, settings: Mapping[str, str]
) -> tuple[str, Mapping[str, int]]:
    """What the tracer costs in this interpreter, and where that keeps frames, by another process of it.

    The program need not wait for that.
    """
    python, user = program.interpreter.path, program.user
    with shared_folder(user, Path("/"), python) if user else tempfile.TemporaryDirectory(prefix="perflaw-") as folder:
        spool, extension, options = (folder, tracer.file, {})
        if isinstance(folder, Spool):
            assert user
            extension = folder.put(tracer.file.name, tracer.file.read_bytes())
            spool, options = str(folder.told), user.options()
        chosen = {**settings, "SPOOL": spool, "MAIN": "perflaw", "FOLDER": str(TARGET_FOLDER)}
        text = json.dumps({f"PERFLAW_TARGET_{name}": value for name, value in chosen.items()})
        command: list[str | Path] = [python, "-I", "-S", "-c", _CALIBRATE, extension, text]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **options)
    if done.returncode:
        why = f"the tracer does not start in {python}: {done.stderr.strip().splitlines()[-1:]}"
        raise TargetError(f"process {program.pid}", why, "perflaw doctor")
    costs, offsets = json.loads(done.stdout)
    return costs, offsets


def definitions(reader: NativeReader) -> Definitions:
    """What the program's tracer defined so far."""
    with reader.rights:
        for process in reader.processes.values():
            return process.definitions.update()
    return Definitions()


def _begin(
    program: RunningProgram, extension: Path, settings: Mapping[str, str], reader: NativeReader, stack: ExitStack
) -> float:
    """Begin the recording; ``stack`` ends it. Returns how long a thread of the program was stopped, in ms.

    A program that has called ``perflaw.listen`` is asked for it, others get a new thread.
    """
    if program.user is None and (connection := connect(program.pid)):  # it answers none but its own user
        stack.enter_context(connection)
        ask(program.pid, connection, extension, settings)
        await_begin(reader, program.pid, lambda: "")
        return 0.0
    thread = start_thread(program, extension, settings)
    await_begin(reader, program.pid, thread.failure)
    return thread.stopped_ms


def await_begin(
    reader: NativeReader,
    pid: int,
    failure: Callable[[], str],
    seconds: float = BEGIN_S,
    waits_for: str = "no thread of it gave up the interpreter's lock (a long call into C?)",
) -> None:
    """Return when the recording has begun; TargetError if it does not within these seconds, with what it ``waits_for``."""

    def is_settled() -> bool:
        known = definitions(reader)
        return bool(known.started or known.failed or not is_running(pid) or failure())

    settled = read_until(reader, is_settled, seconds)
    known = definitions(reader)
    if known.started:
        return
    if why := known.failed or failure():
        raise TargetError(f"process {pid}", why, "perflaw doctor")
    if not settled:
        why = f"for {seconds:g} s {waits_for}"
        raise TargetError(f"process {pid}", why, f"perflaw attach {pid}")
    raise TargetError(*ended(pid))


def read_on(
    reader: NativeReader, pid: int, relay: SignalRelay, seconds: float | None, follow: Callable[[], bool] = lambda: True
) -> int:
    """Read records for these seconds, or until a signal comes or the process ends; returns its CPU time meanwhile, ns.

    ``follow`` is called between two turns of reading, and says whether to go on.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    before = now = cpu_ns_of(pid)
    while not relay.received and (left := deadline - time.monotonic()) > 0 and is_running(pid):
        if reader.step() < _FEW:
            time.sleep(min(reader.pause_s, left))
        now = max(now, cpu_ns_of(pid))
        if not follow():
            break
    return now - before


def read_until(reader: NativeReader, condition: Callable[[], bool], seconds: float) -> bool:
    """Read records until the condition holds; returns whether it did within these seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        if not reader.step():
            time.sleep(reader.idle_s)
    return True
