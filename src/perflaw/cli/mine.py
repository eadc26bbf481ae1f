"""``perflaw mine``: what durations each function shows on which call paths."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, json_option
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.cli.mining import Mined

EXPORTS = ("yaml", "pytest", "prometheus", "otlp")


@click.command("mine", short_help="what durations each function shows on which call paths")
@experiment_option
@click.option("--metric", default="time", show_default=True, type=click.Choice(["time", "cpu"]), help="Which clock.")
@json_option
@click.option("-o", "--output", metavar="FILE.html", help="Write specifications and call paths as a page.")
@click.option("--export", "export", type=click.Choice(EXPORTS), help="Print them for review, or for another tool.")
@click.option("--merge", is_flag=True, help="Mine every run (or read FILE.yaml ...) and merge one after the other.")
@click.option("--exact", is_flag=True, help="Tell every call path apart (A*), rare ones as well.")
@click.option("--paper", is_flag=True, help="The choices of the paper where ours differ.")
@click.option("--all", "every", is_flag=True, help="All functions, also those of one kind of calls.")
@click.argument("arguments", nargs=-1, metavar="[COMPONENT]... [RUN]... [FILE.yaml]...")
def command(
    experiment: str,
    metric: str,
    as_json: bool,
    output: str | None,
    export: str | None,
    merge: bool,
    exact: bool,
    paper: bool,
    every: bool,
    arguments: tuple[str, ...],
) -> int:
    """Mine specifications from recordings made by ``perflaw record --collect paths``.

    For each function: borders between quick and slow calls, groups of call paths that behave alike, and the call edges
    that tell the groups apart. COMPONENT is a function's name or the end of it.
    """
    from perflaw.cli.mining import Asked, merged, mined
    from perflaw.learn.paths.options import MiningOptions

    files = [word for word in arguments if word.endswith((".yaml", ".yml"))]
    runs = tuple(word for word in arguments if word.isdigit())
    names = [word for word in arguments if word not in files and word not in runs]
    if files and not merge:
        raise UsageError(
            f"{files[0]}: a file of specifications", "files are merged", f"perflaw mine --merge {files[0]}"
        )
    asked = Asked(experiment, metric, runs, tuple(names), MiningOptions(exact=exact, paper=paper), time.time_ns())
    found = merged(asked, files) if merge else mined(asked)
    if output:
        from perflaw.cli.pages import write_mine

        write_mine(output, experiment, found)
    if export:
        _export(export, found, experiment)
    elif as_json:
        from perflaw.report.documents import mine_document
        from perflaw.types.documents import dumps

        click.echo(dumps(mine_document(found.file, [step.found for step in found.steps])))
    else:
        _print(found, every or bool(names))
    return 0


def _print(found: Mined, every: bool) -> None:
    from perflaw.report.mine.table import merge_text, mine_text

    colour = sys.stdout.isatty()
    if found.steps:
        click.echo(merge_text(found.steps, colour))
    click.echo(mine_text([one.spec for one in found.file.specs], colour, every), nl=False)


def _export(kind: str, found: Mined, experiment: str) -> None:
    """Print the specifications in another form."""
    click.echo(_exported(kind, found, experiment), nl=False)


def _exported(kind: str, found: Mined, experiment: str) -> str:
    if kind == "yaml":
        from perflaw.specs.files import spec_yaml

        return spec_yaml(found.file)
    if kind == "pytest":
        from perflaw.report.mine.exports import mine_pytest

        return mine_pytest(found.file, experiment)
    if kind == "prometheus":
        from perflaw.report.mine.exports import mine_prometheus

        return mine_prometheus(found.file)
    from perflaw.report.mine.exports import mine_otlp
    from perflaw.types.documents import dumps

    return dumps(mine_otlp(found.file)) + "\n"
