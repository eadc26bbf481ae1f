"""Remarks and progress of long work, for whoever asked for it: the command line, a notebook, or a program.

The default for remarks is a warning of Python's; progress is shown to nobody.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol


class Show(Protocol):
    """Is told how far the work is."""

    def __call__(self, part: float, left_s: float | None = None, text: str = "") -> None:
        """``part``: the part that is done, 0 to 1; ``left_s``: seconds left where the work knows; ``text`` says more."""


def ignore_progress(part: float, left_s: float | None = None, text: str = "") -> None:
    """Nobody looks."""


class PerflawWarning(UserWarning):
    """A remark on recordings that changes what an answer means."""


def _warn(text: str) -> None:
    warnings.warn(text, PerflawWarning, stacklevel=3)


@contextmanager
def _silently(label: str) -> Iterator[Show]:
    yield ignore_progress


_notice: ContextVar[Callable[[str], None]] = ContextVar("notice", default=_warn)
_Steps = Callable[[str], AbstractContextManager[Show]]
_progress: ContextVar[_Steps | None] = ContextVar("progress", default=None)
_everywhere: _Steps = _silently
"""Who shows progress where nobody was named by :func:`shown_by`: a notebook does."""


def notice(text: str) -> None:
    """Make a remark."""
    _notice.get()(text)


def progress(label: str) -> AbstractContextManager[Show]:
    """A step of the work: a context that shows how far it is, and gives the function to tell it."""
    return (_progress.get() or _everywhere)(label)


def show_progress_by(progress: _Steps) -> None:
    """From now on, progress is shown so in this process, unless :func:`shown_by` says otherwise."""
    global _everywhere
    _everywhere = progress


@contextmanager
def shown_by(notice: Callable[[str], None], progress: _Steps | None = None) -> Iterator[None]:
    """Within, remarks go to ``notice`` and progress to ``progress``."""
    tokens = _notice.set(notice), _progress.set(progress)
    try:
        yield
    finally:
        _notice.reset(tokens[0])
        _progress.reset(tokens[1])
