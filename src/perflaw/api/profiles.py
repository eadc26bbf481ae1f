"""Where the cost of runs went, and what changed between two recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perflaw.api.reading import read_recordings
from perflaw.errors import StoreError, UsageError
from perflaw.notices import progress

if TYPE_CHECKING:
    from perflaw.store.experiment import Recording
    from perflaw.types.documents import Document


def profile_document(experiment: str, runs: Sequence[str], metric: str | None) -> Document:
    """The document of ``show``: of the runs named, or of the newest run; UsageError where they lack the metric."""
    from perflaw.report.profile import show_document
    from perflaw.store.profiles import newest_execution, read_profile

    recordings = read_recordings(experiment, runs)
    with progress("reading the recordings") as show:
        profile = read_profile(recordings if runs else newest_execution(recordings), show)
    chosen = metric or ("time" if "time" in profile.metrics else next(iter(profile.metrics)))
    if chosen not in profile.metrics:
        why = f"the runs have {', '.join(profile.metrics)}"
        raise UsageError(f"--metric {chosen}: not measured", why, f"perflaw record --metric {chosen} -- …")
    sizes: dict[str, list[float]] = {}
    for recording in recordings:
        for name, value in recording.run.features.items():
            sizes.setdefault(name, []).append(value)
    return show_document(profile, chosen, sizes, experiment)


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
    whole = len(old) + len(new)
    with progress("reading the recordings") as show:
        before = read_profile(old, lambda part: show(part * len(old) / whole))
        after = read_profile(new, lambda part: show((len(old) + part * len(new)) / whole))
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
