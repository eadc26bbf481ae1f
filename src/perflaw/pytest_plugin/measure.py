"""A function's time over sizes: rounds over all sizes, short calls in loops, no garbage collection, the best of three.

Noise of a machine only ever adds time, and comes in bursts. The best of three neighbouring blocks drops a burst that hits
one of them; going round over the sizes spreads a drift of the machine over all of them.
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
"""Calls are repeated until a block takes this long, some hundred times the step of the clock."""

MOST_CALLS = 1000
"""Calls that a block has at most."""

MAKE_NS = 20_000_000
"""Time (and so memory) that making the arguments of one block may take, if each call has its own arguments."""

BLOCKS = 3
"""Neighbouring blocks, of which the best is kept."""

LONG_NS = 1_000_000_000
"""A call that takes this long is measured once a round: bursts are short compared with it."""

Function = Callable[..., object]
Make = Callable[[int], Any]
Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Subject:
    """The function to measure."""

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
        """Whether a call changes its arguments, so that each call needs its own; True where that cannot be seen.

        Other functions share theirs, for data that was never touched is in no cache: ``len`` of a new list takes longer
        the larger the list is.
        """

        def contents() -> bytes | None:
            try:
                return pickle.dumps(arguments)
            except Exception:  # whatever a person's class raises when it is pickled
                return None

        arguments = self.arguments(n)
        before = contents()
        self.function(*arguments)
        return before is None or contents() != before


@dataclass(frozen=True, slots=True)
class Measurement:
    """The time of one call at one size in one round."""

    size: int
    """Size."""
    ns: float
    """Time per call in the best block."""
    calls: int
    """Calls of a block."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements, and how they were made."""

    measurements: tuple[Measurement, ...]
    """One for each size and round."""
    fresh: bool
    """Whether every call had its own arguments."""


def measure(subject: Subject, sizes: Sequence[int], rounds: int) -> Sample:
    """Measure every size once in each round."""
    fresh = subject.changes_arguments(sizes[len(sizes) // 2])
    with _no_garbage_collection():
        calls = {}
        for n in sizes:
            # Number of calls in a block of this size.
            begin = subject.clock()
            arguments = subject.arguments(n)
            made = max(subject.clock() - begin, 1)
            subject.function(*arguments)
            once = max(_block(subject, [subject.arguments(n) if fresh else arguments]), 1)
            if once >= BLOCK_NS:
                calls[n] = 1
            else:
                wanted = min(math.ceil(BLOCK_NS / once), MOST_CALLS)
                calls[n] = max(1, min(wanted, MAKE_NS // made)) if fresh else wanted
        measurements = []
        for number in range(rounds):
            gc.collect(1)  # garbage of the round before, all of it young
            # Every second round runs backwards, so that the cache contents that a size leaves meet both its neighbours.
            order = sizes if number % 2 == 0 else tuple(reversed(sizes))
            measurements += [Measurement(n, _best(subject, n, calls[n], fresh), calls[n]) for n in order]
    return Sample(tuple(measurements), fresh)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """While entered, there is no automatic garbage collection, which would strike large sizes more often."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
