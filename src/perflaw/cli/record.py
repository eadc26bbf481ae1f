"""``perflaw record``: run a program, once or over a range of sizes, and keep what its functions cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, parse_assignments, parse_features
from perflaw.cli.probes import remote_options
from perflaw.cli.recorded import (
    conclude,
    tell_build,
    tell_failure,
    warn_of_fallback,
    warn_of_others,
    warn_uncounted,
    warn_unmeasured,
    with_progress,
)
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.record.plan import Plan
    from perflaw.record.run import Settings
    from perflaw.record.session import Attempt, Tracers
    from perflaw.record.workload_file import RunOptions
    from perflaw.store.experiment import Experiment


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="run a program and record what its functions cost",
)
@experiment_option
@click.option("--vary", multiple=True, metavar="NAME=A,B,C", help="Run once for each value; {NAME} in ARGs becomes it.")
@click.option("--workloads", metavar="FILE.toml", help="Run the workloads that a file describes.")
@click.option("--repeat", type=click.IntRange(1), help="Runs for each value.  [default: 1]")
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="End a run that takes longer, and go on with the others."
)
@click.option("--resume", is_flag=True, help="Make only the runs that the experiment does not have complete yet.")
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
    help="branches: which way each branch of the person's own functions went; lines: how often each line ran;"
    " paths: how long calls took by call path, for mine; probes: records of perflaw.h and perflaw.probes. [default: calls]",
)
@click.option(
    "--paths",
    multiple=True,
    metavar="GLOB",
    help="Collect paths, and keep these functions' durations however little of the time is theirs.",
)
@click.option("--probe", multiple=True, metavar="NAME", help="Collect probes, and enable these only (names or ids).")
@remote_options
@click.option("--notes", metavar="DIR", help="Where the .gcno files of a compiled program are now.")
@click.option(
    "--source-map", multiple=True, metavar="OLD=NEW", help="Where a folder of a compiled program's build is now."
)
@click.option("--keep-output", is_flag=True, help="Keep what runs print, for perflaw feature NAME --pattern.")
@click.option("--tracer", default="auto", show_default=True, help="auto, native, python, or nothing (the floor).")
@click.option("--clock", default="real", type=click.Choice(["real", "fake"]), help="fake: the program advances it.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    experiment: str,
    vary: tuple[str, ...],
    workloads: str | None,
    repeat: int | None,
    timeout: float | None,
    resume: bool,
    feature: tuple[str, ...],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    metric: tuple[str, ...],
    collect: tuple[str, ...],
    paths: tuple[str, ...],
    probe: tuple[str, ...],
    remote: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    notes: str | None,
    source_map: tuple[str, ...],
    keep_output: bool,
    tracer: str,
    clock: str,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND and record it: a Python script, -m MODULE, python SCRIPT, a console script, or a compiled program.

    \b
    perflaw record --vary n=100,1000,10000 --repeat 3 -- app.py {n}
    perflaw record -e nightly -- python -m mypackage input.txt
    perflaw record --workloads workloads.toml --resume
    perflaw record --collect lines --vary n=100,1000,10000 -- ./compiled_with_coverage {n}
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.record.compiled.gcov_files import places_of
    from perflaw.record.metrics import PATHS, PROBES, collected, settings_of
    from perflaw.record.probes.client import remotes
    from perflaw.record.run import Settings
    from perflaw.record.session import Tracers
    from perflaw.record.workload_file import RunOptions
    from perflaw.store.experiment import open_experiment

    if command and command[0].startswith("-") and command[0][:2] not in ("-m", "-c"):
        raise UsageError(
            f"no option {command[0]}",
            "options of perflaw stand before --, the command after it",
            "perflaw record --help",
        )
    _check_timeout(timeout)
    options = RunOptions(command, parse_assignments(vary, "--vary"), repeat, parse_features(feature), timeout)
    also = (*(PATHS,) * bool(paths), *(PROBES,) * bool(probe or remote))
    metrics, what = settings_of(metric, tracer), collected((*collect, *also), tracer)
    places = places_of(notes, source_map)
    settings = Settings(
        select,
        exclude,
        metrics,
        clock,
        collect=what,
        paths=paths,
        probes=probe,
        remotes=remotes(remote, token_file, ca),
        places=places,
        keep_output=keep_output,
    )
    plan = _plan(workloads, options)
    return _record(open_experiment(experiment), plan, Tracers(tracer, tell_build), settings, resume)


def _check_timeout(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"--timeout {seconds:g}", "a number of seconds above 0 is wanted", "--timeout 60")


def _plan(workloads: str | None, options: RunOptions) -> Plan:
    """The runs that the command line and the workload file, if there is one, describe."""
    from perflaw.record.plan import make_plan
    from perflaw.record.workload_file import plan_workloads, read_workloads

    if workloads is not None:
        return plan_workloads(read_workloads(Path(workloads)), options)
    return make_plan(options.command, options.vary, options.repeat or 1, options.features, options.timeout)


def _record(target: Experiment, plan: Plan, tracers: Tracers, settings: Settings, again: bool) -> int:
    """Make the runs, tell what has to be told, and give the exit status."""
    from perflaw.record.session import record_all

    others = {run.target for run in map(target.manifest, target.ids()) if run and not run.parent}
    if again:
        plan = _left(target, plan, settings)
    attempts = _told(with_progress(record_all(target, plan, tracers, settings), plan.runs))
    if not again:
        warn_of_others(target.name, others, attempts)
    warn_of_fallback(tracers.wish, attempts)
    warn_unmeasured(settings.metrics, attempts)
    warn_uncounted(attempts)
    return conclude(target.folder, attempts, len(plan.runs) - len(attempts), settings.select)


def _left(target: Experiment, plan: Plan, settings: Settings) -> Plan:
    """The part of the plan that is still to be run, after saying what is not."""
    from perflaw.record.session import resume

    found = resume(target, plan, settings.described())
    removed = f"; {found.discarded} that a killed recorder left unfinished begins anew" if found.discarded else ""
    told = f"perflaw: {found.done} of {len(plan.runs)} planned runs are complete in {target.folder}{removed}"
    click.echo(told, err=True)
    return found.plan


def _told(attempts: Iterator[Attempt]) -> list[Attempt]:
    """All attempts; failures are told at once."""
    done: list[Attempt] = []
    told: set[str] = set()
    for attempt in attempts:
        done.append(attempt)
        tell_failure(attempt, told)
    return done
