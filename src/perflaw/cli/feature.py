"""``perflaw feature``: features of recorded runs, listed, added, changed and removed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import click

from perflaw.cli.options import experiment_option, parse_feature
from perflaw.errors import DataError, UsageError
from perflaw.types.recordings import FEATURE_NAME

if TYPE_CHECKING:
    from perflaw.store.experiment import Experiment, Recording
    from perflaw.store.features import Changed


# ---- What ``perflaw feature`` is asked for, and the features that runs get by it.


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for."""

    runs: tuple[str, ...]
    """Runs named; none: all."""
    given: Mapping[str, float]
    """``NAME=NUMBER``."""
    name: str = ""
    """The feature of ``--pattern``."""
    pattern: str = ""
    """Of ``--pattern``."""
    file: str = ""
    """Of ``--from``."""
    on: tuple[str, ...] = ()
    """Of ``--on``."""
    remove: tuple[str, ...] = ()
    """Of ``--remove``."""

    @property
    def changes(self) -> bool:
        """Whether anything is to be changed; else features are listed."""
        return bool(self.given or self.pattern or self.file or self.remove)


def wish_of(words: Sequence[str], file: str | None, on: str | None, pattern: str | None, remove: Sequence[str]) -> Wish:
    """Make sense of the words; UsageError where they make none."""
    runs = tuple(word for word in words if word.isdigit())
    given = dict(parse_feature(word, "perflaw feature") for word in words if "=" in word)
    names = [word for word in words if not word.isdigit() and "=" not in word]
    if sum(map(bool, (given, pattern, file, remove))) > 1:
        raise UsageError("one change at a time", "NAME=NUMBER, --pattern, --from or --remove", "perflaw feature --help")
    if on and not file:
        raise UsageError(
            "--on without --from", "it names columns of a file", "perflaw feature --from FILE.csv --on run"
        )
    _check_names(names, pattern)
    return Wish(
        *(runs, given, "".join(names[:1]), pattern or "", file or ""),
        tuple(name.strip() for name in (on or "").split(",") if name.strip()),
        tuple(remove),
    )


def _check_names(names: Sequence[str], pattern: str | None) -> None:
    example = r"perflaw feature compares --pattern 'compares: (\d+)'"
    if pattern is None:
        if names:
            raise UsageError(
                f"{names[0]}: no run and no NAME=NUMBER", "runs are numbers", f"perflaw feature {names[0]}=5"
            )
        return
    if len(names) != 1 or not FEATURE_NAME.fullmatch(names[0]):
        raise UsageError("--pattern is for one feature, named before it", f"named were {len(names)}", example)
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--pattern {pattern}: no regular expression", str(error), example) from None
    if not pattern:
        raise UsageError("--pattern is empty", "it would match anything", example)


def new_features(wish: Wish, runs: Mapping[str, Recording], told: list[str]) -> dict[str, dict[str, float]]:
    """Run → all features it is to have, for those that change; ``told`` gets what the person should know beside."""
    if wish.remove:
        return _without(wish.remove, runs)
    if wish.file:
        added = _from_file(wish, runs, told)
    elif wish.pattern:
        added = _printed(wish, runs, told)
    else:
        added = dict.fromkeys(runs, wish.given)
    return {root: {**runs[root].run.features, **features} for root, features in added.items()}


def _without(names: Sequence[str], runs: Mapping[str, Recording]) -> dict[str, dict[str, float]]:
    for name in names:
        if not any(name in one.run.features for one in runs.values()):
            known = ", ".join(dict.fromkeys(known for one in runs.values() for known in one.run.features)) or "none"
            raise UsageError(f"--remove {name}: no run has it", f"they have {known}", "perflaw feature")
    return {
        root: {name: value for name, value in one.run.features.items() if name not in names}
        for root, one in runs.items()
    }


def _from_file(wish: Wish, runs: Mapping[str, Recording], told: list[str]) -> Mapping[str, Mapping[str, float]]:
    from perflaw.store.csv_files import read_csv
    from perflaw.store.features import match

    matched = match(read_csv(wish.file), [one.run for one in runs.values()], wish.on)
    if matched.rows:
        told.append(f"{wish.file}: rows that belong to no run: {matched.rows}")
    if matched.runs:
        told.append(f"{wish.file} says nothing of run {', '.join(matched.runs[:8])}{' …' * (len(matched.runs) > 8)}")
    return matched.features


def _printed(wish: Wish, runs: Mapping[str, Recording], told: list[str]) -> dict[str, dict[str, float]]:
    """The feature of ``--pattern``. A run that is incomplete may not have come to print it."""
    from perflaw.store.output import find_number, read_output

    found: dict[str, dict[str, float]] = {}
    for root, one in runs.items():
        texts = read_output(one.folder)
        try:
            if texts is None:
                raise DataError("what it printed was not kept")
            found[root] = {wish.name: find_number(texts, wish.pattern)}
        except DataError as error:
            if one.run.complete:
                _refuse(wish, root, str(error), texts is not None)
            told.append(f"run {root}, which is incomplete, is left out: {error}")
    return found


def _refuse(wish: Wish, run: str, why: str, kept: bool) -> NoReturn:
    remedy = f"perflaw feature {wish.name} --pattern … RUN… (names the runs to use)"
    record = "perflaw record --keep-output -- …"
    raise DataError(f"run {run}: no feature {wish.name}, nothing was changed", why, remedy if kept else record)


@click.command("feature", short_help="features of the runs: list, add, change, remove")
@experiment_option
@click.option(
    "--from", "file", metavar="FILE.csv", help="Take features from the columns of a file (- is standard input)."
)
@click.option("--on", metavar="COLUMN,...", help="Columns of FILE.csv by which its rows are found.")
@click.option(
    "--pattern", metavar="REGEX", help="Read the feature NAME from what the runs printed (record --keep-output)."
)
@click.option("--remove", multiple=True, metavar="NAME", help="Take a feature away.")
@click.argument("words", nargs=-1, metavar="[NAME=NUMBER | NAME]... [RUN]...")
def command(
    experiment: str,
    file: str | None,
    on: str | None,
    pattern: str | None,
    remove: tuple[str, ...],
    words: tuple[str, ...],
) -> int:
    """List the features of the experiment's runs (or the RUNs named), or change them; the laws learnt then see them.

    \b
    perflaw feature                                     what runs have
    perflaw feature bytes=5e6 12 13                     declare a feature of two runs
    perflaw feature --from sizes.csv                    rows are found by `run`, or by features runs have
    perflaw feature compares --pattern 'compares: (\\d+)'
    perflaw feature --remove bytes
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.store.experiment import open_experiment

    wish = wish_of(words, file, on, pattern, remove)
    target = open_experiment(experiment)
    if not wish.changes:
        _list(target, wish.runs)
        return 0
    _tell(*_apply(target, wish))
    return 0


def _list(target: Experiment, runs: Sequence[str]) -> None:
    from perflaw.report.tables import text_table
    from perflaw.store.features import executions

    found = [each[0].run for each in executions(target, runs).values()]
    rows = [
        [
            run.id,
            " ".join(filter(None, [run.target, run.workload])),
            " ".join(f"{name}={value:.10g}" for name, value in run.features.items()),
        ]
        for run in found
    ]
    click.echo(text_table(["run", "target", "features"], rows, (), sys.stdout.isatty()), nl=False)


def _apply(target: Experiment, wish: Wish) -> tuple[Changed, list[str]]:
    """Change the runs; also gives what has to be told beside."""
    from perflaw.store.features import change, executions

    told: list[str] = []

    def find() -> Mapping[str, tuple[Sequence[Recording], Mapping[str, float]]]:
        chosen = executions(target, wish.runs)
        new = new_features(wish, {root: each[0] for root, each in chosen.items()}, told)
        return {root: (each, new[root]) for root, each in chosen.items() if root in new}

    return change(target, find), told


def _tell(changed: Changed, told: Sequence[str]) -> None:
    for text in told:
        click.echo(f"perflaw: {text}", err=True)
    for name, runs in changed.replaced.items():
        click.echo(f"perflaw: {name} had another value in {_runs(len(runs))}", err=True)
    click.echo(f"changed {_runs(changed.runs)}", err=True)


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number != 1)}"
