"""The call-path view of ``perflaw mine -o`` and ``perflaw report``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perflaw.cli.page_file import page_of, write_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.cli.mining import Mined
    from perflaw.report.mine_model import MineView
    from perflaw.store.experiment import Recording


def mine_view(recordings: Sequence[Recording], experiment: str, metric: str) -> MineView:
    """Specifications of all functions of which call paths were collected, by wall time but where CPU time is asked for."""
    from perflaw.cli.mining import Asked, mined
    from perflaw.learn.paths.options import MiningOptions
    from perflaw.report.mine_model import MineView

    runs, clock = tuple(one.run.id for one in recordings), metric if metric == "cpu" else "time"
    return MineView(mined(Asked(experiment, clock, runs, (), MiningOptions(), time.time_ns())).file)


def write_mine(output: str, experiment: str, mined: Mined) -> None:
    """Write the page of specifications alone."""
    from perflaw.report.mine_model import MineView
    from perflaw.report.page_model import Page

    specs = len(mined.file.specs)
    nothing = Page("specifications", "", "", "", [], [])
    page = page_of(experiment, mined.recordings, [], None) if mined.recordings else nothing
    size = write_page(output, replace(page, mine=MineView(mined.file, mined.steps)))
    click.echo(f"wrote {output}: {specs} specification{'s' * (specs != 1)}, {size / 1e6:.1f} MB", err=True)
