"""``perflaw check FILE.yaml``: new recordings held against specifications of call paths."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.mining import read_specs
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from perflaw.check.spec_options import SpecOptions
    from perflaw.store.experiment import Recording
    from perflaw.types import CheckVerdict, Component, Observed, SpecVerdict
    from perflaw.types.spec_files import SpecFile


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
    fresh, left_out = _fresh(file, recordings, bool(runs))
    if left_out:
        click.echo(f"perflaw: left out: {len(left_out)} runs that the specifications were mined from", err=True)
    found, places = _observed(file, fresh)
    verdicts = judge_specs(file.specs, found, options, places)
    if outputs.sarif:
        write_sarif(Path(outputs.sarif), verdicts)
    _print(verdicts, fresh, left_out, outputs)
    return int(any(one.verdict == "violated" for one in verdicts))


def _fresh(file: SpecFile, recordings: Sequence[Recording], named: bool) -> tuple[list[Recording], list[str]]:
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


def _print(
    verdicts: Sequence[SpecVerdict], recordings: Sequence[Recording], left_out: Sequence[str], outputs: Outputs
) -> None:
    from perflaw.report.spec_verdicts import spec_document, spec_verdicts_text
    from perflaw.report.verdicts import github

    if outputs.as_json:
        from perflaw.report.encode import dumps

        click.echo(dumps(spec_document(verdicts, [one.run.id for one in recordings], left_out)))
    else:
        click.echo(spec_verdicts_text(verdicts, sys.stdout.isatty(), outputs.every), nl=False)
    if outputs.as_github:
        click.echo(github(verdicts), nl=False, err=outputs.as_json)


def write_sarif(path: Path, verdicts: Sequence[CheckVerdict | SpecVerdict]) -> None:
    """Write the verdicts as SARIF; StoreError where the disk refuses."""
    from perflaw import __version__
    from perflaw.report.encode import dumps
    from perflaw.report.sarif import sarif

    try:
        path.write_text(dumps(sarif(verdicts, __version__, str(Path.cwd()))) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "--sarif another/file") from error
