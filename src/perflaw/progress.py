"""Progress of long work: how far it is, and an honest estimate of the time that is left.

The work only stores two numbers when it tells how far it is. A thread of its own draws what they mean, four times a
second, so that showing progress costs the work nothing that can be measured. Whoever shows it (a terminal, a notebook)
gives the function that draws a text.
"""

from __future__ import annotations

import statistics
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

SHOWN_AFTER_S: Final = 1.0
"""Work that takes less shows nothing."""
DRAWN_EVERY_S: Final = 0.25
"""Time between two drawings."""
LEAST_PART: Final = 0.02
"""Part of the work from which the time left is told: of less, the speed is not known."""
RECENT_S: Final = 15.0
"""Newest time in which it is measured how much of a CPU this process gets beside others."""
LEAST_RATE: Final = 0.01
"""Smallest such share, so that a process that gets nothing for a while still tells a time."""
STEADY_RUNS: Final = 2
"""Sizes whose run time has been measured, from which that of other sizes is extrapolated."""
MOST_EXPONENT: Final = 3.0
"""Steepest growth with the size that is assumed of runs not made yet."""


def waited_for_cpu() -> float:
    """Seconds in which this process's main thread was ready to run but had no CPU; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class RemainingTime:
    """Estimates the time left from the parts of the work that were told and when.

    The speed is that of the newer half of the time, so that an estimate follows work whose speed changes. Time in which
    other processes had the CPU is not counted there: how much of it is to be expected is measured by itself, over the
    newest seconds, because load comes and goes whatever the work does.
    """

    def __init__(self, began: float, waited: Callable[[], float] = lambda: 0.0) -> None:
        """``waited`` gives the seconds that the process has waited for a CPU so far."""
        self._waited = waited
        self._samples = deque([(began, waited())])
        """Times of the newest seconds, and the seconds waited until then."""
        self._times, self._parts = [self._usable(began)], [0.0]
        self._left: float | None = None
        """Usable seconds left when a part was told last, or all seconds where the work told them; None: not known yet."""
        self._by_work = False
        """Whether the work told the seconds itself."""

    def tell(self, now: float, part: float, left_s: float | None = None) -> None:
        """At ``now`` (in seconds) this part is done, 0 to 1; ``left_s`` where the work itself knows what is left."""
        usable = self._usable(now)
        if part > self._parts[-1]:
            self._times.append(usable)
            self._parts.append(part)
        self._by_work = left_s is not None
        self._left = left_s if left_s is not None else self._by_speed(usable)
        self._told_at = now if self._by_work else usable

    def seconds(self, now: float) -> float | None:
        """Seconds left at ``now``; None as long as nothing can be said.

        Between two parts the time runs down. If the next part is overdue, the estimate grows again with the silence.
        """
        usable = self._usable(now)
        if self._left is None:
            return None
        silence = (now if self._by_work else usable) - self._told_at
        if silence <= self._left or len(self._parts) < 2:
            left = max(self._left - silence, 0.0)
            return left if self._by_work else left / self._rate()
        overdue = self._by_speed(usable)
        return None if overdue is None else overdue / self._rate()

    def _usable(self, now: float) -> float:
        """``now`` less the time waited for a CPU; remembers both for the newest seconds."""
        waited = self._waited()
        self._samples.append((now, waited))
        while len(self._samples) > 2 and self._samples[1][0] <= now - RECENT_S:
            self._samples.popleft()
        return now - waited

    def _rate(self) -> float:
        """The part of the newest seconds in which the process did not wait for a CPU."""
        (since, before), (now, waited) = self._samples[0], self._samples[-1]
        return max(1.0 - (waited - before) / (now - since), LEAST_RATE) if now > since else 1.0

    def _by_speed(self, usable: float) -> float | None:
        """Usable seconds left, by the speed of the newer half of the usable time."""
        part = self._parts[-1]
        if part < LEAST_PART:
            return None
        half = bisect_left(self._times, (self._times[0] + usable) / 2) - 1
        since = min(max(half, 0), len(self._parts) - 2)  # at least the last part that was told
        return (1.0 - part) * (usable - self._times[since]) / (part - self._parts[since])


def duration_words(seconds: float) -> str:
    """A time to wait, in words.

    >>> duration_words(0.4), duration_words(75), duration_words(4000), duration_words(200_000)
    ('a second', '1 min 15 s', '1 h 6 min', '2 d 7 h')
    """
    whole = round(seconds)
    for unit, name, below, lower in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            return f"{whole // unit} {name} {whole % unit // below} {lower}"
    return f"{whole} s" if whole > 1 else "a second"


class RunTimes:
    """Run times of a plan: of the runs made, and what is expected of those that are left."""

    def __init__(self, planned: Sequence[tuple[str, float | None]]) -> None:
        """``planned``: label and size of every run, in order; the size is None where there is no one number."""
        self.left = list(planned)
        self.took: dict[str, list[float]] = {}
        """Label → seconds of each run."""
        self._sizes: dict[str, float | None] = dict(planned)

    def ended(self, seconds: float) -> None:
        """The first of the remaining runs has ended."""
        label, _ = self.left.pop(0)
        self.took.setdefault(label, []).append(seconds)

    def expected(self, label: str, size: float | None) -> float:
        """Seconds that a run takes: the median of its label; else by the power law of the sizes; else the longest so far."""
        if label in self.took:
            return statistics.median(self.took[label])
        longest = max((max(times) for times in self.took.values()), default=0.0)
        points = sorted(
            (known, statistics.median(times)) for one, times in self.took.items() if (known := self._sizes[one])
        )
        if not size or size <= 0 or len(points) < STEADY_RUNS or points[0][0] <= 0:
            return longest
        from math import log

        (x1, y1), (x2, y2) = points[-2:]  # the largest sizes: small runs are mostly the start of the program
        exponent = log(max(y2, 1e-9) / max(y1, 1e-9)) / log(x2 / x1)
        return float(y2 * (size / x2) ** min(max(exponent, 0.0), MOST_EXPONENT))

    def seconds(self) -> float:
        """Seconds that the rest of the plan takes.

        >>> times = RunTimes([("n=1", 1.0), ("n=2", 2.0), ("n=4", 4.0), ("n=4", 4.0)])
        >>> for seconds in (1.0, 4.0): times.ended(seconds)
        >>> times.seconds()
        32.0
        """
        return sum(self.expected(label, size) for label, size in self.left)


class Work:
    """A piece of work in progress, drawn by a thread until it is closed."""

    def __init__(
        self,
        label: str,
        draw: Callable[[str], None],
        clock: Callable[[], float] = monotonic,
        *,
        ticking: bool = True,
    ) -> None:
        """``draw`` shows one line of text in place of the last one. Without ``ticking`` it is drawn when told alone."""
        self.label = label
        self._draw, self._clock = draw, clock
        self._began = clock()
        self._told: tuple[float, float | None, str] = (0.0, None, "")
        self._taken: tuple[float, float | None, str] | None = None
        self._remaining = RemainingTime(self._began, waited_for_cpu)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if ticking:
            self._thread = threading.Thread(target=self._tick, name="perflaw-progress", daemon=True)
            self._thread.start()

    def show(self, part: float, left_s: float | None = None, text: str = "") -> None:
        """Tell the part of the work that is done, 0 to 1, the seconds left where the work knows them, and what else to show."""
        self._told = (part, left_s, text)
        if self._thread is None:
            self.draw()

    def draw(self) -> None:
        """Draw the present state, if the work takes long enough to be shown."""
        now, told = self._clock(), self._told
        if told is not self._taken:
            self._taken = told
            self._remaining.tell(now, *told[:2])
        if now - self._began >= SHOWN_AFTER_S:
            self._draw(self.line(now))

    def line(self, now: float) -> str:
        """One line: what is done, how far it is, and the time left, or the time it has taken where no part is known."""
        part, _, text = self._told
        left = self._remaining.seconds(now)
        done = round(20 * min(part, 1.0))
        words = (
            [f"{self.label} [{'#' * done}{'-' * (20 - done)}] {part:.0%}".replace("%", " %")] if part else [self.label]
        )
        if left is not None and part < 1.0:
            words.append(f"about {duration_words(left)} left")
        elif not part:
            words.append(duration_words(now - self._began))
        words += [text] * bool(text)  # last, as a narrow terminal cuts the line
        return " · ".join(words)

    def close(self) -> float:
        """The work is over: stops drawing; returns the seconds that it took."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(1.0)
        return self._clock() - self._began

    def _tick(self) -> None:
        while not self._over.wait(DRAWN_EVERY_S):
            with suppress(OSError, ValueError):  # the terminal has gone; that is not the work's affair
                self.draw()
