"""The manifest of a run, from what the recorder saw of the process and what the tracer said."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from perflaw.collect.core import Tracer
from perflaw.collect.definitions import Definitions
from perflaw.collect.launch import Launch
from perflaw.collect.privacy import allowed_environment, masked
from perflaw.collect.tree_builder import TreeBuilder
from perflaw.types import Clock, Losses, Run


@dataclass(frozen=True, slots=True)
class Process:
    """The target's process, seen from outside."""

    launch: Launch
    """What was run."""
    started: str
    """When, UTC, ISO 8601."""
    wall_ns: int
    """For how long."""
    code: int
    """As ``subprocess`` gives it: the exit status, or the negated signal that killed it."""

    @property
    def status(self) -> int:
        """Exit status, 128 + signal when it was killed."""
        return 128 - self.code if self.code < 0 else self.code


def describe(
    run: str,
    process: Process,
    features: Mapping[str, float],
    tracer: Tracer,
    configuration: Mapping[str, str],
    builder: TreeBuilder,
    known: Definitions,
) -> Run:
    """The manifest of run ``run``. It is complete if the program ended by itself with status 0 and nothing stopped us."""
    ended = known.ended
    return Run(
        id=run,
        command=masked(process.launch.argv),
        target=process.launch.name,
        features=dict(features),
        started=process.started,
        wall_ns=process.wall_ns,
        span_ns=max(0, builder.last - (builder.first or 0)),
        status=process.status,
        complete=process.status == 0 and ended is not None and not ended.lost,
        ended=_ending(process.code, known),
        tracer=f"{tracer.name}: {tracer.reason}",
        python=known.started.python if known.started else "",
        configuration=dict(configuration),
        clock=_clock(configuration.get("clock", "real"), known),
        lost=_losses(builder, known),
        host=socket.gethostname(),
        environment=allowed_environment(os.environ),
        calls=builder.calls,
        functions=len({node.code for node in builder.nodes[1:]}),
        nodes=len(builder.nodes) - 1,
    )


def _ending(code: int, known: Definitions) -> str:
    """How the run ended, in words."""
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return f"killed by {names.get(-code, f'signal {-code}')}"
    if known.ended and known.ended.lost:
        return f"recording stopped early: {known.ended.lost}"
    if code:
        return f"exit status {code}"
    return "normally" if known.ended else "without the interpreter's shutdown (os._exit, exec)"


def _clock(clock: str, known: Definitions) -> Clock:
    name, tick = ("fake", 1) if clock == "fake" else ("perf_counter", _tick_ns())
    event_ns = known.started.event_ns if known.started else 0
    return Clock(name, tick, event_ns, known.ended.own_ns if known.ended else 0)


def _tick_ns() -> int:
    return max(1, round(time.get_clock_info("perf_counter").resolution * 1e9))


def _losses(builder: TreeBuilder, known: Definitions) -> Losses:
    opened = sum(node.open for node in builder.nodes)
    if known.ended is None:
        return Losses(opened)
    ended = known.ended
    return Losses(opened, ended.missed, ended.library, ended.unselected, ended.lost)
