"""What stands beside the output, on standard error: remarks, and on a terminal a progress bar with the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

QUIET_SECONDS = 1.0
"""Time of work after which a progress bar is shown."""


def note(text: str) -> None:
    """Say something beside the output: one line on standard error."""
    click.echo(f"perflaw: {text}", err=True)


@contextmanager
def progress_bar(label: str, clock: Callable[[], float] = monotonic) -> Iterator[Callable[[float], None]]:
    """A function that shows which part of the work is done, up to 1: on a terminal, from the second second on."""
    started, hidden = clock(), not sys.stderr.isatty()
    with ExitStack() as stack:
        bars: list[ProgressBar[int]] = []

        def show(part: float) -> None:
            if hidden or clock() - started < QUIET_SECONDS:
                return
            if not bars:
                bar = click.progressbar(length=100, label=label, file=sys.stderr, show_eta=True)
                bars.append(stack.enter_context(bar))
            bars[0].update(max(round(100 * part) - bars[0].pos, 0))

        yield show
