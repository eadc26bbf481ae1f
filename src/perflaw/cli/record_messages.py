"""What ``perflaw record`` prints: warnings, progress, the line that ends every recording; and its exit status."""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from perflaw.cli.progress import QUIET, detail, note, problem, seconds_words, step, tell, verbosity
from perflaw.errors import StoreError, UsageError
from perflaw.progress import RunTimes
from perflaw.report.advice import command
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from pathlib import Path

    from perflaw.record.plan import PlannedRun
    from perflaw.record.saving import Outcome
    from perflaw.record.session import Attempt
    from perflaw.store.experiment import Experiment
    from perflaw.types import Run

ENOUGH_SIZES: Final = 4
"""Sizes of a varied number from which a law can be learnt in plain cases."""
VAGUE: Final = 1.5
"""Ratio of the bounds of a slowdown from which both are told."""
OVER: Final = 124
"""Exit status for a run over its time limit that ended with status 0 nevertheless; ``timeout`` uses the same."""


def print_build(text: str) -> None:
    """Print what is being compiled, which takes a while once, for a person who waits."""
    if sys.stderr.isatty() and verbosity() > QUIET:
        click.echo(text, nl=False, err=True)


def print_warnings(runs: Sequence[Run], tracer: str, metrics: tuple[str, ...]) -> None:
    """Warn about a slow tracer, what times mean, metrics that were not measured, and missing branches, lines and probes."""
    from perflaw.record.metrics import metric_names

    for used in sorted({run.tracer for run in runs}):
        name, _, why = used.partition(": ")
        if tracer == "auto" and name == "python":  # it slows a program down far more
            note(f"recorded by the slower pure-Python tracer: {why}")
    for run in runs[:1]:
        missing = [name for name in metric_names(metrics) if name not in {metric.name for metric in run.metrics}]
        if missing:
            why = run.words.get("metrics") or f"the tracer cannot ({run.tracer})"
            note(f"not measured: {', '.join(missing)}: {why}")
    for topic in ("times", "rings", "inject", "branches", "lines", "probes"):
        for message in sorted(filter(None, {run.words.get(topic, "") for run in runs})):
            note(f"{topic}: {message}")


def advise_sizes(attempts: Sequence[Attempt], runs: Iterable[Run]) -> None:
    """Say if a varied number has too few values in the experiment for a law. ``runs``: those of the experiment."""
    varied = {name: text for attempt in attempts for name, text in attempt.planned.varied.items()}
    known = list(runs)
    for name in varied:
        sizes = sorted({run.features[name] for run in known if name in run.features and not run.parent})
        if 1 < len(sizes) < ENOUGH_SIZES:
            more = ",".join(_further_sizes(sizes))
            note(f"{name} has {len(sizes)} sizes, a law needs at least {ENOUGH_SIZES}: add --vary {name}={more}")


def _further_sizes(sizes: list[float]) -> list[str]:
    """Sizes between those that there are, to two digits; where all are whole numbers without any between, larger ones.

    >>> _further_sizes([100.0, 1000.0]), _further_sizes([1.0, 2.0]), _further_sizes([0.5, 0.9])
    (['320'], ['4', '8'], ['0.67'])
    """
    middle = [math.sqrt(a * b) for a, b in itertools.pairwise(sizes) if a > 0]
    if all(size == round(size) for size in sizes):
        between = {float(round(float(f"{size:.2g}"))) for size in middle} - set(sizes)
    else:
        between = {float(f"{size:.2g}") for size in middle} - set(sizes)
    return [f"{size:g}" for size in sorted(between) or [2 * sizes[-1], 4 * sizes[-1]]]


def print_failures(attempts: Iterator[Attempt]) -> list[Attempt]:
    """All attempts; prints at once what went wrong with a run, the same failure of later runs only once."""
    done: list[Attempt] = []
    printed: set[str] = set()
    for attempt in attempts:
        done.append(attempt)
        outcome, label = attempt.outcome, f" of {attempt.planned.label}" if attempt.planned.label else ""
        if attempt.error and str(attempt.error) not in printed:
            printed.add(str(attempt.error))
            problem(f"run{label}: {attempt.error}")
        elif outcome and not outcome.run.complete:
            problem(f"run {outcome.run.id}{label} is incomplete: {outcome.run.ended}; what completed is kept")
        elif outcome:
            for text in outcome.problems:
                problem(f"run {outcome.run.id}{label}: {text}")
    return done


def conclude(folder: Path, attempts: Sequence[Attempt], left: int, select: tuple[str, ...]) -> int:
    """Print the line that ends every recording; returns the exit status. ``left``: planned runs that were not begun."""
    outcomes = [attempt.outcome for attempt in attempts if attempt.outcome]
    kept = [outcome for outcome in outcomes if outcome.folder]
    require_selected(outcomes, select)
    if kept:
        next_verb = "show" if any(outcome.run.metrics for outcome in kept) else "trend"
        tell(f"{summary(folder, outcomes)} · {command(next_verb, folder.name)}")
    interrupted = next((outcome.interrupted for outcome in outcomes if outcome.interrupted), None)
    if interrupted is not None:
        if left:
            note(f"{counted(left, 'planned run')} left: --resume goes on with them")
        return 128 + interrupted
    failed = next((status for outcome in outcomes if (status := outcome.run.status or OVER * outcome.over)), 0)
    errors = [attempt.error for attempt in attempts if attempt.error]
    unread = any(outcome.problems for outcome in outcomes if outcome.run.complete)
    return failed or next((error.status for error in errors if error.status), 2 if errors or unread else 0)


def conclude_own(folder: Path, outcome: Outcome) -> int:
    """The same for a program that asked for its own recording: its exit status is its own, this is the recorder's."""
    run = outcome.run
    if not run.complete:
        problem(f"run {run.id} is incomplete: {run.ended}; what completed is kept")
    print_warnings([run], "auto", ())
    tell(f"{summary(folder, [outcome])} · {command('show', folder.name)}")
    return 0


def push_new(store: str | None, target: Experiment, outcomes: Sequence[Outcome]) -> int:
    """Push what was recorded, if a place is given; returns the exit status. What cannot be pushed now stays here."""
    runs = [run.id for outcome in outcomes if outcome.folder for run in (outcome.run, *outcome.children)]
    if not store or not runs:
        return 0
    from perflaw.cli.push import push_runs

    try:
        return push_runs(target, store, runs)
    except StoreError as error:
        problem(f"the recordings are in {target.folder} and were not all pushed: {error}")
        return 2


def require_observations(outcomes: Sequence[Outcome], per: str) -> None:
    """Say so if a function was named of which each call is an observation, and there is none."""
    if per and outcomes and not any(outcome.observations for outcome in outcomes):
        note(f"--per {per}: no call of a function of that name began and ended meanwhile; laws are those of runs")


def require_selected(outcomes: Sequence[Outcome], select: tuple[str, ...]) -> None:
    """UsageError if the selection left nothing of any program that ended well."""
    if outcomes and not any(outcome.folder or outcome.run.status for outcome in outcomes):
        seen = ", ".join(outcomes[0].unselected[:5]) or "nothing"
        what = "nothing selected: no function that ran matches " + " or ".join(select)
        raise UsageError(what, f"seen among others: {seen}", "perflaw record without --select, then perflaw annotate")


def summary(folder: Path, outcomes: Sequence[Outcome]) -> str:
    """What was recorded, what it cost, what is missing, and where it is."""
    from perflaw.types.recordings import MOST_STEAL

    runs = [outcome.run for outcome in outcomes if outcome.folder]
    children = [run for outcome in outcomes for run in outcome.children]
    every = runs + children
    recorded = f"{counted(len(runs), 'run')} of {runs[0].target}"
    if children:
        recorded += f" and {counted(len(children), 'child process')}"
    functions = counted(max(run.functions for run in every), "function")
    if untimed := max(run.lost.counted_functions for run in every):
        functions += f" ({untimed} counted, not timed)"
    parts = [functions, counted(sum(run.calls for run in every), "call")]
    if lines := max(outcome.lines for outcome in outcomes):
        parts.append(f"{counted(lines, 'line')} counted")
    if observations := sum(outcome.observations for outcome in outcomes):
        parts.append(counted(observations, "observation"))
    if records := sum(outcome.probe_records for outcome in outcomes):
        probes = max(outcome.probes for outcome in outcomes)
        parts.append(f"{counted(records, 'record')} of {counted(probes, 'probe')}")
    slowdown = f"slowdown {statistics.median(run.slowdown for run in runs):.1f}x"
    low, high = (statistics.median(getattr(run, f"slowdown_{end}") for run in runs) for end in ("low", "high"))
    if high > VAGUE * low:  # the program does little beside calls
        slowdown += f" ({low:.1f} to {high:.0f})"
    if not any(run.metrics for run in runs):
        slowdown = "execution counts alone"  # gcc's coverage does not say what it costs
    notes = [slowdown]

    # Wall time says little where other programs kept most of the runs waiting.
    machines = [(run.machine, run.wall_ns) for run in runs if run.machine and run.clock.name != "fake"]
    busy = [(machine, wall_ns) for machine, wall_ns in machines if machine.is_busy(wall_ns)]
    if 2 * len(busy) > len(machines):
        queued = statistics.median(machine.queued_share for machine, _ in busy)
        steal = statistics.median(machine.steal_share(wall_ns) for machine, wall_ns in busy)
        taken = f", {steal:.0%} taken by the hypervisor" if steal > MOST_STEAL else ""
        notes.append(f"busy machine: {queued:.0%} of the time without a CPU{taken}".replace("%", " %"))
    # What is missing, with exact numbers. How a child ended is its parent's affair: only programs are incomplete.
    lost = [run.lost for run in every]
    incomplete = sum(not run.complete for run in runs)
    opened, missed = sum(each.open_invocations for each in lost), sum(each.missed_calls for each in lost)
    folded, records = sum(each.folded_calls for each in lost), sum(each.probe_records for each in lost)
    aside = sum(each.subinterpreters for each in lost)
    messages = [
        f"{incomplete} incomplete" * bool(incomplete),
        f"{opened} call{'s' * (opened != 1)} had not ended" * bool(opened),
        f"{missed} call{'s' * (missed != 1)} missed" * bool(missed),
        f"{records} record{'s' * (records != 1)} of probes lost" * bool(records),
        f"{counted(aside, 'subinterpreter')} not recorded" * bool(aside),
        f"contexts of {folded} call{'s' * (folded != 1)} not kept apart" * bool(folded),
    ]
    notes += [", ".join(filter(None, messages)) or "nothing lost", str(folder)]
    return f"recorded {', '.join([recorded, *parts])} · {' · '.join(notes)}"


def with_progress(attempts: Iterator[Attempt], planned: Sequence[PlannedRun]) -> Iterator[Attempt]:
    """The same attempts; meanwhile progress, with the time that the runs left should take, and with --verbose each run's.

    While a program may write to the terminal, the line is drawn between its runs alone.
    """
    times = RunTimes([(run.label, _size(run)) for run in planned])
    with step("recording", ticking=not sys.stdout.isatty()) as show:
        for done, attempt in enumerate(attempts, 1):
            seconds = attempt.outcome.run.wall_ns / 1e9 if attempt.outcome else 0.0
            times.ended(seconds)
            label = f" of {attempt.planned.label}" if attempt.planned.label else ""
            detail(f"run {done} of {len(planned)}{label}: {seconds_words(seconds)}")
            yield attempt
            if times.left:
                left = times.seconds()
                spent = sum(map(sum, times.took.values()))
                show(spent / (spent + left or 1.0), left, f"run {done} of {len(planned)}")


def _size(run: PlannedRun) -> float | None:
    """The number that tells runs of a plan apart; None if there is none, or are several."""
    numbers = []
    for text in run.varied.values():
        try:
            numbers.append(float(text))
        except ValueError:
            return None
    return numbers[0] if len(numbers) == 1 else None
