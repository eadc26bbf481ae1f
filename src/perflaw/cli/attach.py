"""``perflaw attach``: record a program that runs already."""

from __future__ import annotations

import math
import signal
from typing import TYPE_CHECKING, Final

import click

from perflaw.cli.options import (
    check_store,
    own_experiment_option,
    own_option,
    parse_budget,
    parse_features,
    parse_own,
    push_option,
    recording_options,
)
from perflaw.cli.progress import note, tell
from perflaw.cli.record_messages import (
    conclude_own,
    print_build,
    print_warnings,
    push_new,
    require_observations,
    require_selected,
    summary,
)
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.record.settings import RecordSettings
    from perflaw.store.experiment import Experiment

UNSUITED: Final = 3
"""Exit status if a program that asked for its own recording has to be started by ``perflaw record`` instead."""


@click.command("attach", short_help="record a program that runs already")
@own_experiment_option
@push_option
@click.option("--seconds", type=float, default=60.0, show_default=True, metavar="SECONDS",
              help="How long to record; Ctrl-C ends it earlier.")  # fmt: skip
@recording_options
@click.option("--feature", multiple=True, metavar="NAME=NUMBER", help="Declare a feature of this run.")
@own_option
@click.option("--asked", type=int, hidden=True, help="Descriptor of the connection to the program, which started this.")
@click.argument("pid", type=int)
def command(
    experiment: str,
    store: str | None,
    seconds: float,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    budget: str,
    no_arguments: bool,
    metric: tuple[str, ...],
    collect: tuple[str, ...],
    paths: tuple[str, ...],
    per: str,
    feature: tuple[str, ...],
    own: str | None,
    asked: int | None,
    pid: int,
) -> int:
    """Record what the functions of the running process PID cost, and leave it as it was.

    \b
    perflaw attach 1234 --seconds 10
    perflaw annotate
    """
    from perflaw.record.attach.process import native_program, running_program
    from perflaw.record.attach.session import record_running
    from perflaw.record.metrics import metric_settings
    from perflaw.record.settings import PATHS, PROBES, RecordSettings, collected
    from perflaw.store.experiment import open_experiment

    if not 0 < seconds < math.inf:
        raise UsageError(f"--seconds {seconds:g}", "a number of seconds above 0 is expected", "--seconds 60")
    check_store(store)
    features = parse_features(feature)
    words = collected((*collect, *(PATHS,) * bool(paths)), "native")
    if PROBES in words:
        why = "the probes of a running program are collected with perflaw probes"
        raise UsageError(f"--collect {PROBES}", why, "perflaw probes --help")
    settings = RecordSettings(
        select,
        exclude,
        metric_settings(metric, "native"),
        collect=words,
        paths=paths,
        per=per,
        keeps_arguments=not no_arguments,
        budget=parse_budget(budget),
        own=parse_own(own),
    )
    target = open_experiment(experiment)
    if asked is not None:
        return _record_asking(target, pid, asked, settings)
    if native := native_program(pid):
        from perflaw.record.attach.native_session import record_native

        attached = record_native(target, native, settings, features, seconds)
    else:
        attached = record_running(target, running_program(pid), settings, features, seconds, print_build)
    if not attached.alive:
        note(f"process {pid} ended while it was recorded; what completed is kept")
    print_warnings([attached.outcome.run], "native", settings.metrics)
    require_selected([attached.outcome], settings.select)
    require_observations([attached.outcome], per)
    tell(f"{summary(target.folder, [attached.outcome])} · stopped for {attached.stopped_ms:.1f} ms")
    interrupted = attached.outcome.interrupted
    if status := push_new(store, target, [attached.outcome]):
        return status
    return 128 + interrupted if interrupted not in (None, signal.SIGINT) else 0


def _record_asking(target: Experiment, pid: int, descriptor: int, settings: RecordSettings) -> int:
    """Record the program that started this process; returns the exit status, ``UNSUITED`` if that cannot be done here."""
    import socket

    from perflaw.record.attach.own_recording import record_asking
    from perflaw.record.attach.process import asking_program

    with socket.socket(fileno=descriptor) as connection:
        outcome = record_asking(target, asking_program(pid), connection, settings, print_build)
    return UNSUITED if outcome is None else conclude_own(target.folder, outcome)
