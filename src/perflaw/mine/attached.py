"""Measures what requests ask for in a process of this machine that runs: probes go in, and out again.

Each measurement of durations is a recording of its own in an experiment, so what was learnt is kept whatever happens, and
``perflaw mine`` reads it. Between measurements nothing of ours is in the program. Python stacks are sampled all the time by
reading the memory of the process, which costs the program nothing.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from perflaw.learn.paths.selection import literal_pattern
from perflaw.mine.messages import Measurement, ProbeCost, Request
from perflaw.notices import progress
from perflaw.record.attach.native_samples import NativeSampler
from perflaw.record.attach.process import NativeProgram, RunningProgram, native_program, running_program
from perflaw.record.attach.session import Attached, PreparedTarget, prepare, record_prepared
from perflaw.record.attach.stack_samples import StackSampler
from perflaw.record.build import Tell
from perflaw.record.compiled.hooks import injecting_tracer
from perflaw.record.compiled.inject.choice import all_functions
from perflaw.record.compiled.selection import EVERYTHING
from perflaw.record.machine import BEGAN, cpu_ns_of, stat_of
from perflaw.record.python.native_reader import is_running
from perflaw.record.saving import RunsInMemory, RunWriter
from perflaw.record.settings import PATHS, RecordSettings
from perflaw.store.experiment import Experiment
from perflaw.store.paths import observed_in
from perflaw.types import Run
from perflaw.types.specifications import CallPath

EVERY_CALL, CHOSEN_CALLS = 0.2, 0.02
"""How much slower probes are presumed to make a program: Python 3.11 shows the tracer every call, later versions and injected
code only those that are recorded."""
SAMPLE_NS: Final = 10_000.0
"""CPU time of a compiled program that one sample of it takes: the kernel copies its stack, or it is stopped and goes on."""
_SAMPLED_S: Final = 0.5
"""Length of a stretch of samples; its stacks are counted when it ends."""


class AttachedProcess:
    """A running process as the loop sees it. Use it as a context manager: at the end the program is as it was."""

    def __init__(
        self, experiment: Experiment, pid: int, tell: Tell, *, samples_on: bool = True, keeps: bool = True
    ) -> None:
        """``samples_on``: whether Python stacks are sampled between measurements as well, which costs the recorder CPU time.

        ``keeps``: whether recordings stay in the experiment, and not only what was observed in them.

        TargetError if the process cannot be recorded.
        """
        self.experiment, self.pid, self._samples_on, self._keeps = experiment, pid, samples_on, keeps
        self._began, self._image = _began(pid), _image(pid)
        self.native: NativeProgram | None = native_program(pid)
        self.python: PreparedTarget | None = None
        self.program: NativeProgram | RunningProgram
        if self.native:
            self.program = self.native
            # Decoding its code may take a minute when it is met first, which is no part of any measurement.
            executable = self.native.executable
            with progress(f"reading the code of {executable.name}"):
                injecting_tracer(executable, EVERYTHING).answerer.decode(executable)
        else:
            self.program = running_program(pid)
            self.python = prepare(self.program, RecordSettings(), tell)
        self.stopped_ms = 0.0
        """How long threads of the program were stopped at most."""
        self._stacks: Counter[tuple[str, ...]] = Counter()
        self._idle: frozenset[str] = frozenset()
        self._native_sampler: NativeSampler | None = None
        self._guard = threading.Lock()
        self._over, self._measures = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether the program goes on."""
        return is_running(self.pid) and _began(self.pid) == self._began and not self.is_replaced

    @property
    def is_replaced(self) -> bool:
        """Whether the process runs another program now, or its own from the beginning (execve)."""
        now = _image(self.pid)  # none while it ends
        return bool(now) and now != self._image and _began(self.pid) == self._began

    @property
    def presumed(self) -> float:
        """How much slower probes will probably make it, besides what recorded calls cost."""
        is_told_all = self.python and self.python.program.interpreter.numbers < (3, 12)
        return EVERY_CALL if is_told_all else CHOSEN_CALLS

    def cpu_ns(self) -> int:
        """CPU time of the program so far."""
        return cpu_ns_of(self.pid)

    def __enter__(self) -> AttachedProcess:
        if self.python:
            sampler = StackSampler(self.python.program, self.python.offsets)
            self._thread = threading.Thread(target=self._sample, args=(sampler,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()
        if self._native_sampler:
            self._native_sampler.close()

    def _sample(self, sampler: StackSampler) -> None:
        try:
            while not self._over.is_set() and self.alive:
                if not self._samples_on and not self._measures.wait(_SAMPLED_S):
                    continue
                found = sampler.collect(_SAMPLED_S, self._over.is_set)
                with self._guard:
                    self._stacks.update(found.stacks)
                    self._idle |= found.idle
        finally:
            sampler.close()

    def measure(self, request: Request) -> Measurement:
        """What the request asks for; TargetError if the program cannot be measured."""
        self._measures.set()
        try:
            return self._measured(request)
        finally:
            self._measures.clear()

    def _measured(self, request: Request) -> Measurement:
        begun, seconds = time.time_ns(), request.seconds * request.sampling
        if request.kind == "samples":
            stacks: Mapping[CallPath, int]
            cost = ProbeCost()
            if self.native:  # a sampler in another thread would be in the way of injecting
                before_ns = self.cpu_ns()
                self._native_sampler = self._native_sampler or NativeSampler(self.native)
                found = self._native_sampler.collect(seconds, lambda: False)
                stacks, self._idle = found.stacks, self._idle | found.idle
                cost = ProbeCost(sum(stacks.values()), SAMPLE_NS, self.cpu_ns() - before_ns)
            else:
                self._wait(seconds)
                stacks = self._taken()
            ends = begun, time.time_ns()
            return Measurement(
                request.number, request.kind, *ends, request.sampling, stacks, cost=cost, idle=tuple(sorted(self._idle))
            )
        settings = RecordSettings(
            select=tuple(map(literal_pattern, (*request.functions, *request.callers))),
            collect=(PATHS,),
            paths=tuple(map(literal_pattern, request.functions)),
            only_paths=True,
        )
        writer = RunsInMemory(self._keeps)
        attached = self._record(settings, request, seconds, writer)
        run = attached.outcome.run
        self.stopped_ms = max(self.stopped_ms, attached.stopped_ms)
        measurement = Measurement(
            request.number,
            request.kind,
            begun,
            time.time_ns(),
            request.sampling,
            stacks=self._taken(),
            cost=ProbeCost(
                run.calls,
                added_call_ns(run),
                run.clock.cpu_ns,
                attached.stopped_ms,
            ),
            idle=tuple(sorted(self._idle)),
        )
        kept = writer.runs.get(attached.outcome.folder) if attached.outcome.folder else None
        if kept is None or "path_about" not in kept.tables:  # no call of the functions began and ended
            return measurement
        observed = observed_in([(kept.run, kept.tables)], set(request.functions))
        return replace(measurement, observed=tuple(observed), run=run.id)

    def _record(self, settings: RecordSettings, request: Request, seconds: float, writer: RunWriter) -> Attached:
        if self.native:
            from perflaw.record.attach.native_session import record_native

            names = {name for _, names in all_functions(self.native.executable).values() for name in names}
            is_own = names.issuperset((*request.functions, *request.callers))
            return record_native(
                self.experiment, self.native, settings, {}, seconds, only_program=is_own, writer=writer
            )
        assert self.python
        return record_prepared(self.experiment, self.python, settings, {}, seconds, writer)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.alive and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))

    def _taken(self) -> Counter[tuple[str, ...]]:
        """The samples since the last time."""
        with self._guard:
            taken, self._stacks = self._stacks, Counter()
        return taken


def added_call_ns(run: Run) -> float:
    """CPU time that recording took for each call of a run: the middle of what the bounds of its slowdown say.

    The mean of the slowdowns themselves would say nine tenths of the CPU time wherever the upper one is not bounded.
    """
    share = 1 - (1 / run.slowdown_low + 1 / run.slowdown_high) / 2
    return run.clock.cpu_ns * share / max(run.calls, 1)


def _began(pid: int) -> str:
    """When a process began; empty if it does not exist."""
    return "".join(stat_of(pid)[BEGAN : BEGAN + 1])


def _image(pid: int) -> bytes:
    """What the kernel told the program of a process at its start, addresses chosen at random among it; empty if not known."""
    try:
        return Path(f"/proc/{pid}/auxv").read_bytes()
    except OSError:
        return b""
