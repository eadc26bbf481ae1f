"""``perflaw check``: new recordings held against laws."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.check_specs import Outputs, check_specs, write_sarif
from perflaw.cli.law_source import load_laws
from perflaw.cli.options import experiment_option, json_option
from perflaw.cli.twin import evidence_of
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.cli.law_source import Laws
    from perflaw.store.experiment import Recording
    from perflaw.types import CheckVerdict, Evidence


@click.command("check", short_help="whether new recordings keep to the laws")
@experiment_option
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Where LAWS is an experiment.")
@click.option("--alpha", default=0.01, show_default=True, type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
              help="False alarms among the violated verdicts of a check.")  # fmt: skip
@click.option("--min-effect", default=1.1, show_default=True, type=click.FloatRange(1.0, 1000.0),
              help="Smaller factors are no violation.")  # fmt: skip
@click.option("--tolerance", default=0.05, show_default=True, type=click.FloatRange(0, 1, max_open=True),
              help="Of specifications: smaller differences of shares are no violation.")  # fmt: skip
@click.option("--absolute", is_flag=True, help="Of specifications: hold times to the borders of this machine.")
@click.option("--single-run", is_flag=True, help="Let one run alone violate a law.")
@click.option("--sarif", metavar="FILE", help="Write the verdicts as SARIF 2.1.0.")
@click.option("--github", "as_github", is_flag=True, help="Print GitHub's workflow commands as well.")
@click.option("--all", "every", is_flag=True, help="List functions whose law holds as well.")
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
    as_github: bool,
    every: bool,
    as_json: bool,
    laws: str,
    runs: tuple[str, ...],
) -> int:
    """Hold the experiment's recordings (or the RUNs named) against LAWS: a .law file, its twin, or an experiment.

    Or against specifications that ``perflaw mine --export yaml`` wrote (FILE.yaml). Runs that the laws were learnt from
    are refused. Exit status 1 if a law is violated.
    """
    named = tuple(run.zfill(4) for run in runs)
    if laws.endswith((".yaml", ".yml")):
        from perflaw.check.spec_options import SpecOptions

        outputs = Outputs(sarif, as_github, every, as_json)
        return check_specs(laws, experiment, named, SpecOptions(alpha, tolerance, min_effect, absolute), outputs)
    from perflaw.check.judge import Options, judge

    loaded = load_laws(laws, metric, named if laws == experiment else ())
    recordings, left_out = _fresh(experiment, named, loaded)
    verdicts = judge(loaded.claims, _evidence(loaded, recordings), Options(alpha, min_effect, single_run))
    if loaded.note:
        click.echo(f"perflaw: {loaded.note}", err=True)
    if left_out:
        click.echo(f"perflaw: left out: {len(left_out)} runs that the laws were learnt from", err=True)
    if sarif:
        write_sarif(Path(sarif), verdicts)
    _print(verdicts, recordings, left_out, as_json, every)
    if as_github:
        from perflaw.report.verdicts import github

        click.echo(github(verdicts), nl=False, err=as_json)
    return int(any(one.verdict == "violated" for one in verdicts))


def _fresh(experiment: str, named: Sequence[str], laws: Laws) -> tuple[list[Recording], list[str]]:
    """The recordings to check, and the runs left out because the laws were learnt from them.

    A run that was named and that the laws were learnt from is refused.
    """
    from perflaw.store.experiment import open_experiment

    recordings = open_experiment(experiment).recordings(tuple(named))
    old = [one for one in recordings if (one.run.id, one.run.started) in laws.learnt_from]
    fresh = [one for one in recordings if one not in old]
    if old and (named or not fresh):
        names = " ".join(one.run.id for one in old[:5])
        raise UsageError(
            f"{laws.source} was learnt from run{'s' * (len(old) > 1)} {names}{' …' * (len(old) > 5)}",
            "a law is no test of the runs it was learnt from",
            "perflaw record -e new -- …, then perflaw check LAWS -e new",
        )
    return fresh, [one.run.id for one in old]


def _evidence(laws: Laws, recordings: Sequence[Recording]) -> dict[tuple[str, str], Evidence]:
    """What the recordings say in every metric that the laws speak of."""
    from perflaw.store.evidence import measured

    found: dict[tuple[str, str], Evidence] = {}
    for name in dict.fromkeys(claim.metric.name for claim in laws.claims):
        try:
            metric = measured(recordings, name)
        except UsageError as error:
            raise UsageError(
                f"{laws.source}: metric {name!r} was not measured", error.why, error.next_command
            ) from error
        _check_unit(laws, name, metric.unit)
        found.update(evidence_of(recordings, metric))
    return found


def _check_unit(laws: Laws, name: str, unit: str) -> None:
    """Refuse laws in a unit that the recordings do not have."""
    for claim in laws.claims:
        if claim.metric.name == name and claim.metric.unit not in ("", unit):
            raise UsageError(
                f"{laws.source}: {claim.component}.{name} is in {claim.metric.unit}: wrong unit",
                f"the recordings measure it in {unit}",
                f"write {claim.component}.{name}(…) [{unit}] {{ … }}",
            )


def _print(
    verdicts: Sequence[CheckVerdict],
    recordings: Sequence[Recording],
    left_out: Sequence[str],
    as_json: bool,
    every: bool,
) -> None:
    from perflaw.report.verdicts import check_document, check_text

    if as_json:
        from perflaw.report.encode import dumps

        click.echo(dumps(check_document(verdicts, [one.run.id for one in recordings], left_out)))
        return
    click.echo(check_text(verdicts, sys.stdout.isatty(), every), nl=False)
