"""``perflaw check``: new recordings held against laws."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.law_files import load_laws
from perflaw.cli.mining import read_specs
from perflaw.cli.options import experiment_option, json_option
from perflaw.cli.twin import evidence_of
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from perflaw.check.spec_tallies import SpecOptions
    from perflaw.cli.law_files import Laws
    from perflaw.store.experiment import Recording
    from perflaw.types import CheckVerdict, Component, Evidence, Observed, SpecVerdict
    from perflaw.types.specifications import SpecFile


# ---- ``perflaw check FILE.yaml``: new recordings held against specifications of call paths.


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where verdicts go."""

    sarif: str | None
    """File for SARIF."""
    as_github: bool
    """Workflow commands as well."""
    every: bool
    """List what holds as well."""
    as_json: bool
    """One JSON document."""


def check_specs(source: str, experiment: str, runs: tuple[str, ...], options: SpecOptions, outputs: Outputs) -> int:
    """Hold recordings against a file of specifications; exit status 1 where a group of call paths violates them."""
    from perflaw.check.spec_judge import judge_specs
    from perflaw.store.experiment import open_experiment

    file = read_specs(source)
    recordings = open_experiment(experiment).recordings(runs)
    fresh, left_out = _check_specs_fresh(file, recordings, bool(runs))
    if left_out:
        click.echo(f"perflaw: left out: {len(left_out)} runs that the specifications were mined from", err=True)
    found, places = _observed(file, fresh)
    verdicts = judge_specs(file.specs, found, options, places)
    if outputs.sarif:
        write_sarif(Path(outputs.sarif), verdicts)
    _check_specs_print(verdicts, fresh, left_out, outputs)
    return int(any(one.verdict == "violated" for one in verdicts))


def _check_specs_fresh(
    file: SpecFile, recordings: Sequence[Recording], named: bool
) -> tuple[list[Recording], list[str]]:
    """The recordings to check, and the runs left out because the specifications were mined from them."""
    old = {(run.id, run.started) for run in file.runs if run.started}
    fresh = [one for one in recordings if (one.run.id, one.run.started) not in old]
    left = [one.run.id for one in recordings if one not in fresh]
    if left and (named or not fresh):
        raise UsageError(
            f"{file.source} was mined from run{'s' * (len(left) > 1)} {' '.join(left[:5])}{' …' * (len(left) > 5)}",
            "a specification is no test of the runs it was mined from",
            f"perflaw record -e new --collect paths -- …, then perflaw check {file.source} -e new",
        )
    return fresh, left


def _observed(
    file: SpecFile, recordings: Sequence[Recording]
) -> tuple[dict[tuple[str, str], Observed], dict[str, Component]]:
    """What the recordings show of the functions, by name and clock, and where these are."""
    from perflaw.store.paths import read_observed

    found: dict[tuple[str, str], Observed] = {}
    for metric in dict.fromkeys(one.spec.metric for one in file.specs):
        names = {one.spec.component for one in file.specs if one.spec.metric == metric}
        found.update({(one.component, metric): one for one in read_observed(recordings, names, metric)})
    return found, _places(recordings[-1])


def _places(recording: Recording) -> dict[str, Component]:
    """Where functions are, by name, as the newest run says."""
    from perflaw.store.tables import read_table
    from perflaw.types import Component

    table = read_table(recording.folder, "components", ("name", "file", "line"))
    return {str(name): Component(str(name), str(file), int(line)) for name, file, line in table}


def _check_specs_print(
    verdicts: Sequence[SpecVerdict], recordings: Sequence[Recording], left_out: Sequence[str], outputs: Outputs
) -> None:
    from perflaw.report.annotations.verdicts import github
    from perflaw.report.mine.verdicts import spec_verdicts_text

    if outputs.as_json:
        from perflaw.report.documents import check_document
        from perflaw.types.documents import dumps

        click.echo(dumps(check_document(verdicts, [one.run.id for one in recordings], left_out)))
    else:
        click.echo(spec_verdicts_text(verdicts, sys.stdout.isatty(), outputs.every), nl=False)
    if outputs.as_github:
        click.echo(github(verdicts), nl=False, err=outputs.as_json)


def write_sarif(path: Path, verdicts: Sequence[CheckVerdict | SpecVerdict]) -> None:
    """Write the verdicts as SARIF; StoreError where the disk refuses."""
    from perflaw import __version__
    from perflaw.report.sarif import sarif
    from perflaw.types.documents import dumps

    try:
        path.write_text(dumps(sarif(verdicts, __version__, str(Path.cwd()))) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "--sarif another/file") from error


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
        from perflaw.check.spec_tallies import SpecOptions

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
        from perflaw.report.annotations.verdicts import github

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
    from perflaw.report.annotations.verdicts import check_text

    if as_json:
        from perflaw.report.documents import check_document
        from perflaw.types.documents import dumps

        click.echo(dumps(check_document(verdicts, [one.run.id for one in recordings], left_out)))
        return
    click.echo(check_text(verdicts, sys.stdout.isatty(), every), nl=False)
