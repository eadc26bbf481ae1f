"""``perflaw diff``: what changed between two sets of laws, recordings or specifications."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from perflaw.api.laws import load_laws
from perflaw.api.mining import is_specification, read_specs
from perflaw.cli.options import json_option, print_document, store_option
from perflaw.cli.progress import note, step
from perflaw.cli.reviews import review_options, write_reviews
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.types import DiffVerdict


@click.command("diff", short_help="show what changed between two sets of laws or recordings")
@click.option(
    "--metric", default="time", show_default=True, metavar="NAME", help="Metric of a side that is an experiment."
)
@click.option("--alpha", default=0.01, show_default=True, type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
              help="Rate of false alarms among the reported changes.")  # fmt: skip
@click.option("--min-effect", default=1.1, show_default=True, type=click.FloatRange(1.0, 1000.0),
              help="Ignore changes by a smaller factor.")  # fmt: skip
@review_options
@click.option("--all", "every", is_flag=True, help="Also list functions that did not change.")
@store_option
@json_option
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
def command(
    metric: str,
    alpha: float,
    min_effect: float,
    sarif: str | None,
    markdown: str | None,
    github: bool,
    every: bool,
    as_json: bool,
    old: str,
    new: str,
) -> int:
    """Show what changed from OLD to NEW. Each is a .law file, its JSON twin, or an experiment.

    Both may also be specifications of call paths, as `perflaw mine --export yaml` writes them.

    Exit status 1 if a function costs more than before, beyond the minimum effect and the scatter between runs.

    \b
    perflaw diff before after
    perflaw diff base.law head.law --markdown comment.md
    """
    from perflaw.check.diffing import DiffSide, compare
    from perflaw.check.judge import CheckOptions
    from perflaw.learn.series.series import without_garbage_collection
    from perflaw.report.documents import diff_document
    from perflaw.report.verdicts import law_verdicts_text

    if is_specification(old) or is_specification(new):
        verdicts = _diff_specs(old, new, alpha, min_effect)
    else:
        with without_garbage_collection():
            before, after = load_laws(old, metric), load_laws(new, metric)
            for remark in filter(None, (before.note, after.note)):
                note(remark)
            first, second = (DiffSide(one.claims, one.evidence, one.program) for one in (before, after))
            with step("comparing"):
                verdicts = compare(first, second, CheckOptions(alpha, min_effect))
    document = diff_document(verdicts)
    if as_json:
        print_document(document)
    else:
        click.echo(law_verdicts_text(document, sys.stdout.isatty(), every), nl=False)
    write_reviews(document, sarif, markdown, github, err=as_json)
    return int(any(verdict.verdict == "violated" for verdict in verdicts))


def _diff_specs(old: str, new: str, alpha: float, min_effect: float) -> list[DiffVerdict]:
    """Verdicts on two files of specifications."""
    from perflaw.check.spec_diffing import compare_specs

    for one, other in ((old, new), (new, old)):
        if not is_specification(other):
            why = f"{one} is a file of specifications, which is compared with another one"
            raise UsageError(f"{other}: no specifications", why, "perflaw mine --export yaml > SPEC.yaml")
    return compare_specs(read_specs(old).specs, read_specs(new).specs, alpha, min_effect)
