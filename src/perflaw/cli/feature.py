"""``perflaw feature``: features of recorded runs, listed, added, changed and removed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from perflaw.cli.feature_values import Wish, new_features, wish_of
from perflaw.cli.options import experiment_option

if TYPE_CHECKING:
    from perflaw.store.experiment import Experiment, Recording
    from perflaw.store.run_features import Changed


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
    from perflaw.report.terminal import text_table
    from perflaw.store.run_features import executions

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
    from perflaw.store.run_features import change, executions

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
