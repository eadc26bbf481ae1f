"""``perflaw check``: new recordings held against laws, or against specifications of call paths."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from perflaw.api.mining import is_specification, judge_recordings, read_specs
from perflaw.cli.options import budget_options, experiment_option, json_option, refuse_store
from perflaw.cli.progress import note
from perflaw.cli.reviews import review_options, write_reviews
from perflaw.errors import StoreError, UsageError
from perflaw.types.documents import Document

if TYPE_CHECKING:
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.mine.budget import BudgetOf


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where and how verdicts are printed."""

    sarif: str | None
    """Path of the SARIF file, if one is written."""
    markdown: str | None
    """Path of the comment in Markdown, if one is written."""
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
@review_options
@click.option("--all", "every", is_flag=True, help="Also list functions whose law holds.")
@click.option("--attach", "pid", type=int, metavar="PID", help="For specifications: measure this running process.")
@click.option("--watch", is_flag=True, help="With --attach: go on until Ctrl-C, and tell each violation at once.")
@budget_options
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
    markdown: str | None,
    github: bool,
    every: bool,
    pid: int | None,
    watch: bool,
    budget: str | None,
    budget_of: BudgetOf,
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

    \b
    perflaw check perf.law -e new
    perflaw check perf.law -e new --sarif perf.sarif --markdown comment.md
    perflaw check spec.yaml --attach 1234 --watch
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
    outputs = Outputs(sarif, markdown, github, every, as_json)
    if is_specification(laws):
        from perflaw.check.spec_calls import SpecOptions

        spec_options = SpecOptions(alpha, tolerance, min_effect, absolute)
        if pid is not None:
            refuse_store(click.get_current_context(), "--attach")
            from perflaw.cli.live_checking import check_running
            from perflaw.cli.live_mining import parse_share
            from perflaw.cli.live_outputs import LiveOutputs

            live = LiveOutputs(as_json, every, metrics, otlp)
            account = parse_share(budget or "5%"), budget_of
            return check_running(laws, experiment, pid, spec_options, account, live, watch=watch)
        return _check_specs(laws, experiment, run_ids, spec_options, outputs)
    from perflaw.api.checks import check_recordings
    from perflaw.check.judge import CheckOptions
    from perflaw.report.documents import check_document
    from perflaw.report.verdicts import law_verdicts_text

    options = CheckOptions(alpha, min_effect, single_run)
    verdicts, recordings, left_out = check_recordings(laws, experiment, run_ids, metric, options)
    document = check_document(verdicts, [each.run.id for each in recordings], left_out)
    _keep(experiment, laws, document)
    return _report(document, law_verdicts_text(document, sys.stdout.isatty(), every), outputs)


def _check_specs(source: str, experiment: str, runs: tuple[str, ...], options: SpecOptions, outputs: Outputs) -> int:
    """Hold recordings against a file of specifications; exit status 1 if a group of call paths violates them."""
    from perflaw.api.checks import new_recordings
    from perflaw.report.documents import check_document
    from perflaw.report.verdicts import spec_verdicts_text

    file = read_specs(source)
    mined_from = {(run.id, run.started) for run in file.runs if run.started}
    recordings, left_out = new_recordings(
        experiment, runs, file.source, mined_from, "the specifications", "--collect paths "
    )
    verdicts = judge_recordings(file, recordings, options)[0]
    document = check_document(verdicts, [each.run.id for each in recordings], left_out)
    _keep(experiment, source, document)
    return _report(document, spec_verdicts_text(document, sys.stdout.isatty(), outputs.all), outputs)


def _keep(experiment: str, laws: str, document: Document) -> None:
    """Add the verdicts to the history that the report shows; a note says where it cannot be written."""
    from perflaw.store.checks import keep_check
    from perflaw.store.experiment import open_experiment

    try:
        keep_check(open_experiment(experiment).folder, laws, document)
    except StoreError as error:
        note(str(error))


def _report(document: Document, text: str, outputs: Outputs) -> int:
    """Print and write the verdicts in every form that was asked for; gives the exit status."""
    from perflaw.types.documents import dumps

    click.echo(dumps(document) + "\n" if outputs.json else text, nl=False)
    write_reviews(document, outputs.sarif, outputs.markdown, outputs.github, err=outputs.json)
    return int(any(verdict["verdict"] == "violated" for verdict in document["verdicts"]))
