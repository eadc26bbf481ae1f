"""The page of ``perflaw report`` and ``perflaw trend``: what it says of an experiment, and its file."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perflaw.errors import StoreError

if TYPE_CHECKING:
    from perflaw.report.page_model import Page
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation


def page_of(
    experiment: str, recordings: Sequence[Recording], annotations: Sequence[Annotation], at: dict[str, float] | None
) -> Page:
    """What a page says of an experiment: its newest command, its runs, what they lost."""
    from perflaw.report.page_model import Page

    runs = [recording.run for recording in recordings]
    opened = sum(run.lost.open_invocations for run in runs)
    incomplete = sum(not run.complete for run in runs)
    library = max(run.lost.library_functions for run in runs)
    unselected = max(run.lost.unselected_functions for run in runs)
    lost = [f"{incomplete} runs incomplete"] * bool(incomplete) + [f"{opened} calls had not ended"] * bool(opened)
    left_out = [f"{library} library functions that only libraries call"] * bool(library)
    left_out += [f"{unselected} functions by --select or --exclude"] * bool(unselected)
    return Page(
        target=runs[-1].target,
        experiment=experiment,
        command=" ".join((Path(runs[-1].command[0]).name, *runs[-1].command[1:])),
        created=max(run.started for run in runs),
        runs=[
            {
                "id": run.id,
                "features": dict(run.features),
                "wall_ns": run.wall_ns,
                "complete": run.complete,
                "calls": run.calls,
            }
            for run in runs
        ],
        annotations=annotations,
        slowdown=f"slowdown {statistics.median(run.slowdown for run in runs):.1f}x",
        lost=", ".join(lost) or "nothing lost",
        left_out=f"left out: {', '.join(left_out)}" if left_out else "",
        at=at,
    )


def write_page(output: str, page: Page) -> int:
    """Write the page, and say how many characters it has; StoreError where it cannot be written."""
    from perflaw.report.html import render

    text = render(page)
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{output}: cannot be written", error.strerror or str(error), "-o another/file.html"
        ) from error
    return len(text)
