"""The manifest of a run, from what the recorder saw of the process and what the tracer defined."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from perflaw.record.heap import heap_costs
from perflaw.record.launch import parse
from perflaw.record.machine import watch_losses
from perflaw.record.reader import RecordedProcess, RecordingSource
from perflaw.record.secrets import masked
from perflaw.types import Clock, Losses, Machine, Run
from perflaw.types.recordings import COLLECTING, CPU

MIN_WATCHED_CALLS: Final = 30
"""Calls of a program from which on its variance can be explained, and the machine's losses are watched."""
_ENVIRONMENT: Final = (
    "LANG", "LC_ALL", "TZ", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONMALLOC",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX", "CI",
)  # fmt: skip
"""Variables that affect performance and hold no secrets; only these are kept."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a process as its recorder saw it from outside."""

    argv: tuple[str, ...]
    """Command line."""
    name: str
    """Short name of the program."""
    started: str
    """Start, UTC, ISO 8601."""
    wall_ns: int
    """Duration."""
    code: int | None
    """Exit status, or the negated signal that killed it, as in ``subprocess``. None if only its parent knows."""
    machine: Machine | None = None
    """What it got of the machine; None if only its parent knows."""
    parent: str = ""
    """Id of its parent's run; empty for the program itself."""
    cpu_ns: int = 0
    """CPU time that it took while it was recorded, if it ran before."""
    over: str = ""
    """How it was ended after its time limit, in words; empty if it kept to the limit."""
    typed: tuple[str, ...] = ()
    """The command as the person typed it; empty if nobody did."""

    @property
    def status(self) -> int:
        """Exit status; 128 + signal if it was killed; 0 if unknown."""
        code = self.code or 0
        return 128 - code if code < 0 else code


def child_execution(child: RecordedProcess, parent: Run, program: Execution, began: int) -> Execution:
    """Execution of a child as its own recording tells it. ``began``: clock of the program's tracer at its start, ns."""
    known = child.definitions
    begin = known.started.clock if known.started else began
    end = known.ended.clock if known.ended else max(child.tree.head("last"), begin)
    started = datetime.fromisoformat(program.started) + timedelta(microseconds=(begin - began) / 1000)
    argv = known.process.argv if known.process else ()
    line = parse(argv)
    # A forked child, and one that multiprocessing started, runs its parent's program.
    same = masked(argv) == parent.command or line.kind == "nothing" or line.what.startswith("from multiprocessing.")
    name = parent.target if same else line.name
    return Execution(argv, name, started.isoformat(timespec="milliseconds"), end - begin, None, parent=parent.id)


def describe(
    run: str,
    execution: Execution,
    features: Mapping[str, float],
    source: RecordingSource,
    configuration: Mapping[str, str],
    recorded: RecordedProcess,
) -> Run:
    """The manifest of run ``run``.

    The run is complete if the program ended by itself with status 0 and the recording reaches to its end.
    """
    known, tree = recorded.definitions, recorded.tree
    counted = recorded.counted
    if counted and tree.is_empty:
        # A compiled program's counts give completed calls, and the functions that ran, without a call tree.
        counts = zip(counted.counts.locations, counted.counts.counts.tolist(), strict=True)
        calls_of = [count for place, count in counts if place.kind == "function" and count]
        calls, functions = sum(calls_of), len(calls_of)
    else:
        aside = {number for number, component in known.components.items() if component.name == COLLECTING}
        calls, functions = tree.calls, len(set(tree.nodes["code"][1:].tolist()) - aside)
    ended, damage = known.ended, _damage(recorded)
    # Workers of multiprocessing regularly end by os._exit, so only the program's own end has to be regular.
    whole = (
        ended is not None and not ended.lost and not damage and (not known.words.get("end") or bool(execution.parent))
    )
    tick_ns = max(1, round(time.get_clock_info("perf_counter").resolution * 1e9))
    name, tick = ("fake", 1) if configuration.get("clock", "real") == "fake" else ("perf_counter", tick_ns)
    event_ns = known.started.event_ns if known.started else 0
    waited_ns, counting_ns, counted_ns = (known.cpu_ns.get(part, 0) for part in ("waited", "counting", "counted"))
    profiled = known.cpu_ns.get("profiled_percent", 100)
    own_ns = known.ended.own_ns if known.ended else 0
    call_ns = known.cpu_ns["call_ps"] / 1000 if "call_ps" in known.cpu_ns else float(known.cpu_ns.get("call", 0))
    added_ns = tuple(max(ps, 0) / 1000 for name, ps in known.cpu_ns.items() if name.startswith("added_ps_"))
    own = own_ns, waited_ns, counting_ns, counted_ns
    clock = Clock(
        name, tick, event_ns, *own, execution.cpu_ns, profiled, call_ns, known.cpu_ns.get("recorded_call", 0), added_ns
    )
    # The kernel's account with what the tracer read of it when it began and when it ended.
    cpu_ns = known.cpu_ns
    machine = execution.machine
    if machine is not None and {"entered", "begun"} <= cpu_ns.keys():
        before_ns, start_ns, after_ns = cpu_ns["entered"], cpu_ns["begun"] - cpu_ns["entered"], 0
        if "ended" in cpu_ns:  # the tracer then frees what it holds, and the rest is the interpreter's end
            released_ns = cpu_ns.get("released", cpu_ns["ended"])
            start_ns += released_ns - cpu_ns["ended"]
            after_ns = max(0, machine.cpu_ns - released_ns)
        heap = heap_costs() if name != "fake" and known.collections and known.collections.blocks else None
        machine = replace(machine, before_ns=before_ns, tracer_start_ns=start_ns, after_ns=after_ns, heap=heap)
    elif machine is not None and "tracer_start" in cpu_ns:
        machine = replace(machine, tracer_start_ns=cpu_ns["tracer_start"])
    if machine is not None and name != "fake" and CPU in known.metrics.values() and calls >= MIN_WATCHED_CALLS:
        machine = replace(machine, losses=watch_losses())
    return Run(
        id=run,
        command=masked(execution.argv),
        target=execution.name,
        features=dict(features),
        started=execution.started,
        wall_ns=execution.wall_ns,
        span_ns=max(0, tree.head("last") - (tree.first or 0)),
        status=execution.status,
        complete=execution.status == 0 and not execution.over and whole,
        ended=execution.over or _ending(execution.code, recorded),
        tracer=f"{source.name}: {source.reason}",
        python=known.started.python if known.started else "",
        configuration=dict(configuration),
        clock=clock,
        lost=_losses(recorded),
        host=socket.gethostname(),
        environment={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        calls=calls,
        functions=functions,
        nodes=len(tree.nodes) - 1,
        metrics=tuple(metric for _, metric in sorted(known.metrics.items())),
        words={**known.words, "rings": damage} if damage else known.words,
        pid=known.process.pid if known.process else 0,
        parent=execution.parent,
        machine=machine,
        collections=known.collections,
        typed=masked(execution.typed),
    )


def _ending(code: int | None, recorded: RecordedProcess) -> str:
    """How the run ended, in words."""
    known = recorded.definitions
    if recorded.alive:
        return "still running when the recording ended"
    if code is not None and code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return f"killed by {names.get(-code, f'signal {-code}')}"
    if why := _damage(recorded) or (known.ended and known.ended.lost):
        return f"recording stopped early: {why}"
    if code:
        return f"exit status {code}"
    if message := known.words.get("end"):
        return message
    if known.ended:
        return "normally"
    python = known.started and known.started.python
    how = "the interpreter's shutdown (os._exit" if python else "its regular end (_exit"
    return f"without {how}, exec{', a signal' * (code is None)})"


def _damage(recorded: RecordedProcess) -> str:
    """What was lost because the program wrote over records, definitions or the head of a ring; empty if nothing was."""
    rings, lines, told = recorded.tree.head("unread_rings"), recorded.definitions.damaged, []
    if rings:
        what = "the records of 1 thread are" if rings == 1 else f"the records of {rings} threads are"
        told.append(f"{what} not read to the end: their ring is damaged")
    if lines:
        told.append(f"{lines} definition{'s' * (lines > 1)} of functions and features cannot be read")
    return "; ".join(told) + " (does the program write outside its own memory?)" if told else ""


def _losses(recorded: RecordedProcess) -> Losses:
    tree, ended = recorded.tree, recorded.definitions.ended
    dropped = tree.head("lost")
    losses = Losses(
        int(tree.nodes["open"].sum()),
        dropped,
        folded_calls=tree.head("folded"),
        counted_functions=len(set(tree.nodes["code"][tree.nodes["counted"] > 0].tolist())),
        unlinked=tree.head("links_left_out"),
        probe_records=sum(probed.account.lost for probed in recorded.probed),
        subinterpreters=int(recorded.definitions.words.get("subinterpreters", 0)),
    )
    if ended is None:
        return replace(losses, reason=_damage(recorded))
    return replace(
        losses,
        missed_calls=ended.missed + dropped,
        unselected_functions=ended.unselected,
        reason=_damage(recorded) or ended.lost,
    )
