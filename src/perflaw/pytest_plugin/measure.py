"""A function's time over sizes: rounds over all sizes, short calls in loops, the collector off, the best of three kept.

Noise of a machine only ever adds time, and comes in bursts: the best of three neighbouring blocks drops what hits one,
and going round over the sizes lets a drift meet all of them alike.
"""

from __future__ import annotations

import gc
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

BLOCK_NS = 50_000
"""Calls are repeated until a block takes as long: some hundred times the clock's step."""

MOST_CALLS = 1000
"""Most calls of a block."""

MAKE_NS = 20_000_000
"""Time (and with it memory) that making the arguments of one block may take, where each call has its own."""

BLOCKS = 3
"""Neighbouring blocks of which the best is kept."""

LONG_NS = 1_000_000_000
"""A call that takes so long is measured once a round: bursts are short beside it."""

Function = Callable[..., object]
Make = Callable[[int], Any]
Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured."""

    function: Function
    """The function."""
    make: Make | None
    """Size → its argument, or a tuple of them; None: the size itself is the argument. Runs outside of the timing."""
    clock: Clock
    """Clock, ns."""

    def arguments(self, n: int) -> tuple[object, ...]:
        """Arguments for a call."""
        made = n if self.make is None else self.make(n)
        return made if isinstance(made, tuple) else (made,)

    def changes_arguments(self, n: int) -> bool:
        """Whether a call leaves other arguments behind than it was given; True where that cannot be seen.

        Then each call needs its own. They are not given to all functions: what was never touched is in no cache, and
        ``len`` of a fresh list takes longer the larger that is.
        """
        arguments = self.arguments(n)
        before = _pickled(arguments)
        self.function(*arguments)
        return before is None or _pickled(arguments) != before


def _pickled(arguments: tuple[object, ...]) -> bytes | None:
    """What arguments hold, None where that cannot be told."""
    try:
        return pickle.dumps(arguments)
    except Exception:  # whatever a person's class raises when it is pickled
        return None


@dataclass(frozen=True, slots=True)
class Measurement:
    """The time of one call at one size in one round."""

    size: int
    """Size."""
    ns: float
    """Time per call, the best block's."""
    calls: int
    """Calls of a block."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements and how they were made."""

    measurements: tuple[Measurement, ...]
    """One a size and round."""
    fresh: bool
    """Every call had arguments of its own."""


def measure(subject: Subject, sizes: Sequence[int], rounds: int) -> Sample:
    """Measure every size once a round."""
    fresh = subject.changes_arguments(sizes[len(sizes) // 2])
    with _uncollected():
        calls = {n: _calibrate(subject, n, fresh) for n in sizes}
        found = []
        for number in range(rounds):
            gc.collect(1)  # what the round before left; all of it is young
            # Every second round runs backwards: what a size leaves behind in caches meets both its neighbours.
            order = sizes if number % 2 == 0 else tuple(reversed(sizes))
            found += [Measurement(n, _best(subject, n, calls[n], fresh), calls[n]) for n in order]
    return Sample(tuple(found), fresh)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without automatic garbage collection, which strikes large sizes more often."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _calibrate(subject: Subject, n: int, fresh: bool) -> int:
    """Calls of a block at a size; also warms the function up there."""
    begin = subject.clock()
    arguments = subject.arguments(n)
    made = max(subject.clock() - begin, 1)
    subject.function(*arguments)
    once = max(_block(subject, [subject.arguments(n) if fresh else arguments]), 1)
    if once >= BLOCK_NS:
        return 1
    wanted = min(math.ceil(BLOCK_NS / once), MOST_CALLS)
    return max(1, min(wanted, MAKE_NS // made)) if fresh else wanted


def _best(subject: Subject, n: int, calls: int, fresh: bool) -> float:
    """Time per call of the best block."""
    best = math.inf
    shared = None if fresh else [subject.arguments(n)] * calls
    for _ in range(BLOCKS):
        best = min(best, _block(subject, shared or [subject.arguments(n) for _ in range(calls)]) / calls)
        if best * calls >= LONG_NS:
            break
    return best


def _block(subject: Subject, prepared: list[tuple[object, ...]]) -> int:
    """Time of a call with each of the arguments, ns."""
    function, clock = subject.function, subject.clock
    begin = clock()
    for arguments in prepared:
        function(*arguments)
    return clock() - begin
