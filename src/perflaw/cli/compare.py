"""``perflaw compare``: what changed in calls and own costs between two recordings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, json_option, print_document, read_recordings
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.store.experiment import Recording
    from perflaw.types.documents import Document


@click.command("compare", short_help="show what changed between two recordings")
@experiment_option
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Cost to compare.")
@click.option("--all", "every", is_flag=True, help="List functions that changed little as well.")
@json_option
@click.argument("sides", nargs=-1, metavar="[OLD [NEW]]")
def command(experiment: str, metric: str, every: bool, as_json: bool, sides: tuple[str, ...]) -> int:
    """Show what changed from OLD to NEW, in calls and own costs. Each is a run's number, or the name of an experiment.

    \b
    perflaw compare                the newest run with the latest one before it of the same features
    perflaw compare 3              the newest run with run 3
    perflaw compare 3 7            run 7 with run 3
    perflaw compare before after   two experiments, a mean run of each

    Every recording is kept, so there is always a history to compare with. `perflaw diff` tests whether laws changed.
    """
    document = comparison(experiment, sides, metric)
    if as_json:
        print_document(document)
    else:
        from perflaw.report.comparison import compare_text

        click.echo(compare_text(document, sys.stdout.isatty(), every), nl=False)
    return 0


def comparison(experiment: str, sides: Sequence[str], metric: str) -> Document:
    """The document of ``compare``; UsageError where a side cannot be found or lacks the metric."""
    from perflaw.report.comparison import compare_document
    from perflaw.store.experiment import open_experiment
    from perflaw.store.profiles import newest_execution, read_profile

    if len(sides) > 2:
        raise UsageError("more than two sides", "one side is compared with one other", "perflaw compare OLD NEW")
    if len(sides) == 2:
        old, new = (_side(experiment, side) for side in sides)
    else:
        recordings = open_experiment(experiment).recordings()  # of older versions of the program, too
        new = newest_execution(recordings)
        old = _side(experiment, sides[0]) if sides else _before(recordings, new)
    before, after = read_profile(old), read_profile(new)
    for profile in (before, after):
        if metric not in profile.metrics:
            why = f"run {profile.runs[0].id} has {', '.join(profile.metrics)}"
            raise UsageError(f"--metric {metric}: not measured", why, f"perflaw record --metric {metric} -- …")
    return compare_document(before, after, metric)


def _side(experiment: str, name: str) -> list[Recording]:
    """The recordings of a run with its child processes, or of an experiment."""
    from perflaw.store.experiment import execution_of, open_experiment

    if not name.isdigit():
        return read_recordings(name)
    target = open_experiment(experiment)
    chosen, recordings = target.recording(name).run.id, target.recordings()
    by_id = {one.run.id: one.run for one in recordings}
    return [one for one in recordings if chosen in (one.run.id, execution_of(one.run, by_id).id)]


def _before(recordings: Sequence[Recording], newest: Sequence[Recording]) -> list[Recording]:
    """The latest earlier run of the same program with the same features; StoreError where there is none."""
    from perflaw.store.profiles import newest_execution

    run, others = _program(newest), list(recordings)
    execution = list(newest)
    while others := [one for one in others if one not in execution]:
        execution = newest_execution(others)
        other = _program(execution)
        if (other.run.target, other.run.features) == (run.run.target, run.run.features):
            return execution
    what = f"run {run.run.id} has no earlier run to compare with"
    raise StoreError(what, "none is of the same program with the same features", "perflaw compare OLD NEW")


def _program(execution: Sequence[Recording]) -> Recording:
    """The program's own recording among those of an execution."""
    return next((one for one in execution if not one.run.parent), execution[0])
