"""``perflaw compare``: what changed in calls and own costs between two recordings."""

from __future__ import annotations

import sys

import click

from perflaw.cli.options import experiment_option, json_option, print_document


@click.command("compare", short_help="show what changed between two recordings")
@experiment_option
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Cost to compare.")
@click.option("--all", "every", is_flag=True, help="List functions that changed little as well.")
@json_option
@click.argument("sides", nargs=-1, metavar="[OLD [NEW]]")
def command(experiment: str, metric: str, every: bool, as_json: bool, sides: tuple[str, ...]) -> int:
    """Show what changed from OLD to NEW, in calls and own costs. Each is a run's number, or the name of an experiment.

    \b
    perflaw compare                the newest run with the latest one before it of the same features
    perflaw compare 3              the newest run with run 3
    perflaw compare 3 7            run 7 with run 3
    perflaw compare before after   two experiments, a mean run of each

    Every recording is kept, so there is always a history to compare with. `perflaw diff` tests whether laws changed.
    """
    from perflaw.api.profiles import comparison

    document = comparison(experiment, sides, metric)
    if as_json:
        print_document(document)
    else:
        from perflaw.report.comparison import compare_text

        click.echo(compare_text(document, sys.stdout.isatty(), every), nl=False)
    return 0
