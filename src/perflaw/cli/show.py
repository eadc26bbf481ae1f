"""``perflaw show``: where the cost of a recorded run went, from its call tree alone."""

from __future__ import annotations

import sys

import click

from perflaw.api.reading import write_text
from perflaw.cli.options import experiment_option, json_option, print_document
from perflaw.cli.progress import tell


@click.command("show", short_help="show where the cost of a run went: call tree, functions, allocations")
@experiment_option
@click.option("--metric", metavar="NAME", help="Cost to show: time, cpu, allocated_bytes, …  [default: time]")
@click.option("--all", "every", is_flag=True, help="List contexts, functions and lines of small cost as well.")
@json_option
@click.option("-o", "--output", metavar="FILE.html", help="Write a page with a flame graph.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(
    experiment: str, metric: str | None, every: bool, as_json: bool, output: str | None, runs: tuple[str, ...]
) -> int:
    """Show where the cost of the newest run went, or that of the RUNs named, summed. It takes no sizes.

    \b
    perflaw record -- app.py && perflaw show
    perflaw record --metric memory -- app.py && perflaw show --metric allocated_bytes
    perflaw show -o flame.html 0007
    """
    from perflaw.api.profiles import profile_document

    document = profile_document(experiment, runs, metric)
    if output:
        from perflaw.report.page.flame import flame_page

        write_text(output, flame_page(document), "-o another/file.html")
        tell(f"wrote {output}")
    if as_json:
        print_document(document)
    elif not output:
        from perflaw.report.profile import show_text

        click.echo(show_text(document, sys.stdout.isatty(), every), nl=False)
    return 0
