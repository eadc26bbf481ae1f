"""``perflaw feature``: lists, adds, changes and removes features of recorded runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import own_experiment_option, parse_feature
from perflaw.cli.progress import note, tell
from perflaw.errors import DataError, UsageError
from perflaw.report.quantity import counted
from perflaw.types.recordings import FEATURE_NAME

if TYPE_CHECKING:
    from perflaw.store.experiment import Recording

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FeatureRequest:
    """What the command line asks for."""

    runs: tuple[str, ...]
    """Ids of the runs; all runs if empty."""
    values: Features
    """Features given as ``NAME=NUMBER``."""
    name: str
    """The feature that ``--pattern`` reads."""
    pattern: str
    """Regular expression of ``--pattern``."""
    file: str
    """File of ``--from``."""
    columns: tuple[str, ...]
    """Columns of ``--on``."""
    removed: tuple[str, ...]
    """Features of ``--remove``."""


@click.command("feature", short_help="list, add, change or remove features of the runs")
@own_experiment_option
@click.option("--from", "file", metavar="FILE.csv", help="Read features from a file (- is standard input).")
@click.option("--on", metavar="COLUMN,...", help="Columns of FILE.csv that tell which run a row belongs to.")
@click.option("--pattern", metavar="REGEX", help="Find the feature NAME in the output kept by record --keep-output.")
@click.option("--remove", multiple=True, metavar="NAME", help="Remove a feature.")
@click.argument("words", nargs=-1, metavar="[NAME=NUMBER | NAME]... [RUN]...")
def command(
    experiment: str,
    file: str | None,
    on: str | None,
    pattern: str | None,
    remove: tuple[str, ...],
    words: tuple[str, ...],
) -> int:
    """List the features of the experiment's runs (or of the RUNs named), or change them for all laws learnt later.

    \b
    perflaw feature                                     list the features of all runs
    perflaw feature bytes=5e6 12 13                     declare a feature of two runs
    perflaw feature --from sizes.csv                    rows belong to runs by the column `run`, or by known features
    perflaw feature compares --pattern 'compares: (\\d+)'
    perflaw feature --remove bytes
    """
    from perflaw.report.tables import text_table
    from perflaw.store.experiment import open_experiment
    from perflaw.store.features import change_features, executions

    request = parse_request(words, file, on, pattern, remove)
    target = open_experiment(experiment)
    if not (request.values or request.pattern or request.file or request.removed):
        rows = []
        for each in executions(target, request.runs).values():
            run = each[0].run
            features = " ".join(f"{name}={value:.10g}" for name, value in run.features.items())
            rows.append([run.id, " ".join(filter(None, [run.target, run.workload])), features])
        click.echo(text_table(["run", "target", "features"], rows, (), sys.stdout.isatty()), nl=False)
        return 0
    remarks: list[str] = []

    def find_changes() -> Mapping[str, tuple[Sequence[Recording], Features]]:
        chosen = executions(target, request.runs)
        features = new_features(request, {root: each[0] for root, each in chosen.items()}, remarks)
        return {root: (each, features[root]) for root, each in chosen.items() if root in features}

    changed = change_features(target, find_changes)
    remarks += [f"{name} had another value in {counted(len(runs), 'run')}" for name, runs in changed.replaced.items()]
    for remark in remarks:
        note(remark)
    tell(f"changed {counted(changed.runs, 'run')}")
    return 0


def parse_request(
    words: Sequence[str], file: str | None, on: str | None, pattern: str | None, remove: Sequence[str]
) -> FeatureRequest:
    """Read the words and options of the command line; UsageError where they contradict each other."""
    runs = tuple(word for word in words if word.isdigit())
    values = dict(parse_feature(word, "perflaw feature") for word in words if "=" in word)
    names = [word for word in words if not word.isdigit() and "=" not in word]
    if sum(map(bool, (values, pattern, file, remove))) > 1:
        why = "give either NAME=NUMBER, --pattern, --from or --remove"
        raise UsageError("one change at a time", why, "perflaw feature --help")
    if on and not file:
        why = "it names columns of a file"
        raise UsageError("--on without --from", why, "perflaw feature --from FILE.csv --on run")
    example = r"perflaw feature compares --pattern 'compares: (\d+)'"
    if pattern is None:
        if names:
            why = "runs are numbers"
            raise UsageError(f"{names[0]} is neither a run nor NAME=NUMBER", why, f"perflaw feature {names[0]}=5")
    elif len(names) != 1 or not FEATURE_NAME.fullmatch(names[0]):
        raise UsageError("--pattern reads one feature, named before it", f"{len(names)} names were given", example)
    elif not pattern:
        raise UsageError("--pattern is empty", "it would match anything", example)
    else:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--pattern {pattern}: not a regular expression", str(error), example) from None
    columns = tuple(name.strip() for name in (on or "").split(",") if name.strip())
    return FeatureRequest(runs, values, "".join(names[:1]), pattern or "", file or "", columns, tuple(remove))


def new_features(request: FeatureRequest, runs: Mapping[str, Recording], remarks: list[str]) -> dict[str, Features]:
    """All features that each changed run will have, by run; appends to ``remarks`` what the person should know."""
    if request.removed:
        for name in request.removed:
            if not any(name in each.run.features for each in runs.values()):
                known = dict.fromkeys(known for each in runs.values() for known in each.run.features)
                why = f"the features are {', '.join(known)}" if known else "the runs have no features"
                raise UsageError(f"--remove {name}: no run has this feature", why, "perflaw feature")
        return {
            root: {name: value for name, value in each.run.features.items() if name not in request.removed}
            for root, each in runs.items()
        }
    added: Mapping[str, Features] = dict.fromkeys(runs, request.values)
    if request.file:
        from perflaw.store.csv_files import read_csv
        from perflaw.store.features import match_rows

        matched = match_rows(read_csv(request.file), [each.run for each in runs.values()], request.columns)
        added = matched.features
        if matched.unmatched_rows:
            remarks.append(f"{request.file}: {counted(matched.unmatched_rows, 'row')} without a run")
        if matched.unmatched_runs:
            missing = ", ".join(matched.unmatched_runs[:8]) + " …" * (len(matched.unmatched_runs) > 8)
            remarks.append(f"{request.file} has no row for run {missing}")
    elif request.pattern:
        added = _find_in_output(request, runs, remarks)
    return {root: {**runs[root].run.features, **features} for root, features in added.items()}


def _find_in_output(
    request: FeatureRequest, runs: Mapping[str, Recording], remarks: list[str]
) -> dict[str, dict[str, float]]:
    """The feature as the runs printed it. An incomplete run may have ended before it printed the feature."""
    from perflaw.store.features import find_number, read_output

    found: dict[str, dict[str, float]] = {}
    for root, each in runs.items():
        texts = read_output(each.folder)
        try:
            if texts is None:
                raise DataError(
                    "its output was not kept", "that needs --keep-output", "perflaw record --keep-output -- …"
                )
            found[root] = {request.name: find_number(texts, request.pattern)}
        except DataError as error:
            if each.run.complete:
                name_runs = f"perflaw feature {request.name} --pattern … RUN…  (names the runs to use)"
                remedy = error.next_command if texts is None else name_runs
                why = error.reason
                raise DataError(f"run {root} has no feature {request.name}; nothing was changed", why, remedy) from None
            remarks.append(f"run {root} is incomplete and was left out: {error.reason}")
    return found
