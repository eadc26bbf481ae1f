"""``%load_ext perflaw``: the cell magic ``%%perflaw``, which records a cell of a notebook and shows where its time went."""

from __future__ import annotations

import html
import shlex
from dataclasses import dataclass
from typing import Any, Final

from perflaw.errors import UsageError

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

        experiment, features, metrics = parse_line(line)
        with record(experiment, features=features, metrics=metrics, exclude=MACHINERY) as recording:
            result = shell.run_cell(cell)
        return ShownCell(f"{recording.load().show()}\n{recording.summary}") if result.success else None

    shell.register_magic_function(perflaw, "cell")


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
