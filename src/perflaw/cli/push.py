"""``perflaw push``: the recordings of an experiment to object storage."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from perflaw.cli.progress import note, problem, step, tell
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.store.experiment import Experiment


@click.command("push", short_help="copy recordings to object storage: S3, or a folder that others share")
@click.option(
    "--verify", is_flag=True, help="Read back what was pushed before as well, and mend what is damaged there."
)
@click.argument("experiment", metavar="EXPERIMENT")
@click.argument("url", metavar="URL")
def command(experiment: str, url: str, verify: bool) -> int:
    """Copy the finished recordings of EXPERIMENT to URL, such as s3://bucket/prefix or file:///shared/folder.

    Each file is compared with its checksum, sent, and read back. Runs that are there already are not sent again, so an
    interrupted push goes on where it was. Nothing that is there is changed; several may push at once. Runs get the
    next free numbers there.

    \b
    perflaw push default file://$PWD/shared
    perflaw annotate --store file://$PWD/shared     on any machine that sees it

    Exit status 2 if a recording is damaged here and was left out. S3 needs pip install 'perflaw[s3]'.
    """
    from perflaw.store.experiment import open_experiment

    target = open_experiment(experiment)
    target.recordings()  # tells where there is none, or one cannot be read
    return push_runs(target, url, verify=verify)


def push_runs(target: Experiment, url: str, runs: Collection[str] | None = None, *, verify: bool = False) -> int:
    """Push all runs, or those chosen, and say what came of it; returns the exit status."""
    from perflaw.store.remote import open_store, push

    store = open_store(url)
    with step(f"pushing {target.name}") as show:
        done = push(target, store, runs, verify=verify, tell=show)
    message = f"pushed {counted(len(done.runs), 'run')}"
    message += f", {done.known} more are there already" * bool(done.known)
    tell(f"{message} → {store.url}, experiment {target.name}")
    if renamed := [f"{here} is {there}" for here, there in done.runs if here != there]:
        note(f"numbers there are others: {', '.join(renamed[:5])}{', …' * (len(renamed) > 5)}")
    if done.mended:
        note(f"{counted(done.mended, 'damaged object')} there replaced")
    if done.changed:
        note(f"changed here since they were pushed, and left there as they are: {', '.join(done.changed[:10])}")
    if done.unfinished and runs is None:
        note(f"not finished, and left out: {', '.join(done.unfinished[:10])}")
    for why in done.damaged.values():
        problem(f"left out: {why}")
    return 2 if done.damaged else 0
