"""``assert_scales``: a function's growth held against a bound. It fails on growth, never on noise.

The rule, in three steps. (1) A law is learnt of all measurements; its local exponent at the largest size has a 95 %
interval over all laws not told apart. (2) Where the interval lies above the bound's own exponent there by more than a
margin, everything is measured anew, and only where both samples say so it is a violation. (3) Where the interval lies
below, the bound holds; where it holds both, the answer is inconclusive, which warns and does not fail.
"""

from __future__ import annotations

import math
import re
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from perflaw.errors import UsageError
from perflaw.learn.series import Series, learn
from perflaw.pytest_plugin.measure import Clock, Function, Make, Measurement, Sample, Subject, measure
from perflaw.report.law_words import law_text
from perflaw.report.quantity import duration, number
from perflaw.types import Law

# ---- Bounds of growth as people write them: ``1``, ``log n``, ``n``, ``n log n``, ``n^2``, ``n**1.5``, ``n^2 log
# n``, ``2^n``.

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
    """What is raised to the power of n; 1 where nothing is."""

    def local_exponent(self, n: float) -> float:
        """Derivative d log bound / d log n at n > 1: what a law's slope there is held against.

        >>> round(Bound("n log n", 1, 1).local_exponent(1000), 3)
        1.145
        """
        return self.exponent + self.logs / math.log(max(n, math.e)) + n * math.log(self.base)


def parse_bound(text: str) -> Bound:
    """Read a bound; ``O(…)`` around it is allowed. UsageError names the forms there are.

    >>> parse_bound("n**1.5").exponent, parse_bound("O(n^2 log n)").logs, parse_bound("2^n").base
    (1.5, 1.0, 2.0)
    """
    stripped = text.strip().lower()
    inner = re.fullmatch(r"o\((.*)\)", stripped)
    core = inner[1].strip() if inner else stripped
    found = _POLYNOMIAL.fullmatch(core)
    if found:
        if found["one"]:
            return Bound(text)
        if found["only"]:
            return Bound(text, logs=1.0)
        return Bound(text, float(found["exponent"] or 1), 1.0 if found["log"] else 0.0)
    grown = _EXPONENTIAL.fullmatch(core)
    if grown and float(grown["base"]) > 1:
        return Bound(text, base=float(grown["base"]))
    raise UsageError(
        f"at_most={text!r} is no bound of growth",
        "bounds are 1, log n, n, n log n, n^2, n**1.5, n^2 log n, 2^n and the like",
        'at_most="n log n"',
    )


MARGIN = 0.25
"""Exponents may exceed the bound's by this: caches and allocators make honest linear code grow as n^1.1 to n^1.2."""

TOUCH_NS = {True: 5_000.0, False: 200.0}
"""Growth by less is the memory's: the first touch of data that lie nowhere near, with arguments of its own or shared."""

FEWEST_SIZES = 5
"""From so many sizes on, permutations can reject "no dependence" at 1 %."""

FEWEST_ROUNDS = 3


class ScalingError(AssertionError):
    """A function grows faster than its bound."""


class ScalingWarning(UserWarning):
    """The measurements do not settle whether a function keeps its bound."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What was found about a function's growth."""

    name: str
    """The function's name."""
    bound: Bound
    """What it was held against."""
    margin: float
    """How much its exponent may exceed the bound's."""
    law: Law
    """Its law of time, ns."""
    measurements: tuple[Measurement, ...]
    """What the law was learnt from."""
    grown_ns: float
    """How much longer a call takes at the largest size than at the smallest, by the law."""
    fresh: bool
    """Every call had arguments of its own."""

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
        """Where the interval of the local exponent lies; growth that is the memory's violates nothing."""
        low, high = self.law.slope_low.get("n", 0.0), self.law.slope_high.get("n", 0.0)
        if low > self.allowed and self.grown_ns >= TOUCH_NS[self.fresh]:
            return "violated"
        return "holds" if high <= self.allowed else "inconclusive"

    def __str__(self) -> str:
        """The finding, the law and the table."""
        low, now, high = (ends.get("n", 0.0) for ends in (self.law.slope_low, self.law.slope, self.law.slope_high))
        local = self.bound.local_exponent(self.top)
        rows = len(self.measurements)
        return (
            f"{self.name} grows as n^{now:.2f} (95 %: {low:.2f} to {high:.2f}) at n = {number(self.top)};"
            f" {self.bound.text} is n^{local:.2f} there, and up to n^{self.allowed:.2f} is allowed\n"
            f"law: {law_text(self.law, 'ns')}, {self.law.family}, from {rows} measurements\n"
            + _table(self.measurements)
        )


def _table(measurements: Sequence[Measurement]) -> str:
    """Median and range of every size, and the growth since the size before."""
    by_size: dict[int, list[float]] = {}
    for one in measurements:
        by_size.setdefault(one.size, []).append(one.ns)
    lines = [f"{'n':>12}  {'time per call':>14}  {'from':>9}  {'to':>9}  {'growth':>7}"]
    before: tuple[int, float] | None = None
    for n, times in sorted(by_size.items()):
        middle = statistics.median(times)
        growth = ""
        if before and before[1] > 0 and middle > 0:
            growth = f"n^{np.log(middle / before[1]) / np.log(n / before[0]):.2f}"
        low, high = duration(min(times)), duration(max(times))
        lines.append(f"{number(n):>12}  {duration(middle):>14}  {low:>9}  {high:>9}  {growth:>7}".rstrip())
        before = n, middle
    return "\n".join(lines)


def assert_scales(
    function: Function,
    sizes: Sequence[int],
    at_most: str = "n",
    make: Make | None = None,
    repeats: int = 5,
    margin: float = MARGIN,
    clock: Clock = time.perf_counter_ns,
) -> Scaling:
    """Fail where ``function`` grows faster than ``at_most`` over ``sizes``; warn where that is not settled.

    ``make(n)`` gives its argument, or a tuple of them, freshly for every call and outside of the timing; without it the
    function is called with n. ``repeats`` rounds go over all sizes. Exponents may exceed the bound's by ``margin``.

    Returns what was found. Raises ScalingError (an AssertionError) on a violation found twice, UsageError on sizes
    or bounds that cannot be used; warns with ScalingWarning where the answer is inconclusive.
    """
    __tracebackhide__ = True
    bound, sizes = parse_bound(at_most), _checked(sizes, repeats)
    subject = Subject(function, make, clock)
    name = getattr(function, "__qualname__", repr(function))
    first = measure(subject, sizes, repeats)
    found = _found(name, bound, margin, first)
    if found.verdict != "violated":
        _warn(found)
        return found
    second = measure(subject, sizes, repeats)
    both = _found(name, bound, margin, Sample(first.measurements + second.measurements, first.fresh))
    if both.verdict == "violated" and _found(name, bound, margin, second).verdict == "violated":
        raise ScalingError(str(both))
    _warn(both)
    return both


def _checked(sizes: Sequence[int], repeats: int) -> tuple[int, ...]:
    """Sizes in order, each once; UsageError where no growth can be seen over them."""
    chosen = tuple(sorted(set(sizes)))
    if len(chosen) < FEWEST_SIZES or chosen[0] < 1:
        raise UsageError(
            f"assert_scales over the sizes {', '.join(map(str, sizes)) or '(none)'}",
            f"at least {FEWEST_SIZES} different sizes from 1 on are needed to tell a growth",
            "sizes=[100, 300, 1000, 3000, 10_000]",
        )
    if repeats < FEWEST_ROUNDS:
        raise UsageError(f"repeats={repeats}", f"at least {FEWEST_ROUNDS} rounds tell growth from noise", "repeats=5")
    return chosen


def _found(name: str, bound: Bound, margin: float, sample: Sample) -> Scaling:
    """The law of measurements, held against the bound."""
    learnt = learn([_series(name, sample.measurements)], at=[])[0]
    sizes = [one.size for one in sample.measurements]
    low, high = learnt.mean({"n": np.array([min(sizes), max(sizes)], dtype=float)}).tolist()
    return Scaling(name, bound, margin, learnt.law, sample.measurements, high - low, sample.fresh)


def _series(name: str, measurements: Sequence[Measurement]) -> Series:
    n = np.array([float(one.size) for one in measurements])
    # A clock that does not move shows 0; half a step stands for it, as times have logarithms.
    ns = np.array([max(one.ns, 0.5 / one.calls) for one in measurements])
    return Series(name, ns, {"n": n}, quantum=1.0 / max(one.calls for one in measurements))


def _warn(found: Scaling) -> None:
    """Tell an open question, at the line of the test that asked it."""
    if found.verdict == "holds":
        return
    advice = "add larger sizes, or repeats"
    warnings.warn(ScalingWarning(f"inconclusive: {found}\n{advice}"), stacklevel=3)
