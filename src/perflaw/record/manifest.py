"""The manifest of a run, from what the recorder saw of the process and what the tracer said."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from perflaw.record.launch import parse
from perflaw.record.recorded import Recorded
from perflaw.record.records import Definitions
from perflaw.record.tracers import Tracer
from perflaw.store.schema import COLLECTING
from perflaw.types import Clock, Losses, Run

# ---- What of a person's machine goes into a recording: arguments without their secrets, and a few variables by name.

MASK = "***"
_SECRET = re.compile(r"pass(word|wd|phrase)?|secret|token|api[-_]?key|credential|auth", re.IGNORECASE)
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)(=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)
_URL = re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@", re.IGNORECASE)
_ALLOWED = (
    "LANG", "LC_ALL", "TZ", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONMALLOC",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX", "CI",
)  # fmt: skip


def masked(arguments: Sequence[str]) -> tuple[str, ...]:
    """Arguments with the values of secret-looking options and the passwords of URLs replaced.

    >>> masked(["--password", "x", "--api-key=y", "TOKEN=z", "http://me:pw@host/", "--n", "5"])
    ('--password', '***', '--api-key=***', 'TOKEN=***', 'http://me:***@host/', '--n', '5')
    """
    result: list[str] = []
    follows = False
    for argument in arguments:
        if follows and not argument.startswith("-"):
            result.append(MASK)
            follows = False
            continue
        text, follows = _mask_one(argument)
        result.append(text)
    return tuple(result)


def _mask_one(argument: str) -> tuple[str, bool]:
    """The argument masked, and whether the next one is its secret."""
    option = _OPTION.fullmatch(argument)
    if option and _SECRET.search(option[1]):
        return (argument, True) if option[2] is None else (argument[: option.start(3)] + MASK, False)
    assignment = _ASSIGNMENT.fullmatch(argument)
    if assignment and _SECRET.search(assignment[1]):
        return f"{assignment[1]}={MASK}", False
    return _URL.sub(rf"\1:{MASK}@", argument), False


def is_secret(name: str) -> bool:
    """Whether an option of this name looks like one that carries a secret."""
    return _SECRET.search(name) is not None


def allowed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that bear on performance and carry no secrets."""
    return {name: environment[name] for name in _ALLOWED if name in environment}


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was recorded, seen from outside."""

    argv: tuple[str, ...]
    """What was run."""
    name: str
    """Short name of it."""
    started: str
    """When, UTC, ISO 8601."""
    wall_ns: int
    """For how long."""
    code: int | None
    """As ``subprocess`` gives it: the exit status, or the negated signal that killed it. None: only its parent knows."""
    parent: str = ""
    """Id of its parent's run; empty for the program itself."""
    over: str = ""
    """That it ran over its time and how it was ended, in words; empty where it did not."""

    @property
    def status(self) -> int:
        """Exit status, 128 + signal when it was killed, 0 where it is not known."""
        code = self.code or 0
        return 128 - code if code < 0 else code


def child_process(child: Recorded, parent: Run, first: Process, began: int) -> Process:
    """A child as its own recording tells it; ``first`` is the program, and ``began`` its tracer's clock at its start."""
    known = child.definitions
    begin = known.started.clock if known.started else began
    end = known.ended.clock if known.ended else max(child.tree.told("last"), begin)
    started = datetime.fromisoformat(first.started) + timedelta(microseconds=(begin - began) / 1000)
    argv = known.process.argv if known.process else ()
    return Process(
        argv, _child_name(argv, parent), started.isoformat(timespec="milliseconds"), end - begin, None, parent.id
    )


def _child_name(argv: tuple[str, ...], parent: Run) -> str:
    """A forked child, and one that multiprocessing started, runs its parent's program."""
    line = parse(argv)
    same = masked(argv) == parent.command or line.kind == "nothing"
    return parent.target if same or line.what.startswith("from multiprocessing.") else line.name


def describe(
    run: str,
    process: Process,
    features: Mapping[str, float],
    tracer: Tracer,
    configuration: Mapping[str, str],
    recorded: Recorded,
) -> Run:
    """The manifest of run ``run``. It is complete if the program ended by itself with status 0 and nothing stopped us."""
    known, tree = recorded.definitions, recorded.tree
    calls, functions = _called(recorded)
    return Run(
        id=run,
        command=masked(process.argv),
        target=process.name,
        features=dict(features),
        started=process.started,
        wall_ns=process.wall_ns,
        span_ns=max(0, tree.told("last") - (tree.first or 0)),
        status=process.status,
        complete=process.status == 0 and not process.over and _is_whole(process, known),
        ended=process.over or _ending(process.code, recorded),
        tracer=f"{tracer.name}: {tracer.reason}",
        python=known.started.python if known.started else "",
        configuration=dict(configuration),
        clock=_clock(configuration.get("clock", "real"), known),
        lost=_losses(recorded),
        host=socket.gethostname(),
        environment=allowed_environment(os.environ),
        calls=calls,
        functions=functions,
        nodes=len(tree.nodes) - 1,
        metrics=tuple(metric for _, metric in sorted(known.metrics.items())),
        words=known.words,
        pid=known.process.pid if known.process else 0,
        parent=process.parent,
    )


def _called(recorded: Recorded) -> tuple[int, int]:
    """Calls that ended and functions that ran; of compiled programs the counts say it, for they have no call tree."""
    tree, counted = recorded.tree, recorded.counted
    if counted and len(tree.nodes) < 2:
        both = zip(counted.counts.locations, counted.counts.counts.tolist(), strict=True)
        calls = [count for place, count in both if place.kind == "function" and count]
        return sum(calls), len(calls)
    aside = {number for number, what in recorded.definitions.components.items() if what.name == COLLECTING}
    return tree.calls, len(set(tree.nodes["code"][1:].tolist()) - aside)


def _is_whole(process: Process, known: Definitions) -> bool:
    """Whether the recording reaches to the end of the program; workers of multiprocessing regularly end by os._exit."""
    ended = known.ended
    return ended is not None and not ended.lost and (not known.words.get("end") or bool(process.parent))


def _ending(code: int | None, recorded: Recorded) -> str:
    """How the run ended, in words."""
    ended = recorded.definitions.ended
    if recorded.alive:
        return "still running when the recording ended"
    if code is not None and code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return f"killed by {names.get(-code, f'signal {-code}')}"
    if ended and ended.lost:
        return f"recording stopped early: {ended.lost}"
    if code:
        return f"exit status {code}"
    if told := recorded.definitions.words.get("end"):
        return told
    if ended:
        return "normally"
    python = recorded.definitions.started and recorded.definitions.started.python
    how = "the interpreter's shutdown (os._exit" if python else "its regular end (_exit"
    return f"without {how}, exec{', a signal' * (code is None)})"


def _clock(clock: str, known: Definitions) -> Clock:
    name, tick = ("fake", 1) if clock == "fake" else ("perf_counter", _tick_ns())
    event_ns = known.started.event_ns if known.started else 0
    return Clock(name, tick, event_ns, known.ended.own_ns if known.ended else 0)


def _tick_ns() -> int:
    return max(1, round(time.get_clock_info("perf_counter").resolution * 1e9))


def _losses(recorded: Recorded) -> Losses:
    tree, known = recorded.tree, recorded.definitions
    opened, dropped = int(tree.nodes["open"].sum()), tree.told("lost")
    losses = Losses(opened, dropped, folded_calls=tree.told("folded"), unlinked=tree.told("links_left_out"))
    losses = replace(losses, probe_records=sum(each.account.lost for each in recorded.probed))
    ended = known.ended
    if ended is None:
        return losses
    return replace(
        losses,
        missed_calls=ended.missed + dropped,
        library_functions=ended.library,
        unselected_functions=ended.unselected,
        reason=ended.lost,
    )
