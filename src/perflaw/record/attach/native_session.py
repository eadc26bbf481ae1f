"""One recording of a compiled program that runs already: code is injected, and taken back at the end.

A new thread of the program loads the library, or enters the one that an earlier recording has left there, prepares the stubs
and hands the recorder the jumps to them. The recorder writes these while all threads are stopped, and takes them back at the
end.
If the recorder is killed, the jumps stay, and what they lead to records no more, until the next one takes them back.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import TargetError
from perflaw.notices import progress
from perflaw.record.attach.directory import build_of, free_agent, left_behind
from perflaw.record.attach.injection import start_thread
from perflaw.record.attach.patching import JUMP, NEVER_LEFT, Patching
from perflaw.record.attach.process import NativeProgram, image_of, known_image, mapped_files
from perflaw.record.attach.session import (
    END_S,
    Attached,
    Elapsed,
    await_begin,
    definitions,
    keep,
    lock,
    read_on,
    read_until,
    unless_refused,
)
from perflaw.record.attach.spool import Spool, spool_of
from perflaw.record.compiled.branches import require_branches
from perflaw.record.compiled.hooks import HooksReader, HooksTracer, injecting_tracer
from perflaw.record.compiled.inject.choice import LIBRARIES
from perflaw.record.compiled.selection import Globs
from perflaw.record.machine import RunningMeter, stat_of
from perflaw.record.process import SignalRelay
from perflaw.record.python.native_reader import is_running
from perflaw.record.saving import RunContext, RunWriter
from perflaw.record.settings import BRANCHES, PATHS, RecordSettings
from perflaw.record.tree.reservoir import scramble
from perflaw.record.unfinished import RunClaim
from perflaw.record.writer import Writer
from perflaw.store.experiment import Experiment, discard

CHANGED: Final = "changed code: another perflaw records them, or a debugger or sanitizer has changed them"
"""Why no jump to a function was prepared."""
PREPARE_S: Final = 300.0
"""Time in which the code has to be prepared, which waits for nothing but what was not foreseen."""


def record_native(
    experiment: Experiment,
    program: NativeProgram,
    settings: RecordSettings,
    features: Mapping[str, float],
    seconds: float | None,
    *,
    only_program: bool = False,
    writer: RunWriter | None = None,
) -> Attached:
    """Record a compiled program for some seconds, or until a signal comes or the program ends, and keep the recording.

    ``only_program``: none of the chosen functions is in a library; ``writer``: what the runs go to, without which a process
    that is forked for it writes them.

    TargetError if it cannot be recorded; it goes on as before then. StoreError if the experiment cannot be written.
    """
    if BRANCHES in settings.collect:
        require_branches(program.executable)
    globs = Globs(settings.select, settings.exclude, settings.per)
    tracer = injecting_tracer(program.executable, globs, only_program=only_program)
    with progress(f"reading the code of {program.executable.name}"):
        tracer.answerer.prepare(program.executable)
        for module in map(Path, mapped_files(program.pid) if tracer.injects == LIBRARIES else ()):
            if module.is_file():  # decoding a large library now spares the program's new thread a long wait
                tracer.answerer.prepare(module)
    claim = RunClaim.with_spool(experiment, "attach", f"cd ~ && perflaw attach {program.pid}")
    seed, build = scramble(int(claim.folder.name) + (os.getpid() << 20)), build_of(tracer.file)
    with SignalRelay() as relay, claim, unless_refused(claim), spool_of(program, claim.folder) as spool:
        reader = tracer.reader(spool.folder, seed, spool.rights)
        reader.paths = PATHS in settings.collect
        image = known_image(program)
        patching, opened = Patching(program.pid, np.empty(0, JUMP), image), list[Patching]()
        try:
            with lock(spool) as held:
                given = {
                    **settings.for_tracer(spool.told, seed),
                    "LOCK": str(held),
                    "INJECT": tracer.injects,
                    "BUILD": build,
                }
                started, begun = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter_ns()
                try:
                    agent = free_agent(program.pid, build)
                    earlier = Patching(program.pid, left_behind(program.pid), image)
                    earlier.disable()
                    # The loader gives a program the library that it has, if it was loaded under the same name: also by a run
                    # that was removed.
                    library = spool.told / f"libperflaw_{time.time_ns():x}.so"
                    if not agent:
                        spool.put(library.name, tracer.file.read_bytes())
                    thread = start_thread(program, library, given, agent)
                    await_begin(reader, program.pid, thread.failure, PREPARE_S, "its new thread prepared no code")
                    patching.rows = _jumps(reader, spool, program.pid, thread.failure)
                    _refuse_changed(tracer, program.pid, set(patching.rows["address"].tolist()))
                    patching.enable()
                    _refuse(tracer, program.pid, patching.left_out)
                    spool.put("written", b"")  # from now on what the jumps lead to records
                    follow = partial(_follow, spool, image, patching, opened)
                    meter = RunningMeter(program.pid)
                    cpu_ns = read_on(reader, program.pid, relay, seconds, follow)
                    machine = meter.read()
                except BaseException:
                    discard(claim.folder)
                    raise
            # The recording ends before the jumps go: a call within which calls were missed must not end in it.
            wall_ns = time.perf_counter_ns() - begun
            read_until(reader, partial(_is_over, reader, program.pid, image), END_S)
        finally:
            with suppress(OSError, TargetError):  # it has ended, also just now: what completed is kept
                for jumps in (patching, *opened) if image_of(program.pid) == image else ():
                    jumps.disable()
        stopped_ms = max(thread.stopped_ms, *(jumps.stopped_ms for jumps in (patching, earlier, *opened)))
        with nullcontext(writer) if writer else Writer() as writing:
            context = RunContext(claim, tracer, settings, features, writer=writing)
            return keep(context, program, reader, relay, Elapsed(started, wall_ns, cpu_ns, stopped_ms, machine))


def _refuse(tracer: HooksTracer, pid: int, addresses: Sequence[int]) -> None:
    """Say of functions whose jumps could not be written that they are not recorded."""
    if not addresses or not tracer.answerer.injection:
        return
    places = sorted((base, Path(name)) for name, base in mapped_files(pid).items())
    for address in addresses:
        at = bisect_right(places, address, key=lambda place: place[0]) - 1
        if at >= 0:
            base, module = places[at]
            tracer.answerer.injection.refuse(module.resolve(), {address - base: NEVER_LEFT})


def _refuse_changed(tracer: HooksTracer, pid: int, prepared: set[int]) -> None:
    """Say of functions whose code is not as in the file, so that no jump was prepared, that they are not recorded.

    TargetError if that holds for all.
    """
    injection, changed = tracer.answerer.injection, False
    places = {Path(name).resolve(): base for name, base in mapped_files(pid).items()}
    for module, wanted in injection.wanted.items() if injection else ():
        missing = {at for at in wanted if places[module] + at not in prepared} if module in places else set()
        if injection and missing:
            injection.refuse(module, dict.fromkeys(missing, CHANGED))
            changed = True
    if changed and not prepared:
        raise TargetError(
            f"process {pid}", f"all chosen functions have {CHANGED}", f"pgrep -a perflaw; perflaw attach {pid}"
        )


def _jumps(reader: HooksReader, spool: Spool, pid: int, failure: Callable[[], str]) -> NDArray[np.void]:
    """The jumps that the program prepared, in order of address; none if it ended. TargetError if it could not prepare them."""
    read_until(reader, lambda: _rows(spool, 0) is not None or failure() != "" or not is_running(pid), END_S)
    rows = _rows(spool, 0)
    if rows is None and (why := failure()):
        raise TargetError(f"process {pid}", why, "perflaw doctor")
    return np.empty(0, JUMP) if rows is None else rows


def _is_over(reader: HooksReader, pid: int, image: bytes) -> bool:
    """Whether the program has ended the recording, or cannot: it ended itself, is another one, or is stopped by a signal."""
    return definitions(reader).ended is not None or image_of(pid) != image or stat_of(pid)[:1] == ["T"]


def _follow(spool: Spool, image: bytes, patching: Patching, opened: list[Patching]) -> bool:
    """Write the jumps of libraries that the program has opened since. Whether it is still the same program."""
    rows = _rows(spool, len(opened) + 1)
    if rows is not None:
        opened.append(Patching(patching.pid, rows, image))
        with suppress(OSError, TargetError):  # it has ended just now
            opened[-1].enable()
    return image_of(patching.pid) == image


def _rows(spool: Spool, number: int) -> NDArray[np.void] | None:
    """Rows ``JUMP`` of a file that the program has written, in order of address; None if there is none."""
    content = spool.read(f"jumps-{number}")
    if content is None:
        return None
    rows = np.frombuffer(content[: len(content) // JUMP.itemsize * JUMP.itemsize], JUMP)
    return rows[np.argsort(rows["address"])]
