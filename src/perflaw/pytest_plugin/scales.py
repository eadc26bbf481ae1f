"""``assert_scales``: checks a function's growth against a bound. It fails on growth, never on noise.

The rule has three steps. (1) A law is learnt from all measurements; its local exponent at the largest size has a confidence
interval over all laws that fit equally well. (2) If the interval lies above the bound's own exponent there by more than a
margin, everything is measured again, and it is a violation only if both samples say so. (3) If the interval lies below,
the bound holds; if it contains both, the answer is inconclusive, which warns and does not fail.

Times are measured in rounds over all sizes, short calls in loops, without garbage collection; the best of three counts.
Noise of a machine only ever adds time, and comes in bursts. The best of three neighbouring blocks drops a burst that hits
one of them; going round over the sizes spreads a drift of the machine over all of them. Time for which others had the CPU
is left out: where it lasts longer than all calls, they would seem to cost the same at all sizes.
"""

from __future__ import annotations

import gc
import math
import pickle
import re
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from perflaw.confidence import WORDS
from perflaw.errors import UsageError
from perflaw.learn.series import Series, learn
from perflaw.learn.series.series import without_garbage_collection
from perflaw.report.law_words import law_text
from perflaw.report.quantity import duration, number
from perflaw.types import Law

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

    def queued_ns(self) -> int:
        """Time for which this thread was ready to run while others had the CPU, ns; 0 by a clock that a test brings."""
        if self.clock is not time.perf_counter_ns:
            return 0
        try:
            return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
        except (OSError, IndexError):  # a kernel that does not tell
            return 0

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
    with without_garbage_collection():
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
            for n in order:
                # Time per call of the best block.
                best = math.inf
                shared = None if fresh else [subject.arguments(n)] * calls[n]
                for _ in range(BLOCKS):
                    prepared = shared or [subject.arguments(n) for _ in range(calls[n])]
                    best = min(best, _block(subject, prepared) / calls[n])
                    if best * calls[n] >= LONG_NS:
                        break
                measurements.append(Measurement(n, best, calls[n]))
    return Sample(tuple(measurements), fresh)


def _block(subject: Subject, prepared: list[tuple[object, ...]]) -> int:
    """Time of a call with each of the arguments, ns, without what the thread was queued for a CPU meanwhile."""
    function, clock = subject.function, subject.clock
    queued, cpu = subject.queued_ns(), time.thread_time_ns()
    begin = clock()
    for arguments in prepared:
        function(*arguments)
    spent = clock() - begin
    cpu, queued = time.thread_time_ns() - cpu, subject.queued_ns() - queued
    # It may have been queued just before or behind the calls, which took their CPU time at least.
    return min(spent, max(spent - queued, cpu)) if queued else spent


_POWER = r"n(?:\s*(?:\^|\*\*)\s*(?P<exponent>\d+(?:\.\d+)?))?"
_LOG = r"log\s*\(?\s*n\s*\)?"
_POLYNOMIAL = re.compile(rf"{_POWER}(?:\s*[*·]?\s*(?P<log>{_LOG}))?|(?P<only>{_LOG})|(?P<one>1)")
_EXPONENTIAL = re.compile(r"(?P<base>\d+(?:\.\d+)?)\s*(?:\^|\*\*)\s*n")


@dataclass(frozen=True, slots=True)
class Bound:
    """n^exponent · (log n)^logs · base^n."""

    text: str
    """As the person wrote it."""
    exponent: float = 0.0
    """Exponent of n."""
    logs: float = 0.0
    """Exponent of log n."""
    base: float = 1.0
    """Base of the exponential factor base^n; 1 if there is none."""

    def local_exponent(self, n: float) -> float:
        """Derivative d log bound / d log n at n > 1, with which the slope of a law is compared.

        >>> round(Bound("n log n", 1, 1).local_exponent(1000), 3)
        1.145
        """
        return self.exponent + self.logs / math.log(max(n, math.e)) + n * math.log(self.base)


def parse_bound(text: str) -> Bound:
    """Read a bound such as ``1``, ``log n``, ``n``, ``n log n``, ``n^2``, ``n**1.5``, ``n^2 log n`` or ``2^n``.

    ``O(…)`` around it is allowed. UsageError lists the forms of bounds.

    >>> parse_bound("n**1.5").exponent, parse_bound("O(n^2 log n)").logs, parse_bound("2^n").base
    (1.5, 1.0, 2.0)
    """
    stripped = text.strip().lower()
    inner = re.fullmatch(r"o\((.*)\)", stripped)
    core = inner[1].strip() if inner else stripped
    polynomial = _POLYNOMIAL.fullmatch(core)
    if polynomial:
        if polynomial["one"]:
            return Bound(text)
        if polynomial["only"]:
            return Bound(text, logs=1.0)
        return Bound(text, float(polynomial["exponent"] or 1), 1.0 if polynomial["log"] else 0.0)
    exponential = _EXPONENTIAL.fullmatch(core)
    if exponential and float(exponential["base"]) > 1:
        return Bound(text, base=float(exponential["base"]))
    why = "bounds are 1, log n, n, n log n, n^2, n**1.5, n^2 log n, 2^n and the like"
    raise UsageError(f"at_most={text!r} is no bound of growth", why, 'at_most="n log n"')


MARGIN = 0.25
"""Exponents may exceed the bound's by this: with caches and allocators, linear code grows as n^1.1 to n^1.2."""
MEMORY_GROWTH_NS = {True: 5_000.0, False: 200.0}
"""Smaller growth comes from memory: the first access to distant data, with own arguments (True) or shared ones."""
MIN_SIZES = 5
"""With this many sizes, a permutation test can reject "no dependence" at 1 %."""

MIN_ROUNDS = 3


class ScalingError(AssertionError):
    """A function grows faster than its bound."""


class ScalingWarning(UserWarning):
    """The measurements do not settle whether a function keeps its bound."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The growth of a function, compared with a bound."""

    name: str
    """The function's name."""
    bound: Bound
    """The bound."""
    margin: float
    """How much its exponent may exceed the bound's."""
    law: Law
    """Its law of time, ns."""
    measurements: tuple[Measurement, ...]
    """The measurements from which the law was learnt."""
    growth_ns: float
    """By the law, the time of a call at the largest size minus that at the smallest."""
    fresh: bool
    """Whether every call had its own arguments."""

    @property
    def top(self) -> int:
        """The largest size."""
        return max(one.size for one in self.measurements)

    @property
    def allowed(self) -> float:
        """Largest local exponent at the largest size that keeps the bound."""
        local = self.bound.local_exponent(self.top)
        return local + self.margin * max(1.0, local)

    @property
    def verdict(self) -> Literal["holds", "violated", "inconclusive"]:
        """Position of the interval of the local exponent; growth that comes from memory violates no bound."""
        low, high = self.law.slope_low.get("n", 0.0), self.law.slope_high.get("n", 0.0)
        if low > self.allowed and self.growth_ns >= MEMORY_GROWTH_NS[self.fresh]:
            return "violated"
        return "holds" if high <= self.allowed else "inconclusive"

    def __str__(self) -> str:
        """The comparison, the law and the table of measurements."""
        low, now, high = (ends.get("n", 0.0) for ends in (self.law.slope_low, self.law.slope, self.law.slope_high))
        local = self.bound.local_exponent(self.top)
        rows = len(self.measurements)
        # Median and range at every size, and the growth from the size before.
        by_size: dict[int, list[float]] = {}
        for one in self.measurements:
            by_size.setdefault(one.size, []).append(one.ns)
        lines = [f"{'n':>12}  {'time per call':>14}  {'from':>9}  {'to':>9}  {'growth':>7}"]
        before: tuple[int, float] | None = None
        for n, times in sorted(by_size.items()):
            middle = statistics.median(times)
            growth = ""
            if before and before[1] > 0 and middle > 0:
                growth = f"n^{np.log(middle / before[1]) / np.log(n / before[0]):.2f}"
            least, most = duration(min(times)), duration(max(times))
            lines.append(f"{number(n):>12}  {duration(middle):>14}  {least:>9}  {most:>9}  {growth:>7}".rstrip())
            before = n, middle
        return (
            f"{self.name} grows as n^{now:.2f} ({WORDS}: {low:.2f} to {high:.2f}) at n = {number(self.top)};"
            f" {self.bound.text} is n^{local:.2f} there, and up to n^{self.allowed:.2f} is allowed\n"
            f"law: {law_text(self.law, 'ns')}, {self.law.family}, from {rows} measurements\n" + "\n".join(lines)
        )


def assert_scales(
    function: Function,
    sizes: Sequence[int],
    at_most: str = "n",
    make: Make | None = None,
    repeats: int = 5,
    margin: float = MARGIN,
    clock: Clock = time.perf_counter_ns,
) -> Scaling:
    """Fail if ``function`` grows faster than ``at_most`` over ``sizes``; warn if that stays open.

    ``make(n)`` gives the function's argument, or a tuple of arguments, and is not timed; without it, the function is called
    with n. ``repeats`` rounds go over all sizes. Exponents may exceed the bound's by ``margin``.

    Returns the comparison. Raises ScalingError (an AssertionError) on a violation found twice, UsageError on sizes
    or bounds that cannot be used; warns with ScalingWarning where the answer is inconclusive.
    """
    __tracebackhide__ = True
    chosen = tuple(sorted(set(sizes)))
    if len(chosen) < MIN_SIZES or chosen[0] < 1:
        why = f"at least {MIN_SIZES} different sizes from 1 on are needed to see growth"
        remedy = "sizes=[100, 300, 1000, 3000, 10_000]"
        raise UsageError(f"assert_scales over the sizes {', '.join(map(str, sizes)) or '(none)'}", why, remedy)
    if repeats < MIN_ROUNDS:
        why = f"at least {MIN_ROUNDS} rounds distinguish growth from noise"
        raise UsageError(f"repeats={repeats}", why, "repeats=5")
    bound, sizes = parse_bound(at_most), chosen
    subject = Subject(function, make, clock)
    name = getattr(function, "__qualname__", repr(function))
    first = measure(subject, sizes, repeats)
    scaling = _compare(name, bound, margin, first)
    if scaling.verdict != "violated":
        _warn(scaling)
        return scaling
    second = measure(subject, sizes, repeats)
    both = _compare(name, bound, margin, Sample(first.measurements + second.measurements, first.fresh))
    if both.verdict == "violated" and _compare(name, bound, margin, second).verdict == "violated":
        raise ScalingError(str(both))
    _warn(both)
    return both


def _compare(name: str, bound: Bound, margin: float, sample: Sample) -> Scaling:
    """Learn the law of the measurements, for comparison with the bound."""
    sizes = np.array([float(one.size) for one in sample.measurements])
    # A clock that does not move shows 0; half a step stands for it, as times have logarithms.
    times = np.array([max(one.ns, 0.5 / one.calls) for one in sample.measurements])
    quantum = 1.0 / max(one.calls for one in sample.measurements)
    learnt = learn([Series(name, times, {"n": sizes}, quantum=quantum)], at=[])[0]
    low, high = learnt.mean({"n": np.array([sizes.min(), sizes.max()])}).tolist()
    return Scaling(name, bound, margin, learnt.law, sample.measurements, high - low, sample.fresh)


def _warn(scaling: Scaling) -> None:
    """Warn of an open question, at the line of the test that asked it."""
    if scaling.verdict != "holds":
        message = f"inconclusive: {scaling}\nadd larger sizes, or repeats"
        warnings.warn(ScalingWarning(message), stacklevel=3)


class Perflaw:
    """The ``perflaw`` fixture: assertions about how code grows."""

    assert_scales = staticmethod(assert_scales)
