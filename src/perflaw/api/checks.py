"""Recordings held against laws: which may be used, and what they show of each metric."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from perflaw.api.laws import LoadedLaws, load_laws
from perflaw.api.reading import read_recordings
from perflaw.errors import UsageError
from perflaw.notices import notice, progress
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.check.judge import CheckOptions
    from perflaw.store.experiment import Recording
    from perflaw.types import CheckVerdict, Evidence

LONG_S: float = 10.0
"""Time that learning the laws takes from which on a file is recommended."""


def check_recordings(
    laws: str, experiment: str, runs: tuple[str, ...], metric: str, options: CheckOptions
) -> tuple[list[CheckVerdict], list[Recording], list[str]]:
    """Verdicts on laws, the recordings that were held against them, and ids of the runs that were left out.

    ``laws`` is a file or an experiment; runs that they were learnt from are left out.
    """
    from perflaw.check.program_changes import check_laws
    from perflaw.check.program_summary import summarize
    from perflaw.learn.series.series import without_garbage_collection
    from perflaw.store.program import read_program

    with without_garbage_collection():
        loaded = load_laws(laws, metric, runs if laws == experiment else ())
        recordings, left_out = new_recordings(experiment, runs, loaded.source, loaded.learnt_from, "the laws", "")
        metric_of = loaded.program.metric if loaded.program else None
        with progress("reading the recordings") as show:
            evidence = _gather_evidence(loaded, recordings, show)
        with progress("checking"):
            new_program = summarize(read_program(recordings, metric_of)) if metric_of else None
            verdicts = check_laws(loaded.claims, evidence, options, loaded.program, new_program)
    if loaded.note:
        notice(loaded.note)
    if loaded.learning_s >= LONG_S:
        notice(
            f"learning the laws of {laws} took {loaded.learning_s:.0f} s: perflaw annotate -e {laws} -o perf.law keeps them "
            f"in a file, which perflaw check perf.law reads at once"
        )
    return list(verdicts), recordings, left_out


def new_recordings(
    experiment: str,
    runs: tuple[str, ...],
    source: str,
    learnt_from: Collection[tuple[str, str]],
    claims: str,
    option: str,
) -> tuple[list[Recording], list[str]]:
    """The recordings to check, and the ids of the runs left out because the claims were learnt from them.

    UsageError if such a run was named, or if no other run is there.
    """
    recordings = read_recordings(experiment, runs)
    new = [each for each in recordings if (each.run.id, each.run.started) not in learnt_from]
    left_out = [each.run.id for each in recordings if each not in new]
    if left_out and (runs or not new):
        verb = "mined" if option else "learnt"
        raise UsageError(
            f"{source} was {verb} from run{'s' * (len(left_out) > 1)} {' '.join(left_out[:5])}{' …' * (len(left_out) > 5)}",
            f"{claims} cannot be tested on the runs that they were {verb} from",
            f"perflaw record -e new {option}-- …, then perflaw check {source} -e new",
        )
    if left_out:
        notice(f"left out: {counted(len(left_out), 'run')} that {claims} were learnt from")
    return new, left_out


def _gather_evidence(
    laws: LoadedLaws, recordings: Sequence[Recording], tell: Callable[[float], None]
) -> dict[tuple[str, str], Evidence]:
    """The evidence of the recordings in every metric that the laws speak of; UsageError where it does not fit.

    ``tell`` is told the part of the reading that is done.
    """
    from perflaw.store.evidence import by_key, find_metric, gather

    evidence: dict[tuple[str, str], Evidence] = {}
    names = list(dict.fromkeys(claim.metric.name for claim in laws.claims))
    for place, name in enumerate(names):

        def tell_within(part: float, place: int = place) -> None:
            tell((place + part) / len(names))

        try:
            metric = find_metric(recordings, name)
        except UsageError as error:
            why = error.why
            raise UsageError(f"{laws.source}: metric {name!r} was not measured", why, error.next_command) from error
        for claim in laws.claims:
            if claim.metric.name == name and claim.metric.unit not in ("", metric.unit):
                raise UsageError(
                    f"{laws.source}: {claim.component}.{name} is in {claim.metric.unit}: wrong unit",
                    f"the recordings measure it in {metric.unit}",
                    f"write {claim.component}.{name}(…) [{metric.unit}] {{ … }}",
                )
        evidence |= by_key(gather(recordings, metric, tell_within), metric)
    return evidence
