"""The stub: beside a process, it measures what its controller asks for, and delivers what it measured.

Three threads: one asks for instructions, one delivers, one measures. Without a controller it goes on within its last
instructions and keeps what it measured on its disk; when the spool is full it stops measuring, so nothing is lost and nothing
is dropped.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol

from perflaw.errors import DataError, TargetError
from perflaw.mine.fleet.client import ControllerClient, Refused
from perflaw.mine.fleet.enrolment import Enrolment
from perflaw.mine.fleet.heap import give_back
from perflaw.mine.fleet.spool import Instructions, Spool, read_instructions
from perflaw.mine.messages import Measurement, Request
from perflaw.wire.channel import WireError

ANSWER_S: Final = 15.0
"""Time for an answer, beyond that for which the controller may keep a question about instructions."""
WAIT_S: Final = 10.0
"""Time for which the controller keeps a question about instructions."""
MOST_WAIT_S: Final = 30.0
"""Longest time between two attempts to reach the controller."""
BATCH_BYTES: Final = 4 << 20
"""Measurements that are delivered at once."""
MOST_FAILURES: Final = 5
"""Measurements in a row that fail, after which the stub ends with the last error."""
MOST_SPENT: Final = 1000
"""Windows whose cost is told once the controller can be reached."""
TOLD_S: Final = 10.0
"""Time without a measurement from which on it is told, once, that the budget permits none."""
LAST_S: Final = 10.0
"""Time in which the last measurements are delivered after the process has ended."""


@dataclass(frozen=True, slots=True)
class Target:
    """The process beside which a stub is."""

    host: str
    """Name of its machine."""
    program: str
    """The program."""
    pid: int
    """Its process id."""
    build: str = ""
    """Its build; empty where unknown."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What measuring took of a process's CPU time in one window."""

    end_ns: int
    """When the window ended, ns since 1970."""
    share: float
    """What counted against the budget, as a part of the process's CPU time."""
    own: float
    """CPU time of the stub itself over that of the process; ``share`` contains it where the budget is one of CPU time."""


class Source(Protocol):
    """Where measurements come from."""

    @property
    def target(self) -> Target:
        """The process."""

    def measure(self, request: Request) -> Measurement | None:
        """Make a measurement; None if the process has ended. TargetError if it cannot be measured now."""

    def pause_s(self, budget: float, request: Request) -> float:
        """How long this may not be measured yet, so that measuring takes at most the budget, a part of what is served."""

    def spent(self) -> list[Spending]:
        """What measuring took in the windows that are over since the last call."""


class Stub:
    """One stub; ``run`` returns when the process has ended or ``stop`` was called."""

    def __init__(
        self,
        enrolment: Enrolment,
        source: Source,
        spool: Spool,
        say: Callable[[str], None],
        allow: Sequence[str] = (),
        budget: float | None = None,
        wait_s: float = WAIT_S,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """``allow`` and ``budget`` narrow what the enrolment and the controller permit; ``is_over``: whether to end."""
        self._enrolment, self._source, self._spool, self._say = enrolment, source, spool, say
        self._is_over = is_over
        self._allow, self._budget, self._wait_s = tuple(allow), budget, wait_s
        self._instructions = spool.instructions()
        self._refused: set[str] = set()
        self._asking = ControllerClient(enrolment)
        self._spent: list[Spending] = []
        self._is_wait_told = False
        self._changing = threading.Lock()
        self._stopped, self._news, self._measured = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        """Measure until the process has ended, and deliver."""
        threads = [threading.Thread(target=one, daemon=True) for one in (self._listen, self._deliver)]
        for thread in threads:
            thread.start()
        try:
            while not self._ends():
                self._round()
        finally:
            self.stop()
            self._asking.wake()
            for thread in threads:
                thread.join(LAST_S + ANSWER_S)

    def stop(self) -> None:
        """Stop measuring; a measurement that is being made is finished."""
        self._stopped.set()
        self._news.set()
        self._measured.set()

    # ---- Measuring.

    def _ends(self) -> bool:
        return self._stopped.is_set() or self._is_over()

    def _round(self) -> None:
        """Make each measurement of the instructions once."""
        self._news.clear()
        instructions, made, failures = self._instructions, 0, 0
        for request in instructions.requests:
            if self._ends() or self._instructions is not instructions:
                return
            names = (*request.functions, *request.callers)
            wrong = [one for one in names if not may_measure(one, self._enrolment.allow, self._allow)]
            if wrong:
                self._refused.update(wrong[:20])
                continue
            if self._spool.full:
                break
            self._rest(instructions.budget, request)
            if self._ends():
                return
            try:
                measurement = self._source.measure(request)
                failures = 0
            except TargetError as error:
                self._say(str(error))
                failures += 1
                if failures >= MOST_FAILURES:
                    raise
                continue
            if measurement is None:
                self._say(f"process {self._source.target.pid} has ended")
                self.stop()
                return
            self._note_spent()
            if not measurement.stacks and not measurement.observed:
                continue
            made += 1
            try:
                self._spool.add(measurement)
            except DataError as error:
                self._say(str(error))
            self._measured.set()
        give_back()
        if not made:
            self._news.wait(1.0)

    def _rest(self, budget: float, request: Request) -> None:
        """Measure nothing until the budget permits what is requested."""
        budget, tell_at = min(budget, self._budget or budget), time.monotonic() + TOLD_S
        while (pause := self._source.pause_s(budget, request)) > 0 and not self._ends():
            self._note_spent()
            if time.monotonic() > tell_at and not self._is_wait_told:
                self._is_wait_told = True
                self._say(
                    f"nothing is measured now: more than {100 * budget:.3g} % of the process's CPU time was spent since the "
                    "start; with --budget-of cpu, this contains the start of the stub itself"
                )
            self._stopped.wait(min(pause, 1.0))

    def _note_spent(self) -> None:
        """Keep what was spent in the windows that are over until it is told, also while nothing can be measured."""
        with self._changing:
            self._spent = [*self._spent, *self._source.spent()][-MOST_SPENT:]

    # ---- Speaking to the controller.

    def _listen(self) -> None:
        """Ask for instructions, again and again; the controller answers when there are new ones."""
        client, known, pause = self._asking, False, _Pause(self._stopped)
        while not self._stopped.is_set():
            try:
                if not known:
                    client.post("/v1/register", {"id": self._spool.id, **asdict(self._source.target)}, ANSWER_S)
                    known = True
                    self._say(f"registered with {self._enrolment.address} as {self._spool.id}")
                told = self._spent
                question = {
                    "id": self._spool.id,
                    "version": self._instructions.version,
                    "wait_s": self._wait_s,
                    "spooled": len(self._spool),
                    "refused": sorted(self._refused)[:50],
                    "spent": [[one.end_ns, one.share, one.own] for one in told],
                }
                answer = client.post("/v1/poll", question, self._wait_s + ANSWER_S)
                with self._changing:
                    self._spent = [one for one in self._spent if one not in told]
                if answer.get("version") != self._instructions.version:
                    self._take(read_instructions(answer, f"controller {self._enrolment.address}"))
                pause.over()
            except (WireError, DataError, KeyError, ValueError, TypeError) as error:
                if self._stopped.is_set():
                    break
                known = known and not isinstance(error, Refused)
                pause.after(error, self._say)
        client.close()

    def _take(self, instructions: Instructions) -> None:
        self._spool.keep(instructions)
        self._instructions = instructions
        self._news.set()

    def _deliver(self) -> None:
        """Deliver what is in the spool, the oldest first; only what is acknowledged leaves it."""
        client, pause, began = ControllerClient(self._enrolment), _Pause(self._stopped), 0.0
        while True:
            if self._stopped.is_set():
                began = began or time.monotonic()
                if not len(self._spool) or time.monotonic() - began > LAST_S:
                    break
            self._measured.clear()
            batch = self._spool.oldest(BATCH_BYTES)
            if not batch:
                self._measured.wait(1.0)
                continue
            try:
                answer = client.deliver(self._spool.id, batch, ANSWER_S)
                for name, why in dict(answer.get("refused", {})).items():
                    self._say(f"the controller refused measurement {name}: {why}")
                self._spool.remove(name for name, _ in batch)
                pause.over()
            except (WireError, ValueError, TypeError) as error:
                pause.after(error, self._say)
                if self._stopped.is_set():
                    time.sleep(0.2)  # the last attempts, of which there are few
        client.close()


def may_measure(function: str, allow: Sequence[str], also: Sequence[str] = ()) -> bool:
    """Whether the enrolment's patterns, and those of the person who started the stub if there are any, match a function.

    >>> may_measure("shop.load", ["shop.*"]), may_measure("os.read", ["shop.*"]), may_measure("shop.a", ["*"], ["*.b"])
    (True, False, False)
    """
    lists = (allow, also) if also else (allow,)
    return all(any(fnmatchcase(function, one) for one in patterns) for patterns in lists)


class _Pause:
    """Waits longer after each failure, at random, so that a fleet does not come back all at once."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped, self._failures = stopped, 0

    def after(self, error: Exception, say: Callable[[str], None]) -> None:
        """Wait; the first failure of several is told."""
        if not self._failures:
            say(str(error))
        self._failures += 1
        longest = min(MOST_WAIT_S, 0.5 * 2.0 ** min(self._failures, 10))
        self._stopped.wait(random.uniform(0.2, longest))

    def over(self) -> None:
        """It worked."""
        self._failures = 0
