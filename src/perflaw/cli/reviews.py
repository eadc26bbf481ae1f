"""Options of ``check`` and ``diff`` for code reviews, and the files that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from perflaw.api.reading import write_text
from perflaw.types.documents import Document, dumps

F = TypeVar("F", bound=Callable[..., Any])


def review_options(function: F) -> F:
    """Add the options for SARIF, Markdown and GitHub's workflow commands."""
    for option in (
        click.option("--github", is_flag=True, help="Also print GitHub's workflow commands."),
        click.option("--markdown", metavar="FILE", help="Write the verdicts as a comment on a pull request."),
        click.option("--sarif", metavar="FILE", help="Write the verdicts as SARIF 2.1.0."),
    ):
        function = option(function)
    return function


def write_reviews(document: Document, sarif: str | None, markdown: str | None, github: bool, err: bool) -> None:
    """Write the files asked for and print workflow commands, these to standard error if ``err``."""
    from perflaw import __version__
    from perflaw.report import reviews

    root = str(Path.cwd())
    if sarif:
        write_text(sarif, dumps(reviews.sarif(document, __version__, root)) + "\n", "--sarif another/file")
    if markdown:
        write_text(markdown, reviews.markdown(document, root), "--markdown another/file")
    if github:
        click.echo(reviews.github(document), nl=False, err=err)
