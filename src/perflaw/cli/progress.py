"""How far a recording is and what time is left, on a terminal; nothing on a pipe."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from perflaw.collect.plan import PlannedRun
    from perflaw.collect.session import Attempt


class TimeLeft:
    """Time that the rest of a plan will take, from the runs made so far."""

    def __init__(self, planned: Sequence[PlannedRun]) -> None:
        self.left = [one.label for one in planned]
        self.took: dict[str, list[float]] = {}
        """Workload and values → seconds of each run of it."""

    def ended(self, label: str, seconds: float) -> None:
        """The first of the runs left is made."""
        self.left.pop(0)
        self.took.setdefault(label, []).append(seconds)

    def seconds(self) -> float:
        """A run takes what earlier ones of its workload and values took, else what the longest so far did.

        The longest, for sizes are mostly given in rising order; so it is rather too little than too much in the first round.

        >>> from perflaw.collect.plan import PlannedRun
        >>> some = [PlannedRun((), {"n": n}) for n in ("1", "2", "1", "2")]
        >>> rest = TimeLeft(some)
        >>> for label, seconds in (("n=1", 1), ("n=2", 4), ("n=1", 2)): rest.ended(label, seconds)
        >>> rest.seconds()
        4
        """
        longest = max((max(times) for times in self.took.values()), default=0.0)
        return sum(statistics.median(self.took[label]) if label in self.took else longest for label in self.left)


def words(seconds: float) -> str:
    """A time to wait.

    >>> words(0.4), words(75), words(4000), words(200_000)
    ('a second', '1 min 15 s', '1 h 6 min', '2 d 7 h')
    """
    whole = round(seconds)
    for unit, name, below, lower in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            return f"{whole // unit} {name} {whole % unit // below} {lower}"
    return f"{whole} s" if whole > 1 else "a second"


def with_progress(attempts: Iterator[Attempt], planned: Sequence[PlannedRun]) -> Iterator[Attempt]:
    """The same attempts; meanwhile a bar, if there is more than one to come and a person to see it."""
    rest = TimeLeft(planned)
    hidden = len(planned) < 2 or not sys.stderr.isatty()
    with click.progressbar(
        length=len(planned),
        label="recording",
        file=sys.stderr,
        hidden=hidden,
        show_eta=False,
        show_pos=True,
        item_show_func=lambda text: text,
    ) as bar:
        for attempt in attempts:
            took = attempt.outcome.run.wall_ns / 1e9 if attempt.outcome else 0.0
            rest.ended(attempt.planned.label, took)
            yield attempt
            bar.update(1, f"about {words(rest.seconds())} left" if rest.left else "")
