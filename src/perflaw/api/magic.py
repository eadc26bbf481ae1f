"""``%load_ext perflaw``: the cell magic ``%%perflaw``, which records a cell of a notebook and shows where its time went."""

from __future__ import annotations

import html
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from perflaw.errors import UsageError
from perflaw.notices import Show, progress, show_progress_by
from perflaw.progress import Work

MACHINERY: Final = (
    "IPython.*", "ipykernel.*", "traitlets.*", "jupyter_client.*", "comm.*", "zmq.*", "tornado.*", "asyncio.*", "codeop.*",
    "ast.*", "contextlib.*", "contextvars.*", "threading.*", "selectors.*", "perflaw.*",
)  # fmt: skip
"""What runs a notebook: it is no part of a cell."""


def load_ipython_extension(shell: Any) -> None:
    """Add the magic to a shell of IPython."""

    def perflaw(line: str, cell: str) -> ShownCell | None:
        """Record a cell: ``%%perflaw [EXPERIMENT] [NAME=NUMBER]... [--metric NAME]...``."""
        from perflaw.api.recording import record

        __tracebackhide__ = True  # of a cell that fails, a person sees the cell's own frames
        try:
            experiment, features, metrics = parse_line(line)
        except UsageError as error:
            # IPython shows its own in one line, without the frames of whoever raised it.
            one_line = import_module("IPython.core.error").UsageError
            raise one_line(str(error)) from None
        with (
            progress("recording"),
            record(experiment, features=features, metrics=metrics, exclude=MACHINERY) as recording,
        ):
            with _without_tracebacks(shell):
                result = shell.run_cell(cell)
            if result.error_before_exec:  # in its text: where the compiler stood says nothing
                raise result.error_before_exec.with_traceback(None)
            result.raise_error()  # so that "run all cells" ends here, as without the magic
        with progress("reading the recording"):
            shown = f"{recording.load().show()}\n{recording.summary}"
        return ShownCell(shown)

    shell.register_magic_function(perflaw, "cell")
    show_progress_by(notebook_step)


@contextmanager
def _without_tracebacks(shell: Any) -> Iterator[None]:
    """What the cell raises is shown once, when it has left the magic."""
    shell._showtraceback = lambda *parts: None  # the one place that writes; the class has it again below
    try:
        yield
    finally:
        del shell._showtraceback


@contextmanager
def notebook_step(label: str) -> Iterator[Show]:
    """A step of the work with a line below the cell that says how far it is; it goes when the step is over."""
    display = import_module("IPython.display").display  # not typed, and only notebooks have it

    lines: list[Any] = []

    def draw(text: str) -> None:
        if lines:
            lines[0].update(ShownCell(text))
        else:
            lines.append(display(ShownCell(text), display_id=True))

    work = Work(label, draw)
    try:
        yield work.show
    finally:
        work.close()
        if lines:
            draw("")


@dataclass(frozen=True, slots=True, repr=False)
class ShownCell:
    """Where the time of a cell went, as text that keeps its columns."""

    text: str
    """The call tree and the functions, and what was recorded."""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def parse_line(line: str) -> tuple[str, dict[str, float], list[str]]:
    """Experiment, features and metrics of a line of the magic; UsageError for anything else.

    >>> parse_line("nightly n=1e3 --metric memory")
    ('nightly', {'n': 1000.0}, ['memory'])
    """
    experiment, features, metrics, words = "default", {}, [], shlex.split(line)
    example = "%%perflaw nightly n=1000 --metric memory"
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--metric" and words:
            metrics.append(words.pop(0))
        elif equals:
            try:
                features[name] = float(value)
            except ValueError:
                raise UsageError(f"%%perflaw: {word}", "the value is not a number", example) from None
        elif word.startswith("-"):
            raise UsageError(f"%%perflaw: {word}", "there is no such option", example)
        else:
            experiment = word
    return experiment, features, metrics
