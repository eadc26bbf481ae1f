"""``perflaw check``: new recordings held against laws, or against specifications of call paths."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.law_files import load_laws
from perflaw.cli.mining import is_specification, read_specs
from perflaw.cli.options import experiment_option, json_option, note, read_recordings, write_text
from perflaw.errors import UsageError
from perflaw.report.quantity import counted
from perflaw.types.documents import Document

if TYPE_CHECKING:
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.cli.law_files import LoadedLaws
    from perflaw.store.experiment import Recording
    from perflaw.types import Evidence


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where and how verdicts are printed."""

    sarif: str | None
    """Path of the SARIF file, if one is written."""
    github: bool
    """Also print GitHub's workflow commands."""
    all: bool
    """Also list what holds."""
    json: bool
    """Print one JSON document instead of text."""


@click.command("check", short_help="test whether the laws hold in new recordings")
@experiment_option
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Metric, if LAWS is an experiment.")
@click.option("--alpha", default=0.01, show_default=True, type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
              help="Rate of false alarms among the violated verdicts.")  # fmt: skip
@click.option("--min-effect", default=1.1, show_default=True, type=click.FloatRange(1.0, 1000.0),
              help="Ignore changes by a smaller factor.")  # fmt: skip
@click.option("--tolerance", default=0.05, show_default=True, type=click.FloatRange(0, 1, max_open=True),
              help="For specifications: ignore smaller differences of shares.")  # fmt: skip
@click.option("--absolute", is_flag=True, help="For specifications: compare times without adjusting to this machine.")
@click.option("--single-run", is_flag=True, help="A single run may violate a law.")
@click.option("--sarif", metavar="FILE", help="Write the verdicts as SARIF 2.1.0.")
@click.option("--github", is_flag=True, help="Also print GitHub's workflow commands.")
@click.option("--all", "every", is_flag=True, help="Also list functions whose law holds.")
@click.option("--attach", "pid", type=int, metavar="PID", help="For specifications: measure this running process.")
@click.option("--watch", is_flag=True, help="With --attach: go on until Ctrl-C, and tell each violation at once.")
@click.option("--budget", metavar="SHARE",
              help="Part of the running program's CPU time that measuring may take.  [default: 5%]")  # fmt: skip
@click.option("--metrics", metavar="FILE", help="With --watch: keep FILE up to date, in Prometheus' text format.")
@click.option(
    "--otlp", metavar="FILE|URL", help="With --watch: write durations by group as OTLP in JSON, or send them."
)
@json_option
@click.argument("laws", metavar="LAWS")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(
    experiment: str,
    metric: str,
    alpha: float,
    min_effect: float,
    tolerance: float,
    absolute: bool,
    single_run: bool,
    sarif: str | None,
    github: bool,
    every: bool,
    pid: int | None,
    watch: bool,
    budget: str | None,
    metrics: str | None,
    otlp: str | None,
    as_json: bool,
    laws: str,
    runs: tuple[str, ...],
) -> int:
    """Hold the recordings of the experiment (or only the RUNs named) against LAWS.

    LAWS is a .law file, its JSON twin, an experiment, or a file of specifications that ``perflaw mine --export yaml``
    wrote (FILE.yaml). Runs that the laws were learnt from are refused. Exit status 1 if a law is violated.
    With --attach, new recordings are made of a running process, and held against specifications.
    """
    from perflaw.store.experiment import run_id

    for option, given in (("--watch", watch), ("--budget", budget), ("--metrics", metrics), ("--otlp", otlp)):
        if given and pid is None:
            raise UsageError(
                f"{option} is for running programs", "no process was named", "perflaw check SPEC --attach PID"
            )
    if pid is not None and (not is_specification(laws) or runs):
        why = "a running process is held against a file of specifications (perflaw mine --export yaml)"
        raise UsageError(f"{runs[0] if runs else laws} with --attach", why, f"perflaw check SPEC.yaml --attach {pid}")

    run_ids = tuple(map(run_id, runs))
    outputs = Outputs(sarif, github, every, as_json)
    if is_specification(laws):
        from perflaw.check.spec_calls import SpecOptions

        spec_options = SpecOptions(alpha, tolerance, min_effect, absolute)
        if pid is not None:
            from perflaw.cli.live_checking import LiveOutputs, check_running
            from perflaw.cli.live_mining import parse_share

            live = LiveOutputs(as_json, every, metrics, otlp)
            return check_running(laws, experiment, pid, spec_options, parse_share(budget or "5%"), live, watch=watch)
        return _check_specs(laws, experiment, run_ids, spec_options, outputs)
    from perflaw.check.judge import CheckOptions
    from perflaw.check.program_changes import check_laws
    from perflaw.check.program_summary import summarize
    from perflaw.learn.series.series import without_garbage_collection
    from perflaw.report.documents import check_document
    from perflaw.report.verdicts import law_verdicts_text
    from perflaw.store.program import read_program

    with without_garbage_collection():
        loaded = load_laws(laws, metric, run_ids if laws == experiment else ())
        recordings, left_out = _new_recordings(experiment, run_ids, loaded.source, loaded.learnt_from, "the laws", "")
        metric_of = loaded.program.metric if loaded.program else None
        new_program = summarize(read_program(recordings, metric_of)) if metric_of else None
        options = CheckOptions(alpha, min_effect, single_run)
        verdicts = check_laws(loaded.claims, _gather_evidence(loaded, recordings), options, loaded.program, new_program)
    if loaded.note:
        note(loaded.note)
    document = check_document(verdicts, [each.run.id for each in recordings], left_out)
    return _report(document, law_verdicts_text(document, sys.stdout.isatty(), every), outputs)


def _check_specs(source: str, experiment: str, runs: tuple[str, ...], options: SpecOptions, outputs: Outputs) -> int:
    """Hold recordings against a file of specifications; exit status 1 if a group of call paths violates them."""
    from perflaw.cli.spec_checks import judge_recordings
    from perflaw.report.documents import check_document
    from perflaw.report.verdicts import spec_verdicts_text

    file = read_specs(source)
    mined_from = {(run.id, run.started) for run in file.runs if run.started}
    recordings, left_out = _new_recordings(
        experiment, runs, file.source, mined_from, "the specifications", "--collect paths "
    )
    verdicts = judge_recordings(file, recordings, options)[0]
    document = check_document(verdicts, [each.run.id for each in recordings], left_out)
    return _report(document, spec_verdicts_text(document, sys.stdout.isatty(), outputs.all), outputs)


def _new_recordings(
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
        note(f"left out: {counted(len(left_out), 'run')} that {claims} were learnt from")
    return new, left_out


def _gather_evidence(laws: LoadedLaws, recordings: Sequence[Recording]) -> dict[tuple[str, str], Evidence]:
    """The evidence of the recordings in every metric that the laws speak of; UsageError where it does not fit."""
    from perflaw.store.evidence import by_key, find_metric, gather

    evidence: dict[tuple[str, str], Evidence] = {}
    for name in dict.fromkeys(claim.metric.name for claim in laws.claims):
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
        evidence |= by_key(gather(recordings, metric), metric)
    return evidence


def _report(document: Document, text: str, outputs: Outputs) -> int:
    """Print and write the verdicts in every form that was asked for; gives the exit status."""
    from perflaw import __version__
    from perflaw.report.verdicts import github, sarif
    from perflaw.types.documents import dumps

    if outputs.sarif:
        sarif_text = dumps(sarif(document, __version__, str(Path.cwd()))) + "\n"
        write_text(outputs.sarif, sarif_text, "--sarif another/file")
    click.echo(dumps(document) + "\n" if outputs.json else text, nl=False)
    if outputs.github:
        click.echo(github(document), nl=False, err=outputs.json)
    return int(any(verdict["verdict"] == "violated" for verdict in document["verdicts"]))
