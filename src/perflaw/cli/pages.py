"""The files of the pages that ``perflaw report``, ``trend``, ``variance`` and ``mine`` write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from perflaw.api.pages import page_of, variance_views
from perflaw.api.reading import write_text
from perflaw.cli.progress import step, tell
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from perflaw.api.mining import MinedSpecs
    from perflaw.learn.variance.tree import Options
    from perflaw.report.page.page import Page
    from perflaw.store.experiment import Recording
    from perflaw.types import Component


def write_page(output: str, page: Page) -> int:
    """Write the page and return its number of characters; StoreError where it cannot be written."""
    from perflaw.report.page.page import render

    with step("writing the page"):
        text = render(page)
        write_text(output, text, "-o another/file.html")
    return len(text)


def write_mine(output: str, experiment: str, mined: MinedSpecs) -> None:
    """Write a page of specifications alone."""
    from perflaw.mine.journal import read_journal
    from perflaw.report.mine.text import MineView
    from perflaw.report.page.page import Page
    from perflaw.store.experiment import open_experiment

    page = Page("specifications", "", "", "", [], [])
    if mined.recordings:
        page = page_of(experiment, mined.recordings, [], None)
    journal = read_journal(open_experiment(experiment).folder) if mined.recordings else []
    size = write_page(output, replace(page, mine=MineView(mined.file, mined.steps, journal)))
    tell(f"wrote {output}: {counted(len(mined.file.specs), 'specification')}, {size / 1e6:.1f} MB")


def write_variance(
    output: str,
    experiment: str,
    recordings: Sequence[Recording],
    metric: str,
    options: Options,
    asked: Component | None,
    against: str | None,
) -> None:
    """Write a page of variance alone, which opens with the function ``asked`` for."""
    views = variance_views(recordings, metric, options, asked, against)
    size = write_page(output, replace(page_of(experiment, recordings, [], None), variance=views))
    patterns = counted(len(views[0].variance.patterns), "pattern")
    tell(f"wrote {output}: {patterns}, {size / 1e6:.1f} MB")
