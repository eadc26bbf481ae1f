"""``perflaw record``: run a program, once or over a range of sizes, and keep what its functions cost."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, parse_assignments, parse_features
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from perflaw.collect.keep import Outcome
    from perflaw.collect.session import Attempt
    from perflaw.types import Run


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="run a program and keep how its functions' cost came about",
)
@experiment_option
@click.option("--vary", multiple=True, metavar="NAME=A,B,C", help="Run once for each value; {NAME} in ARGs becomes it.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1), help="Runs for each value.")
@click.option("--feature", multiple=True, metavar="NAME=NUMBER", help="Declare a feature of the workload.")
@click.option("--select", multiple=True, metavar="GLOB", help="Record these functions only, wherever they are.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Never record these functions.")
@click.option(
    "--metric",
    multiple=True,
    metavar="NAME,…",
    help="Measure cpu, memory, gc, lock_wait, switches, faults, or a plug-in's.",
)
@click.option(
    "--collect",
    multiple=True,
    metavar="WHAT,…",
    help="branches: which way each branch of the person's own functions went. [default: calls]",
)
@click.option("--tracer", default="auto", show_default=True, help="auto, native, python, or nothing (the floor).")
@click.option("--clock", default="real", type=click.Choice(["real", "fake"]), help="fake: the program advances it.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    experiment: str,
    vary: tuple[str, ...],
    repeat: int,
    feature: tuple[str, ...],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    metric: tuple[str, ...],
    collect: tuple[str, ...],
    tracer: str,
    clock: str,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND and record it: a Python script, -m MODULE, python SCRIPT, or a console script.

    \b
    perflaw record --vary n=100,1000,10000 --repeat 3 -- app.py {n}
    perflaw record -e nightly -- python -m mypackage input.txt
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.collect.collecting import collected
    from perflaw.collect.metrics import settings_of
    from perflaw.collect.plan import make_plan
    from perflaw.collect.record import Settings
    from perflaw.collect.session import Tracers, record_all
    from perflaw.store.experiment import open_experiment

    if command and command[0].startswith("-") and command[0][:2] not in ("-m", "-c"):
        raise UsageError(
            f"no option {command[0]}",
            "options of perflaw stand before --, the command after it",
            "perflaw record --help",
        )
    target = open_experiment(experiment)
    others = {run.target for run in map(target.manifest, target.ids()) if run and not run.parent}
    plan = make_plan(command, parse_assignments(vary, "--vary"), repeat, parse_features(feature))
    settings = Settings(select, exclude, settings_of(metric, tracer), clock, collect=collected(collect, tracer))
    attempts = _collected(record_all(target, plan, Tracers(tracer, _tell_build), settings), len(plan.runs))
    _warn_of_others(experiment, others, attempts)
    _warn_of_fallback(tracer, attempts)
    _warn_unmeasured(settings.metrics, attempts)
    _warn_uncounted(attempts)
    return _conclude(target.folder, attempts, select)


def _warn_of_others(experiment: str, others: set[str], attempts: list[Attempt]) -> None:
    """An experiment holds one target: laws over two programs are of neither."""
    now = {attempt.outcome.run.target for attempt in attempts if attempt.outcome}
    if others - now and now:
        names = ", ".join(sorted(others - now))
        click.echo(
            f"perflaw: experiment {experiment} holds runs of {names} as well; -e NAME keeps programs apart", err=True
        )


def _warn_unmeasured(asked: tuple[str, ...], attempts: list[Attempt]) -> None:
    """A metric that was asked for and could not be measured is not passed over in silence."""
    from perflaw.collect.metrics import names_of

    for run in [attempt.outcome.run for attempt in attempts if attempt.outcome][:1]:
        missing = [name for name in names_of(asked) if name not in {metric.name for metric in run.metrics}]
        if missing:
            why = run.words.get("metrics") or f"the tracer cannot ({run.tracer})"
            click.echo(f"perflaw: not measured: {', '.join(missing)}: {why}", err=True)


def _warn_uncounted(attempts: list[Attempt]) -> None:
    """What the tracer says of branches that are not among the outcomes."""
    told = {attempt.outcome.run.words.get("branches", "") for attempt in attempts if attempt.outcome}
    for words in sorted(filter(None, told)):
        click.echo(f"perflaw: branches: {words}", err=True)


def _tell_build(text: str) -> None:
    """What is being compiled, which takes a while once: for a person who waits."""
    if sys.stderr.isatty():
        click.echo(text, nl=False, err=True)


def _warn_of_fallback(wish: str, attempts: list[Attempt]) -> None:
    """The pure-Python tracer slows a program down far more than the native one: say why that is not there."""
    tracers = {attempt.outcome.run.tracer for attempt in attempts if attempt.outcome}
    for tracer in sorted(tracers):
        name, _, why = tracer.partition(": ")
        if wish == "auto" and name == "python":
            click.echo(f"perflaw: recorded by the slower pure-Python tracer: {why}", err=True)


def _collected(attempts: Iterator[Attempt], planned: int) -> list[Attempt]:
    """Make the runs; failures are told at once, and on a terminal a bar shows how far it is."""
    done: list[Attempt] = []
    told: set[str] = set()
    hidden = planned < 2 or not sys.stderr.isatty()
    with click.progressbar(length=planned, label="recording", file=sys.stderr, hidden=hidden) as bar:
        for attempt in attempts:
            done.append(attempt)
            _tell_failure(attempt, told)
            bar.update(1)
    return done


def _tell_failure(attempt: Attempt, told: set[str]) -> None:
    """Say what went wrong with a run; what went wrong with an earlier one in the same way is not said again."""
    label = f" of {attempt.planned.label}" if attempt.planned.label else ""
    if attempt.error and str(attempt.error) not in told:
        told.add(str(attempt.error))
        click.echo(f"perflaw: run{label}: {attempt.error}", err=True)
    elif attempt.outcome and not attempt.outcome.run.complete:
        run = attempt.outcome.run
        click.echo(f"perflaw: run {run.id}{label} is incomplete: {run.ended}; what completed is kept", err=True)


def _conclude(folder: Path, attempts: list[Attempt], select: tuple[str, ...]) -> int:
    """The one line that ends every recording, and the exit status."""
    outcomes = [attempt.outcome for attempt in attempts if attempt.outcome]
    kept = [outcome.run for outcome in outcomes if outcome.folder]
    if outcomes and not kept and not any(outcome.run.status for outcome in outcomes):
        raise _nothing_selected(outcomes, select)
    if kept:
        children = [run for outcome in outcomes for run in outcome.children]
        click.echo(_summary(folder, kept, children), err=True)
    failed = next((outcome.run.status for outcome in outcomes if outcome.run.status), 0)
    interrupted = next((outcome.interrupted for outcome in outcomes if outcome.interrupted), None)
    if interrupted is not None:
        return 128 + interrupted
    errors = [attempt.error for attempt in attempts if attempt.error]
    return failed or next((error.status for error in errors if error.status), 2 if errors else 0)


def _nothing_selected(outcomes: list[Outcome], select: tuple[str, ...]) -> UsageError:
    seen = ", ".join(outcomes[0].unselected[:5]) or "nothing"
    what = "nothing selected: no function that ran matches " + " or ".join(select)
    return UsageError(what, f"seen among others: {seen}", "perflaw record without --select, then perflaw annotate")


def _summary(folder: Path, runs: list[Run], children: list[Run]) -> str:
    """What was recorded, what it cost, what is missing, and where it is."""
    from perflaw.report.quantity import count

    every = runs + children
    calls, functions = sum(run.calls for run in every), max(run.functions for run in every)
    slowdown = statistics.median(run.slowdown for run in runs)
    what = f"{len(runs)} run{'s' * (len(runs) != 1)} of {runs[0].target}"
    if children:
        what += f" and {len(children)} child process{'es' * (len(children) != 1)}"
    return (
        f"recorded {what}, {functions} functions, {count(calls)} calls"
        f" · slowdown {slowdown:.1f}x · {_missing(runs, every)} · {folder}"
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
        f"contexts of {_calls(folded)} not kept apart" * bool(folded),
    ]
    return ", ".join(filter(None, told)) or "nothing lost"


def _calls(number: int) -> str:
    return f"{number} call{'s' * (number != 1)}"
