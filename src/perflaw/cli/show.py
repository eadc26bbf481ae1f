"""``perflaw show``: where the cost of a recorded run went, from its call tree alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, json_option, print_document, read_recordings, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.types.documents import Document


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
    perflaw show --metric allocated_bytes
    perflaw show -o flame.html 0007
    """
    document = profile_document(experiment, runs, metric)
    if output:
        from perflaw.report.page.flame import flame_page

        write_text(output, flame_page(document), "-o another/file.html")
        click.echo(f"wrote {output}", err=True)
    if as_json:
        print_document(document)
    elif not output:
        from perflaw.report.profile import show_text

        click.echo(show_text(document, sys.stdout.isatty(), every), nl=False)
    return 0


def profile_document(experiment: str, runs: Sequence[str], metric: str | None) -> Document:
    """The document of ``show``: of the runs named, or of the newest run; UsageError where they lack the metric."""
    from perflaw.errors import UsageError
    from perflaw.report.profile import show_document
    from perflaw.store.profiles import newest_execution, read_profile

    recordings = read_recordings(experiment, runs)
    profile = read_profile(recordings if runs else newest_execution(recordings))
    chosen = metric or ("time" if "time" in profile.metrics else next(iter(profile.metrics)))
    if chosen not in profile.metrics:
        why = f"the runs have {', '.join(profile.metrics)}"
        raise UsageError(f"--metric {chosen}: not measured", why, f"perflaw record --metric {chosen} -- …")
    sizes: dict[str, list[float]] = {}
    for recording in recordings:
        for name, value in recording.run.features.items():
            sizes.setdefault(name, []).append(value)
    return show_document(profile, chosen, sizes)
