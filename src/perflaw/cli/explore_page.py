"""The page of ``perflaw explore --page``: written whole beside its place and moved there, so that a reader never sees half."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perflaw.errors import StoreError

if TYPE_CHECKING:
    from perflaw.types.explored import Explored


def write_explore_page(output: str, found: Explored, seed: int) -> None:
    """Write the page; StoreError where it cannot be written."""
    from perflaw.report.explore_html import render_study

    text = render_study(found, seed)
    path = Path(output)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise StoreError(
            f"{output}: cannot be written", error.strerror or str(error), "--page another/file.html"
        ) from error


class LivePage:
    """A page that follows its study: written anew after a trial, unless that would take more than a part of the time."""

    MOST_PART = 0.2
    """Part of the time since it was last written that writing may take."""

    def __init__(self, output: str, result: Callable[[bool], Explored], seed: int) -> None:
        """``result`` gives what the trials so far say, told whether more are to come."""
        self._output, self._result, self._seed = output, result, seed
        self._took = self._wrote = 0.0

    def write(self, unfinished: bool) -> None:
        """Write it; while the study is unfinished only if the last writing was long enough ago."""
        began = time.monotonic()
        if unfinished and began - self._wrote < self._took / self.MOST_PART:
            return
        write_explore_page(self._output, self._result(unfinished), self._seed)
        self._wrote = time.monotonic()
        self._took = self._wrote - began
