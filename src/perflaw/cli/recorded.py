"""What ``perflaw record`` says of the runs it made: warnings, the line that ends every recording, and its exit status."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from perflaw.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from perflaw.record.conclude import Outcome
    from perflaw.record.plan import PlannedRun
    from perflaw.record.session import Attempt
    from perflaw.types import Run

OVER: Final = 124
"""Exit status of a run over its time that ended with status 0 nevertheless; that of ``timeout``."""


def warn_of_others(experiment: str, others: set[str], attempts: Sequence[Attempt]) -> None:
    """An experiment holds one target: laws over two programs are of neither."""
    now = {attempt.outcome.run.target for attempt in attempts if attempt.outcome}
    if others - now and now:
        names = ", ".join(sorted(others - now))
        click.echo(
            f"perflaw: experiment {experiment} holds runs of {names} as well; -e NAME keeps programs apart", err=True
        )


def warn_unmeasured(asked: tuple[str, ...], attempts: Sequence[Attempt]) -> None:
    """A metric that was asked for and could not be measured is not passed over in silence."""
    from perflaw.record.metrics import names_of

    for run in [attempt.outcome.run for attempt in attempts if attempt.outcome][:1]:
        missing = [name for name in names_of(asked) if name not in {metric.name for metric in run.metrics}]
        if missing:
            why = run.words.get("metrics") or f"the tracer cannot ({run.tracer})"
            click.echo(f"perflaw: not measured: {', '.join(missing)}: {why}", err=True)


def warn_uncounted(attempts: Sequence[Attempt]) -> None:
    """What the tracer says of branches that are not among the outcomes, and of lines that are not among the counts."""
    for topic in ("branches", "lines", "probes"):
        told = {attempt.outcome.run.words.get(topic, "") for attempt in attempts if attempt.outcome}
        for words in sorted(filter(None, told)):
            click.echo(f"perflaw: {topic}: {words}", err=True)


def warn_of_fallback(wish: str, attempts: Sequence[Attempt]) -> None:
    """The pure-Python tracer slows a program down far more than the native one: say why that is not there."""
    tracers = {attempt.outcome.run.tracer for attempt in attempts if attempt.outcome}
    for tracer in sorted(tracers):
        name, _, why = tracer.partition(": ")
        if wish == "auto" and name == "python":
            click.echo(f"perflaw: recorded by the slower pure-Python tracer: {why}", err=True)


def tell_build(text: str) -> None:
    """What is being compiled, which takes a while once: for a person who waits."""
    if sys.stderr.isatty():
        click.echo(text, nl=False, err=True)


def tell_failure(attempt: Attempt, told: set[str]) -> None:
    """Say what went wrong with a run; what went wrong with an earlier one in the same way is not said again."""
    label = f" of {attempt.planned.label}" if attempt.planned.label else ""
    if attempt.error and str(attempt.error) not in told:
        told.add(str(attempt.error))
        click.echo(f"perflaw: run{label}: {attempt.error}", err=True)
    elif attempt.outcome and not attempt.outcome.run.complete:
        run = attempt.outcome.run
        click.echo(f"perflaw: run {run.id}{label} is incomplete: {run.ended}; what completed is kept", err=True)
    elif attempt.outcome:
        for problem in attempt.outcome.problems:
            click.echo(f"perflaw: run {attempt.outcome.run.id}{label}: {problem}", err=True)


def conclude(folder: Path, attempts: Sequence[Attempt], left: int, select: tuple[str, ...]) -> int:
    """The one line that ends every recording, and the exit status. ``left``: planned runs that were not begun."""
    outcomes = [attempt.outcome for attempt in attempts if attempt.outcome]
    kept = [outcome.run for outcome in outcomes if outcome.folder]
    if outcomes and not kept and not any(outcome.run.status for outcome in outcomes):
        raise _nothing_selected(outcomes, select)
    if kept:
        children = [run for outcome in outcomes for run in outcome.children]
        lines = max(outcome.lines for outcome in outcomes)
        click.echo(_summary(folder, kept, children, _also(outcomes, lines)), err=True)
    interrupted = next((outcome.interrupted for outcome in outcomes if outcome.interrupted), None)
    if interrupted is not None:
        if left:
            click.echo(f"perflaw: {left} planned run{'s' * (left != 1)} left: --resume goes on with them", err=True)
        return 128 + interrupted
    return _status(outcomes, attempts)


def _status(outcomes: Sequence[Outcome], attempts: Sequence[Attempt]) -> int:
    """The status of the first program that failed, else 2 where something else could not be done."""
    failed = next((status for one in outcomes if (status := one.run.status or OVER * one.over)), 0)
    errors = [attempt.error for attempt in attempts if attempt.error]
    unread = any(one.problems for one in outcomes if one.run.complete)
    return failed or next((error.status for error in errors if error.status), 2 if errors or unread else 0)


def _nothing_selected(outcomes: Sequence[Outcome], select: tuple[str, ...]) -> UsageError:
    seen = ", ".join(outcomes[0].unselected[:5]) or "nothing"
    what = "nothing selected: no function that ran matches " + " or ".join(select)
    return UsageError(what, f"seen among others: {seen}", "perflaw record without --select, then perflaw annotate")


def _also(outcomes: Sequence[Outcome], lines: int) -> str:
    """What was recorded beside calls, in words."""
    from perflaw.report.quantity import count

    records, probes = sum(one.probe_records for one in outcomes), max(one.probes for one in outcomes)
    told = f", {count(lines)} lines counted" * bool(lines)
    return told + f", {count(records)} record{'s' * (records != 1)} of {probes} probe{'s' * (probes != 1)}" * bool(
        records
    )


def _summary(folder: Path, runs: list[Run], children: list[Run], also: str) -> str:
    """What was recorded, what it cost, what is missing, and where it is."""
    from perflaw.report.quantity import count

    every = runs + children
    calls, functions = sum(run.calls for run in every), max(run.functions for run in every)
    slowdown = f"slowdown {statistics.median(run.slowdown for run in runs):.1f}x"
    if not any(run.metrics for run in runs):
        slowdown = "execution counts alone"  # gcc's coverage does not say what it costs
    what = f"{len(runs)} run{'s' * (len(runs) != 1)} of {runs[0].target}"
    if children:
        what += f" and {len(children)} child process{'es' * (len(children) != 1)}"
    return (
        f"recorded {what}, {functions} functions, {count(calls)} calls{also}"
        f" · {slowdown} · {_missing(runs, every)} · {folder}"
    )


def _missing(runs: list[Run], every: list[Run]) -> str:
    """What is missing, in words; how a child ended is its parent's affair, so only the programs can be incomplete."""
    lost = [run.lost for run in every]
    incomplete = sum(not run.complete for run in runs)
    opened, missed = sum(each.open_invocations for each in lost), sum(each.missed_calls for each in lost)
    folded = sum(each.folded_calls for each in lost)
    told = [
        f"{incomplete} incomplete" * bool(incomplete),
        f"{_calls(opened)} had not ended" * bool(opened),
        f"{_calls(missed)} missed" * bool(missed),
        f"{_records(sum(each.probe_records for each in lost))} of probes lost"
        * any(each.probe_records for each in lost),
        f"contexts of {_calls(folded)} not kept apart" * bool(folded),
    ]
    return ", ".join(filter(None, told)) or "nothing lost"


def _records(number: int) -> str:
    return f"{number} record{'s' * (number != 1)}"


def _calls(number: int) -> str:
    return f"{number} call{'s' * (number != 1)}"


# ---- How far a recording is and what time is left, on a terminal; nothing on a pipe.


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

        >>> from perflaw.record.plan import PlannedRun
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
