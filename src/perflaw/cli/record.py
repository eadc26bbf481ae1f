"""``perflaw record``: run a program, once or over a range of sizes, and keep what its functions cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.main import one_blas_thread
from perflaw.cli.options import (
    check_store,
    own_experiment_option,
    own_option,
    parse_assignments,
    parse_budget,
    parse_features,
    parse_own,
    push_option,
    recording_options,
    remote_options,
)
from perflaw.cli.progress import note
from perflaw.cli.record_messages import (
    advise_sizes,
    conclude,
    print_build,
    print_failures,
    print_warnings,
    push_new,
    require_observations,
    with_progress,
)
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.record.probes.client import Remote


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="run a program and record what its functions cost",
)
@own_experiment_option
@push_option
@click.option("--vary", multiple=True, metavar="NAME=A,B,C", help="Run once for each value; {NAME} in ARGs becomes it.")
@click.option("--workloads", metavar="FILE.toml", help="Run the workloads that a file describes.")
@click.option("--repeat", type=click.IntRange(1), help="Runs for each value.  [default: 1]")
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="End a run that takes longer, and go on with the others."
)
@click.option("--resume", is_flag=True, help="Make only the runs that the experiment does not have complete yet.")
@click.option("--feature", multiple=True, metavar="NAME=NUMBER", help="Declare a feature of the workload.")
@own_option
@recording_options
@click.option("--probe", multiple=True, metavar="NAME", help="Collect probes, and enable these only (names or ids).")
@remote_options
@click.option("--notes", metavar="DIR", help="Where the .gcno files of a compiled program are now.")
@click.option(
    "--source-map", multiple=True, metavar="OLD=NEW", help="Where a folder of a compiled program's build is now."
)
@click.option("--keep-output", is_flag=True, help="Keep what runs print, for perflaw feature NAME --pattern.")
@click.option("--tracer", default="auto", show_default=True, help="auto, native, python, or nothing (the floor).")
@click.option("--native", default="auto", show_default=True, type=click.Choice(["auto", "hooks", "inject", "gcov", "frida"]),
              help="How a compiled program is recorded: auto takes its hooks if it has any, else injects code.")  # fmt: skip
@click.option("--clock", default="real", type=click.Choice(["real", "fake"]), help="fake: the program advances it.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    experiment: str,
    store: str | None,
    vary: tuple[str, ...],
    workloads: str | None,
    repeat: int | None,
    timeout: float | None,
    resume: bool,
    feature: tuple[str, ...],
    own: str | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    budget: str,
    no_arguments: bool,
    metric: tuple[str, ...],
    collect: tuple[str, ...],
    paths: tuple[str, ...],
    per: str,
    probe: tuple[str, ...],
    remote: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    notes: str | None,
    source_map: tuple[str, ...],
    keep_output: bool,
    tracer: str,
    native: str,
    clock: str,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND and record it: a Python script, -m MODULE, python SCRIPT, a console script, or a compiled program.

    \b
    perflaw record --vary n=100,1000,10000 --repeat 3 -- app.py {n}
    perflaw record -e nightly -- python -m mypackage input.txt
    perflaw record --workloads workloads.toml --resume
    perflaw record --collect lines --vary n=100,1000,10000 -- ./compiled_with_coverage {n}
    """
    from perflaw.record.launch import understand_ahead

    asking = understand_ahead(command)  # meanwhile modules are imported
    with one_blas_thread():  # which the program that is recorded must not inherit
        from perflaw.record import session
    from perflaw.record.compiled.gcov_files import build_places
    from perflaw.record.metrics import metric_settings
    from perflaw.record.plan import make_plan
    from perflaw.record.settings import PATHS, PROBES, RecordSettings, collected
    from perflaw.record.tracers import TracerChoice
    from perflaw.store.experiment import open_experiment, outdated

    if command and command[0].startswith("-") and command[0][:2] not in ("-m", "-c"):
        from difflib import get_close_matches

        options = [name for parameter in click.get_current_context().command.params for name in parameter.opts]
        near = get_close_matches(command[0].partition("=")[0], options, 1)
        why = f"did you mean {near[0]}?" if near else "options of perflaw stand before --, the command after it"
        raise UsageError(f"no option {command[0]}", why, "perflaw record --help")
    if timeout is not None and not 0 < timeout < math.inf:
        raise UsageError(f"--timeout {timeout:g}", "a number of seconds above 0 is expected", "--timeout 60")
    check_store(store)
    implied = (*(PATHS,) * bool(paths), *(PROBES,) * bool(probe or remote))
    varied, features = parse_assignments(vary, "--vary"), parse_features(feature)
    settings = RecordSettings(
        select,
        exclude,
        metric_settings(metric, tracer),
        clock,
        collect=collected((*collect, *implied), tracer),
        paths=paths,
        per=per,
        probes=probe,
        remotes=_remotes(remote, token_file, ca),
        places=build_places(notes, source_map),
        keep_output=keep_output,
        keeps_arguments=not no_arguments,
        native=native,
        budget=parse_budget(budget),
        own=parse_own(own),
    )
    if workloads is None:
        plan = make_plan(command, varied, repeat or 1, features, timeout)
    else:
        from perflaw.record.workload_file import RunOptions, plan_workloads, read_workloads

        plan = plan_workloads(read_workloads(Path(workloads)), RunOptions(command, varied, repeat, features, timeout))
    target = open_experiment(experiment)
    others = {run.target for run in map(target.manifest, target.ids()) if run and not run.parent}
    if resume:
        resumed = session.resume(target, plan, settings)
        message = f"{resumed.done} of {len(plan.runs)} planned runs are complete in {target.folder}"
        if resumed.discarded:
            message += f"; {resumed.discarded} that a killed recorder left unfinished begins anew"
        note(message)
        plan = resumed.plan
    asking.join()
    attempts = session.record_all(target, plan, TracerChoice(tracer, print_build), settings)
    done = print_failures(with_progress(attempts, plan.runs))
    recorded = {attempt.outcome.run.target for attempt in done if attempt.outcome}
    if others - recorded and recorded and not resume:  # a law over two programs describes neither
        names = ", ".join(sorted(others - recorded))
        note(f"experiment {target.name} holds runs of {names} as well; -e NAME keeps programs apart")
    known = list(filter(None, map(target.manifest, target.ids())))
    if older := outdated(known):
        files = ", ".join(sorted({Path(file).name for file in older.values()}))
        note(f"{files} changed since earlier runs of experiment {target.name}: laws are those of the new version alone")
    print_warnings([attempt.outcome.run for attempt in done if attempt.outcome], tracer, settings.metrics)
    require_observations([attempt.outcome for attempt in done if attempt.outcome], per)
    status = conclude(target.folder, done, len(plan.runs) - len(done), settings.select)
    advise_sizes(done, [run for run in known if run.id not in older])
    return push_new(store, target, [attempt.outcome for attempt in done if attempt.outcome]) or status


def _remotes(addresses: tuple[str, ...], token_file: str | None, ca: str | None) -> tuple[Remote, ...]:
    """The collectors on other hosts; most recordings need neither them nor TLS."""
    if not addresses:
        return ()
    from perflaw.record.probes.client import remotes

    return remotes(addresses, token_file, ca)
