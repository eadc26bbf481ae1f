"""``perflaw explore``: try configurations of a system, learn how its performance depends on them, name the best."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from perflaw.explore.explorer import Explorer
    from perflaw.explore.studying import Wish
    from perflaw.store.experiment import Experiment
    from perflaw.types.explored import Explored
    from perflaw.types.studies import Study


@click.command("explore", short_help="try configurations of a system and learn what they do")
@click.option("-e", "--experiment", metavar="NAME", help="Experiment under .perflaw/.  [default: the study's name]")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of everything random.  [default: 0]")
@click.option("--policy", metavar="NAME", help="Another policy than the study names.")
@click.option("--trials", type=click.IntRange(1), metavar="N", help="Another number of trials.")
@click.option("--dry-run", is_flag=True, help="Say what would be tried and what that costs; touch nothing.")
@click.option("--rescore", is_flag=True, help="Compute the metrics of finished trials anew from what they printed.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Secret shared with a remote agent.")
@click.option("--ca", type=click.Path(path_type=Path), help="Certificate that a remote agent shows.")
@click.option("-o", "--output", metavar="FILE.law", help="Write the laws to a file.")
@click.option("--page", metavar="FILE.html", help="Write the page, anew after each trial.")
@json_option
@click.argument("study", type=click.Path(path_type=Path))
def command(
    experiment: str | None,
    seed: int | None,
    policy: str | None,
    trials: int | None,
    dry_run: bool,
    rescore: bool,
    token_file: Path | None,
    ca: Path | None,
    output: str | None,
    page: str | None,
    as_json: bool,
    study: Path,
) -> int:
    """Make the trials of a study: STUDY is a YAML file, a Python file, or the XML of SPEX.

    \b
    perflaw explore study.yaml --dry-run
    perflaw explore study.yaml --seed 1 --page study.html

    The same command goes on where it was interrupted, whatever was killed; with more --trials it adds to them.
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.explore.reading import read_study
    from perflaw.explore.studying import Wish, wished
    from perflaw.store.experiment import open_experiment

    wish = Wish(seed, policy, trials, rescore)
    asked = wished(read_study(study), wish)
    target = open_experiment(experiment or asked.name)
    if dry_run:
        from perflaw.cli.explore_plan import tell_plan

        return tell_plan(target, asked, wish, as_json)
    found, agreed = _explored(target, asked, wish, Remote(token_file, ca), page)
    if output:
        from perflaw.cli.explore_laws import write_laws

        write_laws(Path(output), found, target)
    _tell(found, agreed, as_json, str(study))
    return 0


class Remote:
    """How a remote agent is reached."""

    def __init__(self, token_file: Path | None, authority: Path | None) -> None:
        self.token_file, self.authority = token_file, authority


def _explored(target: Experiment, study: Study, wish: Wish, remote: Remote, page: str | None) -> tuple[Explored, int]:
    """Make the trials that are still to be made; what all of them say, and the seed."""
    from perflaw.cli.explore_progress import progress
    from perflaw.explore.agent.client import agents_of
    from perflaw.explore.explorer import Explorer
    from perflaw.explore.studying import opened

    with opened(target, study, wish) as (journal, seed), progress(study) as shown:
        agent = agents_of(study, remote.token_file, remote.authority)
        explorer = Explorer(study, seed, target, journal, agent, shown.reading)
        shown.limit(explorer.space.size)
        if explorer.steering.warning:
            click.echo(f"perflaw: {explorer.steering.warning}", err=True)
        write = _page_writer(explorer, seed, page)
        try:
            for trial in explorer.run():
                shown.trial(trial, explorer.trials())
                write(True)
        except KeyboardInterrupt:
            made = sum(bool(trial.started) for trial in explorer.trials())
            click.echo(f"perflaw: interrupted; {made} trials are kept, the same command goes on", err=True)
            raise
        write(False)
        return _result(explorer, seed, False), seed


def _result(explorer: Explorer, seed: int, unfinished: bool) -> Explored:
    from perflaw.learn.exploring.explored import explored

    return explored(
        explorer.study, explorer.trials(), explorer.space, unfinished=unfinished, ended=explorer.ended, seed=seed
    )


def _page_writer(explorer: Explorer, seed: int, page: str | None) -> Callable[[bool], None]:
    """Writes the page after each trial; does nothing where none is asked for."""
    if page is None:
        return lambda _: None
    from perflaw.cli.explore_page import LivePage

    return LivePage(page, lambda unfinished: _result(explorer, seed, unfinished), seed).write


def _tell(found: Explored, seed: int, as_json: bool, name: str) -> None:
    if as_json:
        from perflaw.report.encode import dumps
        from perflaw.report.explore_document import explore_document

        click.echo(dumps(explore_document(found, seed)))
    else:
        from perflaw.report.explore_table import explore_text

        click.echo(explore_text(found, sys.stdout.isatty(), name=name), nl=False)
